"""Sum the votes of sites, and release the winners."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.pate.aggregators import Answers
from tacit.pate.sites.messages import SiteVotes, VotesRejected
from tacit.pate.sites.round import Round
from tacit.privacy import Guarantee

Words = npt.NDArray[np.uint64]

# In standard deviations of the noise: counts further outside their range are rejected.
_PLAUSIBLE = 8.0


class VoteCollector:
    """Sum the votes of sites in one round.

    Parameters
    ----------
    agreed
        The round.

    Notes
    -----
    **Guarantee**

    1. A message counts once: equal bytes are ignored, other bytes of the same site are
       refused, and so are messages of other rounds.
    2. Without masks, winners are available as soon as all but ``n_missing`` sites have answered;
       with masks all must answer, since masks cancel only in the whole sum.

    **Trusted with**: without masks, each site's counts under a share of the noise, which is less
    protection than the sum has (`Round.share_event`). With masks, only the sum, unless it
    colludes with sites. It can always withhold or falsify answers.

    Examples
    --------
    See `TeacherSite`.
    """

    def __init__(self, agreed: Round) -> None:
        self.round = agreed
        self._met: dict[int, bytes] = {}
        self._total: Words = np.zeros((agreed.n_queries, agreed.n_classes), dtype=np.uint64)

    def add(self, data: bytes) -> bool:
        """Count a site's message; return False if it was counted before.

        Raises
        ------
        VotesRejected
            If it is not a message of this round, or differs from an earlier one of the site.
        """
        votes = SiteVotes.from_bytes(data)
        votes.check(self.round)
        if votes.site in self._met:
            if self._met[votes.site] == data:
                return False
            raise VotesRejected(
                f"{self.round.sites[votes.site].name} has already sent other votes in this round; "
                "two answers of one site would be two releases."
            )
        self._check_plausible(votes)
        self._met[votes.site] = data
        self._total += votes.steps  # modulo 2^64
        return True

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the sites that have not answered."""
        return tuple(site.name for i, site in enumerate(self.round.sites) if i not in self._met)

    @property
    def is_ready(self) -> bool:
        """Whether the winners can be computed."""
        most = 0 if self.round.masked else self.round.n_missing
        return len(self.missing) <= most

    def totals(self) -> npt.NDArray[np.float64]:
        """Return the noisy sum of all votes, for each query and class."""
        if not self.is_ready:
            wait = "all of them, since votes are masked" if self.round.masked else "more of them"
            raise VotesRejected(
                f"{len(self.missing)} sites have not answered ({', '.join(self.missing)}); wait "
                f"for {wait}. With less noise than agreed nothing may be released."
            )
        steps = self._total.view(np.int64).astype(np.float64)
        return steps * self.round.spacing

    def answers(self) -> Answers:
        """Return the class with the most votes, for each query."""
        winners: Answers = np.argmax(self.totals(), axis=1).astype(np.int64)
        return winners

    def guarantee(self, delta: float) -> Guarantee:
        """Return the guarantee of the sum, and of all its post-processing."""
        agreed = self.round
        k = len(agreed.sites)
        whom = (
            f"no more than {agreed.n_missing} of {k} sites drop out, or work together with each "
            "other or with the collector"
        )
        seen = () if agreed.masked else ("the collector is trusted with the votes of each site",)
        return Guarantee(agreed.sum_event, delta, (whom, *seen))

    def _check_plausible(self, votes: SiteVotes) -> None:
        """Refuse votes that an honest site sends with probability below 10^-14; not if masked.

        A count is in [0, n_teachers], the counts of a query add up to n_teachers, and each has
        noise of share_std. So a site can influence only its own teachers' votes.
        """
        agreed = self.round
        if agreed.masked:
            return
        counts = votes.steps.view(np.int64) * agreed.spacing
        noise = _PLAUSIBLE * agreed.share_std + agreed.spacing
        difference = np.abs(np.sum(counts, axis=1) - votes.n_teachers)
        within = np.all((counts >= -noise) & (counts <= votes.n_teachers + noise))
        if not within or np.any(difference > math.sqrt(agreed.n_classes) * noise):
            raise VotesRejected(
                f"the votes of {agreed.sites[votes.site].name} are not those of "
                f"{votes.n_teachers} teachers; they do not count."
            )
