"""What several tests of noise share."""

from __future__ import annotations

import numpy as np

from tacit.noise import Norm
from tacit.noise.bounded import Bounded
from tacit.privacy import Relation

N_DRAWS = 100_000
ACCEPT, REJECT = 1e-9, 1e-12


class WordSource:
    """A source that returns words chosen by the test, then fails or falls back to another."""

    is_secure = False

    def __init__(self, words, then=None):
        self._words = np.asarray(words, dtype=np.uint64)
        self._position = 0
        self._then = then
        self.n_extra = 0

    def words(self, n):
        left = self._words.size - self._position
        if left >= n:
            self._position += n
            return self._words[self._position - n : self._position].copy()
        assert left == 0, "a test's words must end with a draw"
        assert self._then is not None, "the test's words ran out"
        self.n_extra += n
        return self._then.words(n)


def bounded(value, sensitivity=1.0, norm=Norm.L2, relation=Relation.ADD_REMOVE):
    return Bounded(value, sensitivity, norm, relation)


def grouped_pvalue(counts, shares, least=20.0):
    """Return the p-value of a chi-square test, rare outcomes put together to at least ``least``."""
    from scipy.stats import chisquare

    order = np.argsort(shares)
    counts, shares = counts[order], shares[order]
    groups, group = [], np.zeros(2)
    for seen, expected in zip(counts, shares * counts.sum(), strict=True):
        group += [seen, expected]
        if group[1] >= least:
            groups.append(group)
            group = np.zeros(2)
    groups[-1] += group
    return float(chisquare(*np.transpose(groups)).pvalue)


def smallest_exponent(outputs):
    """Return, for each output, the power of two of its lowest set bit (zeros left out)."""
    outputs = outputs[outputs != 0.0]
    mantissa, exponent = np.frexp(outputs)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    return exponent - 53 + np.log2(whole & -whole).astype(int)


def same_low_bits(first, second):
    """Say whether two samples of outputs have the same histogram of lowest set bits.

    The attacks of Mironov (2012) and Haney et al. (2022) read the value off these bits. On a
    common lattice the lowest bits are geometric whatever the value.
    """
    from scipy.stats import chi2_contingency

    a, b = smallest_exponent(first), smallest_exponent(second)
    bins = np.arange(min(a.min(), b.min()), max(a.max(), b.max()) + 2)
    table = np.stack([np.histogram(a, bins)[0], np.histogram(b, bins)[0]])
    pooled = table.sum(axis=0)
    keep = pooled >= 20
    table = np.column_stack([table[:, keep], table[:, ~keep].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return table.shape[1] < 2 or chi2_contingency(table).pvalue > ACCEPT
