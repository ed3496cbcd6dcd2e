"""What one teacher draws, another never notices."""

from __future__ import annotations

import threading
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from tacit.pate.teachers import each_vote, seed_of, undisturbed


def drawn(between: Any = lambda: None) -> Any:
    """Return two numbers of the generator that all threads share, with a pause between them."""
    first = np.random.random_sample()  # noqa: NPY002
    between()
    return first, np.random.random_sample()  # noqa: NPY002


def test_teachers_of_several_threads_draw_their_own_numbers() -> None:
    alone = undisturbed(drawn, 7, None)
    begun, met, over = threading.Event(), threading.Event(), threading.Event()

    def in_the_middle() -> None:
        begun.set()
        met.wait(0.2)  # by then the other one has drawn, if it does not wait

    def amid() -> None:
        met.set()
        over.wait(5)

    def another() -> None:
        begun.wait(5)
        undisturbed(lambda: drawn(amid), 8, None)

    thread = threading.Thread(target=another)
    thread.start()
    told = undisturbed(lambda: drawn(in_the_middle), 7, None)
    over.set()
    thread.join()
    assert met.is_set()
    assert told == alone


def test_a_teacher_may_ask_teachers_of_its_own() -> None:
    assert undisturbed(lambda: undisturbed(drawn, 7, None), 8, None) == undisturbed(drawn, 7, None)


def test_what_a_teacher_draws_follows_from_its_seed_alone() -> None:
    """Not from where the generator of all threads stands: the caller may have seeded that."""
    found = []
    for state in (1, 2):
        np.random.seed(state)  # noqa: NPY002
        found.append(undisturbed(drawn, 7, None))
        assert undisturbed(lambda: drawn() and 1 / 0, 7, "failed") == "failed"
        # and it is left where it stood
        assert drawn() == tuple(np.random.RandomState(state).random_sample(2))
    assert found[0] == found[1] == tuple(np.random.RandomState(7).random_sample(2))
    assert undisturbed(drawn, 8, None) != found[0]


class Drawing(ClassifierMixin, BaseEstimator):
    """Says classes that it draws from the generator of all, whatever its records are."""

    def fit(self, X: Any, y: Any) -> Drawing:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.random.randint(0, 2, len(X))  # noqa: NPY002


def test_every_teacher_has_a_seed_of_its_own_from_the_key() -> None:
    rows, codes, queries = np.zeros((8, 1)), np.tile([0, 1], 4), np.zeros((60, 1))
    parts = [np.arange(2 * i, 2 * i + 2) for i in range(4)]

    def votes(key: bytes) -> list[tuple[int, ...]]:
        said = each_vote(Drawing(), parts, rows, codes, np.array([0, 1]), queries, key)
        return [tuple(one.tolist()) for one in said]

    np.random.seed(0)  # noqa: NPY002
    first = votes(b"one key")
    assert len(set(first)) == 4
    np.random.seed(1)  # noqa: NPY002
    assert votes(b"one key") == first
    assert not set(votes(b"another key")) & set(first)
    for place, one in enumerate(first):
        seed = seed_of(b"one key", place)
        assert one == tuple(np.random.RandomState(seed).randint(0, 2, 60).tolist())


def test_a_seed_follows_from_the_whole_key_and_the_place() -> None:
    key = bytes(range(64))
    keyed = blake2b((5).to_bytes(8, "little"), key=key, digest_size=4).digest()
    assert seed_of(key, 5) == int.from_bytes(keyed, "little")
    assert seed_of(key[:-1] + b"x", 5) != seed_of(key, 5)
