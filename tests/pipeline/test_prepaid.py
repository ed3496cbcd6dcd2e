"""Classes of somebody else, fitted from what a caller has paid: they charge that, or are refused.

A search and a pipeline charge the whole before any record is read. The exact fit of a class that
neither charges its part nor adds noise must not be released under the whole's epsilon.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as ExactRegression

from tacit.linear_model import LogisticRegression
from tacit.pipeline import PrivatePipeline
from tacit.privacy import Accountant, Budget, PureEpsilon
from tacit.tuning import DisjointSearch, FixedTries, PrivateSearch
from tacit.tuning.trials import Run, Runner

ROWS = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 2))
LABELS = (ROWS[:, 0] > 0.0).astype(int)
SPACE = {"regularization": [3.0, 30.0]}


class Uncharged(LogisticRegression):
    """The exact fit, without a charge."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Any:
        rows, labels = X.read()
        one_of_each = np.array([[1.0, 0.0], [-1.0, 0.0]])
        exact = ExactRegression().fit(np.vstack([rows, one_of_each]), np.append(labels, [1, 0]))
        self.coef_, self.intercept_, self.classes_ = exact.coef_, exact.intercept_, exact.classes_
        self.n_features_in_, self.row_norm_ = 2, 1.5
        return self


class Unread(LogisticRegression):
    """Neither reads nor charges."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Any:
        self.coef_, self.intercept_ = np.ones((1, 2)), np.zeros(1)
        self.classes_, self.n_features_in_, self.row_norm_ = np.array([0, 1]), 2, 1.5
        return self


class Peeking(LogisticRegression):
    """Looks at the records, and charges then."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Any:
        with contextlib.suppress(ZeroDivisionError):
            X.read()
        return super().fit(X, y, sample_weight, unit)


class Cheap(LogisticRegression):
    """Charges less than what was planned."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Any:
        self.accountant.charge(PureEpsilon(1e-3))
        X.read()
        return self


class Stubborn(LogisticRegression):
    """Charges less than what was planned, is refused, and goes on."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Any:
        with contextlib.suppress(RuntimeError):
            self.accountant.charge(PureEpsilon(1e-3))
        return super().fit(X, y, sample_weight, unit)


class Twice(LogisticRegression):
    """Makes two releases, and goes on where the second is refused."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Any:
        super().fit(X, y, sample_weight, unit)
        with contextlib.suppress(RuntimeError):
            super().fit(X, y, sample_weight, unit)
        return self


class Silent(LogisticRegression):
    """Charges, fails, and returns something else without a guarantee."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Any:
        super().fit(X, y, sample_weight, unit)
        del self.privacy_
        return self


class Boasting(LogisticRegression):
    """Says that it cost less than it was charged."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Any:
        super().fit(X, y, sample_weight, unit)
        self.privacy_ = replace(self.privacy_, event=PureEpsilon(1e-3))
        return self


WRONG = {
    Uncharged: "reads the records without a charge",
    Unread: "was fitted without a charge",
    Peeking: "reads the records without a charge",
    Cheap: "about to release",
    Stubborn: "had refused a charge",
    Twice: "had refused a charge",
    Silent: "has no privacy_ about",
    Boasting: "has no privacy_ about",
}


def model_of(kind: Any) -> Any:
    return kind(classes=[0, 1], row_norm=1.5)


@pytest.mark.parametrize("search", [PrivateSearch, DisjointSearch])
@pytest.mark.parametrize("kind", WRONG)
def test_a_search_refuses_a_class_before_anything_is_paid(kind: Any, search: Any) -> None:
    purse = Accountant(Budget(1.0, 1e-6))
    made = search(model_of(kind), SPACE, epsilon=0.5, accountant=purse)
    with pytest.raises(RuntimeError, match=rf"try \({kind.__name__}\) .*{WRONG[kind]}") as said:
        made.fit(ROWS, LABELS)
    assert "Nothing of it is released" in str(said.value)
    assert "super().fit" in str(said.value)
    assert purse.events == ()
    assert not hasattr(made, "best_estimator_")


@pytest.mark.parametrize("kind", WRONG)
def test_a_pipeline_refuses_a_class(kind: Any) -> None:
    made = PrivatePipeline([("last", model_of(kind))], epsilon=0.5)
    with pytest.raises(RuntimeError, match=rf"'last' \({kind.__name__}\) .*{WRONG[kind]}.*super"):
        made.fit(ROWS, LABELS)
    assert not hasattr(made, "estimator_")


class Changing(LogisticRegression):
    """Is honest when it is fitted first, which is before anything is paid, and not afterwards."""

    fits = 0
    then: ClassVar[type[LogisticRegression]] = LogisticRegression

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Any:
        Changing.fits += 1
        if Changing.fits == 1:
            return super().fit(X, y, sample_weight, unit)
        self.__class__ = Changing.then  # type: ignore[assignment]
        return self.fit(X, y, sample_weight, unit)


@pytest.mark.parametrize("search", [PrivateSearch, DisjointSearch])
@pytest.mark.parametrize("kind", WRONG)
def test_no_try_is_released_that_was_not_charged_as_planned(
    kind: Any, search: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its charge it stops the search; after that it is a failed try, of which none hears."""
    monkeypatch.setattr(Changing, "fits", 0)
    monkeypatch.setattr(Changing, "then", kind)
    runs = list[Run]()
    real = Runner.run

    def noted(self: Any, *given: Any) -> Run:
        runs.append(real(self, *given))
        return runs[-1]

    monkeypatch.setattr(Runner, "run", noted)
    law = {"law": FixedTries(2)} if search is PrivateSearch else {}
    made = search(model_of(Changing), SPACE, epsilon=0.5, **law)
    if kind in (Uncharged, Unread, Peeking, Cheap):
        with pytest.raises(RuntimeError, match=WRONG[kind]):
            made.fit(ROWS, LABELS)
        assert not hasattr(made, "best_estimator_")
    else:
        made.fit(ROWS, LABELS)
        assert [run.model for run in runs] == [None, None]
        assert type(made.best_estimator_) is Changing  # the fit to no records


class WithoutAccountant(LogisticRegression):
    """Has nobody to charge."""

    def __init__(self, epsilon: float = 1.0, delta: float = 1e-6) -> None:
        super().__init__(epsilon, delta, classes=[0, 1], row_norm=1.5)


@pytest.mark.parametrize("search", [PrivateSearch, DisjointSearch])
def test_a_class_that_takes_no_accountant_is_refused(search: Any) -> None:
    with pytest.raises(TypeError, match="accountant; got WithoutAccountant"):
        search(WithoutAccountant(), {"delta": [1e-6]}).fit(ROWS, LABELS)


@pytest.mark.parametrize("search", [PrivateSearch, DisjointSearch])
def test_a_search_refuses_an_accountant_of_its_estimator(search: Any) -> None:
    purse = Accountant(Budget(1.0, 1e-6))
    model = LogisticRegression(classes=[0, 1], row_norm=1.5, accountant=purse)
    with pytest.raises(ValueError, match="pass it to the search"):
        search(model, SPACE).fit(ROWS, LABELS)
    assert purse.events == ()
    model.set_params(accountant=None)
    paid = search(model, SPACE, accountant=Accountant(Budget(2.0, 1e-5))).fit(ROWS, LABELS)
    assert paid.best_estimator_.accountant is None
