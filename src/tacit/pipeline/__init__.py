"""Several steps as one model: each tells the next what is public, and all share one budget."""

from tacit.pipeline.apart import taken_apart
from tacit.pipeline.plan import PipelinePlan
from tacit.pipeline.private import PrivatePipeline
from tacit.pipeline.public import Pipeline
from tacit.pipeline.vouched import Vouched

__all__ = ["Pipeline", "PipelinePlan", "PrivatePipeline", "Vouched", "taken_apart"]
