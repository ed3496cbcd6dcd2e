"""People and servers for the tests of the protocol."""

import struct
import zlib

import numpy as np

from tacit.local.client import Client
from tacit.local.learners import Banco, state_to_bytes
from tacit.local.protocol import Agreement, Rejected, Report
from tacit.local.sanitizers import PrivUnit, SphereNoise
from tacit.local.server import Server
from tacit.local.subgradients import Logistic

D = 5


def agreement(**changes):
    sanitizer = changes.pop("sanitizer", None) or SphereNoise(epsilon=4.0, n_features=D)
    return Agreement(changes.pop("loss", Logistic()), sanitizer, **changes)


def cap_agreement():
    return agreement(sanitizer=PrivUnit(epsilon=4.0, n_features=D))


def server(agreed=None, **options):
    agreed = agreed or agreement()
    return Server(Banco(agreed.sanitizer.tail, agreed.sanitizer.norm), agreed, **options)


def person(agreed, seed=0, **options):
    rng = np.random.default_rng(seed)
    label = float(rng.choice([-1.0, 1.0]))
    return Client(rng.normal(size=agreed.n_columns) + label, label, agreed, **options)


def report(agreed, number, *, token=None, steps=None, **changes):
    """A possible report that no noise was drawn for: quick, and told apart by its number."""
    if steps is None:
        steps = np.arange(agreed.n_features, dtype=np.int64) + number % 100
    token = number.to_bytes(16, "little") if token is None else token
    fields = {"task": agreed.task, "step_bytes": agreed.step_bytes} | changes
    return Report(fields["task"], number, token, steps, fields["step_bytes"]).to_bytes()


def sent(asked, data):
    """Why a report is rejected, or None if it counts."""
    try:
        asked.receive(data)
    except Rejected as error:
        return error.reason
    return None


def everything(asked):
    """All that a server is, as bytes."""
    return state_to_bytes(asked.state), asked.question(), frozenset(asked._tokens), asked._is_whole


def sealed(body):
    """Return a body with its checksum: what only somebody who means harm would write."""
    return body + struct.pack("<I", zlib.crc32(body))
