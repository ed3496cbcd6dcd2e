"""One number that says how good a model is, through the Gaussian mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from tacit.metrics.cells import NumberSums
from tacit.metrics.reading import answers_of, labels_of, taken
from tacit.noise import Bounded, Norm, Release, Source, gaussian
from tacit.noise.bounded import round_up
from tacit.privacy import Relation
from tacit.public_facts import codes_of
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
    found = labels_of(labels)
    if relation.by_person:
        if people is None:
            raise ValueError("relation is ADD_REMOVE_PERSON, but nothing says whose records are.")
        kept = people.one_each()
        rows, found = taken(rows, kept), found[kept]
    answers = answers_of(estimator, rows)
    if is_classifier(estimator):
        codes, known = codes_of(found, np.asarray(estimator.classes_))
        said = np.argmax(answers, axis=1) if answers.ndim == 2 else answers > 0.5
        known = known & ~(np.isnan(answers).any(axis=1) if answers.ndim == 2 else np.isnan(answers))
        bounded = Bounded(-float(np.sum(known & (said != codes))), 1.0, Norm.L2, relation)
    else:
        if label_range is None:
            raise ValueError("label_range is not declared; pass label_range=(low, high).")
        low, high = label_range
        total = NumberSums(float(low), float(high)).squares(answers, found)
        # A sum of numbers in [0, 1]: one record, put in or replaced, moves it by at most 1.
        bounded = Bounded(-float(total.value), round_up(total.sensitivity), Norm.L2, relation)
    noisy = gaussian(bounded, noise_multiplier, source)
    return Release(float(noisy.value), noisy.event)
