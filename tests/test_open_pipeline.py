"""Schemas that leave something open, and records that are held out, in a private pipeline."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.metrics import EvaluationPlan
from tacit.noise import ReplayMismatch, SensitivityViolation
from tacit.pipeline import PrivatePipeline
from tacit.privacy import Accountant, Budget, Composed, Gaussian, Parallel, Relation
from tacit.queries import GaussianNoise, NoisySum
from tacit.queries import session as views
from tacit.queries.session import Split
from tacit.report import facts_of, render
from tacit.schema import (
    ClassTarget,
    Number,
    NumberTarget,
    OpenCategory,
    OpenNumber,
    Schema,
    SchemaEncoder,
    Unit,
)
from tacit.table_model import TableModel
from tacit.testing import replay
from tests.cli.helpers import run

RNG = np.random.default_rng(3)
N = 6000
TOWNS = RNG.choice(["Oslo", "Bergen", "Moss"], N, p=[0.5, 0.3, 0.2])
TABLE = pd.DataFrame({"a": RNG.lognormal(0, 1, N), "b": RNG.uniform(0, 1, N), "t": TOWNS})
TABLE.loc[5, "a"] = np.nan
TABLE.loc[6, "t"] = "only I live here"
ILL = np.where(np.log(RNG.lognormal(0, 0.5, N) * TABLE["a"]) + (TOWNS == "Oslo") > 0.5, "yes", "no")
NUMBER = OpenNumber("a", 0, 1e4, log=True)
SCHEMA = Schema(
    (NUMBER, Number("b", 0, 1), OpenCategory("t", 6)), ClassTarget("ill", ("no", "yes"))
)


def pipeline(schema: Schema = SCHEMA, **parameters: Any) -> PrivatePipeline:
    steps = [("encode", SchemaEncoder(schema)), ("model", LogisticRegression())]
    return PrivatePipeline(steps, **{"epsilon": 4.0, **parameters})


def test_what_a_schema_leaves_open_is_learned_under_the_same_budget(tmp_path: Path) -> None:
    made = pipeline().fit(TABLE, ILL)
    assert made.feature_names_met[:5] == ("log a", "b", "t=Bergen", "t=Moss", "t=Oslo")
    assert made.feature_names_met[5:] == ("t#4", "t#5", "t#6")
    assert 0.998 * 4.0 <= made.privacy_.epsilon(1e-6) <= 4.0
    assert list(made.plan_.shares) == ["encode words", "encode bounds", "model"]
    assert made.score(TABLE, ILL) > 0.75
    assert "only I live here" not in repr(made.steps_) + str(made.plan_)
    tacit.save(made, tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit")
    assert np.all(again.predict_proba(TABLE) == made.predict_proba(TABLE))
    assert again.fit(TABLE, ILL).privacy_.event == made.privacy_.event
    page = render(facts_of(again))
    assert "at most 6 words, learned" in page
    assert "narrower bounds are learned" in page


def test_shares_have_the_names_of_what_is_learned() -> None:
    plan = pipeline(shares={"encode words": 0.05, "encode bounds": 0.2}).plan()
    assert plan.shares == pytest.approx({"encode words": 0.05, "encode bounds": 0.2, "model": 0.75})


def test_without_noise_nothing_is_left_out() -> None:
    made = pipeline(epsilon=math.inf).fit(TABLE, ILL)
    assert made.steps_["encode"].schema.columns[2].learned == tuple(
        sorted({*TOWNS, "only I live here"})
    )


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_records_held_out_cost_nothing_more(share: float) -> None:
    schema = Schema((Number("b", 0, 1), Number("a", 0, 9)), ClassTarget("ill", ("no", "yes")))
    bare = pipeline(schema).fit(TABLE, ILL)
    made = pipeline(schema, evaluate=share).fit(TABLE, ILL)
    assert isinstance(made.privacy_.event, Parallel)
    assert made.privacy_.event.events[0] == bare.privacy_.event
    assert made.privacy_.epsilon(1e-6) == pytest.approx(bare.privacy_.epsilon(1e-6), rel=1e-6)
    found = made.evaluation_
    assert found is not None
    assert found.privacy_ == made.privacy_
    assert abs(found["accuracy"].value - made.score(TABLE, ILL)) < 0.1
    assert abs(found.n_records.value - N * share) < 5 * math.sqrt(N * share)


def test_words_are_learned_before_the_split_and_cost_their_share() -> None:
    made = pipeline(evaluate=0.2).fit(TABLE, ILL)
    assert isinstance(made.privacy_.event, Composed)
    words, parts = made.privacy_.event.events
    assert isinstance(parts, Parallel)
    assert words == made.plan_.steps["encode words"].event
    assert 0.998 * 4.0 <= made.privacy_.epsilon(1e-6) <= 4.0


def test_each_record_is_on_one_side(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    split = Split.apply

    def noted(self: Any, table: Any, *given: Any) -> Any:
        found = split(self, table, *given)
        seen["all"], (seen["learn"], seen["try"]) = table, found[0].parts
        return found

    monkeypatch.setattr(Split, "apply", noted)
    people = Schema((Unit("who"), Number("b", 0, 1)), ClassTarget("ill", ("no", "yes")))
    table = TABLE.assign(who=np.arange(N) // 3)
    made = pipeline(people, evaluate=0.25).fit(table, ILL)
    assert made.privacy_.relation is Relation.ADD_REMOVE_PERSON
    learned, tried = set(seen["learn"].named), set(seen["try"].named)
    assert not learned & tried
    assert learned | tried == set(seen["all"].named)
    rows = [seen[side].read()[0] for side in ("learn", "try")]
    assert sum(map(len, rows)) == N


@pytest.mark.parametrize(
    "relation", [Relation.ADD_REMOVE, pytest.param(Relation.REPLACE, marks=pytest.mark.slow)]
)
def test_replay_with_everything(relation: Relation) -> None:
    table, ill = TABLE[:300], ILL[:300]
    odd = pd.DataFrame({"a": [1e9], "b": [-3.0], "t": ["only I live here, too"]})
    more = pd.concat([table, odd], ignore_index=True), np.append(ill, "yes")
    less = table, ill
    if relation is Relation.REPLACE:
        other = odd.assign(a=0.0, t="Oslo")
        less = pd.concat([table, other], ignore_index=True), np.append(ill, "no")
    schema = Schema(SCHEMA.columns, SCHEMA.target, n_records=301)

    def fit(data: Any) -> Any:
        # seeded, so that the split is the same in both worlds
        made = pipeline(schema, epsilon=8.0, evaluate=0.3, relation=relation, random_state=1)
        return made.fit(*data)

    # words, two quantiles, the model's releases, and the evaluation
    assert replay(fit, more, less) == replay(fit, less, more) >= 5


def test_an_evaluation_on_all_records_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by sensitivities, which are the same, but because the model's part must be another."""
    schema = Schema((Number("b", 0, 1),), ClassTarget("ill", ("no", "yes")), n_records=61)

    def split_by_first(
        shares: Any, key: Any, relation: Any, rows: Any, *rest: Any, **_: Any
    ) -> Any:
        # a split that looks at other records: above or below the mean
        return (rows[:, 0] > rows[:, 0].mean()).astype(np.int64)

    monkeypatch.setattr(views, "parts_of", split_by_first)
    near = np.full(60, 0.5)
    near[:30] += 1e-3
    odd = pd.DataFrame({"b": np.append(near, 9.0)}), np.array(["yes", "no"] * 30 + ["yes"])
    even = pd.DataFrame({"b": near}), odd[1][:60]

    def fit(data: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # too few records for an evaluation
            return pipeline(schema, epsilon=50.0, evaluate=0.5, random_state=1).fit(*data)

    with pytest.raises((ReplayMismatch, SensitivityViolation)):
        replay(fit, odd, even)


def test_numbers_are_evaluated_too() -> None:
    schema = Schema((Number("b", 0, 1),), NumberTarget("y", -1, 2))
    numbers = TABLE["b"] + 0.1 * RNG.standard_normal(N)
    steps = [("encode", SchemaEncoder(schema)), ("model", LinearRegression())]
    made = PrivatePipeline(steps, epsilon=8.0, evaluate=0.5).fit(TABLE, numbers)
    assert made.evaluation_ is not None
    assert made.evaluation_["r2"].value > 0.7


def test_one_charge_for_learning_and_trying() -> None:
    purse = Accountant(Budget(4.0, 1e-6))
    made = pipeline(evaluate=0.1, accountant=purse).fit(TABLE, ILL)
    assert purse.events == (made.privacy_.event,)


@pytest.mark.parametrize("share", [-0.1, 1.0, math.nan])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="evaluate must be"):
        pipeline(evaluate=share).fit(TABLE, ILL)


