"""Kernel machines in scikit-learn's manner, each with a privacy guarantee."""

from tacit.kernel.logistic import KernelLogisticRegression
from tacit.kernel.ridge import KernelRidge
from tacit.kernel.svc import KernelSVC

__all__ = ["KernelLogisticRegression", "KernelRidge", "KernelSVC"]
