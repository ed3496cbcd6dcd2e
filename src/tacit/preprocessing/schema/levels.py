"""Columns of levels, a feature each, of which one may be left out: what others are compared with.

Beside an intercept the features of all levels are one too many: in every record that has a level
they add up to 1, as the intercept does, so that no standard error can tell them apart. With a
reference there is a feature for each of the other levels, and its coefficient is the difference.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tacit.preprocessing.errors import SchemaError
from tacit.preprocessing.files.one_value import MISSING
from tacit.preprocessing.schema import _check
from tacit.preprocessing.schema.columns import Encodes, Out, write_ones
from tacit.preprocessing.schema.missing import Indicator


class OfLevels(Encodes):
    """What columns of levels share: a feature for each level but the reference."""

    reference: str | None

    @property
    def levels(self) -> tuple[str, ...]:
        """What its levels are called, the reference among them."""
        raise AssertionError("a column of levels has some")

    @property
    def lacks_reference(self) -> bool:
        """Whether the features add up to 1, as an intercept does."""
        return self.reference is None and len(self.levels) > 1

    def with_reference(self) -> Self:
        """Return the column with its first level as the reference, unless it has one."""
        if not self.lacks_reference:
            return self
        column: Any = self  # a dataclass, as all columns are
        compared: Self = replace(column, reference=self.levels[0])
        return compared

    def _level_names(self) -> list[str]:
        """Return the name of every level's feature."""
        raise AssertionError("a column of levels names their features")

    def _names(self) -> list[str]:
        left_out = self._place_left_out
        return [name for place, name in enumerate(self._level_names()) if place != left_out]

    @property
    def _place_left_out(self) -> int | None:
        return None if self.reference is None else self.levels.index(self.reference)

    def _write_levels(self, codes: npt.NDArray[np.int64], out: Out) -> None:
        """Set the feature of each code's level.

        Where nothing says the level, a record counts neither way: zeros, or, where zeros are the
        reference, 1 / k for each of the k levels, so that its score is the levels' average. The
        norm, sqrt(k - 1) / k, is below 1, that of a level.
        """
        left_out, k = self._place_left_out, len(self.levels)
        if left_out is not None:
            unknown = codes < 0
            if isinstance(self.missing, Indicator):
                unknown &= codes != MISSING  # which has a feature of its own
            out[unknown, : k - 1] = 1 / k
            codes = np.where(codes == left_out, MISSING, codes - (codes > left_out))
        write_ones(out, codes)

    def _settle_reference(self, where: str) -> None:
        """Check that the reference is one of several levels."""
        if self.reference is None:
            return
        if self.reference not in self.levels:
            listed = ", ".join(map(_check.shown, self.levels[:9]))
            raise SchemaError(
                f"{where}: reference = {_check.shown(self.reference)} is none of its levels; write "
                f"one of {listed}{' ...' if len(self.levels) > 9 else ''}."
            )
        if len(self.levels) == 1:
            raise SchemaError(
                f"{where}: reference leaves nothing to compare, since there is one level alone; "
                "leave it out."
            )
