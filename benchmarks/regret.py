"""How far mechanism="auto" is from the best mechanism in hindsight, and from doing nothing.

Every problem of `regret_problems` at every budget, with n private, defaults and no tuning: "auto",
each mechanism alone, the best constant without noise, a fit without privacy, and the paper's
AdaSSP where it was published. The protocol of Wang (2018) is stated there. All methods meet the
same seeds of noise, fold by fold, so that "auto" and the mechanism it chose do not differ by luck.

What one method did on one problem at one budget is a line of .bench/regret/<digest>.jsonl, where
the digest is that of the code measured: a run that was stopped goes on where it was. Results go to
results/regret.csv and regret.md.
"""

from __future__ import annotations

import harness

harness.pin_threads(1)  # one a process

import argparse  # noqa: E402
import hashlib  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Iterable, Iterator  # noqa: E402
from concurrent.futures import ProcessPoolExecutor, as_completed  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from multiprocessing import get_context  # noqa: E402
from pathlib import Path  # noqa: E402
from statistics import fmean  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import regret_report  # noqa: E402
import sklearn.linear_model  # noqa: E402
from regret_problems import LOG_LOSS, SQUARED, ZERO_ONE, Problem, problems  # noqa: E402
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn  # noqa: E402

from tacit.datasets import Dataset  # noqa: E402
from tacit.erm import CannotSolve, NoisyGradient, SecondMoment  # noqa: E402
from tacit.erm.minimization import MECHANISMS  # noqa: E402

REPEATS = 10
QUICK_REPEATS = 2
SLOW_REPEATS = 3
SLOW_SECONDS = 60.0  # of one repeat
QUICK = {"airfoil": (0.1, 1.0, 100.0), "number: base": (0.1, 1.0), "class: base": (0.1, 1.0)}
PROCESSES = 2
# What "auto" is compared with: every mechanism by its name, and noisy gradients turned by a moment.
ALONE: dict[str, Any] = {
    **{name: name for name in MECHANISMS},
    "turned_noisy_gradient": NoisyGradient(preconditioner=SecondMoment()),
}
REFERENCE, CONSTANT = regret_report.REFERENCE, regret_report.CONSTANT


@dataclass(frozen=True)
class Task:
    """One method on one problem at one budget."""

    problem: str
    epsilon: float
    method: str
    repeats: int

    @property
    def key(self) -> tuple[str, float, str]:
        return self.problem, self.epsilon, self.method


def tasks(names: Iterable[str], repeats: int, quick: bool) -> Iterator[Task]:
    for name in names:
        budgets = QUICK[name] if quick else problems()[name].epsilons
        # without noise a repeat differs from another by its folds alone
        without_noise = repeats if problems()[name].n_folds > 1 else 1
        yield Task(name, math.inf, CONSTANT, without_noise)
        yield Task(name, math.inf, REFERENCE, without_noise)
        for epsilon in budgets:
            for method in ("auto", *ALONE):
                yield Task(name, epsilon, method, repeats)


def clipped(rows: Any, norm: float) -> Any:
    return rows * np.minimum(1.0, norm / np.maximum(np.linalg.norm(rows, axis=1), 1e-300))[:, None]


class Constant:
    """The best constant: the mean label, or the classes as often as they are."""

    def fit(self, rows: Any, labels: Any) -> Constant:
        self.mean = float(np.mean(labels))
        self.classes_, counts = np.unique(labels, return_counts=True)
        self.shares = counts / len(labels)
        return self

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), self.classes_[self.shares.argmax()])

    def predict_log_proba(self, rows: Any) -> Any:
        return np.tile(np.log(self.shares), (len(rows), 1))


class ConstantNumber(Constant):
    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), self.mean)


class Wang:
    """The paper's non-private method: ridge with lam = 1."""

    def fit(self, rows: Any, labels: Any) -> Wang:
        gram = rows.T @ rows + np.eye(rows.shape[1])
        self.weights = np.linalg.solve(gram, rows.T @ labels)
        return self

    def predict(self, rows: Any) -> Any:
        return rows @ self.weights