def test_a_forged_evaluation_is_refused(tmp_path: Path) -> None:
    from tacit.saving.model_file import members_of, stored_in

    members = members_of(pipeline(evaluate=0.1).fit(TABLE, ILL))
    certificate = json.loads(members["guarantee.json"])
    certificate["event"]["events"][1] = Gaussian(1.0).to_dict()
    forged = {**members, "guarantee.json": json.dumps(certificate).encode()}
    with pytest.raises(tacit.saving.NotAModel, match="held out"):
        stored_in(forged)


def test_from_the_command_line(tmp_path: Path) -> None:
    TABLE.assign(ill=ILL).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    files = ["--schema", str(tmp_path / "schema.toml"), "--out", str(tmp_path / "model.tacit")]
    report = ["--report", str(tmp_path / "report.html")]
    data = str(tmp_path / "people.csv")
    shown = run("fit", data, *files, *report, "--epsilon", "4", "--evaluate", "0.2")
    assert "auc" in shown.output
    assert "differentially private with epsilon" in shown.output.replace("\n", " ")
    tried = run("evaluate", str(tmp_path / "model.tacit"), data, "--epsilon", "1")
    assert "auc" in tried.output
    asked = run("predict", str(tmp_path / "model.tacit"), data)
    assert asked.output.splitlines()[1] in ("no", "yes")
    again = run("fit", data, *files, "--force", "--epsilon", "4", "--evaluate", "0.2", "--json")
    assert 0.5 < json.loads(again.stdout)["evaluation"]["metrics"]["auc"]["value"] < 1.0


