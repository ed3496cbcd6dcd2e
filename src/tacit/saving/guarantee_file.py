"""The certificate of a saved model: the event is what counts, its curve is for other readers."""

from __future__ import annotations

from typing import Any

from tacit.privacy import Event, Guarantee, NonPrivate
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
    if set(record) - {"booking"} != _KEYS:
        raise NotAModel(f"{CERTIFICATE} is not a certificate as tacit writes it.")
    for name in _SENTENCES:
        lines = record[name]
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise NotAModel(f"{CERTIFICATE} has {name} that are not sentences.")
    event = event_of(record["event"], CERTIFICATE)
    if _releases(event) > MOST_RELEASES:
        raise NotAModel(f"{CERTIFICATE} states more than {MOST_RELEASES} releases.")
    if record["relation"] != event.relation.value:
        raise NotAModel(f"{CERTIFICATE} states another relation than its event.")
    try:
        return Guarantee.from_json(body.decode("utf-8"))
    except (TypeError, ValueError) as why:
        raise NotAModel(f"{CERTIFICATE} is not possible: {why}") from why


def _releases(event: Event) -> int:
    """Return how many releases an event states, those of all parts of the records among them."""
    return sum(n * (sum(map(_releases, leaf.parts())) or 1) for leaf, n in event.leaves())


def check_promise(model: Any) -> None:
    """Refuse a guarantee that is not the one of the model's own budget and plan."""
    event = model.privacy_.event
    paid = event.would_be if isinstance(event, NonPrivate) else event
    plan = getattr(model, "plan_", None)
    if plan is not None and not (paid is not None and is_part_of(plan.event, paid)):
        raise NotAModel("its guarantee is not about the release that its plan describes.")


def is_part_of(event: Event, whole: Event) -> bool:
    """Return whether an event is another, or among those that another is made of.

    What a search or a pipeline promises is about more than the fit that left, and costs no less.
    """
    return _holds(whole.to_dict(), event.to_dict())


def _holds(record: Any, wanted: dict[str, Any]) -> bool:
    if isinstance(record, dict):
        return record == wanted or any(_holds(value, wanted) for value in record.values())
    return isinstance(record, list) and any(_holds(value, wanted) for value in record)
