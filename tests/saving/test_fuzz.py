"""Files that somebody or something changed: refused with a reason, and nothing but a reason.

Two kinds of change. *Damage* leaves the checksums as they were, or breaks the container: no model
may come of it. A *forgery* has checksums that fit: no checksum can stop it, so it is either refused
or a model that works, and no other error ever escapes.

``TACIT_FUZZ_CASES`` sets how many files are tried; 10,000 belong to a release.
"""

from __future__ import annotations

import io
import json
import os
import struct
import warnings
import zipfile
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from tacit.pipeline import PrivatePipeline
from tacit.privacy import Guarantee
from tacit.saving import NotAModel
from tacit.saving.container import _zipped, pack, unpack
from tacit.saving.model_file import load_bytes
from tests.saving.helpers import PEOPLE, fingerprint, saved

CASES = int(os.environ.get("TACIT_FUZZ_CASES", "400"))
NAMES = ["logistic", "softmax_words", "svc", "linear", "mean", "median", "table", "logistic_seeded"]
# No deadline: the first case of a name fits its model.
fuzz = settings(
    max_examples=CASES // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

files = st.sampled_from(NAMES)
HOSTILE_NAMES = [
    "../../etc/passwd",
    "/etc/passwd",
    "C:\\windows\\x.npy",
    "a/b.npy",
    "model.json",
    "guarantee.json",
    "released.coef_.npy",
    "released.extra.npy",
    "sha256.txt",
    "x.pkl",
    "",
    ".",
    "é.npy",
    "n" * 300 + ".npy",
    "model.json\0.npy",
]


# -- damage ------------------------------------------------------------------------------------


@st.composite
def flipped(draw: st.DrawFn) -> bytes:
    data = bytearray(saved(draw(files)))
    for place in draw(st.sets(st.integers(0, 8 * len(data) - 1), min_size=1, max_size=8)):
        data[place // 8] ^= 1 << place % 8
    return bytes(data)


@st.composite
def truncated(draw: st.DrawFn) -> bytes:
    data = saved(draw(files))
    return data[: draw(st.integers(0, len(data) - 1))]


@st.composite
def spliced(draw: st.DrawFn) -> bytes:
    data = saved(draw(files))
    start, stop = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
    other = saved(draw(files))
    piece = draw(st.one_of(st.binary(max_size=200), st.just(data[start:stop]), st.just(other)))
    keep = draw(st.booleans())
    return data[:start] + piece + data[start if keep else stop :]


@st.composite
def member_appended(draw: st.DrawFn) -> bytes:
    """What a zip program does that adds a member, perhaps a whole model."""
    data = io.BytesIO(saved(draw(files)))
    body = draw(st.one_of(st.binary(max_size=50), files.map(saved)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of doubled names, and writes them
        with zipfile.ZipFile(data, "a") as opened:
            opened.writestr(draw(st.sampled_from([n for n in HOSTILE_NAMES if n])), body)
    return data.getvalue()


@st.composite
def rezipped(draw: st.DrawFn) -> bytes:
    """What a zip program makes of the members, in another order, compressed, or one left out."""
    members = list(_with_checksums(draw(files)).items())
    if draw(st.booleans()):
        members = draw(st.permutations(members))
    out = io.BytesIO()
    how = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]))
    with zipfile.ZipFile(out, "w", how) as opened:
        for name, body in members[draw(st.integers(0, 1)) :]:
            opened.writestr(name, body)
    return out.getvalue()


@st.composite
def sizes_declared(draw: st.DrawFn) -> bytes:
    """Sizes in the zip's own headers that are huge, negative or just wrong."""
    data = bytearray(saved(draw(files)))
    places = [
        i for i in range(len(data)) if bytes(data[i : i + 4]) in (b"PK\x03\x04", b"PK\x01\x02")
    ]
    place = draw(st.sampled_from(places))
    offset = draw(st.sampled_from([14, 18, 22, 26, 28, 20, 24, 42, 46]))
    size = draw(st.one_of(st.integers(0, 2**32 - 1), st.sampled_from([2**32 - 1, 2**31, 0])))
    data[place + offset : place + offset + 4] = struct.pack("<I", size)
    return bytes(data)


@st.composite
def members_swapped(draw: st.DrawFn) -> bytes:
    """Bodies moved between members, the zip made right and the checksums left as they were."""
    members = _with_checksums(draw(files))
    one, two = draw(st.permutations(list(members)).map(lambda names: names[:2]))
    members[one], members[two] = members[two], members[one]
    return _zipped(members)


@st.composite
def member_replaced(draw: st.DrawFn) -> bytes:
    """A body edited, the zip made right and the checksums left as they were."""
    members = _with_checksums(draw(files))
    name = draw(st.sampled_from(list(members)))
    other = _with_checksums(draw(files))
    members[name] = draw(
        st.one_of(
            st.binary(max_size=100),
            st.sampled_from(list(other.values())),
            edits(members[name]) if name.endswith(".json") else st.just(b""),
        )
    )
    return _zipped(members)


nested = files.map(lambda name: _zipped({"model.json": saved(name)}))
noise = st.binary(max_size=300).flatmap(lambda b: st.sampled_from([b, b"PK\x03\x04" + b]))


# -- forgery -----------------------------------------------------------------------------------

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["add_remove", "replace", "infer", "auto", "<f8", "<f4", "|O", "\ud800"]),
    st.sampled_from([0, -1, 1, 2, 3, 10**9, 10**18, 1e-300, 1e300]),
)
tagged = st.one_of(
    st.sampled_from(["inf", "-inf", "nan"]).map(lambda word: {"float": word}),
    st.sampled_from(["plan", "l2_ball", "noisy_sgd", "os.system", "budget"]).map(
        lambda word: {"part": word, "fields": {}}
    ),
    st.lists(scalars, max_size=3).map(lambda items: {"tuple": items}),
    st.lists(scalars, max_size=3).map(lambda items: {"objects": items}),
    st.lists(st.integers(-1, 10**18), max_size=4).map(
        lambda shape: {"array": {"dtype": "<f8", "shape": shape, "fortran_order": False}}
    ),
    st.sampled_from([{"event": {"kind": "gaussian"}}, {"relation": "replace"}, {"map": {}}]),
)
values = st.one_of(
    scalars,
    tagged,
    st.lists(st.one_of(scalars, tagged), max_size=4),
    st.dictionaries(st.text(max_size=5), scalars, max_size=3),
)


