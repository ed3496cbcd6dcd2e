"""Which steps a private pipeline takes, and why it refuses the others."""

from __future__ import annotations

from typing import Any

from sklearn.preprocessing import FunctionTransformer

from tacit.pipeline.stateless import Stateless, learns_nothing
from tacit.preprocessing import SchemaEncoder
from tacit.preprocessing.private import PrivateVocabulary
from tacit.table_facts import HandsOn

# What learns from records, and what does so under a budget.
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
            "nothing rules that out; wrap it in tacit.pipeline.Vouched(..., row_norm=...) if each "
            "row comes of its own record alone, and the guarantee will repeat that."
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


def check_steps(pipeline: Any) -> None:
    """Refuse steps whose names or places would be mistaken, before anything else is asked."""
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
                f"step {name!r} is a PrivateVocabulary, which learns words, and rows between steps "
                "are numbers; declare an open category in the schema of a SchemaEncoder, and the "
                "pipeline learns its words from a share of the budget."
            )
        if place and isinstance(step, SchemaEncoder):
            raise TypeError(
                f"step {name!r} is a SchemaEncoder, which reads tables as they come, and must be "
                "the first; put it there."
            )


def spends(step: Any) -> bool:
    """Return whether a step learns from the records and pays for it."""
    return hasattr(step, "plan") and hasattr(step, "get_params") and "epsilon" in step.get_params()
