"""Learn preprocessing from records under a budget: scalers, bounds, vocabulary, PCA."""

from tacit.preprocessing.pca import PrivatePCA
from tacit.preprocessing.quantiles import PrivateMissing, PrivateQuantileBounds
from tacit.preprocessing.standard_scaler import PrivateStandardScaler
from tacit.preprocessing.vocabulary import PrivateVocabulary

__all__ = [
    "PrivateMissing",
    "PrivatePCA",
    "PrivateQuantileBounds",
    "PrivateStandardScaler",
    "PrivateVocabulary",
]
