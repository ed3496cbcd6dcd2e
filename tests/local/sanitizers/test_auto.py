import pytest

from tacit.local import GaussianNoise, PrivUnit, least_noise
from tests.local.sanitizers.helpers import sanitizers


@pytest.mark.parametrize("d", [1, 2, 50, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_nothing_has_less_noise(d, epsilon):
    pure = least_noise(epsilon, 0.0, d, 2.0)
    assert isinstance(pure, PrivUnit)
    assert (pure.epsilon, pure.delta, pure.n_features, pure.norm) == (epsilon, 0.0, d, 2.0)
    best = least_noise(epsilon, 1e-6, d, 2.0)
    assert best.rms_norm == min(s.rms_norm for s in sanitizers(d, epsilon, 2.0))


def test_gaussian_noise_is_taken_where_it_is_least():
    assert isinstance(least_noise(1.0, 0.3, 5), GaussianNoise)


def test_delta_must_be_a_probability():
    for delta in (-1e-6, 0.9):
        with pytest.raises(ValueError, match="delta must be"):
            least_noise(1.0, delta, 5)
