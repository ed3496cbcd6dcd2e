"""Run ``tacit pate``: teachers on a table vote on public rows, and a student is saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_new, check_public, check_report, room_for, write_student
from tacit.cli.options import warn_if_weak
from tacit.cli.running import Refused, before_records

_TEACHERS = "forest, boosting, logistic, tree or bayes"
_STUDENTS = "semi_supervised, forest, boosting, logistic or tree"


def pate(
    data: opt.Data,
    public: Annotated[
        Path,
        typer.Option(
            "--public",
            help="Rows that need no protection, with the same columns; if the target is included, "
            "the student is scored by it.",
        ),
    ],
    schema: opt.SchemaFile,
    epsilon: opt.Epsilon,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to save the student.")],
    delta: opt.DeltaOfRelease = None,
    target: opt.TargetColumn = None,
    unit: opt.UnitColumn = None,
    teachers: Annotated[int, typer.Option("--teachers", help="Number of teachers.")] = 250,
    queries: Annotated[int, typer.Option("--queries", help="Number of rows to label.")] = 200,
    teacher: Annotated[str, typer.Option("--teacher", help=f"{_TEACHERS}.")] = "forest",
    student: Annotated[str, typer.Option("--student", help=f"{_STUDENTS}.")] = "semi_supervised",
    sanitised: Annotated[
        bool,
        typer.Option("--sanitised", help="Also release the data-dependent cost, with noise."),
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", help="Teachers trained in parallel.")] = 1,
    report: opt.Report = None,
    *,
    charge: opt.Charge,
    delimiter: opt.Delimiter = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Train a student on noisy votes of teachers; the student may be published.

    The table is split among teachers of any kind. The teachers vote on public rows, noise is added
    to the votes, and a student learns from the winners. The student never sees a record of the
    table. No votes are printed.

    \b
    Examples:
      tacit pate people.csv --public pool.csv --schema schema.toml --epsilon 1 --out student.tacit
      tacit pate stays.csv --public pool.csv --schema schema.toml --unit patient --epsilon 1 \\
          --teachers 250 --queries 500 --teacher boosting --student forest \\
          --out student.tacit --report report.html
    """  # noqa: D301
    from tacit.cli.fit import column_names
    from tacit.cli.ledger import Protected, delta_of_release, record_file
    from tacit.pate import PATEClassifier
    from tacit.pate.query_points import check_pool
    from tacit.pipeline import PrivatePipeline
    from tacit.saving import inspect, save
    from tacit.schema import SchemaEncoder

    with before_records():
        check_public(public, data)
        inputs = (data, schema, public, *charge.files)
        check_new(out, force, *inputs, report)
        check_report(report, force, *inputs, out)
        declared = _schema(schema, target, unit)
        pool, truth = _pool(public, declared, delimiter)
        paid = charge.accountant(
            epsilon,
            release="student of a private vote",
            table=data.name,
            protected=Protected(declared.unit, column_names(schema)),
        )
        delta = delta_of_release(delta, epsilon, paid)
        model = PATEClassifier(
            _named("--teacher", teacher, _teachers()),
            teachers,
            _named("--student", student, _students()),
            queries,
            epsilon,
            delta,
            accounting="sanitised" if sanitised else "worst_case",
            classes=list(declared.target.labels),
            accountant=paid,
            n_jobs=jobs,
        )
        check_pool(pool, queries, len(declared.feature_names))
        plan = model.plan()
        if not as_json:
            output.note(str(plan))
    warn_if_weak(epsilon, delta, declared.n_records)
    with room_for(out, report), output.progress("reading the table", "training teachers") as step:
        table = SchemaEncoder(declared).unread_file(data, delimiter=delimiter, progress=step)
        model.fit(table, None, X_public=pool)
    encoder = SchemaEncoder(declared).fit()
    save(PrivatePipeline.of_fitted([("schema", encoder), ("estimator", model)]), out)
    certificate = inspect(out)
    record_file(paid, out, certificate)
    scores = _scores(model, pool, truth)
    if report is not None:
        write_student(report, f"Student of {declared.target.name}", model, scores)
    _show(certificate, model, scores, out, report, as_json)