class NoPrivacy:
    """scikit-learn on clipped rows: least squares, or C = 100, which is near no ridge at all."""

    def __init__(self, problem: Problem) -> None:
        self.norm = problem.row_norm
        if problem.is_regression:
            self.model = sklearn.linear_model.LinearRegression(fit_intercept=problem.fit_intercept)
        else:
            most = 100 if len(problem.classes) > 2 else 1000
            strength = 100.0 / self.norm**2
            self.model = sklearn.linear_model.LogisticRegression(C=strength, max_iter=most)

    def fit(self, rows: Any, labels: Any) -> NoPrivacy:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 100 iterations are enough for the error on MNIST
            self.model.fit(clipped(rows, self.norm), labels)
        return self

    def predict(self, rows: Any) -> Any:
        return self.model.predict(clipped(rows, self.norm))

    def predict_log_proba(self, rows: Any) -> Any:
        return self.model.predict_log_proba(clipped(rows, self.norm))


def model_of(task: Task, problem: Problem, seed: int) -> Any:
    if task.method == CONSTANT:
        return ConstantNumber() if problem.is_regression else Constant()
    if task.method == REFERENCE:
        return Wang() if problem.n_folds > 1 else NoPrivacy(problem)
    mechanism = ALONE.get(task.method, task.method)
    return problem.estimator(task.epsilon, mechanism).set_params(random_state=seed)


def error(measure: str, model: Any, rows: Any, labels: Any) -> float:
    if measure == SQUARED:
        return float(np.mean((model.predict(rows) - labels) ** 2))
    if measure == ZERO_ONE:
        return float(np.mean(model.predict(rows) != labels))
    place = np.searchsorted(np.unique(labels), labels)
    return -float(np.mean(model.predict_log_proba(rows)[np.arange(len(labels)), place]))


def training_loss(problem: Problem, model: Any, data: Dataset) -> float:
    """Return what the risk of a plan is about: half the square, or the log loss, per record.

    Of numbers the score itself counts: predictions keep to the range of labels, scores need not.
    """
    if problem.is_regression and hasattr(model, "coef_"):
        rows = clipped(data.train_rows, problem.row_norm)
        scores = rows @ np.ravel(model.coef_) + model.intercept_
        return float(np.mean((scores - data.train_labels) ** 2)) / 2
    if problem.is_regression:
        return error(SQUARED, model, data.train_rows, data.train_labels) / 2
    return error(LOG_LOSS, model, data.train_rows, data.train_labels)


def run(task: Task) -> dict[str, Any]:
    """Fit and measure, each time with fresh noise; a method that does not apply says why."""
    problem = problems()[task.problem]
    row: dict[str, Any] = {**vars(task), "errors": {m: [] for m in problem.measures}}
    row |= {"training": [], "optimum": [], "told": [], "mechanisms": [], "refused": ""}
    start = time.perf_counter()
    for repeat in range(task.repeats):
        try:
            one = repeated(task, problem, repeat)
        except CannotSolve as reason:
            return {**row, "refused": str(reason)}
        for measure in problem.measures:
            row["errors"][measure].append(one[measure])
        row["training"].append(one["training"])
        row["optimum"].append(one["optimum"])
        row["told"].append(one["told"])
        row["mechanisms"] += one["mechanisms"]
        if time.perf_counter() - start > SLOW_SECONDS * (repeat + 1) and repeat + 1 >= SLOW_REPEATS:
            break
    row["seconds"] = (time.perf_counter() - start) / len(row["training"]) / problem.n_folds
    if task.method not in (CONSTANT, REFERENCE):
        row |= predicted(task, problem)
    return row


def predicted(task: Task, problem: Problem) -> dict[str, Any]:
    """Return what a plan says to somebody who knows how many records there are."""
    n, d = next(problem.splits(0)).train_rows.shape
    plan = problem.estimator(task.epsilon, ALONE.get(task.method, task.method)).plan(d, n)
    same = task.method == "auto" and plan.mechanism == MECHANISMS.get(plan.mechanism.name)
    return {"predicted": plan.excess_risk, "planned": plan.mechanism.name, "as_named": same}


