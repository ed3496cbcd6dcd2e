"""One number that says how good a model is, through the Gaussian mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from tacit.metrics.reading import answered
from tacit.noise import Release, Source
from tacit.privacy import Relation
from tacit.queries import GaussianNoise, NoisySum, Session, Slot, Statistic, plain_facts
from tacit.queries.evaluation import SquaredResiduals, WrongAnswers
from tacit.records.people import People


def private_score(
    estimator: Any,
    rows: Any,
    labels: Any,
    noise_multiplier: float,
    *,
    relation: Relation = Relation.ADD_REMOVE,
    label_range: tuple[float, float] | None = None,
    people: People | None = None,
    source: Source | None = None,
) -> Release[float]:
    """Return a noisy score of a model on records; more is better.

    Parameters
    ----------
    estimator
        A fitted classifier or regressor.
    rows, labels
        The records. One that the model fails on, or whose label is none, adds nothing.
    noise_multiplier
        Standard deviation of the noise over the sensitivity.
    relation
        Which data sets are neighbours.
    label_range
        The least and greatest label, of a regressor.
    people
        Whose each record is, under ADD_REMOVE_PERSON: one record of each counts.
    source
        The randomness; a secure one by default.

    Returns
    -------
    Release
        Less the number of mistakes; of a regressor, less the sum of squared residuals in units of
        the width of ``label_range``. One record moves it by at most 1, whatever the relation. The
        event is ``Gaussian(noise_multiplier, relation)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from tacit.metrics import private_score
    >>> X, y = np.array([[0.0], [1.0]] * 50), np.array([0, 1] * 50)
    >>> model = LogisticRegression().fit(X, y)
    >>> bool(-50 < private_score(model, X, y, 4.0).value < 50)
    True
    """
    statistic: Statistic
    if is_classifier(estimator):
        statistic = WrongAnswers(np.asarray(estimator.classes_))
    elif label_range is None:
        raise ValueError("label_range is not declared; pass label_range=(low, high).")
    else:
        low, high = label_range
        statistic = SquaredResiduals(float(low), float(high))
    query, facts = NoisySum(statistic, GaussianNoise(noise_multiplier)), plain_facts(relation)
    event = query.event(facts)
    held = answered(estimator, rows, labels, people, relation=relation)
    session = Session(held, facts, event, {"score": Slot(event)}, source)
    return session.release(float(np.asarray(session.ask(query, "score"))))
