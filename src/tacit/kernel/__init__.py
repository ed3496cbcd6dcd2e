"""Kernel machines in scikit-learn's manner, each with a privacy guarantee."""

from tacit.kernel.kernel_models import KernelLogisticRegression, KernelRidge, KernelSVC

__all__ = ["KernelLogisticRegression", "KernelRidge", "KernelSVC"]
