"""Steps that learn from records and pay for it, each a transformer with a guarantee."""

from tacit.preprocessing.private.missing import PrivateMissing
from tacit.preprocessing.private.pca import PrivatePCA
from tacit.preprocessing.private.quantile_bounds import PrivateQuantileBounds
from tacit.preprocessing.private.standard_scaler import PrivateStandardScaler
from tacit.preprocessing.private.vocabulary import PrivateVocabulary

__all__ = [
    "PrivateMissing",
    "PrivatePCA",
    "PrivateQuantileBounds",
    "PrivateStandardScaler",
    "PrivateVocabulary",
]