@pytest.mark.parametrize("word", ["yes", "not a class"])
def test_a_record_that_does_not_count_moves_no_other_to_another_part(word: str) -> None:
    """Under REPLACE parts go by position: in the table as it came, not among those that count."""
    n = 400
    columns = Schema((Number("b", 0, 1),), ClassTarget("ill", ("no", "yes")), n_records=n)
    one = TABLE[["b"]][:n], ILL[:n].astype(object)
    labels = one[1].copy()
    labels[0] = word
    other = one[0].assign(b=np.append(0.0, one[0]["b"][1:])), labels

    def fit(data: Any) -> Any:
        made = pipeline(columns, epsilon=8.0, evaluate=0.3, relation="replace", random_state=1)
        return made.fit(*data)

    replay(fit, one, other)


def test_a_file_has_no_positions_to_split_by(tmp_path: Path) -> None:
    """A line that cannot be read is left out, and would move all lines after it."""
    TABLE[["b"]].assign(ill=ILL).to_csv(tmp_path / "people.csv", index=False)
    columns = Schema((Number("b", 0, 1),), ClassTarget("ill", ("no", "yes")), n_records=N)
    made = pipeline(columns, evaluate=0.3, relation="replace")
    with pytest.raises(ValueError, match="position"):
        made.fit_file(tmp_path / "people.csv")
    whole = TableModel(columns, PrivatePipeline(made.steps[1:], evaluate=0.3, relation="replace"))
    with pytest.raises(ValueError, match="position"):
        whole.fit_file(tmp_path / "people.csv")


def test_an_evaluation_that_was_not_planned_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = Schema((Number("b", 0, 1),), ClassTarget("ill", ("no", "yes")))

    def quieter(plan: EvaluationPlan, session: Any) -> Any:
        return session.ask(NoisySum(plan.cells, GaussianNoise(0.5)), "sums")

    monkeypatch.setattr(EvaluationPlan, "sums", quieter)
    with pytest.raises(RuntimeError, match="'sums' would release"):
        pipeline(columns, evaluate=0.3).fit(TABLE[["b"]], ILL)
    monkeypatch.setattr(EvaluationPlan, "sums", lambda self, session: np.zeros(64))
    with pytest.raises(RuntimeError, match="withheld"):
        pipeline(columns, evaluate=0.3).fit(TABLE[["b"]], ILL)
