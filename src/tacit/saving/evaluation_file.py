"""The evaluation of a private pipeline in its file: the noisy sums, from which all else follows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.metrics import Evaluation
from tacit.metrics.evaluating import evaluation_of
from tacit.metrics.planning import plan_of_sums
from tacit.pipeline import PrivatePipeline, taken_apart
from tacit.privacy import Event
from tacit.public_facts import budget_of
from tacit.saving.errors import NotAModel
from tacit.saving.values import Reader, Writer

EVALUATION = "evaluation"


def evaluation_record(model: PrivatePipeline, writer: Writer) -> dict[str, Any]:
    """Return the entry of a file about the records held out, if anything was found on them."""
    found = model.evaluation_
    if found is None or found.sums is None:
        return {}
    return {EVALUATION: writer.write(found.sums, EVALUATION)}


def evaluation_in(
    record: dict[str, Any], reader: Reader, model: PrivatePipeline, held_out: Event | None
) -> Evaluation | None:
    """Return the evaluation of a fitted pipeline whose event for the records held out is known."""
    if EVALUATION not in record:
        return None
    sums = reader.read(record[EVALUATION], EVALUATION)
    plain = isinstance(sums, np.ndarray) and sums.ndim == 1 and sums.dtype == np.float64
    if held_out is None or not plain or not np.all(np.isfinite(sums)):
        raise NotAModel("it has an evaluation that its fit cannot have released.")
    _, estimator = taken_apart(model)
    plan = plan_of_sums(
        budget_of(model.epsilon, model.delta, held_out.relation),
        held_out,
        len(sums),
        classes=getattr(estimator, "classes_", None),
        label_range=getattr(estimator, "label_range", None),
        probabilities=hasattr(estimator, "predict_proba"),
    )
    with np.errstate(all="ignore"):  # sums that nobody released may overflow
        return evaluation_of(plan, sums, model.privacy_)
