from __future__ import annotations

import pytest
from sklearn.base import is_classifier

from tacit.cli.models import MODELS, kind_for, make_estimator, model_kind
from tacit.cli.running import Refused
from tacit.registry import Predicts
from tacit.schema import ClassTarget, Number, NumberTarget, Schema

AGE = (Number("age", 0, 100),)
ILL = Schema(AGE, ClassTarget("ill", ("no", "yes")))
COST = Schema(AGE, NumberTarget("cost", 0, 1))
THREE = Schema(AGE, ClassTarget("ill", ("no", "yes", "maybe")))


def test_the_names() -> None:
    linear = ["logistic", "svc", "linear", "ridge", "huber", "quantile", "poisson"]
    assert list(MODELS) == [*linear, "kernel_logistic", "kernel_svc", "kernel_ridge"]


@pytest.mark.parametrize("name", MODELS)
def test_each_is_the_estimator_it_says(name: str) -> None:
    kind = model_kind(name)
    estimator = make_estimator(kind, 0.5, 1e-7, mechanism="noisy_gradient", relation="replace")
    assert type(estimator) is kind.model
    assert is_classifier(estimator) == (kind.predicts is Predicts.CLASSES)
    assert (estimator.epsilon, estimator.delta) == (0.5, 1e-7)
    assert (estimator.mechanism, estimator.relation) == ("noisy_gradient", "replace")


def test_the_usual_model() -> None:
    assert kind_for(ILL, None).word == "logistic"
    assert kind_for(COST, None).word == "linear"


@pytest.mark.parametrize(
    ("schema", "name", "said"),
    [
        (ILL, "linear", "choose from logistic, svc"),
        (COST, "svc", "choose from linear, ridge, huber, quantile, poisson"),
        (THREE, "svc", "choose logistic"),
        (ILL, "forest", "is unknown"),
        (Schema(AGE), None, "--target"),
    ],
)
def test_models_that_do_not_fit(schema: Schema, name: str | None, said: str) -> None:
    with pytest.raises(Refused, match=said):
        kind_for(schema, name)


def test_quantile_is_for_quantiles() -> None:
    assert make_estimator(model_kind("quantile"), 1.0, 1e-6, quantile=0.9).quantile == 0.9
    with pytest.raises(Refused, match="--quantile"):
        make_estimator(model_kind("linear"), 1.0, 1e-6, quantile=0.9)
