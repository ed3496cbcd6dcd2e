"""The model and the records of a search: what is public of them, and when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone, is_classifier
from sklearn.utils.validation import validate_data

from tacit.estimators.parameters import row_norm_of
from tacit.pipeline import PrivatePipeline
from tacit.privacy import Budget, Guarantee, Relation
from tacit.records.rows_and_labels import as_numbers
from tacit.schema import SchemaEncoder
from tacit.table_facts import EncodedTable, TableFacts

_ONE_TRY = (
    "This is a step of one of several fits; the best of them was released, which costs more than "
    "one fit: see the guarantee of the search."
)
_OF_RECORDS = (
    "a search protects one record, and {what} identifies people, who may have "
    "several. Search on one record per person, or fit the estimator itself, with parameters chosen "
    "without the records, which protects people: estimator.fit(X, y, unit=...)."
)
_OWN = ("epsilon", "delta", "relation", "accountant", "random_state")


def pipeline_over(model: Any) -> PrivatePipeline:
    """Return an unfitted model as a pipeline: itself, or of its steps, or of the model alone."""
    if isinstance(model, PrivatePipeline):
        return model
    return PrivatePipeline(list(getattr(model, "steps", [("estimator", model)])), epsilon=None)


def check_model(model: Any) -> None:
    """Refuse a model that cannot be searched over."""
    holder = pipeline_over(model).budget_holder
    own = holder.get_params(deep=False) if hasattr(holder, "get_params") else {}
    if not {"epsilon", "delta", "accountant"} <= set(own) or not hasattr(holder, "predict"):
        raise TypeError(
            f"a search needs a classifier or a regressor of tacit, or a pipeline or a TableModel "
            "that ends in one, with the parameters epsilon, delta and accountant; got "
            f"{type(model).__name__}."
        )
    if own["accountant"] is not None:
        raise ValueError(
            "the estimator has an accountant of its own, and the search pays for all tries at "
            "once; pass it to the search, accountant=..., and leave it out of the estimator."
        )


def check_space(model: Any, names: Sequence[str]) -> None:
    """Refuse to search over parameters that the search itself sets."""
    for name in names:
        if name.rpartition("__")[2] in _OWN and name in model.get_params():
            raise ValueError(
                f"param_distributions has {name!r}, which the search decides for all tries alike; "
                "leave it out."
            )


def configured(
    model: Any,
    parameters: Mapping[str, Any],
    budget: Budget,
    random_state: int | None = None,
) -> PrivatePipeline:
    """Return an unfitted pipeline with these parameters and budget, and without an accountant.

    The search charges its fit (`Session.fit`), not an accountant of the model.
    """
    found = clone(model)
    # Clone values, so that one trial cannot change a value of the space for another.
    own = {name: clone(value, safe=False) for name, value in parameters.items()}
    try:
        found.set_params(**own)
    except ValueError as why:
        raise ValueError(
            f"param_distributions names what {type(model).__name__} does not have: {why}"
        ) from why
    # Force verbose=False: output per trial would reveal the number of trials.
    resolved = found.get_params()
    found.set_params(**{name: False for name in resolved if name.rpartition("__")[2] == "verbose"})
    pipeline = pipeline_over(found)
    if parameters and _encoding(pipeline) != _encoding(pipeline_over(model)):
        raise ValueError(
            "param_distributions changes the SchemaEncoder, but a search encodes the table once, "
            "for all tries; leave it out, and search with each encoder by itself."
        )
    values = {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "relation": budget.relation,
        "accountant": None,
        "random_state": random_state,
    }
    holder = pipeline.budget_holder
    known = holder.get_params(deep=False)
    holder.set_params(**{name: value for name, value in values.items() if name in known})
    return pipeline


def _encoding(pipeline: PrivatePipeline) -> dict[str, Any] | None:
    """Return what decides how a table is encoded; None if it is one of numbers."""
    first = pipeline.steps[0][1]
    return first.get_params(deep=False) if isinstance(first, SchemaEncoder) else None


@dataclass(frozen=True)
class Unread:
    """Encoded records that are read after the search is charged, and their public facts."""

    facts: TableFacts
    table: EncodedTable | None = None

    @property
    def n_records(self) -> int | None:
        """The number of records, if it is public."""
        return self.facts.n_records

    def of_part(self, n_records: int | None) -> TableFacts:
        """Return the facts of a part with this number of records, if that is public."""
        return replace(self.facts, n_records=n_records)

    def assumed(
        self, model: Any, candidates: Iterable[Mapping[str, Any]], budget: Budget
    ) -> tuple[str, ...]:
        """Return the assumptions for the guarantee: of the table, and of all candidates' steps.

        All candidates count, chosen or not, since each may have been tried on the records.
        """
        said = list(self.facts.assumptions)
        for parameters in candidates:
            said += (
                configured(model, parameters, budget).facts_for_estimator(self.facts).assumptions
            )
        return tuple(dict.fromkeys(said))

    @property
    def any_label(self) -> Any:
        """A label that a record could have."""
        return next(iter(self.facts.classes or self.facts.label_range or (0,)))


def unread(model: Any, X: Any, y: Any, budget: Budget) -> Unread:
    """Return the unread records of a table, with their public facts."""
    pipeline = configured(model, {}, budget)
    table = pipeline.rows_to_learn_from(X, y)
    return Unread(_checked(pipeline, table.facts), table)


def expected(model: Any, n_features: int | None, n_records: int | None, budget: Budget) -> Unread:
    """Return the public facts of a future table."""
    pipeline = configured(model, {}, budget)
    return Unread(_checked(pipeline, pipeline.facts_to_learn_from(n_features, n_records)))


def _checked(pipeline: PrivatePipeline, facts: TableFacts) -> TableFacts:
    if facts.of_people:
        raise ValueError(_OF_RECORDS.format(what="the table"))
    own = pipeline.budget_holder.get_params(deep=False)
    if len(pipeline.steps) == 1 and "row_norm" not in facts.parameters() and "row_norm" in own:
        row_norm_of(own["row_norm"])  # warns if it is undeclared
    return facts


def refuse_unit(unit: Any) -> None:
    """Refuse a unit."""
    if unit is not None:
        raise ValueError(_OF_RECORDS.format(what="unit"))


def check_can_be_split(unread: Unread, relation: Relation) -> None:
    """Refuse a table whose records cannot be split under the relation."""
    if unread.table is not None and relation is Relation.REPLACE:
        unread.table.refuse_positions()


def opened(model: Any, unread: Unread) -> EncodedTable:
    """Read the records; labels that are not numbers are refused, as in a fit.

    Otherwise every trial would fail, and the released default fit would be useless.
    """
    assert unread.table is not None
    rows, labels = unread.table.read()
    read = rows, labels if is_classifier(model) else as_numbers(labels)
    # The position of each record in the table, if some were left out.
    return EncodedTable(unread.facts, lambda: read, places=unread.table.places)


def best_of(search: Any, pipeline: PrivatePipeline, privacy: Guarantee, X: Any) -> Any:
    """Return the released pipeline as the model that was given, with the search's guarantee.

    Its own guarantee, and that of each step, is the cost of one trial; there were more.
    """
    pipeline.privacy_ = privacy
    if pipeline.evaluation_ is not None:
        pipeline.evaluation_ = replace(pipeline.evaluation_, privacy_=privacy)
    for step in pipeline.steps_.values():
        if pipeline.epsilon is None and hasattr(step, "privacy_"):
            step.privacy_ = privacy
        elif hasattr(step, "privacy_"):
            step.privacy_ = replace(step.privacy_, notes=(*step.privacy_.notes, _ONE_TRY))
    if hasattr(search.estimator, "steps"):
        return pipeline
    model = pipeline.estimator_
    if not isinstance(X, EncodedTable):  # note the columns, as a fit of the estimator does
        validate_data(search, X, skip_check_array=True)
        if hasattr(search, "feature_names_in_"):
            model.feature_names_in_ = search.feature_names_in_
    return model