def _schema(path: Path, target: str | None, unit: str | None) -> Any:
    from tacit.cli.fit import read_schema
    from tacit.schema import ClassTarget

    declared = read_schema(path, target, unit)
    declared.refuse_open()
    if declared.unconfirmed:
        names = ", ".join(map(repr, declared.unconfirmed))
        raise Refused(f"{path.name}: {names} not confirmed; see tacit schema confirm.")
    if not isinstance(declared.target, ClassTarget):
        raise Refused("teachers vote for classes; the schema's target must have classes.")
    return declared


def _pool(path: Path, declared: Any, delimiter: str | None) -> tuple[Any, Any]:
    """Return the public rows and, if the file has them, their labels."""
    from tacit.io.reading import read_table
    from tacit.schema import SchemaEncoder, TableError

    mine = [column for column in declared.columns if column.name != declared.unit]
    without = replace(declared, columns=tuple(mine))
    try:
        rows, labels = SchemaEncoder(without).unread_file(path, delimiter=delimiter).read()
    except TableError:
        labels = None
    else:
        if len(rows):
            return rows, labels
    blind = SchemaEncoder(replace(without, target=None))
    names = [column.name for column in without.encoded]
    rows = blind.transform(read_table(path, names, delimiter=delimiter))
    if labels is not None and len(rows):  # public rows may be looked at
        raise Refused(
            f"no row of {path.name} has one of the classes {list(declared.target.classes)!r} that "
            f"the schema declares for {declared.target.name!r}; compare them with the file, or "
            "leave that column out of it."
        )
    return rows, None


def _named(option: str, word: str, known: dict[str, Any]) -> Any:
    if word not in known:
        raise Refused(f"{option} must be one of {', '.join(sorted(known))}, got {word!r}.")
    return known[word]


def _teachers() -> dict[str, Any]:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    return {
        "forest": RandomForestClassifier(50),
        "boosting": GradientBoostingClassifier(n_estimators=50, max_depth=2),
        "logistic": LogisticRegression(max_iter=300),
        "tree": DecisionTreeClassifier(max_depth=6),
        "bayes": GaussianNB(),
    }


def _students() -> dict[str, Any]:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    from tacit.pate import SemiSupervised

    return {
        "semi_supervised": SemiSupervised(),
        "forest": RandomForestClassifier(300, min_samples_leaf=3, random_state=0),
        "boosting": GradientBoostingClassifier(max_depth=2, subsample=0.7, random_state=0),
        "logistic": LogisticRegression(max_iter=1000),
        "tree": DecisionTreeClassifier(max_depth=6, random_state=0),
    }


def _scores(model: Any, pool: Any, truth: Any) -> Any:
    """Score answers and student by public labels, if there are any."""
    import numpy as np

    from tacit.report.pages import PublicScores

    if truth is None:
        return None
    answered = model.answers_ >= 0
    queried = model.queries_[answered]
    right = float(np.mean(model.classes_[model.answers_[answered]] == truth[queried]))
    other = np.setdiff1d(np.arange(len(truth)), model.queries_)
    if not other.size:
        return None
    student = float(np.mean(model.predict(pool[other]) == truth[other]))
    return PublicScores(right, student, int(other.size))


def _show(
    certificate: Any, model: Any, scores: Any, out: Path, report: Path | None, as_json: bool
) -> None:
    private_cost = getattr(model, "sanitised_", None)
    if as_json:
        public = None if scores is None else vars(scores)
        files = {"out": str(out), "report": None if report is None else str(report)}
        cost_record = None if private_cost is None else vars(private_cost)
        found = {**files, "public_scores": public, "sanitised": cost_record}
        output.document({**certificate.to_dict(), **found, "plan": dict(model.plan_.settings)})
        return
    output.guarantee(certificate.privacy, certificate.statement)
    shown = {"student": str(out), "sha256": certificate.sha256}
    if scores is not None:
        shown["accuracy of the answers"] = f"{scores.answers:.1%}, by public labels"
        shown["student"] = f"{out}, accuracy {scores.student:.1%} on other public rows"
    if private_cost is not None:
        shown["data-dependent cost"] = str(private_cost)
    if report is not None:
        shown["report"] = str(report)
    output.facts(shown)
