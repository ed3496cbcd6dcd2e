"""Learn the bins of all columns from a tree of noisy counts.

All numbers share one tree of 16 children per node and 4 levels, which grows where records are. A
node is opened if its noisy count exceeds a quarter of a bin's mass, and its own noise. Leaves are
merged to bins of about equal mass. A heavy leaf stays alone, so that 0, -1, 999 or a top code
become bins of their own. Words that are too rare are one bin, "other".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.additive.grid import CHILDREN_BITS, LEVELS, N_CELLS, GridColumn
from tacit.arrays import Array, Integers
from tacit.queries import Facts, GaussianNoise, NoisySum, Session
from tacit.queries.noise import gaussian_parts
from tacit.queries.table_cells import CellCounts, Grouping, LabelKind

# A node is opened, and a word is kept, if its count exceeds so many standard deviations of noise.
_SEEN = 2.5
# A node is opened if it holds more than this share of a bin's mass.
_OPENED = 0.25
# The range of a number begins and ends with a leaf of so many standard deviations: some hundred
# leaves are compared, and a wrong one far away would make the range useless.
_SUPPORT = 4.0
# A leaf of more than this share of a bin's mass is a bin of its own.
_ALONE = 0.75
# A word is kept if it has this share of all records.
_RARE = 0.002
# Counts of words have weight 2: they are asked once, and those of numbers at 4 levels.
_WORD_WEIGHT = 2.0


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of one column, with their noisy counts.

    Parameters
    ----------
    column
        The column and its cells.
    bin_of
        The bin of each cell.
    counts
        The noisy number of records in each bin, at least 1.
    count_std
        The standard deviation of the noise in each count.
    names
        The text of each bin, for reports.
    edges
        The inner edges of a number's bins, in its own units; None for words.
    support
        The learned range of a number; None for words and if there is none.

    The last bin is for missing values; before it may be "other".
    """

    column: GridColumn
    bin_of: Integers
    counts: Array
    count_std: Array
    names: tuple[str, ...]
    edges: Array | None
    support: tuple[float, float] | None = None

    @property
    def n_bins(self) -> int:
        """The number of bins."""
        return len(self.counts)

    @property
    def n_ordered(self) -> int:
        """The number of bins in order: those of a number without that of missing values."""
        return self.n_bins - 1 if self.column.is_number else 0

    def grouping(self, place: int, weight: float = 1.0) -> Grouping:
        """Return the groups of cells for a query."""
        return Grouping(place, self.bin_of, self.n_bins, weight)

    def recounted(self, counts: Array, std: float) -> Bins:
        """Return the bins with the mean of their counts and of new ones, by their variances."""
        weight = self.count_std**2 / (self.count_std**2 + std**2)
        mean = np.maximum(self.counts + weight * (counts - self.counts), 1.0)
        return replace(self, counts=mean, count_std=self.count_std * np.sqrt(1 - weight))

    def centred(self, curve: Array) -> Array:
        """Return a curve less its mean over the records, by the noisy counts."""
        shares = self.counts / self.counts.sum()
        centred: Array = curve - shares @ curve
        return centred


@dataclass(frozen=True, eq=False)
class LearnedBins:
    """The bins of all columns, the noisy number of records and the noisy label sums."""

    bins: tuple[Bins, ...]
    n_records: float
    label_sums: Array
    count_std: float


def bins_sensitivities(grid: Sequence[GridColumn], facts: Facts, kind: LabelKind) -> list[float]:
    """Return the sensitivity of each of the releases of the bins: all words first, then levels."""
    empty = np.zeros(1, dtype=np.int64)
    numbers = [Grouping(i, empty, 1) for i, c in enumerate(grid) if c.is_number]
    words = [Grouping(i, empty, 1, _WORD_WEIGHT) for i, c in enumerate(grid) if not c.is_number]
    first = CellCounts((*numbers, *words), kind).sensitivity(facts).value
    if not numbers:
        return [first]
    return [first, *[CellCounts(tuple(numbers)).sensitivity(facts).value] * (LEVELS - 1)]


def level_noise(whole: GaussianNoise, sensitivities: Sequence[float]) -> list[GaussianNoise]:
    """Return the noise of each release, such that all counts have the same standard deviation.

    sensitivity_l z_l = s for all l, and sum of 1 / z_l^2 = 1 / z^2.
    """
    total = math.fsum(value**2 for value in sensitivities)
    shares = {str(level): value**2 / total for level, value in enumerate(sensitivities)}
    return list(gaussian_parts(whole, shares).values())


