"""Release the best of a secret number of private fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacit.checks import names_of_today
from tacit.engine import Plan, release_answers
from tacit.estimators.parameters import budget_of, source_of, warn_if_weak
from tacit.noise import Source, secure_source
from tacit.noise.selection.finite import draw_tries
from tacit.privacy import AnyAccountant, Budget, Event, Relation
from tacit.privacy.accounting.number_of_trials import TriesLaw, TruncatedNegativeBinomial
from tacit.queries import Session, Slot
from tacit.queries.session import BestOfTries, Split
from tacit.records.splits import new_key
from tacit.tuning import records
from tacit.tuning.planning import Tries, plan_of, plan_tries
from tacit.tuning.space import candidates
from tacit.tuning.trials import Draw, HeldOut, PublicScore, Run, Runner

TRAIN, HELD_OUT = 0, 1


def _best_has(method: str) -> Any:
    def check(self: Any) -> bool:
        return hasattr(getattr(self, "best_estimator_", None) or self.estimator, method)

    return check


class BaseSearch(MetaEstimatorMixin, BaseEstimator):
    """What is asked of a search when it has been fitted, it asks its best fit."""

    estimator: Any
    best_estimator_: Any

    def __sklearn_tags__(self) -> Any:
        """Be to scikit-learn what the estimator is."""
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        tags.input_tags.sparse = own.input_tags.sparse
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a best fit."""
        return hasattr(self, "best_estimator_")

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, of a classifier."""
        check_is_fitted(self)
        classes: npt.NDArray[Any] = self.best_estimator_.classes_
        return classes

    @property
    def declared_classes_(self) -> npt.NDArray[Any]:
        """The classes in their declared order, if it is not that of ``classes_``."""
        classes: npt.NDArray[Any] = self.best_estimator_.declared_classes_
        return classes

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return what the best fit predicts."""
        return self._ask("predict", X)

    @available_if(_best_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """Return the best fit's probabilities."""
        return self._ask("predict_proba", X)

    @available_if(_best_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> npt.NDArray[Any]:
        """Return the best fit's scores."""
        return self._ask("decision_function", X)

    @available_if(_best_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any = None) -> float:
        """Return the best fit's accuracy, or R^2, on these records: exact, and not private.

        `tacit.metrics.evaluate` says it of records that need protection.
        """
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    def _ask(self, method: str, X: Any) -> npt.NDArray[Any]:
        check_is_fitted(self)
        answer: npt.NDArray[Any] = getattr(self.best_estimator_, method)(X)
        return answer


class PrivateSearch(BaseSearch):
    """Chooses parameters by trying them, within one budget for all tries together.

    A secret number K of candidates is drawn and fitted, each is scored, and the best fit is
    released: its model and its parameters. Nothing of the others is released, not even their
    number. That costs about one and a half times the noise of a single fit (`plan` says how much),
    whereas K separate fits would cost sqrt(K) times its noise.

    Parameters
    ----------
    estimator : estimator or PrivatePipeline
        What is fitted; its own budget does not count.
    param_distributions : dict
        What to try: for each parameter, by the name that ``set_params`` takes, a list of values or
        a law such as `LogUniform`. Public: not chosen in view of the records.
    mean_tries : float, default=20
        The average number of candidates to fit.
    law : TriesLaw or None
        The law of K, in place of ``mean_tries``; by default geometric. `Capped` bounds the
        time; `Poisson` varies less, and costs more.
    scoring : HeldOut, PublicScore or None
        How candidates are compared: on a fifth of the records by default, with noise.
    n_iter : int, default=16
        How many points stand for what there is to try, where it has laws or more combinations.
    epsilon, delta, relation, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`, for the whole search.

    Attributes
    ----------
    best_estimator_ : estimator
        The best fit, with the guarantee of the search.
    best_params_ : dict
        Its parameters.
    privacy_ : Guarantee
        The guarantee of the search.
    plan_ : Plan
        The plan of the search.

    Notes
    -----
    **Guarantee**: that of `tacit.privacy.BestOf` (docs/proofs/best_of.md). Every trial that was
    started is finished; one that fails counts as the worst. If nothing was tried (K = 0, under
    `Poisson`) or all failed, a fit to no records is released.

    **Assumes** that nobody measures the time of the search, which would reveal K.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.tuning import LogUniform, PrivateSearch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5_000, 2))
    >>> model = LogisticRegression(classes=[0, 1], row_norm=1.5)
    >>> search = PrivateSearch(
    ...     model, {"regularization": LogUniform(1, 1000)}, 5, n_iter=4, epsilon=2.0
    ... )
    >>> search = search.fit(X, (X[:, 0] > 0).astype(int))
    >>> list(search.best_params_)
    ['regularization']
    >>> bool(search.privacy_.epsilon(1e-6) <= 2.0)
    True
    """

    @names_of_today
    def __init__(
        self,
        estimator: Any,
        param_distributions: Mapping[str, Any],
        mean_tries: float = 20.0,
        *,
        law: TriesLaw | None = None,
        scoring: HeldOut | PublicScore | None = None,
        n_iter: int = 16,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.mean_tries = mean_tries
        self.law = law
        self.scoring = scoring
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def plan(self, n_features: int | None = None, n_records: int | None = None) -> Plan:
        """Plan a search, its cost and its noise, without data.

        Parameters
        ----------
        n_features
            The number of columns; a `TableModel` or a pipeline with a schema knows it.
        n_records
            The number of rows, if known.
        """
        budget, law, score = self._checked()
        unread = records.expected(self.estimator, n_features, n_records, budget)
        warn_if_weak(budget, unread.n_records or n_records)
        n_train = _share_of(unread.n_records, 1.0 - score.share)
        return plan_of(self._tries(budget, law, score, unread, n_train), budget, law)

    def fit(self, X: Any, y: Any = None, unit: None = None) -> Self:
        """Search on records ``X`` with labels ``y``, which are read after the charge.

        ``unit`` is refused: the guarantee of a search is for one record, not for one person.
        """
        records.refuse_unit(unit)
        budget, law, score = self._checked()
        unread = records.unread(self.estimator, X, y, budget)
        if score.share:
            records.check_can_be_split(unread, budget.relation)
        warn_if_weak(budget, unread.n_records)
        source = source_of(self.random_state)
        secret = secure_source() if source is None else source
        key, n_train = new_key(secret), unread.n_records
        split = Split((1.0 - score.share, score.share), key) if score.share else None
        if split is not None:
            n_train = split.sizes(n_train, budget.relation)[TRAIN]
        tries = self._tries(budget, law, score, unread, n_train)
        draws = _drawn(law, len(tries.each), secret, seeded=source is not None)
        public = score if isinstance(score, PublicScore) else None
        runner = Runner(self.estimator, unread, tries, source, public)
        plan, default = plan_of(tries, budget, law), runner.default()
        assumed = unread.assumed(self.estimator, (one.parameters for one in tries.each), budget)

        # The number of trials stays secret: the stored plan does not contain it.
        paid = {"best": Slot(tries.event, BestOfTries(len(draws)))}

        def work(session: Session) -> Run:
            parted = session if split is None else session.on(split)
            return runner.best(parted, draws, n_train, default)

        released = release_answers(
            replace(plan, paid=paid),
            lambda: records.opened(self.estimator, unread),
            work,
            accountant=self.accountant,
            source=source,
            assumptions=tuple(dict.fromkeys((*assumed, *score.assumptions))),
        )
        note = f"The best of a secret number of fits was released, {law.mean:.3g} on average."
        self.privacy_ = replace(released.privacy, notes=(note,))
        self.plan_ = plan
        self.best_params_ = dict(released.value.parameters or {})
        self.best_estimator_ = records.best_of(self, released.value.model, self.privacy_, X)
        return self

    def _checked(self) -> tuple[Budget, TriesLaw, HeldOut | PublicScore]:
        """Check and return budget, law and score."""
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        if budget.relation.by_person:
            raise ValueError("a search protects one record; do not pass 'add_remove_person'.")
        records.check_model(self.estimator)
        law = TruncatedNegativeBinomial.of_mean(self.mean_tries) if self.law is None else self.law
        if not isinstance(law, TriesLaw):
            raise TypeError(f"law must be a law of the number of tries, got {law!r}.")
        score = HeldOut() if self.scoring is None else self.scoring
        if not isinstance(score, HeldOut | PublicScore):
            raise TypeError(f"scoring must be HeldOut(...) or PublicScore(X, y), got {score!r}.")
        return budget, law, score

    def _tries(
        self,
        budget: Budget,
        law: TriesLaw,
        score: HeldOut | PublicScore,
        unread: records.Unread,
        n_train: int | None,
    ) -> Tries:
        """Return each candidate with its budget, planned from public facts."""
        found = candidates(self.param_distributions, self.n_iter)
        records.check_space(self.estimator, list(found[0]))
        for candidate in found:
            records.configured(self.estimator, candidate, budget)

        def plan_fit(parameters: Mapping[str, Any], own: Budget) -> Event:
            model = records.configured(self.estimator, parameters, own)
            event: Event = model.plan_of(unread.of_part(n_train), weighted=False).event
            return event

        return plan_tries(found, plan_fit, budget, law, scored=score.share > 0.0)


def _share_of(n_records: int | None, share: float) -> int | None:
    return None if n_records is None else max(round(share * n_records), 1)


def _drawn(law: TriesLaw, n_candidates: int, source: Source, *, seeded: bool) -> list[Draw]:
    """Return K draws. They do not depend on records, and are not released."""
    count = draw_tries(law, source)
    words = source.words(3 * max(count, 1)).reshape(-1, 3)[:count].tolist()
    return [
        Draw(which % n_candidates, tie, seed % 2**31 if seeded else None)
        for which, tie, seed in words
    ]
