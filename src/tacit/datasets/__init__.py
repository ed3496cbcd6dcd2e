"""Load public data sets with public schemas: bounds and categories are literals."""

from tacit.datasets.adult import load_adult
from tacit.datasets.base import Dataset
from tacit.datasets.kddcup99 import load_kddcup99
from tacit.datasets.mnist import load_mnist

__all__ = [
    "Dataset",
    "load_adult",
    "load_kddcup99",
    "load_mnist",
]
