"""Split a fitted model into encoder, estimator and feature names."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from sklearn import pipeline as sklearn_pipeline
from sklearn.utils.validation import check_is_fitted

from tacit.estimators.parameters import with_table_facts
from tacit.linear_model import Summary
from tacit.pipeline.private import PrivatePipeline
from tacit.pipeline.public import Pipeline, public_steps
from tacit.schema import SchemaEncoder
from tacit.table_model import TableModel


def encoder_and_estimator(model: Any) -> tuple[SchemaEncoder | None, Any]:
    """Return the encoder of a fitted model, if any, and its estimator.

    The estimator has the parameters of its fit, whether declared by the user or by the facts.

    Parameters
    ----------
    model
        A fitted `TableModel`, `PrivatePipeline`, Pipeline or estimator.

    Raises
    ------
    TypeError
        If a Pipeline has a step besides a `SchemaEncoder` and an estimator, or a schema with
        guessed lines that its guarantee does not mention.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.location import Mean
    >>> from tacit.pipeline import encoder_and_estimator
    >>> encoder_and_estimator(Mean().fit(np.ones((9, 2))))
    (None, Mean())
    """
    if isinstance(model, TableModel):
        check_is_fitted(model)
        if isinstance(model.estimator_, PrivatePipeline):
            return encoder_and_estimator(with_encoder(model))
        encoder = SchemaEncoder(
            model.schema, model.dtype, allow_unconfirmed=model.allow_unconfirmed
        )
        return encoder, with_table_facts(model.estimator_, model.schema.facts)
    if isinstance(model, PrivatePipeline):
        check_is_fitted(model)
        return _encoder(model), _whole(model)
    if not isinstance(model, sklearn_pipeline.Pipeline):
        return None, model
    encoder, *rest = public_steps(model)
    if rest:
        raise TypeError(
            f"only a SchemaEncoder and an estimator are saved and reported, and there is a step "
            f"{model.steps[1][0]!r} between them; save or report the estimator alone."
        )
    check_is_fitted(model)
    estimator = model.steps[-1][1]
    said = getattr(getattr(estimator, "privacy_", None), "assumptions", ())
    if not set(encoder.schema.assumptions) <= set(said):
        raise TypeError(
            "the guarantee does not list the lines of the schema that were guessed from the data: "
            "scikit-learn's Pipeline drops that list; fit a tacit.Pipeline."
        )
    if isinstance(model, Pipeline):
        estimator = with_table_facts(estimator, model.facts())
    return encoder, estimator


def encoder_and_row_model(model: Any) -> tuple[SchemaEncoder | None, Any]:
    """Return the encoder of a fitted model, and the model of encoded rows."""
    if isinstance(model, TableModel) and isinstance(model.estimator_, PrivatePipeline):
        model = with_encoder(model)
    if not isinstance(model, PrivatePipeline):
        return encoder_and_estimator(model)
    if _encoder(model) is None:
        return None, model
    rest: PrivatePipeline = copy.copy(model)
    rest.steps = model.steps[1:]
    rest.steps_ = dict(list(model.steps_.items())[1:])
    return _encoder(model), rest


def feature_names_of(model: Any) -> tuple[str, ...] | None:
    """Return the names of the estimator's features, if they have names."""
    if isinstance(model, TableModel) and isinstance(model.estimator_, PrivatePipeline):
        model = with_encoder(model)
    if isinstance(model, PrivatePipeline):
        return model.feature_names_met
    encoder, estimator = encoder_and_estimator(model)
    if encoder is not None:
        return encoder.schema.feature_names
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def summary_of(model: Any) -> Summary | None:
    """Return a fitted model's coefficients with standard errors, if the fit released them."""
    encoder, estimator = encoder_and_estimator(model)
    if not hasattr(estimator, "standard_errors_"):
        return None
    found: Summary = estimator.summary()
    names = feature_names_of(model)
    if names is None:
        return found
    named = found.named(names, None if encoder is None else encoder.schema.references)
    # A step after the encoder may change the scale, so that its units no longer hold.
    whole = model.estimator_ if isinstance(model, TableModel) else model
    is_last = not isinstance(whole, PrivatePipeline) or len(whole.steps) == 2
    if encoder is None or not is_last or names != encoder.schema.feature_names:
        return named
    return named.in_units(encoder.schema.effect_units)


def _encoder(model: PrivatePipeline) -> SchemaEncoder | None:
    first = next(iter(model.steps_.values()))
    return first if isinstance(first, SchemaEncoder) else None


def _whole(model: PrivatePipeline) -> Any:
    """Return the estimator with the guarantee of all releases of the pipeline."""
    estimator, encoder = copy.copy(model.estimator_), _encoder(model)
    if encoder is not None:
        met = model._planner().facts_met(encoder.facts_out())[model.steps[-1][0]]
        estimator = with_table_facts(
            estimator, replace(met, of_people=model.privacy_.relation.by_person)
        )
    elif hasattr(estimator, "row_norm_"):
        estimator.row_norm = estimator.row_norm_
    estimator.privacy_ = model.privacy_
    return estimator


def with_encoder(model: TableModel) -> PrivatePipeline:
    """Return a fitted `TableModel` of a pipeline as one pipeline with the encoder first."""
    check_is_fitted(model)
    inner: PrivatePipeline = model.estimator_
    encoder = SchemaEncoder(model.schema, model.dtype, allow_unconfirmed=model.allow_unconfirmed)
    name = "schema"
    while name in dict(inner.steps):
        name += "_"
    whole: PrivatePipeline = copy.copy(inner)
    whole.steps = [(name, encoder), *inner.steps]
    whole.steps_ = {name: encoder.fit(), **inner.steps_}
    return whole
