"""Split the model of a search into encoder, steps and the estimator with the budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline as AnyPipeline
from sklearn.utils.validation import validate_data

from tacit import checks
from tacit.estimators.parameters import (
    UNDECLARED_ROW_NORM,
    Fact,
    assumptions_of,
    classes_of,
    label_range_of,
    n_records_of,
    row_norm_of,
    with_table_facts,
)
from tacit.pipeline import Pipeline, PrivatePipeline
from tacit.pipeline.introspection import encoder_and_row_model
from tacit.privacy import Budget, Guarantee, Relation
from tacit.records.lazy_table import TableInMemory
from tacit.records.rows_and_labels import as_numbers
from tacit.table_facts import EncodedTable, HandsOn, TableFacts, facts_through
from tacit.table_model import TableModel

Rows = Any
Labels = npt.NDArray[Any]

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


def last_of(model: Any) -> Any:
    """Return the estimator that spends the budget: the model itself, or its last step."""
    if isinstance(model, TableModel):
        return model.estimator
    if isinstance(model, AnyPipeline) and "epsilon" not in model.get_params(deep=False):
        return model.steps[-1][1]
    return model


def between(model: Any) -> list[Any]:
    """Return the steps between the encoder, if any, and the estimator."""
    if not isinstance(model, AnyPipeline) or last_of(model) is model:
        return []
    first = 1 if isinstance(model, Pipeline) else 0
    steps = [step for _, step in model.steps[first:-1]]
    for step in steps:
        if not isinstance(step, HandsOn):
            raise TypeError(
                f"a step is of type {type(step).__name__}, which may learn from the records "
                "without privacy, and no guarantee covers that; use a transformer of tacit."
            )
    return steps


def check_model(model: Any) -> None:
    """Refuse a model that cannot be searched over."""
    own = last_of(model).get_params(deep=False) if hasattr(last_of(model), "get_params") else {}
    final_estimator = {"epsilon", "delta", "accountant"}
    if not final_estimator <= set(own) or not hasattr(last_of(model), "predict"):
        raise TypeError(
            f"a search needs a classifier or a regressor of tacit, or a pipeline or a TableModel "
            "that ends in one, with the parameters epsilon, delta and accountant; got "
            f"{type(model).__name__}."
        )


def configured(
    model: Any,
    parameters: Mapping[str, Any],
    budget: Budget,
    random_state: int | None = None,
) -> Any:
    """Return an unfitted model with these parameters and budget, and without an accountant.

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
    last = last_of(found)
    known = last.get_params(deep=False)
    values = {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "relation": budget.relation,
        "accountant": None,
        "random_state": random_state,
    }
    last.set_params(**{name: value for name, value in values.items() if name in known})
    return found


def check_space(model: Any, names: Sequence[str]) -> None:
    """Refuse to search over parameters that the search itself sets."""
    for name in names:
        if name.rpartition("__")[2] in _OWN and name in model.get_params():
            raise ValueError(
                f"param_distributions has {name!r}, which the search decides for all tries alike; "
                "leave it out."
            )


