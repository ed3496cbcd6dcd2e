"""Losses, one family per file. A new loss is one class in a file that is imported here."""

from collections.abc import Mapping
from inspect import isabstract

from tacit.erm.losses.base import AnyLoss as AnyLoss
from tacit.erm.losses.base import Loss as Loss
from tacit.erm.losses.hinge import HingeLoss as HingeLoss
from tacit.erm.losses.hinge import SmoothHingeLoss as SmoothHingeLoss
from tacit.erm.losses.location import DistanceLoss as DistanceLoss
from tacit.erm.losses.location import PointLoss as PointLoss
from tacit.erm.losses.location import SquaredDistanceLoss as SquaredDistanceLoss
from tacit.erm.losses.logistic import LogisticLoss as LogisticLoss
from tacit.erm.losses.logistic import SoftmaxLoss as SoftmaxLoss
from tacit.erm.losses.poisson import PoissonLoss as PoissonLoss
from tacit.erm.losses.poisson import PoissonOffsetLoss as PoissonOffsetLoss
from tacit.erm.losses.quantile import AbsoluteLoss as AbsoluteLoss
from tacit.erm.losses.quantile import QuantileLoss as QuantileLoss
from tacit.erm.losses.squared import HuberLoss as HuberLoss
from tacit.erm.losses.squared import LogCoshLoss as LogCoshLoss
from tacit.erm.losses.squared import SquaredLoss as SquaredLoss

_NAMED = tuple(vars().values())
_FOUND = [kind for kind in _NAMED if isinstance(kind, type) and issubclass(kind, AnyLoss)]
# Every loss by its stored word in saved models.
LOSSES: Mapping[str, type[AnyLoss]] = {
    f"{kind.key}_loss": kind for kind in _FOUND if not isabstract(kind)
}

__all__ = sorted(kind.__name__ for kind in _FOUND)
