"""Combine steps into one model under one budget; each step passes public facts to the next."""

from tacit.pipeline.introspection import encoder_and_estimator
from tacit.pipeline.planning import PipelinePlan
from tacit.pipeline.private import PrivatePipeline
from tacit.pipeline.public import Pipeline
from tacit.pipeline.sklearn_adapters import Vouched

__all__ = ["Pipeline", "PipelinePlan", "PrivatePipeline", "Vouched", "encoder_and_estimator"]