@dataclass(frozen=True)
class Unread:
    """Records that are read after the search is charged, and their public facts."""

    table: Any
    facts: TableFacts | None
    known: Mapping[str, Any]
    assumptions: tuple[str, ...]
    n_records: int | None

    def resolved(self, model: Any, n_records: int | None) -> tuple[Any, TableFacts]:
        """Return the estimator of a configured model with its public facts, and the facts.

        ``n_records`` is the size of the part it is fitted to, if public.
        """
        last, facts = last_of(model), self.facts
        if isinstance(model, PrivatePipeline):
            facts = replace(facts or model.facts_to_learn_from(), n_records=n_records)
            return with_table_facts(model.after_encoder(), facts), facts
        last.set_params(**{k: v for k, v in self.known.items() if k in last.get_params(deep=False)})
        for step in between(model):
            # These steps only record their columns, so a row of zeros, or the facts, is enough.
            step.fit(np.zeros((1, self.table.n_columns)) if facts is None else facts)
            facts = facts_through(step, None) if facts is None else facts.through(step)
        if facts is not None:
            facts = replace(facts, n_records=n_records, **self.known)
            last = with_table_facts(last, facts)
            return last, facts
        # For an array, make facts, so that a part without records is fitted like any other.
        norm = last.get_params(deep=False).get("row_norm", math.inf)
        norm = UNDECLARED_ROW_NORM if norm is None else norm  # `_known` has warned about this
        facts = TableFacts(_numbered(self.table.n_columns), norm, n_records, **self.known)
        return with_table_facts(last, facts), facts

    def assumed(
        self, model: Any, candidates: Iterable[Mapping[str, Any]], budget: Budget
    ) -> tuple[str, ...]:
        """Return the assumptions for the guarantee: of the table, and of all candidates' steps.

        All candidates count, chosen or not, since each may have been tried on the records.
        """
        said = list(self.assumptions)
        for parameters in candidates:
            last, facts = self.resolved(configured(model, parameters, budget), self.n_records)
            if isinstance(last, PrivatePipeline):
                facts = last._planner().facts_met(facts)[last.steps[-1][0]]
            said += facts.assumptions
        return tuple(dict.fromkeys(said))

    @property
    def any_label(self) -> Any:
        """A label that a record could have."""
        return next(iter(next(iter(self.known.values()))))


def unread(model: Any, X: Any, y: Any, budget: Budget) -> Unread:
    """Return the unread records of a table, with the estimator's public facts."""
    if isinstance(model, PrivatePipeline):
        table: Any = model.rows_to_learn_from(X, y)
    elif isinstance(model, TableModel):
        table = model._encoder().unread(X, y, with_people=True)
    elif isinstance(model, Pipeline):
        table = model._before_estimator()[0].unread(X, y, with_people=True)
    else:
        table = X if isinstance(X, EncodedTable) else TableInMemory(X, y)
    return _known(model, table, y, budget)


@dataclass(frozen=True)
class _Expected:
    """The shape of a future table."""

    n_columns: int
    n_rows: int | None
    facts: TableFacts | None = None


def expected(model: Any, n_features: int | None, n_records: int | None, budget: Budget) -> Unread:
    """Return the public facts of a future table."""
    facts = None
    if isinstance(model, PrivatePipeline):
        facts = model.facts_to_learn_from(n_features)
    elif isinstance(model, TableModel):
        facts = model._encoder().facts_out()
    elif isinstance(model, Pipeline):
        facts = model._before_estimator()[0].facts_out()
    if facts is None and n_features is None:
        raise ValueError("a plan needs the number of columns: pass n_features=...")
    n_columns = len(facts.names) if facts is not None else checks.count("n_features", n_features)
    return _known(model, _Expected(n_columns, n_records, facts), None, budget)


def refuse_unit(unit: Any) -> None:
    """Refuse a unit."""
    if unit is not None:
        raise ValueError(_OF_RECORDS.format(what="unit"))


def _known(model: Any, table: Any, y: Any, budget: Budget) -> Unread:
    facts: TableFacts | None = getattr(table, "facts", None)
    if getattr(table, "has_people", False) or (facts is not None and facts.of_people):
        raise ValueError(_OF_RECORDS.format(what="the table"))
    last = with_table_facts(last_of(model), facts)
    declared = last.get_params(deep=False)
    if facts is None and not between(model) and "row_norm" in declared:
        row_norm_of(declared["row_norm"])  # warns if it is undeclared
    if isinstance(model, PrivatePipeline) and facts is not None:
        declared = facts.parameters()
    n_records = n_records_of(declared.get("n_records"), table.n_rows, budget.relation)
    labels = _labels(last, declared, y)
    known = {"classes" if is_classifier(last) else "label_range": labels.value}
    said = assumptions_of(labels, n_records) + (facts.assumptions if facts else ())
    return Unread(table, facts, known, said, n_records.value)


