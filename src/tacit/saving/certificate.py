"""Show the certificate of a saved model without its training data."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.estimators.parameters import positive_class
from tacit.metrics import Evaluation
from tacit.pipeline.private import feature_names_of, summary_of
from tacit.privacy import Guarantee
from tacit.saving.container import NotAModel
from tacit.saving.model_file import read_stored
from tacit.schema import Schema

_MOST_SHOWN = 12


@dataclass(frozen=True)
class Certificate:
    """Public facts and guarantee of a saved model; prints as a page of text.

    Parameters
    ----------
    model
        The model itself.
    kind
        The stored word for its class.
    tacit
        The version of tacit that saved it.
    sha256
        The checksum of the whole file, by which two people can compare copies.
    statement
        The guarantee in plain English.
    parameters
        The model's public parameters, ready for JSON.
    """

    model: Any
    kind: str
    tacit: str
    sha256: str
    statement: str
    parameters: Mapping[str, Any]

    @property
    def estimator(self) -> Any:
        """The model, or the estimator of a `PrivatePipeline` with its guarantee."""
        model = self.model
        return model.released_estimator() if hasattr(model, "released_estimator") else model

    @property
    def schema(self) -> Schema | None:
        """The public schema of the raw tables that the model encodes, if any."""
        encoder = getattr(self.model, "encoder_", None)
        own: Schema | None = getattr(self.model, "schema", None)  # of additive models
        return own if encoder is None else encoder.schema

    @property
    def privacy(self) -> Guarantee:
        """The guarantee, recomputed from the event in the file."""
        promise: Guarantee = self.model.privacy_
        return promise

    @property
    def evaluation(self) -> Evaluation | None:
        """The released evaluation on the records that the fit held out, if any."""
        return getattr(self.model, "evaluation_", None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the weights, ready for JSON."""
        plan = getattr(self.estimator, "plan_", None)
        schema, summary, found = self.schema, summary_of(self.model), self.evaluation
        return {
            "kind": self.kind,
            "tacit": self.tacit,
            "sha256": self.sha256,
            "statement": self.statement,
            "voided_by": list(self.privacy.voided_by),
            "parameters": dict(self.parameters),
            "n_features": self.estimator.n_features_in_,
            "feature_names": _items(self._feature_names()),
            "classes": _items(getattr(self.estimator, "classes_", None)),
            "positive_class": positive_class(self.estimator),
            "summary": None if summary is None else summary.rows(),
            "evaluation": None if found is None else found.to_dict(),
            "plan": None if plan is None else str(plan).splitlines(),
            "schema": None if schema is None else schema.to_dict(),
            "guarantee": json.loads(self.privacy.to_json()),
        }

    def _title(self) -> str:
        title = type(self.estimator).__name__
        if self.schema is None:
            return title
        target = self.schema.target
        return f"{title}{'' if target is None else f' of {target.name!r}'} from a table"

    def _feature_names(self) -> Any:
        names = feature_names_of(self.model)
        return None if names is None else np.array(names)

    def __str__(self) -> str:
        facts = self.to_dict()
        lines = [
            f"{self._title()}, saved by tacit {self.tacit}",
            "",
            self.statement,
            "",
            f"features: {facts['n_features']}{_shown(facts['feature_names'])}",
        ]
        if facts["classes"] is not None:
            lines.append(f"classes: {len(facts['classes'])}{_shown(facts['classes'])}")
            if len(facts["classes"]) == 2:
                lines.append(f"modelled class: {facts['positive_class']}")
        lines += ["parameters:"]
        lines += [f"  {name} = {_short(value)}" for name, value in self.parameters.items()]
        if self.schema is not None:
            lines += ["schema:", *(f"  {line}" for line in self.schema.to_toml().splitlines())]
        if facts["plan"]:
            lines += ["plan:", *(f"  {line}" for line in facts["plan"])]
        if facts["summary"]:
            lines += [
                "summary:",
                *(f"  {line}" for line in str(summary_of(self.model)).splitlines()),
            ]
        if self.evaluation is not None:
            lines += ["evaluation, on records held out:"]
            lines += [f"  {line}" for line in self.evaluation.lines()]
        booking = self.privacy.booking
        if booking is not None:
            lines += [f"ledger: {booking.ledger}, entry {booking.entry}, head {booking.head}"]
        return "\n".join([*lines, f"SHA-256 of the file: {self.sha256}"])


def inspect(path: str | os.PathLike[str]) -> Certificate:
    """Return the certificate of a saved model.

    The file is checked as `load` checks it. The guarantee is computed from the stored event; the
    stored curve is ignored.

    Raises
    ------
    NotAModel
        If the file is not a model, or its event has no computable cost.
    OSError
        If the file does not exist or cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from tacit.location import Mean
    >>> from tacit.saving import inspect, save
    >>> model = Mean(1.0, 1e-6, row_norm=4.0).fit(np.ones((1000, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, pathlib.Path(folder) / "mean.tacit")
    ...     print(inspect(pathlib.Path(folder) / "mean.tacit"))  # doctest: +ELLIPSIS
    Mean, saved by tacit ...
    <BLANKLINE>
    This result is differentially private with epsilon = 1.0000 and delta = 1e-06, ...
    """
    stored, data = read_stored(path)
    try:
        statement = stored.model.privacy_.statement()
    except (ArithmeticError, ValueError, MemoryError, RuntimeWarning) as why:
        raise NotAModel(
            f"the cost of the event in {os.path.basename(os.fsdecode(path))} cannot be computed, "
            "so the file has no guarantee; tacit writes no such event."
        ) from why
    return Certificate(
        model=stored.model,
        kind=stored.record["kind"],
        tacit=stored.record["tacit"],
        sha256=hashlib.sha256(data).hexdigest(),
        statement=statement,
        parameters=stored.record["parameters"],
    )


def _items(array: Any) -> list[Any] | None:
    if array is None:
        return None
    return [x if isinstance(x, bool | int | float | str) else str(x) for x in array.tolist()]


def _shown(items: list[Any] | None) -> str:
    if not items:
        return ""
    more = f", and {len(items) - _MOST_SHOWN} more" if len(items) > _MOST_SHOWN else ""
    return " (" + ", ".join(map(repr, items[:_MOST_SHOWN])) + more + ")"


def _short(value: Any) -> str:
    """Summarise a stored value in a few words."""
    if isinstance(value, dict):
        if "part" in value:
            inside = ", ".join(f"{k}={_short(v)}" for k, v in value["fields"].items())
            return f"{value['part']}({inside})"
        if "array" in value:
            return f"an array of shape {tuple(value['array']['shape'])}"
        return ", ".join(_short(item) for item in value.values())
    if isinstance(value, list):
        return "(" + ", ".join(_short(item) for item in value[:_MOST_SHOWN]) + ")"
    return str(value)
