import json
import math

import numpy as np
import pytest

from tacit.local import GaussianNoise, HalfSphere, PrivUnit, Tail
from tacit.local.sanitizers.base import sanitizer_from_dict
from tacit.noise import recording, replaying, seeded_source
from tacit.privacy import Guarantee, NonPrivate, Relation
from tests.local.sanitizers.helpers import gradient, is_unbiased, reports, sanitizers, worst_z


def _ids(sanitizer):
    return f"{sanitizer.kind}-{sanitizer.n_features}-{sanitizer.epsilon}"


SMALL = [*sanitizers(5, epsilon=2.0, norm=1.5), *sanitizers(1), *sanitizers(2)]


class Silent:
    """A source from which nothing may be drawn."""

    is_secure = True

    def words(self, n):
        raise AssertionError("drawn before the arguments were checked")


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", sanitizers(5, epsilon=2.0, norm=1.5), ids=_ids)
def test_a_million_reports_are_unbiased(sanitizer):
    truth = gradient(5, 1.2)
    kept = []

    def draw():
        kept.append(reports(sanitizer, truth, 1_000_000))
        return kept[-1]

    assert is_unbiased(draw, truth)
    # The same test sees a radius or a gradient 5 % off where the noise lets it.
    error = kept[-1].std(axis=0).max() / 1000.0
    if 0.05 * np.abs(truth).max() > 12.0 * error:
        assert worst_z(kept[-1] * 1.05, truth) > 4.0
    assert worst_z(kept[-1] * 1.5, truth) > 4.0


@pytest.mark.parametrize("sanitizer", sanitizers(50, epsilon=4.0), ids=_ids)
@pytest.mark.parametrize("length", [0.0, 0.5, 1.0])
def test_reports_of_many_coordinates_are_unbiased(sanitizer, length):
    truth = gradient(50, length)
    assert is_unbiased(lambda: reports(sanitizer, truth, 40_000), truth)


@pytest.mark.parametrize("sanitizer", SMALL, ids=_ids)
def test_root_mean_square_norm(sanitizer):
    truth = gradient(sanitizer.n_features, sanitizer.norm)
    squares = np.sum(reports(sanitizer, truth, 200_000) ** 2, axis=1)
    # A report on the sphere has this norm but for its rounding.
    rounding = 2.0 * sanitizer.rms_norm * sanitizer.spacing * math.sqrt(sanitizer.n_features)
    error = 5.0 * squares.std() / math.sqrt(squares.size) + rounding
    assert abs(squares.mean() - sanitizer.rms_norm**2) < error
    assert abs(0.96 * squares.mean() - sanitizer.rms_norm**2) > error


@pytest.mark.parametrize("sanitizer", SMALL, ids=_ids)
def test_reports_are_whole_steps_that_the_server_finds_possible(sanitizer):
    for value in (gradient(sanitizer.n_features, sanitizer.norm), np.zeros(sanitizer.n_features)):
        steps = reports(sanitizer, value, 1000) / sanitizer.spacing
        assert np.abs(steps - np.rint(steps)).max() < 1e-6
        assert all(sanitizer.is_possible(row) for row in np.rint(steps).astype(np.int64))


@pytest.mark.parametrize("sanitizer", SMALL, ids=_ids)
def test_what_cannot_be_a_report(sanitizer):
    d = sanitizer.n_features
    steps = np.rint(reports(sanitizer, np.zeros(d), 1)[0] / sanitizer.spacing).astype(np.int64)
    assert not sanitizer.is_possible(steps[:-1])
    assert not sanitizer.is_possible(steps[None, :])
    assert not sanitizer.is_possible(steps.astype(np.float64))
    assert not sanitizer.is_possible(np.append(steps, 0))
    assert not sanitizer.is_possible(np.full(d, 2**62))
    assert not sanitizer.is_possible(np.full(d, -(2**63)))
    assert not sanitizer.is_possible("no")
    assert sanitizer.is_possible(steps.tolist())