def learn_bins(
    session: Session,
    slot: str,
    grid: Sequence[GridColumn],
    kind: LabelKind,
    whole: GaussianNoise,
    max_bins: int,
) -> LearnedBins:
    """Ask for the counts of the tree, level by level, and return the merged bins."""
    noises = level_noise(whole, bins_sensitivities(grid, session.facts, kind))
    numbers = [place for place, column in enumerate(grid) if column.is_number]
    words = [place for place, column in enumerate(grid) if not column.is_number]
    trees = {place: _Tree.start() for place in numbers}
    groups = [trees[place].grouping(place) for place in numbers]
    groups += [_words_grouping(place, grid[place]) for place in words]
    query = NoisySum(CellCounts(tuple(groups), kind), noises[0])
    std = query.noise_std(session.facts)
    answer = np.asarray(session.ask(query, slot))
    parts = np.split(answer, np.cumsum([group.n_groups for group in groups]))
    n_records = max(float(parts[-1][0]), std, 1.0)
    label_sums = parts[-1][1:]
    opened_from = max(_OPENED * n_records / max_bins, _SEEN * std)
    for level, noise in enumerate(noises):
        if level:
            deeper = [trees[place].grouping(place) for place in numbers]
            found = np.empty(0)
            if any(group.n_groups for group in deeper):  # else no node was opened
                found = np.asarray(session.ask(NoisySum(CellCounts(tuple(deeper)), noise), slot))
            parts = np.split(found, np.cumsum([group.n_groups for group in deeper])[:-1])
        for place, counts in zip(numbers, parts, strict=False):
            trees[place].add(counts, opened_from, is_last=level == LEVELS - 1)
    of_words = dict(zip(words, parts_of_words(answer, groups, len(numbers)), strict=True))
    bins = tuple(
        _number_bins(column, trees[place], n_records, std, max_bins)
        if column.is_number
        else _word_bins(column, of_words[place] / _WORD_WEIGHT, n_records, std / _WORD_WEIGHT)
        for place, column in enumerate(grid)
    )
    return LearnedBins(bins, n_records, label_sums, std)


def parts_of_words(answer: Array, groups: Sequence[Grouping], n_numbers: int) -> list[Array]:
    """Return the counts of each column of words in the answer to the first query."""
    parts = np.split(answer, np.cumsum([group.n_groups for group in groups]))
    return parts[n_numbers:-1]


class _Tree:
    """The opened nodes of one number's tree, and all counts that were asked.

    Nodes of a level are numbered by their cells: node = cell >> shift. Level 1 has a 17th entry,
    the count of missing values.
    """

    def __init__(self) -> None:
        self.nodes: list[Integers] = []
        self.counts: list[Array] = []
        self.opened: list[Integers] = []  # positions in `nodes` of each level
        self.missing = 0.0

    @classmethod
    def start(cls) -> _Tree:
        """Return the tree of which the first level is asked next."""
        tree = cls()
        tree.nodes.append(np.arange(1 << CHILDREN_BITS))
        return tree

    def grouping(self, place: int) -> Grouping:
        """Return the nodes of the level to be asked as groups of cells."""
        nodes, level = self.nodes[-1], len(self.nodes)
        shift = (LEVELS - level) * CHILDREN_BITS
        group_of_node = np.full(N_CELLS >> shift, -1, dtype=np.int64)
        group_of_node[nodes] = np.arange(len(nodes))
        group_of = np.append(np.repeat(group_of_node, 1 << shift), -1)
        if level == 1:
            group_of[-1] = len(nodes)
            return Grouping(place, group_of, len(nodes) + 1)
        return Grouping(place, group_of, len(nodes))

    def add(self, counts: Array, opened_from: float, *, is_last: bool) -> None:
        """Store the counts of a level and choose the nodes to open."""
        if len(self.nodes) == 1:
            self.missing, counts = float(counts[-1]), counts[:-1]
        self.counts.append(counts)
        opened = np.flatnonzero(counts > opened_from) if not is_last else np.empty(0, np.int64)
        self.opened.append(opened)
        if not is_last:
            parents = self.nodes[-1][opened] << CHILDREN_BITS
            children = parents[:, None] + np.arange(1 << CHILDREN_BITS)
            self.nodes.append(children.ravel())

    def leaves(self, n_records: float, std: float) -> tuple[Integers, Array, Array]:
        """Return the first cell, the count and the count's variance of each leaf, in order.

        A node's count and the sum of its children's counts are two measurements of one number. They
        are averaged by their variances, bottom up, and then children are corrected to add up to
        their node, top down (Hay et al. 2010, for trees that are not complete).
        """
        n_children = 1 << CHILDREN_BITS
        means = [counts.copy() for counts in self.counts]
        variances = [np.full(len(counts), std**2) for counts in self.counts]
        for level in reversed(range(LEVELS - 1)):
            opened = self.opened[level]
            sums = means[level + 1].reshape(-1, n_children).sum(axis=1)
            of_sums = variances[level + 1].reshape(-1, n_children).sum(axis=1)
            own = variances[level][opened]
            weight = own / (own + of_sums)
            means[level][opened] += weight * (sums - means[level][opened])
            variances[level][opened] = own * (1 - weight)
        # The root: all records but those without a value; both counts have the noise of a count.
        found, own = means[0].sum(), variances[0].sum()
        root = found + own / (own + 2 * std**2) * (n_records - self.missing - found)
        means[0] += variances[0] / own * (root - found)
        for level in range(LEVELS - 1):
            opened = self.opened[level]
            children = means[level + 1].reshape(-1, n_children)
            spread = variances[level + 1].reshape(-1, n_children)
            lacking = means[level][opened] - children.sum(axis=1)
            children += spread / spread.sum(axis=1, keepdims=True) * lacking[:, None]
        starts, counts, squares = [], [], []
        for level in range(LEVELS):
            is_leaf = np.ones(len(self.nodes[level]), dtype=bool)
            is_leaf[self.opened[level]] = False
            shift = (LEVELS - 1 - level) * CHILDREN_BITS
            starts.append(self.nodes[level][is_leaf] << shift)
            counts.append(means[level][is_leaf])
            squares.append(variances[level][is_leaf])
        start = np.concatenate(starts)
        order = np.argsort(start)
        return start[order], np.concatenate(counts)[order], np.concatenate(squares)[order]


