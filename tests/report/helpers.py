"""Models to report on, and a reader that knows the page only as HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

import numpy as np

from tacit.linear_model import LogisticRegression
from tacit.pipeline import PrivatePipeline
from tacit.privacy import Gaussian, Guarantee
from tacit.report import AccuracyPicture, AccuracyPoint, ReportFacts
from tacit.report.facts import Coefficient, Coefficients, PlannedMechanism, PublicFact
from tacit.schema import (
    Boolean,
    Category,
    ClassTarget,
    Fill,
    Ignored,
    Indicator,
    Intervals,
    Number,
    Schema,
)
from tacit.table_model import TableModel

VOID = {"br", "link", "meta"}
PROMISE = Guarantee(Gaussian(4.0), 1e-6)


@dataclass
class Element:
    name: str
    attributes: dict[str, str]
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def all(self, name: str, **attributes: str) -> list[Element]:
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        found = []
        for child in self.children:
            fits = all(child.attributes.get(k) == v for k, v in wanted.items())
            if name in (child.name, "*") and fits:
                found.append(child)
            found += child.all(name, **attributes)
        return found

    def one(self, name: str, **attributes: str) -> Element:
        found = self.all(name, **attributes)
        assert len(found) == 1, (name, attributes, len(found))
        return found[0]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root", {})
        self.here = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"doubled attribute in <{tag}>"
        element = Element(tag, {k: v or "" for k, v in attrs}, self.here)
        self.here.children.append(element)
        if tag not in VOID:
            self.here = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.here.children.append(Element(tag, {k: v or "" for k, v in attrs}, self.here))

    def handle_endtag(self, tag: str) -> None:
        assert self.here.name == tag, f"</{tag}> closes <{self.here.name}>"
        assert self.here.parent is not None
        self.here = self.here.parent

    def handle_data(self, data: str) -> None:
        at: Element | None = self.here
        while at is not None:
            at.pieces.append(data)
            at = at.parent


def read(text: str) -> Element:
    """Return the tree of a page whose tags are all closed in order."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.here is reader.root, f"<{reader.here.name}> is not closed"
    return reader.root


def schema(unconfirmed: tuple[str, ...] = ()) -> Schema:
    return Schema(
        (
            Number("age", 17, 90),
            Number("gain", 0, 99_999, log=True, missing=Fill(0)),
            Category("education", ("none", "school", "university"), Indicator()),
            Intervals("hours", (20, 40)),
            Boolean("citizen"),
            Ignored("name"),
        ),
        ClassTarget("income", ("<=50K", ">50K")),
        n_records=3000,
        unconfirmed=unconfirmed,
    )


def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    age = rng.uniform(17, 90, 3000)
    return {
        "age": age,
        "gain": rng.exponential(1000.0, 3000),
        "education": rng.choice(["none", "school", "university"], 3000),
        "hours": rng.uniform(0, 80, 3000),
        "citizen": rng.choice(["yes", "no"], 3000),
        "income": np.where(age > 50, ">50K", "<=50K"),
    }


def table_model(**parameters: object) -> PrivatePipeline:
    unconfirmed = parameters.pop("unconfirmed", ())
    estimator = LogisticRegression(1.0, 1e-6, **parameters)
    facts = schema(unconfirmed)
    return TableModel(facts, estimator, allow_unconfirmed=bool(unconfirmed)).fit(table())


def picture() -> AccuracyPicture:
    points = tuple(
        AccuracyPoint(mechanism, epsilon, 0.7 + 0.05 * place + 0.01 * epsilon, 0.01)
        for place, mechanism in enumerate(("objective_perturbation", "noisy_gradient"))
        for epsilon in (0.1, 1.0, 10.0)
    )
    return AccuracyPicture(points, "The data set is published.", floor=0.6, ceiling=0.9)


def facts(**changes: object) -> ReportFacts:
    """Return facts with something in every section."""
    everything: dict[str, object] = {
        "title": "Logistic regression of income",
        "privacy": PROMISE,
        "schema": schema(),
        "public": (PublicFact("Row norm", "2", "longer rows are scaled down"),),
        "mechanisms": (
            PlannedMechanism("output_perturbation", 0.002, "some", True, (("sensitivity", 0.1),)),
            PlannedMechanism("noisy_gradient", 0.004, "at each step"),
            PlannedMechanism("noisy_sgd", None, "needs a number of records"),
        ),
        "about_mechanisms": "Predicted for 3,000 records.",
        "coefficients": Coefficients(
            (Coefficient("age", 1.5, 0.25), Coefficient("hours<20", -0.5, 0.25)), "What.", "How."
        ),
        "accuracy": picture(),
        "made_by": "tacit",
    }
    return ReportFacts(**{**everything, **changes})  # type: ignore[arg-type]
