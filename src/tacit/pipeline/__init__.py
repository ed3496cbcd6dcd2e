"""Several steps as one model: each tells the next what is public, and all share one budget."""

from tacit.pipeline.introspection import encoder_and_estimator
from tacit.pipeline.planning import PipelinePlan
from tacit.pipeline.private import PrivatePipeline
from tacit.pipeline.public import Pipeline
from tacit.pipeline.sklearn_adapters import Vouched

__all__ = ["Pipeline", "PipelinePlan", "PrivatePipeline", "Vouched", "encoder_and_estimator"]