def _labels(last: Any, declared: Mapping[str, Any], y: Any) -> Fact[Any]:
    if is_classifier(last):
        fact = classes_of(declared.get("classes"), y)
        return Fact(tuple(fact.value.tolist()), fact.what, fact.provenance)
    return label_range_of(declared.get("label_range"), y)


def opened(model: Any, unread: Unread) -> EncodedTable:
    """Read the records; labels that are not numbers are refused, as in a fit.

    Otherwise every trial would fail, and the released default fit would be useless.
    """
    table = unread.table
    rows, labels = table.read()
    read = rows, labels if is_classifier(last_of(model)) else as_numbers(labels)
    # Each trial makes its own facts; the public facts of an array are its columns.
    facts = unread.facts or TableFacts(_numbered(table.n_columns), math.inf)
    # The position of each record in the table, if some were left out.
    places = table.places if isinstance(table, EncodedTable) else None
    return EncodedTable(facts, lambda: read, places=places)


def _numbered(n_columns: int) -> tuple[str, ...]:
    return tuple(f"x{place}" for place in range(n_columns))


def check_can_be_split(table: Any, relation: Relation) -> None:
    """Refuse a table whose records cannot be split under the relation."""
    if isinstance(table, EncodedTable) and relation is Relation.REPLACE:
        table.refuse_positions()


def of_part(part: EncodedTable, facts: TableFacts, steps: Sequence[Any]) -> EncodedTable:
    """Return the training rows of a part after the steps, with their facts."""

    def read() -> tuple[Rows, Labels | None]:
        # Read after the trial is charged, so that a step cannot fail on a record before.
        rows, labels = part.read()
        return through(rows, steps), labels

    return EncodedTable(facts, read)


def through(rows: Rows, steps: Sequence[Any]) -> Rows:
    """Apply stateless steps to rows."""
    for step in steps:
        rows = step.transform(rows)
    return rows


def final_estimator(model: Any) -> Any:
    """Return the fitted estimator of encoded rows."""
    if isinstance(model, PrivatePipeline):
        return encoder_and_row_model(model)[1]
    return getattr(model, "estimator_", None) or last_of(model)


def assembled(model: Any, fitted: Any) -> Any:
    """Return the model with this fitted estimator as its last step."""
    if isinstance(model, TableModel):
        model.estimator_ = fitted
        return model
    if isinstance(model, PrivatePipeline):
        return fitted.with_encoder_of(model)
    if last_of(model) is model:
        return fitted
    model.steps[-1] = (model.steps[-1][0], fitted)
    if isinstance(model, Pipeline):
        model._before_estimator()[0].fit()
    return model


def promise(model: Any, privacy: Guarantee) -> None:
    """Set the guarantee of the search on the model, whose own would be too small."""
    whole = isinstance(model, PrivatePipeline)
    fitted = model if whole else getattr(model, "estimator_", None) or last_of(model)
    fitted.privacy_ = privacy
    if not whole:
        return
    if model.evaluation_ is not None:
        model.evaluation_ = replace(model.evaluation_, privacy_=privacy)
    for step in model.steps_.values():  # each states the cost of one trial; there were more
        if hasattr(step, "privacy_"):
            step.privacy_ = replace(step.privacy_, notes=(*step.privacy_.notes, _ONE_TRY))


def note_columns_of(search: Any, model: Any, X: Any) -> None:
    """Record the columns that a search and its best model were fitted to."""
    if (
        isinstance(X, EncodedTable)
        or last_of(model) is not model
        or isinstance(model, TableModel | PrivatePipeline)
    ):
        return
    validate_data(search, X, skip_check_array=True)
    if hasattr(search, "feature_names_in_"):
        model.feature_names_in_ = search.feature_names_in_
