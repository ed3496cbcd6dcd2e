"""Make models from the words of ``--model``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacit.cli.running import Refused
from tacit.registry import MODELS as DECLARED
from tacit.registry import ModelSpec, Predicts, spec_elsewhere
from tacit.schema import ClassTarget, Schema, SchemaEncoder

MODELS: dict[str, ModelSpec] = {spec.word: spec for spec in DECLARED if spec.is_offered}
# Models that need torch, by the kind of their files; imported on demand.
# Additive models read the columns of a table themselves, and need a schema.
ADDITIVE = "additive"
NETWORKS = {"network": "neural_classifier", "network_of_numbers": "neural_regressor"}


def model_kind(name: str) -> ModelSpec:
    """Return the model of a word.

    Examples
    --------
    >>> from tacit.cli.models import model_kind
    >>> model_kind("svc").model.__name__
    'LinearSVC'
    """
    if name in NETWORKS:
        return _network(name)
    if name not in MODELS:
        words = ", ".join((*MODELS, ADDITIVE, *NETWORKS))
        raise Refused(f"--model {name!r} is unknown; choose from {words}.")
    return MODELS[name]


def _network(name: str) -> ModelSpec:
    try:
        found = spec_elsewhere(NETWORKS[name])
    except ImportError as why:
        raise Refused(f"--model {name}: {why}") from None
    assert found is not None
    return found


def kind_for(schema: Schema, name: str | None) -> ModelSpec:
    """Return the named or the default model, and check that it predicts the schema's target."""
    target = schema.target
    if target is None:
        raise Refused(
            "the schema declares no target; pass --target COLUMN, or declare one "
            'with kind = "target".'
        )
    of_class = isinstance(target, ClassTarget)
    kind = model_kind(name or ("logistic" if of_class else "linear"))
    wanted = Predicts.CLASSES if of_class else Predicts.NUMBERS
    fitting = [other for other in MODELS.values() if other.predicts is wanted]
    if kind.predicts is not wanted:
        words = [*(other.word for other in fitting), list(NETWORKS)[not of_class]]
        raise Refused(
            f"--model {kind.word} does not predict {wanted.value}, which the schema declares "
            f"for {target.name!r}; choose from {', '.join(words)}."
        )
    if isinstance(target, ClassTarget) and kind.two_classes and len(target.classes) != 2:
        several = ", ".join(other.word for other in fitting if not other.two_classes)
        raise Refused(
            f"--model {kind.word} is for two classes, and {target.name!r} has "
            f"{len(target.classes)}; choose {several}."
        )
    return kind


def class_weight_of(words: Sequence[str] | None, classes: Sequence[Any]) -> Any:
    """Parse the class weights of ``--class-weight``.

    Examples
    --------
    >>> from tacit.cli.models import class_weight_of
    >>> class_weight_of(["<30=8"], ["<30", ">30", "NO"]), class_weight_of(["balanced"], [0, 1])
    ({'<30': 8.0}, 'balanced')
    """
    if not words:
        return None
    if list(words) == ["balanced"]:
        return "balanced"
    names = {str(name): name for name in classes}
    weights: dict[Any, float] = {}
    for word in words:
        name, _, number = word.rpartition("=")
        try:
            weights[names[name]] = float(number)
        except (KeyError, ValueError):
            raise Refused(
                f"--class-weight {word!r} is not understood; pass 'balanced' alone, or "
                f"CLASS=NUMBER for classes among {', '.join(names)}."
            ) from None
    return weights


