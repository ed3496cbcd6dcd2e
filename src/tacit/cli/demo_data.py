"""Load the RAND Health Insurance Experiment: 20,190 yearly records and a public schema."""

from __future__ import annotations

from typing import Any

from tacit.cli.running import Refused
from tacit.schema import Boolean, ClassTarget, Number, NumberTarget, Schema

WHY_PUBLIC = (
    "The RAND Health Insurance Experiment is published; its records are in the public domain."
)
OFTEN = "frequent"  # two or more visits to a doctor a year
VISITS = "visits"

# All bounds below follow from the design of the experiment (coinsurance of 0 to 100 %, payments
# and deductibles of a few thousand dollars at most) or from convention, not from the records.
COLUMNS = (
    Number("lncoins", lower=0, upper=4.62),  # log(1 + coinsurance in %)
    Boolean("idp"),  # an individual deductible plan
    Number("lpi", lower=0, upper=8),  # log of the yearly participation payment
    Number("fmde", lower=0, upper=9),  # log of the largest deductible
    Number("physlm", lower=0, upper=1),  # a physical limitation
    Number("disea", lower=0, upper=60, log=True),  # an index of chronic diseases
    Boolean("hlthg"),  # own rating of health: good,
    Boolean("hlthf"),  # fair,
    Boolean("hlthp"),  # poor; otherwise excellent
)
OFTEN_SCHEMA = Schema(COLUMNS, ClassTarget(OFTEN, ("no", "yes")))
VISITS_SCHEMA = Schema(COLUMNS, NumberTarget(VISITS, lower=0, upper=20))


def load_records() -> Any:
    """Return the records as a pyarrow Table, with a column for two or more visits a year."""
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        raise Refused(
            "the demo's records come with statsmodels, which is not installed; "
            "pip install statsmodels (it belongs to the extra demo)."
        ) from None
    import pyarrow as pa

    frame = randhie.load_pandas().data.rename(columns={"mdvis": VISITS})
    often = ["yes" if often else "no" for often in (frame[VISITS] >= 2).tolist()]
    return pa.Table.from_pandas(frame.assign(**{OFTEN: often}), preserve_index=False)
