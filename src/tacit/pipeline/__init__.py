"""Combine steps into one model under one budget; each step passes public facts to the next."""

from tacit.pipeline.planning import PipelinePlan
from tacit.pipeline.private import PrivatePipeline
from tacit.pipeline.sklearn_adapters import Vouched

__all__ = ["PipelinePlan", "PrivatePipeline", "Vouched"]
