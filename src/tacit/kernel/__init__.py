"""Kernel machines with scikit-learn's interface and a privacy guarantee."""

from tacit.kernel.kernel_models import KernelLogisticRegression, KernelRidge, KernelSVC

__all__ = ["KernelLogisticRegression", "KernelRidge", "KernelSVC"]