def _number_bins(
    column: GridColumn, tree: _Tree, n_records: float, std: float, max_bins: int
) -> Bins:
    """Merge adjacent leaves to bins of about equal mass; a heavy leaf stays alone."""
    starts, counts, variances = tree.leaves(n_records, std)
    mass = max(n_records / max_bins, _SEEN * std)
    # Heavy leaves are bins of their own; the other records are divided among the other bins, so
    # that a column of zeros with a long tail has bins in its tail.
    heavy = counts > _ALONE * mass
    n_others = max(max_bins - int(heavy.sum()), max_bins / 4)
    mass = max((n_records - float(counts[heavy].sum())) / n_others, _SEEN * std)
    firsts, sums, squares = [0], [0.0], [0.0]
    is_open = True  # whether the last bin takes another leaf
    for start, count, variance in zip(starts.tolist(), counts, variances, strict=True):
        is_heavy = count > _ALONE * mass
        # A bin before a heavy leaf may be noise alone. It joins the bin before it, or the leaf.
        is_noise = is_open and sums[-1] <= _SEEN * max(math.sqrt(squares[-1]), std)
        if is_heavy and is_noise and len(sums) > 1:
            last, spread = sums.pop(), squares.pop()
            firsts.pop()
            sums[-1], squares[-1] = sums[-1] + last, squares[-1] + spread
            is_open = False
        if not is_open or (is_heavy and not is_noise):
            firsts.append(start)
            sums.append(0.0)
            squares.append(0.0)
        sums[-1] += float(count)
        squares[-1] += float(variance)
        is_open = not (is_heavy or sums[-1] >= mass)
    if len(sums) > 1 and sums[-1] < mass / 2:  # what is left at the end joins the bin before
        last, spread = sums.pop(), squares.pop()
        firsts.pop()
        sums[-1], squares[-1] = sums[-1] + last, squares[-1] + spread
    first = np.array(firsts)
    bin_of = np.append(np.searchsorted(first, np.arange(N_CELLS), side="right") - 1, len(first))
    edges = column.edges[first[1:] - 1]
    # The learned range: from the first leaf that can be seen to the last, and all inner edges.
    seen = np.flatnonzero(counts > _SUPPORT * np.sqrt(variances))
    ends = np.concatenate([[column.lower], column.edges, [column.upper]])
    firsts_seen, lasts_seen = starts[seen], np.append(starts[1:], N_CELLS)[seen]
    marks = np.concatenate([ends[firsts_seen], ends[lasts_seen], edges])
    support = None
    if len(marks) and marks.max() > marks.min():
        support = (float(marks.min()), float(marks.max()))
    numbers = [f"{edge:.6g}" for edge in edges]
    texts = ["", *numbers], [*numbers, ""]
    names = [f"[{least}, {most})" for least, most in zip(*texts, strict=True)]
    return Bins(
        column,
        bin_of.astype(np.int64),
        np.maximum([*sums, tree.missing], 1.0),
        np.sqrt([*squares, std**2]),
        (*names, "missing"),
        edges,
        support,
    )


def _words_grouping(place: int, column: GridColumn) -> Grouping:
    return Grouping(place, np.arange(column.n_cells), column.n_cells, _WORD_WEIGHT)


def _word_bins(column: GridColumn, counts: Array, n_records: float, std: float) -> Bins:
    """Keep the words that can be seen; the others are one bin, before that of missing values."""
    found = counts[:-1] >= max(_SEEN * std, _RARE * n_records)
    n_found = int(found.sum())
    others = [] if n_found == len(found) else ["other"]
    bin_of = np.full(column.n_cells, n_found, dtype=np.int64)
    bin_of[:-1][found] = np.arange(n_found)
    bin_of[-1] = n_found + len(others)
    sums = np.bincount(bin_of, weights=counts)
    n_words = np.bincount(bin_of)
    names = [word for word, is_found in zip(column.levels, found, strict=True) if is_found]
    return Bins(
        column,
        bin_of,
        np.maximum(sums, 1.0),
        std * np.sqrt(n_words),
        (*names, *others, "missing"),
        None,
    )
