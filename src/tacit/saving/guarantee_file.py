"""The certificate of a saved model: the event is what counts, its curve is for other readers."""

from __future__ import annotations

from typing import Any

from tacit.privacy import Guarantee, NonPrivate
from tacit.saving.errors import NotAModel
from tacit.saving.text import from_json
from tacit.saving.values import event_of

CERTIFICATE = "guarantee.json"
# A certificate of more releases than this takes longer to evaluate than anybody waits.
MOST_RELEASES = 10**6

_SENTENCES = ("assumptions", "notes")
_KEYS = {"format", "version", "event", "relation", "target_delta", "curve", *_SENTENCES}


def to_certificate(promise: Guarantee) -> bytes:
    """Return the certificate of a guarantee, as `Guarantee.to_json` writes it."""
    return promise.to_json().encode("ascii")


def from_certificate(body: bytes) -> Guarantee:
    """Return the guarantee of a certificate; its curve is not read."""
    record = from_json(body, CERTIFICATE)
    if set(record) != _KEYS:
        raise NotAModel(f"{CERTIFICATE} is not a certificate as tacit writes it.")
    for name in _SENTENCES:
        lines = record[name]
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise NotAModel(f"{CERTIFICATE} has {name} that are not sentences.")
    event = event_of(record["event"], CERTIFICATE)
    if sum(count for _, count in event.leaves()) > MOST_RELEASES:
        raise NotAModel(f"{CERTIFICATE} states more than {MOST_RELEASES} releases.")
    if record["relation"] != event.relation.value:
        raise NotAModel(f"{CERTIFICATE} states another relation than its event.")
    try:
        return Guarantee.from_json(body.decode("utf-8"))
    except (TypeError, ValueError) as why:
        raise NotAModel(f"{CERTIFICATE} is not possible: {why}") from why


def check_promise(model: Any) -> None:
    """Refuse a guarantee that is not the one of the model's own budget and plan."""
    event = model.privacy_.event
    paid = event.would_be if isinstance(event, NonPrivate) else event
    plan = getattr(model, "plan_", None)
    if plan is not None and plan.event != paid:
        raise NotAModel("its guarantee is not about the release that its plan describes.")
