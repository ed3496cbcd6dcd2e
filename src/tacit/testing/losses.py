"""Check that a loss has the derivatives and the least constants that it declares."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.erm.losses import AnyLoss, Loss, PointLoss

_TIGHT = 0.99  # a declared constant must be attained to 1 %
_ROUNDING = 1e-12
_N_CHORDS = 2000  # random chords for convexity


def check_loss(loss: Loss, labels: npt.ArrayLike, *, seed: int = 0) -> None:
    """Raise AssertionError unless ``loss`` is what it declares.

    Guarantee: 1. ``d1`` is a subgradient of ``value`` at every tested score, and ``d2`` the
    derivative of ``d1`` away from kinks. 2. ``lipschitz`` bounds ``|d1|`` and is attained to 1 %
    if it is finite. 3. ``smoothness`` bounds ``d2`` and every difference quotient of ``d1``, and is
    attained to 1 % if it is finite. 4. ``value`` is convex on random chords. ``hessian_rank``,
    ``hessian_trace`` and ``hessian_times`` are those of the Hessian in the scores. 5. ``monotone``
    is set if and only if the loss is a function of label times score whose derivative has one sign.
    6. The loss is frozen and hashable, accepts arrays of any length, and does not change its
    arguments. 7. A record's ``d1`` and ``d2`` are functions of its own score and label, to the last
    bit: sums on a lattice rely on that. For several scores at once (``n_outputs``) norms of vectors
    and of Hessians replace absolute values.

    Parameters
    ----------
    loss
        The loss to check.
    labels
        Labels to test. Include the extremes that the loss declares, on both sides, or its constants
        cannot be attained; and some in between, or a regression loss looks monotone.
    seed
        Seed of the random scores.

    Examples
    --------
    >>> from tacit.erm.losses import HuberLoss, LogisticLoss
    >>> from tacit.testing import check_loss
    >>> check_loss(LogisticLoss(), [-1.0, 1.0])
    >>> check_loss(HuberLoss(0.1), [-3.0, 0.0, 0.5])
    """
    y = np.unique(np.asarray(labels, dtype=np.float64))
    rng = np.random.default_rng(seed)
    _check_frozen(loss)
    if loss.n_outputs > 1:
        _check_several_scores(loss, y, rng)
        return
    _check_arrays(loss, y)
    slopes, bends = [], []
    for label in y:
        score = _scores(float(label), rng)
        same = np.full_like(score, label)
        _check_alone(loss, score[::50], same[::50])
        _check_first(loss, score, same)
        _check_second(loss, score, same)
        _check_chords(lambda z, same=same: loss.value(z, same[: z.size]), score, rng, loss)
        slopes.append(np.max(np.abs(loss.d1(score, same))))
        bends.append(_greatest_second_derivative(loss, score, same))
    _check_constant(loss, "lipschitz", loss.lipschitz, max(slopes), "the steepest slope")
    _check_constant(loss, "smoothness", loss.smoothness, max(bends), "the greatest curvature")
    assert loss.hessian_rank == 1, f"hessian_rank of {loss} is {loss.hessian_rank}, of one score"
    assert loss.hessian_trace == loss.smoothness, f"hessian_trace of {loss} is not its smoothness"
    _check_monotone(loss, y, rng)


def check_point_loss(loss: PointLoss, dimension: int = 3, *, seed: int = 0) -> None:
    """Raise AssertionError unless ``loss``, a loss of points, is what it declares.

    Guarantee: 1. ``gradients`` are subgradients of ``value``. 2. ``lipschitz`` bounds their norm
    and is attained to 1 % if it is finite. 3. ``smoothness`` bounds their Lipschitz constant, and
    is attained to 1 % if it is finite. 4. ``value`` is convex on random chords. 5. The loss is
    frozen and hashable.

    Parameters
    ----------
    loss
        The loss to check.
    dimension
        Dimension of the points to test.
    seed
        Seed of the random points.

    Examples
    --------
    >>> from tacit.erm.losses import DistanceLoss
    >>> from tacit.testing import check_point_loss
    >>> check_point_loss(DistanceLoss())
    """
    rng = np.random.default_rng(seed)
    _check_frozen(loss)
    records = rng.standard_normal((200, dimension)) * np.geomspace(1e-162, 1e3, 200)[:, None]
    near = rng.standard_normal((7, dimension)) * np.geomspace(1e-4, 1e2, 7)[:, None]
    points = [np.zeros(dimension), records[150], records[40], *near]
    sizes = np.linalg.norm(records, axis=1)
    assert loss.value(points[0], records[:0]).shape == (0,), f"{loss} cannot take no records"
    steepest, turn = 0.0, 0.0
    for a in points:
        at_a = loss.gradients(a, records)
        assert at_a.shape == records.shape, f"gradients of {loss} have shape {at_a.shape}"
        steepest = max(steepest, float(np.max(np.linalg.norm(at_a, axis=1))))
        for b in points:
            gap = b - a
            rise = loss.value(b, records) - loss.value(a, records)
            noise = _ROUNDING * (1 + loss.value(b, records) + loss.value(a, records))
            short = np.count_nonzero(rise < at_a @ gap - noise)
            assert short == 0, f"gradients of {loss} are no subgradients at {short} records"
            if gap.any():
                changes = np.linalg.norm(loss.gradients(b, records) - at_a, axis=1)
                changes -= 8 * 2.0**-53 * (sizes + np.linalg.norm(a) + np.linalg.norm(b))
                turn = max(turn, float(np.max(changes) / np.linalg.norm(gap)))
    _check_constant(loss, "lipschitz", loss.lipschitz, steepest, "the longest gradient")
    _check_constant(loss, "smoothness", loss.smoothness, turn, "the fastest turn of a gradient")
    lines = rng.standard_normal((50, 2, dimension)) * 10
    for a, b in lines:
        middle, ends = loss.value((a + b) / 2, records), loss.value(a, records)
        ends = (ends + loss.value(b, records)) / 2
        assert np.all(middle <= ends * (1 + _ROUNDING) + _ROUNDING), f"{loss} is not convex"


def _check_frozen(loss: AnyLoss) -> None:
    parameters = getattr(loss, "__dataclass_params__", None)
    frozen = parameters is not None and parameters.frozen
    assert frozen, f"{type(loss).__name__} must be a frozen dataclass: what it declares is public"
    one: Any = loss
    assert hash(loss) == hash(dataclasses.replace(one)), f"{loss} and its copy hash differently"
    assert loss == dataclasses.replace(one), f"{loss} differs from its copy"
    assert isinstance(loss.key, str), f"{type(loss).__name__} needs a key"


def _check_arrays(loss: Loss, labels: Array) -> None:
    for n in (0, 1, 7):
        score, label = np.linspace(-2.0, 2.0, n), np.resize(labels, n)
        before = score.copy(), label.copy()
        for method in (loss.value, loss.d1, loss.d2):
            result = method(score, label)
            good = isinstance(result, np.ndarray) and result.dtype == np.float64
            good = good and result.shape == (n,)
            assert good, f"{method} returned {result!r} for {n} scores"
        unchanged = np.array_equal(score, before[0]) and np.array_equal(label, before[1])
        assert unchanged, f"{loss} changes its arguments"


def _check_alone(loss: Loss, score: Array, label: Array) -> None:
    # In blocks of several sizes, in both memory orders.
    n = len(score)
    for name, method in (("d1", loss.d1), ("steady_d1", loss.steady_d1), ("d2", loss.d2)):
        whole = method(score, label)
        for size in (1, 2, 7, n):
            for order in ("C", "F"):
                starts = range(0, n, size)
                blocks = [np.array(score[at : at + size], order=order) for at in starts]
                parts = [
                    method(block, label[at : at + size])
                    for at, block in zip(starts, blocks, strict=True)
                ]
                off = np.count_nonzero(np.concatenate(parts) != whole)
                assert off == 0, (
                    f"{name} of {loss} depends on the records around: {off} numbers "
                    f"differ in blocks of {size}"
                )


def _scores(label: float, rng: np.random.Generator) -> Array:
    """Return scores around 0, the label, 1 and -1, at every scale."""
    scales = np.geomspace(1e-7, 1e4, 150)
    around = [0.0, label, 1.0, -1.0]
    spread = [centre + sign * scales for centre in around for sign in (-1.0, 1.0)]
    return np.sort(np.concatenate([*spread, np.arange(-30.0, 30.0, 0.01), rng.normal(0, 3, 500)]))


def _steps(score: Array) -> Array:
    # A third of the digits; a power of two, so that score + step is nearly exact.
    return np.asarray(2.0**-17 * 2.0 ** np.ceil(np.log2(np.maximum(np.abs(score), 1.0))))


def _check_first(loss: Loss, score: Array, label: Array) -> None:
    # A convex function has h d1(z) <= value(z + h) - value(z) <= h d1(z + h), with kinks or
    # without.
    h = _steps(score)
    here, after = loss.value(score, label), loss.value(score + h, label)
    noise = 8 * 2.0**-53 * (np.abs(here) + np.abs(after) + 1)
    low, high = h * loss.d1(score, label), h * loss.d1(score + h, label)
    noise += 8 * 2.0**-53 * (np.abs(score) + 1) * (np.abs(loss.d1(score, label)) + np.abs(label))
    wrong = (after - here < low - noise) | (after - here > high + noise)
    assert not wrong.any(), (
        f"d1 of {loss} is not the derivative of its value at score {score[wrong][0]:g}, label "
        f"{label[0]:g}: {loss.d1(score, label)[wrong][0]:g} there, and the value rises by "
        f"{((after - here) / h)[wrong][0]:g} a unit"
    )


def _check_second(loss: Loss, score: Array, label: Array) -> None:
    h = _steps(score) / 8
    matches = np.zeros((3, score.size), dtype=bool)
    for i, shift in enumerate((-4, 0, 4)):
        z = score + shift * h
        slope = (loss.d1(z + h, label) - loss.d1(z - h, label)) / (2 * h)
        noise = 8 * 2.0**-53 * (np.abs(loss.d1(z, label)) + np.abs(label) + 1) / h
        d2 = loss.d2(z, label)
        matches[i] = np.abs(slope - d2) <= 1e-6 * (np.abs(d2) + 1) + noise
    # One kink can affect one of three neighbouring quotients, not two.
    wrong = matches.sum(axis=0) < 2
    assert not wrong.any(), (
        f"d2 of {loss} is not the derivative of d1 at score {score[wrong][0]:g}, label "
        f"{label[0]:g}: {loss.d2(score, label)[wrong][0]:g}"
    )
    assert np.all(loss.d2(score, label) >= 0.0), f"d2 of {loss} is negative somewhere"
    along = np.sin(score)
    same = np.array_equal(loss.hessian_times(score, label, along), loss.d2(score, label) * along)
    assert same, f"bend of {loss} is not d2 times the direction"


def _greatest_second_derivative(loss: Loss, score: Array, label: Array) -> float:
    """Return the greatest of d2 and of the difference quotients of d1."""
    gaps, rises = np.diff(score), np.diff(loss.d1(score, label))
    wide = gaps > 1e-5 * (1 + np.abs(score[1:]))  # rounding would dominate narrower gaps
    quotient = float(np.max(rises[wide] / gaps[wide]))
    return max(float(np.max(loss.d2(score, label))), quotient * (1 - 1e-9))


def _check_constant(loss: AnyLoss, name: str, declared: float, seen: float, what: str) -> None:
    assert declared > 0.0, f"{name} of {loss} is {declared!r}; it must be positive"
    if math.isinf(declared):
        return
    assert seen <= declared * (1 + _ROUNDING), (
        f"{name} of {loss} is declared {declared:.6g} and {what} is {seen:.6g}: privacy would be "
        "overstated"
    )
    assert seen >= _TIGHT * declared, (
        f"{name} of {loss} is declared {declared:.6g} and {what} seen is {seen:.6g}: either noise "
        "is wasted or the labels tried leave out the extremes"
    )


def _check_chords(value: object, score: Array, rng: np.random.Generator, loss: AnyLoss) -> None:
    assert callable(value)
    a, b = rng.choice(score, (2, _N_CHORDS))
    t = rng.uniform(size=_N_CHORDS)
    chord = t * value(a) + (1 - t) * value(b)
    inside = value(t * a + (1 - t) * b)
    slack = _ROUNDING * (1 + np.abs(value(a)) + np.abs(value(b)))
    high = inside > chord + slack
    assert not high.any(), f"{loss} is not convex between {a[high][0]:g} and {b[high][0]:g}"


def _check_monotone(loss: Loss, labels: Array, rng: np.random.Generator) -> None:
    score = np.concatenate([np.linspace(-50.0, 50.0, 1001), rng.normal(0, 3, 200)])
    of_margin = True
    signs: set[float] = set()
    for label in labels:
        same = np.full_like(score, label)
        d1 = loss.d1(score, same)
        signs |= set(np.sign(d1 * label).tolist())
        if -label in labels:
            after, back = loss.value(score, same), loss.value(-score, -same)
            of_margin &= bool(np.allclose(after, back, rtol=1e-9, atol=1e-9))
        of_margin &= label != 0.0 or not d1.any()  # for label 0 the margin y z is always 0
    one_sign = not {-1.0, 1.0} <= signs
    assert loss.monotone == (one_sign and of_margin), (
        f"{loss} declares monotone = {loss.monotone}, but d1 times label has "
        f"{'one sign' if one_sign else 'both signs'} and the loss is "
        f"{'' if of_margin else 'not '}a function of label times score"
    )


def _check_several_scores(loss: Loss, labels: Array, rng: np.random.Generator) -> None:
    k = loss.n_outputs
    score, label = _several_scores(k, labels, rng)
    for n in (0, 1):
        assert loss.value(score[:n], label[:n]).shape == (n,), f"{loss} cannot take {n} records"
        assert loss.d1(score[:n], label[:n]).shape == (n, k), f"{loss} cannot take {n} records"
    _check_alone(loss, score[::5], label[::5])
    d1, h = loss.d1(score, label), 2.0**-17
    steepest = float(np.max(np.linalg.norm(d1, axis=1)))
    hessian = np.empty((len(score), k, k))
    for j, unit in enumerate(h * np.eye(k)):
        ahead, behind = loss.value(score + unit, label), loss.value(score - unit, label)
        off = np.max(np.abs((ahead - behind) / (2 * h) - d1[:, j]))
        assert off < 1e-7, f"d1 of {loss} is off by {off:.2g} from differences of its value"
        hessian[:, j] = (loss.d1(score + unit, label) - loss.d1(score - unit, label)) / (2 * h)
    off = np.max(np.abs(np.einsum("ijj->ij", hessian) - loss.d2(score, label)))
    assert off < 1e-7, f"d2 of {loss} is off by {off:.2g} from the diagonal of the Hessian"
    spectrum = np.linalg.eigvalsh((hessian + hessian.transpose(0, 2, 1)) / 2)
    assert spectrum.min() > -1e-7, f"{loss} is not convex: eigenvalue {spectrum.min():.2g}"
    second_derivative = float(np.max(spectrum)) * (1 - 1e-7)
    trace, rank = np.max(spectrum.sum(axis=1)), np.max(np.sum(spectrum > 1e-7, axis=1))
    _check_constant(loss, "hessian_trace", loss.hessian_trace, trace - k * 1e-7, "the trace")
    assert rank == loss.hessian_rank, f"hessian_rank of {loss} is {loss.hessian_rank}, not {rank}"
    along = rng.standard_normal(score.shape)
    off = np.max(
        np.abs(np.einsum("ijk,ik->ij", hessian, along) - loss.hessian_times(score, label, along))
    )
    assert off < 1e-6, f"bend of {loss} is off by {off:.2g} from the Hessian times a direction"
    _check_constant(loss, "lipschitz", loss.lipschitz, steepest, "the longest gradient")
    _check_constant(
        loss, "smoothness", loss.smoothness, second_derivative, "the greatest Hessian norm"
    )
    a, b = score[rng.permutation(len(score))], score
    chord = (loss.value(a, label) + loss.value(b, label)) / 2
    middle = loss.value((a + b) / 2, label)
    assert np.all(middle <= chord * (1 + _ROUNDING) + _ROUNDING), f"{loss} is not convex"
    assert not loss.monotone, f"{loss} has several scores and cannot be monotone in one"


def _several_scores(k: int, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return random scores, scores certain of one class, and scores undecided between two."""
    random = rng.standard_normal((300, k)) * np.geomspace(0.01, 30.0, 300)[:, None]
    sure = 60.0 * np.eye(k)
    torn = 60.0 * (np.eye(k) + np.roll(np.eye(k), 1, axis=1))
    scores = np.concatenate([np.zeros((1, k)), random, sure, torn])
    assert np.all((labels >= 0) & (labels < k) & (labels == np.rint(labels))), (
        f"labels must be whole numbers below {k}"
    )
    return np.tile(scores, (labels.size, 1)), np.repeat(labels, len(scores))
