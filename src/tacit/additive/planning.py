"""Plan an additive model: shares of the budget, noise in a bin, the branch for small tables.

Everything follows from the schema, the budget and the expected number of records, before data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tacit import checks
from tacit.additive.bins import bins_sensitivities, level_noise
from tacit.additive.grid import GridColumn
from tacit.engine import plan_lines
from tacit.privacy import Budget, Event, Guarantee, Relation
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import Facts, GaussianNoise, GaussianSum, Slot
from tacit.queries.base import plain_facts
from tacit.queries.noise import gaussian_parts
from tacit.queries.table_cells import LabelKind

# The slot of all queries: earlier answers decide later ones, so that one Gaussian event is charged.
SLOT = "everything"

# Shares of mu^2, found by experiment on the training halves of Adult and bank. The surface is flat:
# halving or doubling the share of the bins changes the AUC by less than 0.003.
SHARES: Mapping[str, float] = {
    "bins": 0.06,
    "label sums": 0.20,
    "joint fit": 0.30,
    "residual sums": 0.41,
    "calibration": 0.03,
}
# The part of the residual sums that a regression spends on a table of absolute residuals.
CLIP_SHARE = 0.03
# Below this q = n mu / m there are too few records for curves: one linear fit on all bins is
# better, by up to 0.12 of AUC; above they tie within 0.007 (Adult and bank, 800 to 5,000 rows).
SMALL_TABLE = 40.0
# Assumed if the number of records is private and not passed to `plan`.
_TYPICAL_RECORDS = 40_000
# A bin can be seen if it holds so many standard deviations of noise.
_SEEN = 3.0


@dataclass(frozen=True, eq=False)
class AdditivePlan:
    """The plan of an additive model; ``print`` shows it.

    Attributes
    ----------
    budget, event, facts
        The budget, the one Gaussian event that is charged, and the public facts.
    shares
        The share of mu^2 of each part.
    noise
        The Gaussian noise of each part, as if it were one release.
    settings
        The noise of a count, of a label sum and of a residual sum in a bin, the smallest bin that
        can be seen, and q = n mu / m.
    """

    budget: Budget
    event: Event
    facts: Facts
    shares: Mapping[str, float]
    noise: Mapping[str, GaussianNoise]
    settings: Mapping[str, float]
    reason: str
    max_bins: int
    passes: int
    n_public: int | None = None
    name: str = "additive"
    rejected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def slots(self) -> Mapping[str, Slot]:
        """Return the one slot of a fit."""
        return {SLOT: Slot(self.event, GaussianSum())}

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {share:g}" for name, share in self.shares.items())
        return "\n".join(plan_lines(self, f"shares of mu^2: {shown}", *self.notes))

    @property
    def mu(self) -> float:
        """The mu of the Gaussian event."""
        return 1.0 / self.noise["everything"].multiplier


@dataclass(frozen=True)
class Options:
    """The public choices of a fit."""

    max_bins: int = 32
    passes: int = 3
    shares: Mapping[str, float] = field(default_factory=lambda: SHARES)

    def checked(self) -> Options:
        """Refuse invalid choices, before data are read."""
        checks.count("max_bins", self.max_bins, least=2, most=1024, remedy="32 is the default.")
        checks.count("passes", self.passes, least=1, most=20, remedy="3 is the default.")
        unknown = sorted(set(self.shares) - set(SHARES))
        total = math.fsum(self.shares.values())
        if unknown or not all(share >= 0 for share in self.shares.values()) or total > 1 + 1e-9:
            raise ValueError(
                f"shares must be 0 or more for {', '.join(map(repr, SHARES))} and add up to at "
                f"most 1, got {dict(self.shares)}; leave shares out for the default."
            )
        if not self.shares.get("bins") or not self.shares.get("label sums"):
            raise ValueError(
                f"shares of 'bins' and 'label sums' must be above 0, got {dict(self.shares)}: "
                "without them there is nothing to fit; leave shares out for the default."
            )
        return self


def plan_additive(
    grid: Sequence[GridColumn],
    kind: LabelKind,
    budget: Budget,
    options: Options,
    n_records: int | None = None,
    n_public: int | None = None,
) -> AdditivePlan:
    """Return the plan of a fit, from public facts alone.

    Parameters
    ----------
    grid
        The columns that are read.
    kind
        The kind of the labels.
    budget
        The budget; it needs a delta, because all noise is Gaussian.
    options
        The public choices.
    n_records
        About how many records there are; it changes what the plan predicts and nothing else.
    n_public
        The number of records, if it is public; REPLACE needs it.
    """
    if budget.relation is Relation.REPLACE and n_public is None:
        raise ValueError(
            "relation is 'replace', for which the number of records is public, and the schema "
            "declares none; pass a schema with n_records=..., or use relation 'add_remove'."
        )
    if budget.is_infinite:
        raise ValueError(
            "epsilon is infinite, and an additive model smooths by known noise; pass a finite "
            "epsilon, 100 say, which adds next to none."
        )
    if budget.is_pure:
        raise ValueError(
            "delta is 0, and all noise of an additive model is Gaussian; pass a delta below one "
            "over the number of records, 1e-6 say."
        )
    facts = plain_facts(budget.relation)
    whole = GaussianNoise(gaussian_multiplier(budget))
    shares = dict(options.checked().shares)
    parts = gaussian_parts(whole, shares)
    expected = n_records or n_public or _TYPICAL_RECORDS
    count_std = _count_std(grid, facts, kind, parts["bins"])
    largest = kind.largest_residual(None)
    changed = facts.n_changed
    each = parts["label sums"].multiplier * changed * largest * math.sqrt(len(grid))
    q = expected / whole.multiplier / max(len(grid), 1)
    settings = {
        "noise_multiplier": whole.multiplier,
        "count_std": count_std,
        "label_sum_std": each,
        "smallest_bin": _SEEN * count_std,
        "records_per_bin": expected / options.max_bins,
        "q": q,
    }
    if "residual sums" in parts:
        divided = math.sqrt(options.passes * len(grid))
        settings["residual_sum_std"] = parts["residual sums"].multiplier * changed * divided
    small = q < SMALL_TABLE
    branch = (
        "small table: bins, then one linear fit on all of them"
        if small
        else "bins, label sums, a joint fit and residual sums"
    )
    notes = (
        f"branch for {expected:,} records: {branch} (q = n mu / m = {q:.3g}; small below "
        f"{SMALL_TABLE:g}); a fit decides by its noisy count",
        f"noise on a count: {count_std:.3g} records; a bin below {_SEEN * count_std:.3g} cannot be "
        "seen",
        f"noise on the sum of labels in a bin: about {each:.3g}",
    )
    return AdditivePlan(
        budget=budget,
        event=whole.event(facts),
        facts=facts,
        shares=shares,
        noise={**parts, "everything": whole},
        settings=settings,
        reason="curves over private bins, one Gaussian event",
        max_bins=options.max_bins,
        passes=options.passes,
        n_public=n_public,
        notes=notes,
    )


def _count_std(
    grid: Sequence[GridColumn], facts: Facts, kind: LabelKind, noise: GaussianNoise
) -> float:
    """Return the standard deviation of the noise on a number's counts."""
    sensitivities = bins_sensitivities(grid, facts, kind)
    return level_noise(noise, sensitivities)[0].std(sensitivities[0])


def budget_of_noise(noise: GaussianNoise, budget: Budget) -> Budget:
    """Return a budget whose Gaussian noise is about the given one, for the plan of a joint fit.

    The session pays the event that such a plan states, and refuses it if it does not fit.
    """
    event = noise.event(plain_facts(budget.relation))
    # A smaller delta than the user's: the epsilon of a small mu would otherwise be 0.
    delta = min(budget.delta, 1e-9)
    found = Budget(Guarantee(event, delta).epsilon(delta), delta, budget.relation)
    while gaussian_multiplier(found) < noise.multiplier:  # rounded towards more noise
        found = Budget(found.epsilon * (1 - 1e-9), delta, budget.relation)
    return found
