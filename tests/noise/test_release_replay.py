import numpy as np
import pytest

from tacit.noise import (
    Norm,
    ReplayMismatch,
    SensitivityViolation,
    Tape,
    recording,
    replaying,
    seeded_source,
)
from tacit.noise.gaussian import gaussian
from tacit.noise.laplace import laplace
from tacit.noise.release import Decision, Player, decide
from tacit.noise.selection.finite import select
from tacit.privacy import Gaussian, NonPrivate, Relation
from tests.noise.helpers import WordSource, bounded


def _run(value, multiplier=1.0, **options):
    return gaussian(bounded(value, **options), multiplier).value


@pytest.fixture
def tape():
    with recording() as tape:
        _run(np.zeros(3))
    return tape


def test_recording_changes_nothing_and_keeps_everything():
    with recording() as tape:
        value = np.array([1.0, 2.0])
        released = _run(value)
        kept = released.copy()
        value += 5.0
        released += 5.0
    (entry,) = tape.entries
    assert entry.kind == "gaussian"
    assert entry.event == Gaussian(1.0)
    assert np.array_equal(entry.value, kept)
    assert entry.bounded.value.tolist() == [1.0, 2.0]
    _run(np.zeros(2))
    assert len(tape.entries) == 1


def test_replaying_returns_what_left_and_draws_nothing(tape):
    with replaying(tape):
        again = gaussian(bounded(np.array([0.6, 0.0, 0.8])), 1.0, WordSource([])).value
    assert np.array_equal(again, tape.entries[0].value)
    again += 1.0
    assert not np.array_equal(again, tape.entries[0].value)


def test_a_value_that_moves_too_far_is_caught(tape):
    with (
        pytest.raises(
            SensitivityViolation, match=r"entry 0 .*moved by 1\.0049.* L2, declared .* 1;"
        ),
        replaying(tape),
    ):
        _run(np.array([1.0, 0.1, 0.0]))


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (lambda: laplace(bounded(np.zeros(3), norm=Norm.L1), 1.0), "kind"),
        (lambda: _run(np.zeros(3), 2.0), "event"),
        (lambda: _run(np.zeros(3), relation=Relation.REPLACE), "event"),
        (lambda: _run(np.zeros(3), sensitivity=2.0), "sensitivity"),
        (lambda: _run(np.zeros(3), norm=Norm.L1), "norm"),
        (lambda: _run(np.zeros(4)), "shape"),
        (lambda: decide("steps", 3), "recorded"),
    ],
)
def test_what_differs_is_named(tape, other, what):
    with pytest.raises(ReplayMismatch, match=f"entry 0: .*{what}"), replaying(tape):
        other()


def test_too_many_and_too_few_releases(tape):
    with pytest.raises(ReplayMismatch, match="recorded run had ended"), replaying(tape):
        [_run(np.zeros(3)) for _ in range(2)]
    with pytest.raises(ReplayMismatch, match="1 recorded entries left"), replaying(tape):
        pass


def test_decisions():
    decide("without a tape", 1)
    with recording() as tape:
        decide("steps", 3)
        _run(0.0)
    with replaying(tape):
        decide("steps", 3)
        _run(1.0)
    with pytest.raises(ReplayMismatch, match=r"entry 0: .*steps"), replaying(tape):
        decide("steps", 4)
    with pytest.raises(ReplayMismatch, match="decided 'steps'"), replaying(tape):
        _run(0.0)


def test_an_error_inside_is_not_hidden(tape):
    with pytest.raises(KeyError), replaying(tape):
        raise KeyError("mine")


def test_a_false_claim_of_monotone_is_caught():
    def choose(utilities):
        return select(bounded(utilities, 1.0, Norm.LINF), 1.0, monotone=True).value

    with recording() as tape:
        choose(np.array([0.0, 0.0]))
    with replaying(tape):
        choose(np.array([0.5, 1.0]))
    with pytest.raises(SensitivityViolation, match="pass monotone=False"), replaying(tape):
        choose(np.array([0.5, -0.5]))


def test_seeded_releases_are_compared_by_what_they_would_be():
    with recording() as tape:
        gaussian(bounded(0.0), 1.0, seeded_source(0))
    assert tape.entries[0].event == Gaussian(1.0)
    with replaying(tape):
        release = gaussian(bounded(0.0), 1.0, seeded_source(1))
    assert isinstance(release.event, NonPrivate)
    assert release.value == tape.entries[0].value


def test_tapes_do_not_reach_other_threads():
    import threading

    with recording() as tape:
        thread = threading.Thread(target=_run, args=(0.0,))
        thread.start()
        thread.join()
    assert tape.entries == []


def test_a_release_of_which_only_the_output_is_known_has_its_entry(tape):
    other = Player(tape)
    with pytest.raises(ReplayMismatch, match="recorded run did not"):
        other.peek("another kind")
    with pytest.raises(ReplayMismatch, match="recorded run did not"):
        Player(Tape()).peek("gaussian")
    with pytest.raises(ReplayMismatch, match="recorded run did not"):
        Player(Tape([Decision("n_steps", 3)])).peek("gaussian")
