"""List the steps that a private pipeline accepts, and those that a saved one may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sklearn import preprocessing
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from tacit.features import (
    FeatureMap,
    Interactions,
    PolynomialFeatures,
    RandomFourierFeatures,
    SplineFeatures,
)
from tacit.pipeline.sklearn_adapters import KNOWN, Stateless, learns_nothing
from tacit.preprocessing import (
    PrivateMissing,
    PrivatePCA,
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PrivateVocabulary,
)
from tacit.schema import SchemaEncoder
from tacit.table_facts import HandsOn, TableFacts

# Transformers that learn from records, and their private alternatives.
_BOUNDS = "PrivateQuantileBounds, or declared ranges in a schema"
_SCALER = "PrivateStandardScaler"
_COUNTERPARTS = {
    "StandardScaler": _SCALER,
    "MinMaxScaler": _BOUNDS,
    "MaxAbsScaler": _BOUNDS,
    "RobustScaler": _BOUNDS,
    "QuantileTransformer": _BOUNDS,
    "PowerTransformer": _SCALER,
    "SimpleImputer": "PrivateMissing",
    "KNNImputer": "PrivateMissing",
    "IterativeImputer": "PrivateMissing",
    "MissingIndicator": "PrivateMissing",
    "PCA": "PrivatePCA",
    "IncrementalPCA": "PrivatePCA",
    "KernelPCA": "PrivatePCA",
    "TruncatedSVD": "PrivatePCA",
    "SelectKBest": "PrivatePCA, or columns chosen beforehand",
    "SelectPercentile": "PrivatePCA, or columns chosen beforehand",
    "VarianceThreshold": "columns chosen beforehand",
    "OneHotEncoder": "an open category in a schema, whose words are learned as PrivateVocabulary "
    "does, or categories=[...] with handle_unknown='ignore'",
    "OrdinalEncoder": "an open category in a schema, or one with declared values",
    "KBinsDiscretizer": "kind = 'intervals' in a schema",
    "SplineTransformer": "tacit.features, whose knots are public",
    "Nystroem": "tacit.features.RandomFourierFeatures, which learns nothing",
    "RBFSampler": "tacit.features.RandomFourierFeatures, which knows its row norm",
}


def admitted(name: str, step: Any) -> HandsOn:
    """Return a step before the estimator as the pipeline uses it, or refuse it.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from tacit.pipeline.steps import admitted
    >>> admitted("scale", StandardScaler())
    Traceback (most recent call last):
        ...
    TypeError: step 'scale' (StandardScaler) learns from the records without privacy, and no...
    """
    if isinstance(step, HandsOn):
        return step
    kind = type(step).__name__
    if isinstance(step, FunctionTransformer):
        raise TypeError(
            f"step {name!r} is a FunctionTransformer, which can mix records (X - X.mean(0)), and "
            "this cannot be checked; wrap it in tacit.pipeline.Vouched(..., row_norm=...) if each "
            "row depends only on its own record, and the guarantee will repeat that."
        )
    if learns_nothing(step):
        return Stateless(step)
    instead = _COUNTERPARTS.get(kind)
    raise TypeError(
        f"step {name!r} ({kind}) learns from the records without privacy, and no guarantee would "
        "cover that; "
        + (
            f"use {instead}."
            if instead
            else "leave it out, or, if it does not, wrap it in Vouched."
        )
    )


def prepared(name: str, step: Any, facts: TableFacts | None) -> HandsOn:
    """Return a public step that is ready for rows with these facts, or refuse it."""
    ready = admitted(name, step)
    # A feature map keeps the facts: predictions will not bring them.
    return clone(ready).fit(facts) if isinstance(ready, FeatureMap) and facts else ready


def check_steps(pipeline: Any) -> None:
    """Refuse invalid names and positions of steps, before anything else is checked."""
    if not pipeline.steps:
        raise ValueError("steps must name at least an estimator, got none; pass [('model', ...)].")
    for step in pipeline.steps:
        if not isinstance(step, (tuple, list)) or len(step) != 2 or not isinstance(step[0], str):
            raise TypeError(
                f"steps must be pairs of a name and a step, got a {type(step).__name__} that is "
                "none; pass [('scaler', ...), ('model', ...)]."
            )
    names = [name for name, _ in pipeline.steps]
    pipeline._validate_names(names)  # scikit-learn's: each once, without "__", none a parameter
    for place, (name, step) in enumerate(pipeline.steps):
        if isinstance(step, PrivateVocabulary):
            raise TypeError(
                f"step {name!r} is a PrivateVocabulary, which learns words, but rows between steps "
                "are numbers; declare an open category in the schema of a SchemaEncoder, and the "
                "pipeline learns its words from a share of the budget."
            )
        if isinstance(step, Pipeline):
            raise TypeError(
                f"step {name!r} is a pipeline itself; put its steps into this one, which then "
                "divides one budget among all."
            )
        if place and isinstance(step, SchemaEncoder):
            raise TypeError(
                f"step {name!r} is a SchemaEncoder, which reads raw tables, and must be "
                "the first; put it there."
            )


def spends(step: Any) -> bool:
    """Return whether a step learns from the records under a budget."""
    return hasattr(step, "plan") and hasattr(step, "get_params") and "epsilon" in step.get_params()


@dataclass(frozen=True)
class StepSpec:
    """A kind of step: its stored word and its released attributes.

    The meaning of a word never changes. A step that learns nothing is stored as its parameters.
    """

    kind: str
    step: type[Any]
    released: tuple[str, ...] = ()
    # Values of parameters that files of an earlier tacit do not have.
    before: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spends(self) -> bool:
        """Whether the step spends budget."""
        return hasattr(self.step, "plan")

    @property
    def is_of_scikit_learn(self) -> bool:
        """Whether the pipeline wraps it in a `Stateless`."""
        return self.step in KNOWN


# Public facts that a feature map remembers of its input rows.
_MAP = ("domain_", "n_features_in_")

# The stored words must not change when a class is renamed.
STEPS: tuple[StepSpec, ...] = (
    StepSpec("interactions", Interactions, _MAP, {"pairs": "all"}),
    StepSpec("polynomial_map", PolynomialFeatures, _MAP),
    StepSpec("random_fourier_features", RandomFourierFeatures, (*_MAP, "seed_", "bandwidth_")),
    StepSpec("spline_features", SplineFeatures, _MAP),
    StepSpec("private_missing", PrivateMissing, PrivateMissing._released),
    StepSpec("private_pca", PrivatePCA, PrivatePCA._released),
    StepSpec("private_quantile_bounds", PrivateQuantileBounds, PrivateQuantileBounds._released),
    StepSpec("private_standard_scaler", PrivateStandardScaler, PrivateStandardScaler._released),
    StepSpec("private_vocabulary", PrivateVocabulary, PrivateVocabulary._released),
    StepSpec("binarizer", preprocessing.Binarizer),
    StepSpec("normalizer", preprocessing.Normalizer),
    StepSpec("one_hot_encoder", preprocessing.OneHotEncoder),
    StepSpec("polynomial_features", preprocessing.PolynomialFeatures),
)
