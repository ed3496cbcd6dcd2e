"""The collector: adds up what sites send, and tells the winners."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.pate.aggregators import Answers
from tacit.pate.sites.messages import SiteVotes, VotesRejected
from tacit.pate.sites.round import Round
from tacit.privacy import Guarantee

Words = npt.NDArray[np.uint64]

# In standard deviations: so far beyond what teachers can say, noise is no excuse.
_PLAUSIBLE = 8.0


class VoteCollector:
    """Adds up the votes of sites in one round.

    Parameters
    ----------
    agreed
        The round.

    Notes
    -----
    **Guarantee**

    1. A message counts once: the same bytes again are ignored, other bytes of the same site are
       refused, and so is whatever is not of this round.
    2. Without masks, winners are told as soon as all but ``n_missing`` sites have answered; with
       masks all must, since masks cancel in the whole sum alone.

    **Trusted with**: without masks, each site's counts under a share of the noise, which is less
    protection than the sum has (`Round.share_event`). With masks, the sum alone, as long as it does
    not work together with sites. It can always withhold or falsify answers.

    Examples
    --------
    See `TeacherSite`.
    """

    def __init__(self, agreed: Round) -> None:
        self.round = agreed
        self._met: dict[int, bytes] = {}
        self._total: Words = np.zeros((agreed.n_queries, agreed.n_classes), dtype=np.uint64)

    def add(self, data: bytes) -> bool:
        """Count a site's message; return False if the same was counted before.

        Raises
        ------
        VotesRejected
            If it is no message of this round, or not what the site sent before.
        """
        votes = SiteVotes.from_bytes(data)
        votes.check(self.round)
        if votes.site in self._met:
            if self._met[votes.site] == data:
                return False
            raise VotesRejected(
                f"{self.round.sites[votes.site].name} has sent other votes in this round before; "
                "two answers of one site would be two releases."
            )
        self._check_plausible(votes)
        self._met[votes.site] = data
        self._total += votes.steps  # modulo 2^64
        return True

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of sites that have not answered."""
        return tuple(site.name for i, site in enumerate(self.round.sites) if i not in self._met)

    @property
    def is_ready(self) -> bool:
        """Whether the winners can be told."""
        most = 0 if self.round.masked else self.round.n_missing
        return len(self.missing) <= most

    def totals(self) -> npt.NDArray[np.float64]:
        """Return the noisy sum of all votes, for each query and class."""
        if not self.is_ready:
            wait = "all of them, since votes are masked" if self.round.masked else "more of them"
            raise VotesRejected(
                f"{len(self.missing)} sites have not answered ({', '.join(self.missing)}); wait "
                f"for {wait}. With less noise than agreed nothing may be told."
            )
        steps = self._total.view(np.int64).astype(np.float64)
        return steps * self.round.spacing

    def answers(self) -> Answers:
        """Return the class with the most votes, for each query."""
        winners: Answers = np.argmax(self.totals(), axis=1).astype(np.int64)
        return winners

    def guarantee(self, delta: float) -> Guarantee:
        """Return what is promised of the sum, and of all that follows from it."""
        agreed = self.round
        k = len(agreed.sites)
        whom = (
            f"no more than {agreed.n_missing} of {k} sites drop out, or work together with each "
            "other or with the collector"
        )
        seen = () if agreed.masked else ("the collector is trusted with the votes of each site",)
        return Guarantee(agreed.sum_event, delta, (whom, *seen))

    def _check_plausible(self, votes: SiteVotes) -> None:
        """Refuse votes that no honest site sends, or one in 10^14; masked, nobody can tell.

        A count is between 0 and n_teachers, those of a query add up to n_teachers, and noise of
        share_std is on each. So what a site can sway is its own teachers' votes.
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
