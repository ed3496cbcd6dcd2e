"""List, for each kind of event, a test that fails if the event promises too much.

    python -m tests.audit.evidence

writes docs/audited_events.md. A new kind without a line here fails `make test`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "audited_events.md"

_DENSITY = "tests/test_exact_density.py"
_OURS = "tests/audit/test_evidence.py"

# kind: (file, test, what it does)
EVIDENCE: Mapping[str, tuple[str, str, str]] = {
    "best_of": (
        "tests/privacy/accounting/test_best_of.py",
        "test_a_finite_mechanism_never_loses_more",
        "every order of three outputs, enumerated",
    ),
    "composed": (
        _OURS,
        "test_two_randomised_responses_by_enumeration",
        "four outcomes, enumerated",
    ),
    "exponential_mechanism": (
        "tests/preprocessing/test_quantiles.py",
        "test_the_exact_density_keeps_the_promise",
        "the densities of neighbouring tables, compared",
    ),
    "gaussian": (
        "tests/privacy/accounting/test_gaussian_profile.py",
        "test_delta_of_ordinary_mu_is_exact",
        "the closed form in many digits",
    ),
    "linear_model_objective": (
        _DENSITY,
        "test_approximate",
        "the density of the minimiser on neighbours, integrated",
    ),
    "log_cosh_objective": (
        "tests/privacy/test_log_cosh.py",
        "test_no_more_leaks_than_is_said",
        "the density of the minimiser on neighbours, integrated",
    ),
    "logistic_objective": (
        "tests/audit/test_estimators.py",
        "test_half_the_noise_is_contradicted",
        "an audit that recovers the noise; its density is integrated too (test_approximate)",
    ),
    "monotone_objective": (
        _DENSITY,
        "test_approximate_under_replacement",
        "the density of the minimiser on neighbours, integrated",
    ),
    "noisy_majority": (
        "tests/pate/test_exact_votes.py",
        "test_majorities_cost_no_more_than_claimed",
        "the law of the winner for neighbouring votes",
    ),
    "non_private": (_OURS, "test_what_is_not_private_has_no_epsilon", "no finite epsilon at all"),
    "one_of": (
        "tests/privacy/accounting/test_best_of.py",
        "test_one_of_is_the_worst",
        "the greatest of the profiles",
    ),
    "parallel": (
        "tests/privacy/test_parallel.py",
        "test_adaptive_releases_from_two_parts_by_enumeration",
        "adaptive releases of two parts, enumerated",
    ),
    "pure_epsilon": (
        "tests/privacy/test_guarantee.py",
        "test_loss_distribution_of_randomised_response_is_exact",
        "randomised response in closed form",
    ),
    "pure_objective": (_DENSITY, "test_pure", "the greatest ratio of densities of the minimiser"),
    "rare_leak": (
        "tests/privacy/test_leak.py",
        "test_a_leak_adds_its_probability",
        "the mixture in closed form",
    ),
    "repeated": (
        "tests/privacy/test_guarantee.py",
        "test_loss_distribution_of_randomised_response_is_exact",
        "twelve randomised responses in closed form",
    ),
    "sampled_gaussian": (
        "tests/privacy/test_pins.py",
        "test_renyi_of_the_sampled_gaussian_against_quadrature",
        "the divergence, integrated",
    ),
    "smooth_gaussian": (
        "tests/pate/test_accounting.py",
        "test_two_gaussians_of_different_width",
        "the divergence of two Gaussians, integrated",
    ),
    "softmax_objective": (
        "tests/test_exact_density_of_weights.py",
        "test_softmax",
        "the density of the minimiser on neighbours, integrated",
    ),
    "zero_concentrated": (
        _OURS,
        "test_a_concentrated_promise_covers_the_gaussian_that_keeps_it",
        "the Gaussian of that rho, exactly",
    ),
}


def table() -> str:
    """Return the page: one line a kind. Another test checks that no kind is missing."""
    lines = ["| event | test | method |", "| --- | --- | --- |"]
    for kind, (file, test, how) in sorted(EVIDENCE.items()):
        lines.append(f"| `{kind}` | `{file}`: `{test}` | {how} |")
    head = (
        "# Test coverage of events\n\n"
        "The table names, for each kind of event, one test that fails if the event promises too\n"
        "much. `make test` runs these tests; there are others. `python -m tests.audit.evidence`\n"
        "writes this page from the registry of events. A kind without a line fails the tests.\n\n"
    )
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(table(), encoding="utf-8")
