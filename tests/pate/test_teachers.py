"""What one teacher draws, another never notices."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from tacit.pate.teachers import undisturbed


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
