"""Check guarantees: fail if a stated constant is wrong; for tacit's tests and for extensions."""

from tacit.testing.events import check_event
from tacit.testing.losses import check_loss, check_point_loss
from tacit.testing.noise import check_noise, exact_delta_1d, exact_epsilon_1d
from tacit.testing.readers import Encoded, Reader, check_reader
from tacit.testing.record_sources import check_record_source
from tacit.testing.replay import check_query, replay

__all__ = [
    "Encoded",
    "Reader",
    "check_event",
    "check_loss",
    "check_noise",
    "check_point_loss",
    "check_query",
    "check_reader",
    "check_record_source",
    "exact_delta_1d",
    "exact_epsilon_1d",
    "replay",
]