def places(record: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in a JSON document, as what holds it and the key under which."""
    for key in record if isinstance(record, dict) else range(len(record)):
        yield record, key
        if isinstance(record[key], dict | list):
            yield from places(record[key])


DEEP = "a deep nest"


@st.composite
def edits(draw: st.DrawFn, body: bytes) -> bytes:
    """A JSON member with some of its values replaced, moved, removed or added."""
    record = json.loads(body)
    for _ in range(draw(st.integers(1, 3))):
        every = list(places(record))
        if not every:
            break
        holder, key = draw(st.sampled_from(every))
        action = draw(st.sampled_from(["replace", "replace", "copy", "remove", "add", "deepen"]))
        if action == "replace":
            holder[key] = deepcopy(draw(values))  # drawn dictionaries are shared between cases
        elif action == "copy":
            other, where = draw(st.sampled_from(every))
            holder[key] = deepcopy(other[where])
        elif action == "remove":
            del holder[key]
        elif action == "add" and isinstance(holder, dict):
            holder[draw(st.text(max_size=5))] = deepcopy(draw(values))
        elif action == "deepen":
            holder[key] = DEEP
    # As text, so that the depth troubles the reader under test and not this function.
    depth = draw(st.sampled_from([1, 100, 300, 900, 5000]))
    return json.dumps(record).replace(f'"{DEEP}"', "[" * depth + "]" * depth).encode()


@st.composite
def json_forged(draw: st.DrawFn) -> bytes:
    members = unpack(saved(draw(files)))
    name = draw(st.sampled_from(["model.json", "model.json", "guarantee.json"]))
    members[name] = draw(edits(members[name]))
    return pack(members)


@st.composite
def json_torn(draw: st.DrawFn) -> bytes:
    """JSON that is not JSON, or not JSON as tacit writes it."""
    members = unpack(saved(draw(files)))
    name = draw(st.sampled_from(["model.json", "guarantee.json"]))
    text = members[name].decode()
    place = draw(st.integers(0, len(text)))
    piece = draw(
        st.sampled_from(
            ["NaN", "-Infinity", "1e999", "9" * 5000, '"a":1,"a":2,', "\\ud800", "[" * 3000, "\0"]
        )
    )
    members[name] = (text[:place] + piece + text[place:]).encode()
    if draw(st.booleans()):
        members[name] = draw(st.sampled_from([b"[" * 100_000, b"\xff\xfe", b"[]", b"{}", b"null"]))
    return pack(members)


@st.composite
def arrays_forged(draw: st.DrawFn) -> bytes:
    """Arrays swapped, taken from other models, changed in a byte, or pickled."""
    members = unpack(saved(draw(files)))
    other = unpack(saved(draw(files)))
    names = [name for name in members if name.endswith(".npy")]
    name = draw(st.sampled_from(names))
    pickled = io.BytesIO()
    np.save(pickled, np.array([print], dtype=object), allow_pickle=True)
    changed = bytearray(members[name])
    changed[draw(st.integers(0, len(changed) - 1))] = draw(st.integers(0, 255))
    members[name] = draw(
        st.one_of(
            st.sampled_from([members[n] for n in names]),
            st.sampled_from(list(other.values())),
            st.just(bytes(changed)),
            st.just(pickled.getvalue()),
            st.binary(max_size=200),
            st.just(members[name] + b"\0" * 8),
        )
    )
    return pack(members)


@st.composite
def members_forged(draw: st.DrawFn) -> bytes:
    """Members added, dropped, renamed or put in another order; whole models as members."""
    members = list(unpack(saved(draw(files))).items())
    place = draw(st.integers(0, len(members) - 1))
    name = draw(st.sampled_from([n for n in HOSTILE_NAMES if n.isascii()]))
    action = draw(st.sampled_from(["add", "drop", "rename", "shuffle", "nest"]))
    if action == "add":
        members.insert(place, (name, draw(st.binary(max_size=50))))
    elif action == "nest":
        members.insert(place, (name, saved(draw(files))))
    elif action == "drop":
        del members[place]
    elif action == "rename":
        members[place] = (name, members[place][1])
    else:
        members = draw(st.permutations(members))
    return pack(dict(members))


@st.composite
def parts_of_two(draw: st.DrawFn) -> bytes:
    """The guarantee of one model in the file of another."""
    members = unpack(saved(draw(files)))
    members["guarantee.json"] = unpack(saved(draw(files)))["guarantee.json"]
    return pack(members)


def _with_checksums(name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(saved(name))) as opened:
        return {member: opened.read(member) for member in opened.namelist()}


def outcome(data: bytes) -> Any:
    """Return the model, or None if the file was refused as it should be."""
    try:
        return load_bytes(data).model
    except NotAModel as why:
        reason = str(why)
    assert reason
    assert reason.isprintable()
    assert len(reason) < 1000
    return None


def use(model: Any) -> None:
    """Do what one does with a model; a forged one must not break, whatever it says."""
    assert isinstance(model.privacy_, Guarantee)
    assert isinstance(str(getattr(model, "plan_", None)), str)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # overflow, or names of columns that were forged
        if isinstance(model, PrivatePipeline):
            table = {column.name: [1, 2] for column in model.schema.columns}
            table = PEOPLE if set(table) <= set(PEOPLE) else table
            assert len(model.predict(table)) == len(table[next(iter(table))])
        elif hasattr(model, "predict"):
            assert model.predict(np.zeros((5, model.n_features_in_))).shape == (5,)
        else:
            assert model.location_.shape == (model.n_features_in_,)


DAMAGES = {
    "flipped": flipped(),
    "truncated": truncated(),
    "spliced": spliced(),
    "member appended": member_appended(),
    "rezipped": rezipped(),
    "sizes declared": sizes_declared(),
    "members swapped": members_swapped(),
    "member replaced": member_replaced(),
    "nested": nested,
    "noise": noise,
}
FORGERIES = {
    "json forged": json_forged(),
    "json torn": json_torn(),
    "arrays forged": arrays_forged(),
    "members forged": members_forged(),
    "parts of two": parts_of_two(),
}


def labelled(strategies: dict[str, st.SearchStrategy[bytes]]) -> st.SearchStrategy[Any]:
    return st.one_of([s.map(lambda data, n=n: (n, data)) for n, s in strategies.items()])


@fuzz
@given(labelled(DAMAGES))
def test_no_model_comes_of_damage(case: tuple[str, bytes]) -> None:
    how, data = case
    assume(data not in {saved(name) for name in NAMES})  # nothing inserted, or a whole file
    event(how)
    assert outcome(data) is None


@fuzz
@given(labelled(FORGERIES))
def test_a_forgery_is_refused_or_works(case: tuple[str, bytes]) -> None:
    how, data = case
    model = outcome(data)
    event(f"{how}: {'refused' if model is None else 'a model'}")
    if model is not None:
        use(model)


@pytest.mark.parametrize("name", NAMES)
def test_the_fuzzed_files_are_models(name: str) -> None:
    """What is damaged above is whole to begin with, so that refusals come from the damage."""
    model = load_bytes(saved(name)).model
    use(model)
    assert pack(unpack(saved(name))) == saved(name)
    assert fingerprint(model) == fingerprint(load_bytes(saved(name)).model)