def make_estimator(
    kind: ModelSpec,
    epsilon: float,
    delta: float,
    *,
    mechanism: str = "auto",
    relation: str = "add_remove",
    quantile: float | None = None,
    class_weight: Any = None,
    inference: float | str = 0.0,
    **facts: Any,
) -> Any:
    """Return an estimator that is not yet fitted.

    Examples
    --------
    >>> from tacit.cli.models import make_estimator, model_kind
    >>> make_estimator(model_kind("quantile"), 1.0, 1e-6, quantile=0.9).quantile
    0.9
    """
    if epsilon <= 0.0:
        # The library's message names math.inf, which is not a word of the command line.
        raise Refused(
            f"--epsilon must be above 0, got {epsilon:g}: at 0 the output may not "
            "depend on the data at all; pass a positive number, such as 1 (tacit fit also takes "
            "inf, for no privacy)."
        )
    own = dict(facts)
    if quantile is not None:
        if kind.word != "quantile":
            raise Refused("--quantile is for --model quantile; leave it out, or choose that model.")
        own["quantile"] = quantile
    if class_weight is not None:
        if kind.predicts is not Predicts.CLASSES:
            raise Refused("--class-weight is for classifiers; leave it out.")
        own["class_weight"] = class_weight
    if inference:
        if not hasattr(kind.model, "summary"):
            able = ", ".join(word for word, of in MODELS.items() if hasattr(of.model, "summary"))
            raise Refused(
                f"--model {kind.word} has no standard errors; leave --inference out, or choose "
                f"from {able}."
            )
        own["inference"] = inference
    if kind.word in NETWORKS:
        return _network_of(kind, epsilon, delta, mechanism, relation, own)
    return kind.model(epsilon, delta, mechanism=mechanism, relation=relation, **own)


def _network_of(
    kind: ModelSpec,
    epsilon: float,
    delta: float,
    mechanism: str,
    relation: str,
    own: dict[str, Any],
) -> Any:
    """Make a network; it has one mechanism and needs no row norm."""
    if mechanism != "auto":
        raise Refused(f"--model {kind.word} has only one mechanism; leave --mechanism out.")
    if "class_weight" in own:
        raise Refused(f"--model {kind.word} has no class weights; leave --class-weight out.")
    own.pop("row_norm", None)
    return kind.model(epsilon, delta, relation=relation, **own)


def make_additive(
    schema: Schema, epsilon: float, delta: float, *, allow_unconfirmed: bool, **choices: Any
) -> Any:
    """Return an additive model of a schema that is not yet fitted; refuse other options."""
    from tacit.additive import AdditiveClassifier, AdditiveRegressor

    if epsilon <= 0.0 or epsilon == float("inf"):
        raise Refused(f"--model additive needs a finite --epsilon above 0, got {epsilon:g}.")
    relation, accountant = choices.pop("relation"), choices.pop("accountant", None)
    defaults = {"mechanism": "auto"}
    for name, value in choices.items():
        if value and value != defaults.get(name):
            option = name.replace("_", "-")
            raise Refused(f"--{option} is not for --model additive; leave it out.")
    if schema.target is None:
        raise Refused(
            "the schema declares no target; pass --target COLUMN, or declare one "
            'with kind = "target".'
        )
    of_class = isinstance(schema.target, ClassTarget)
    model = AdditiveClassifier if of_class else AdditiveRegressor
    return model(
        schema,
        epsilon,
        delta,
        relation=relation,
        accountant=accountant,
        allow_unconfirmed=allow_unconfirmed,
    )


def reads_tables(model: Any) -> bool:
    """Return whether a model predicts from the columns of a table, not from encoded rows."""
    return hasattr(model, "terms_")


def saved_predictor(path: Path) -> tuple[SchemaEncoder, Any]:
    """Return the encoder and the estimator of a saved model that predicts from raw tables."""
    from tacit.saving import load

    model: Any = load(path)
    if reads_tables(model):
        return SchemaEncoder(model.schema, allow_unconfirmed=model.allow_unconfirmed), model
    encoder = getattr(model, "encoder_", None)
    if encoder is None:
        raise Refused(
            f"{path.name} was saved without a schema, so it cannot read raw tables; load it in "
            "Python with tacit.load, or make a model with tacit fit."
        )
    if not hasattr(model, "predict"):
        raise Refused(
            f"{path.name} is a {type(model[-1]).__name__}, which predicts nothing; tacit inspect "
            "--coefficients shows it."
        )
    return encoder, model.row_model