@pytest.mark.parametrize("sanitizer", SMALL, ids=_ids)
def test_bad_gradients_are_refused_before_drawing(sanitizer):
    d, norm = sanitizer.n_features, sanitizer.norm
    good = gradient(d, norm)
    for bad in (np.full(d, np.nan), np.full(d, np.inf), good * (1.0 + 1e-9), np.full(d, 1e300)):
        with pytest.raises(ValueError, match=r"norm at most .* clip"):
            sanitizer.sanitize(bad, Silent())
        with pytest.raises(ValueError, match="row 1 is not"):
            sanitizer.sanitize_batch(np.stack([good, bad]), Silent())
    for bad in (np.zeros(d + 1), np.zeros((1, d)), np.float64(0.0)):
        with pytest.raises(ValueError, match="gradient"):
            sanitizer.sanitize(bad, Silent())
    for bad in (np.zeros((3, d + 1)), np.zeros(d), np.zeros((0, d))):
        with pytest.raises(ValueError, match="gradients"):
            sanitizer.sanitize_batch(bad, Silent())
    for dtype in (np.float32, np.int64, object, np.longdouble):
        with pytest.raises(TypeError, match="float64"):
            sanitizer.sanitize(np.zeros(d, dtype=dtype), Silent())
    with pytest.raises(TypeError, match="source must be a Source"):
        sanitizer.sanitize(good, 7)
    assert sanitizer.sanitize(good * (1.0 + 5e-13)).value.shape == (d,)


@pytest.mark.parametrize("sanitizer", SMALL, ids=_ids)
def test_events(sanitizer):
    d = sanitizer.n_features
    assert sanitizer.event.relation is Relation.REPLACE
    spent = Guarantee(sanitizer.event).epsilon(sanitizer.delta)
    assert 0.999 * sanitizer.epsilon <= spent <= sanitizer.epsilon
    assert sanitizer.sanitize(np.zeros(d)).event == sanitizer.event
    seeded = sanitizer.sanitize_batch(np.zeros((2, d)), seeded_source(0))
    assert isinstance(seeded.event, NonPrivate)
    again = sanitizer.sanitize_batch(np.zeros((2, d)), seeded_source(0))
    assert np.array_equal(seeded.value, again.value)


@pytest.mark.parametrize("sanitizer", SMALL, ids=_ids)
def test_reports_go_through_the_tape(sanitizer):
    with recording() as tape:
        first = sanitizer.sanitize(gradient(sanitizer.n_features, sanitizer.norm)).value
    with replaying(tape):
        second = sanitizer.sanitize(gradient(sanitizer.n_features, sanitizer.norm)).value
    assert np.array_equal(first, second)


@pytest.mark.parametrize("sanitizer", SMALL, ids=_ids)
def test_the_other_side_makes_the_same(sanitizer):
    record = json.loads(json.dumps(sanitizer.to_dict()))
    same = sanitizer_from_dict(record)
    assert same == sanitizer
    assert (same.spacing, same.tail) == (sanitizer.spacing, sanitizer.tail)
    for wrong in (
        {**record, "kind": "other"},
        {**record, "kind": ["list"]},
        {**record, "version": 2},
        {**record, "extra": 1},
        {k: v for k, v in record.items() if k != "norm"},
        {},
    ):
        with pytest.raises(ValueError, match="sanitizer"):
            sanitizer_from_dict(wrong)


def test_a_record_cannot_spend_more_than_it_says():
    for gamma in (0.0, 0.3, 0.5):
        record = {**PrivUnit(1.0, 10).to_dict(), "gamma": gamma}
        assert sanitizer_from_dict(record).cap.epsilon <= 1.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "kind", [HalfSphere, PrivUnit, lambda e, d, g: GaussianNoise(e, 1e-6, d, g)]
)
def test_bad_parameters(kind):
    for epsilon in (0.0, -1.0, math.inf, math.nan, 1e-9):
        with pytest.raises(ValueError, match="epsilon must be"):
            kind(epsilon, 3, 1.0)
    for n_features in (0, -1, 10**7):
        with pytest.raises(ValueError, match="n_features must be"):
            kind(1.0, n_features, 1.0)
    for norm in (0.0, -1.0, math.inf, math.nan, 1e-300):
        with pytest.raises(ValueError, match="norm must be"):
            kind(1.0, 3, norm)
    for wrong in (True, "1", None):
        with pytest.raises(TypeError, match="epsilon must be"):
            kind(wrong, 3, 1.0)
        with pytest.raises(TypeError, match="n_features must be"):
            kind(1.0, wrong, 1.0)
    with pytest.raises(TypeError, match="n_features must be"):
        kind(1.0, 3.0, 1.0)


def test_rounding_makes_a_tail_heavier():
    assert Tail(4.0, 2.0).plus_rounding(1.0) == Tail(9.0, 2.0 / 1.5)
    assert Tail(4.0, math.inf).plus_rounding(0.0) == Tail(4.0, math.inf)