def repeated(task: Task, problem: Problem, repeat: int) -> dict[str, Any]:
    """Return the means over the folds of one repeat."""
    found: list[dict[str, float]] = []
    mechanisms: list[str] = []
    for fold, data in enumerate(problem.splits(repeat)):
        model = model_of(task, problem, repeat * problem.n_folds + fold)
        model.fit(data.train_rows, data.train_labels)
        one = {m: error(m, model, data.test_rows, data.test_labels) for m in problem.measures}
        best = model
        if task.method == REFERENCE and problem.n_folds > 1:
            best = NoPrivacy(problem).fit(data.train_rows, data.train_labels)  # risk knows no ridge
        one["training"] = training_loss(problem, model, data)
        one["optimum"] = training_loss(problem, best, data)
        plan = getattr(model, "plan_", None)
        one["told"] = math.nan if plan is None else plan.excess_risk
        if plan is not None:
            mechanisms.append(plan.mechanism.name)
        found.append(one)
    means: dict[str, Any] = {key: fmean(one[key] for one in found) for key in found[0]}
    return {**means, "mechanisms": sorted(set(mechanisms))}


class Results:
    """Lines of a file, by problem, budget and method; written as they come."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.rows = {(r["problem"], r["epsilon"], r["method"]): r for r in map(json.loads, lines)}

    def has(self, task: Task) -> bool:
        found = self.rows.get(task.key)
        return found is not None and found["repeats"] >= task.repeats

    def add(self, row: dict[str, Any]) -> None:
        self.rows[row["problem"], row["epsilon"], row["method"]] = row
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def digest() -> str:
    """Return a name for the code that is measured, whatever its commit is called."""
    measured = [*(harness.HERE.parent / "src" / "tacit").rglob("*.py")]
    measured += [harness.HERE / name for name in ("regret.py", "regret_problems.py")]
    content = hashlib.sha256()
    for path in sorted(measured):
        content.update(path.name.encode() + path.read_bytes())
    return content.hexdigest()[:12]


def work(todo: list[Task], results: Results, processes: int) -> None:
    columns = "{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    # spawned, so that no child inherits a thread or a random state
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    with pool, Progress(*columns) as progress:
        bar = progress.add_task("regret", total=len(todo))
        for done in as_completed([pool.submit(run, task) for task in todo]):
            row = done.result()
            results.add(row)
            text = f"{row['problem']}, epsilon {row['epsilon']:g}, {row['method']}"
            progress.update(bar, advance=1, description=f"{text:50s}")


def run_by_name(todo: list[Task], results: Results) -> Iterator[dict[str, Any]]:
    """Yield lines of mechanisms that "auto" ran as by their name: same seeds, same fits."""
    for task in todo:
        auto = results.rows.get((task.problem, task.epsilon, "auto"))
        if auto and auto.get("as_named") and auto["planned"] == task.method:
            yield {**auto, "method": task.method}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 problems, 2 repeats")
    parser.add_argument("--only", help="problems whose name contains this; several by commas")
    parser.add_argument("--repeats", type=int, help=f"by default {REPEATS}")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--cache", type=Path, help="a file of results to go on with")
    options, _ = parser.parse_known_args()  # other parts of `make bench` have others
    names = [*QUICK] if options.quick else [*problems()]
    if options.only:
        words = options.only.lower().split(",")
        names = [name for name in names if any(word in name.lower() for word in words)]
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    measured = harness.Run()
    results = Results(options.cache or harness.SCRATCH / "regret" / f"{digest()}.jsonl")
    wanted = list(tasks(names, repeats, options.quick))
    for is_auto in (True, False):
        todo = [t for t in wanted if (t.method == "auto") is is_auto and not results.has(t)]
        for row in list(run_by_name(todo, results)):
            results.add(row)
        work([task for task in todo if not results.has(task)], results, options.processes)
    rows = [results.rows[task.key] for task in wanted]
    partial = options.quick or bool(options.only) or repeats < REPEATS
    regret_report.write(rows, harness.results_folder(partial), measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
