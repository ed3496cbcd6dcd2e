"""Load public data sets with public schemas: bounds and categories are literals."""

from tacit.datasets.adult import load_adult
from tacit.datasets.base import Dataset
from tacit.datasets.diabetes130 import load_diabetes130
from tacit.datasets.images import load_cifar10, load_mnist
from tacit.datasets.kddcup99 import load_kddcup99
from tacit.datasets.synthetic import make_linear_regression
from tacit.datasets.uci_regression import load_uci_regression

__all__ = [
    "Dataset",
    "load_adult",
    "load_cifar10",
    "load_diabetes130",
    "load_kddcup99",
    "load_mnist",
    "load_uci_regression",
    "make_linear_regression",
]
