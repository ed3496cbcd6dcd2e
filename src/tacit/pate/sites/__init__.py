"""Run PATE on records of several sites: local teachers, and votes summed by a collector."""

from tacit.pate.sites.collector import VoteCollector
from tacit.pate.sites.messages import VotesRejected
from tacit.pate.sites.round import Round, digest_of
from tacit.pate.sites.site import TeacherSite

__all__ = [
    "Round",
    "TeacherSite",
    "VoteCollector",
    "VotesRejected",
    "digest_of",
]
