"""Files that are no models: ledgers, certificates, trainings, local servers, votes, schemas.

Each kind has a function that writes its files to a folder, and one that reads them there and says
what they hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tacit.ledger import Ledger
from tacit.linear_model import LogisticRegression
from tacit.local import (
    Agreement,
    Banco,
    Client,
    GaussianNoise,
    GradientDescent,
    Logistic,
    PrivUnit,
    Question,
    Report,
    Server,
    SphereNoise,
    state_from_bytes,
    state_to_bytes,
)
from tacit.noise import seeded_source
from tacit.privacy import (
    BestOf,
    Budget,
    Composed,
    ExponentialMechanism,
    Gaussian,
    Guarantee,
    LinearModelObjective,
    LogCoshObjective,
    LogisticObjective,
    MonotoneObjective,
    NoisyMajority,
    NonPrivate,
    OneOf,
    Parallel,
    PureEpsilon,
    PureObjective,
    RareLeak,
    Relation,
    Repeated,
    SampledGaussian,
    SmoothGaussian,
    SoftmaxObjective,
    ZeroConcentrated,
)
from tacit.schema import Schema
from tacit.tuning import Capped, FixedTries, Poisson, TruncatedNegativeBinomial
from tests.golden.cases import tables
from tests.golden.pinning import encoded, event_pins

Written = dict[str, Any]
RULES = {"renyi": 1e-6, "gaussian": 1e-6, "sum": 0.0}


# --- ledgers --------------------------------------------------------------------------------------


def _write_ledgers(folder: Path) -> None:
    for rule, delta in RULES.items():
        ledger = Ledger.create(
            folder / f"ledger_{rule}", Budget(5.0, delta), rule, label="survey", who="somebody"
        )
        ledger.add_partition("2030")
        ledger.add_partition("2031")
        ledger.add_analyst("ada", 4.0)
        ada = ledger.bound(analyst="ada", partition="2030", purpose="a mean")
        ada.charge(PureEpsilon(0.25), key="first")
        if delta:
            ada.charge(Gaussian(8.0))
            own = LogisticRegression(
                1.0, delta, row_norm=2.0, accountant=ada, mechanism="noisy_gradient"
            )
            own.fit(tables.numbers(), tables.labels())
        ada.bound(partition="2031").charge(PureEpsilon(0.5))


def _read_ledgers(folder: Path) -> Written:
    made: Written = {}
    for rule in RULES:
        ledger = Ledger.open(folder / f"ledger_{rule}")
        checked = ledger.verify(prices=True)
        found = {
            "spent": ledger.spent(),
            "remaining": ledger.bound(analyst="ada", partition="2030").remaining(),
            "state": ledger.state().to_dict(),
            "kinds": [entry["kind"] for entry in ledger.export()],
            "partitions": [entry.get("partition") for entry in ledger.export()],
            "newest": [checked.head.ledger, checked.head.entry],
        }
        # it is a ledger still: one more charge adds up, and a key is not charged twice
        ada = ledger.bound(analyst="ada", partition="2030")
        ada.charge(PureEpsilon(0.25), key="first")
        found["again"] = ledger.spent()
        found["after"] = float(ada.charge(PureEpsilon(0.125)))
        made[f"ledger_{rule}"] = encoded(found)
    return made


# --- certificates ---------------------------------------------------------------------------------


def _promises() -> list[Guarantee]:
    events = [
        Gaussian(2.0),
        PureEpsilon(0.5, Relation.REPLACE),
        SampledGaussian(1.5, 0.1),
        ExponentialMechanism(0.7),
        Repeated(Gaussian(9.0), 20),
        Composed((Gaussian(4.0), PureEpsilon(0.1))),
        Parallel((Gaussian(3.0), PureEpsilon(0.4))),
        BestOf(Gaussian(6.0), TruncatedNegativeBinomial(1.0, 0.2)),
        BestOf(PureEpsilon(0.2), TruncatedNegativeBinomial(0.5, 0.2)),
        BestOf(Gaussian(6.0), Poisson(4.0)),
        BestOf(Gaussian(6.0), Capped(TruncatedNegativeBinomial(0.0, 0.2), 5)),
        BestOf(Gaussian(9.0), FixedTries(3)),
        LinearModelObjective(2.0, 0.25, 9.0, 6.0),
        LogCoshObjective(2.0, 1.0, 9.0, 9.0),
        LogisticObjective(1.5, 9.0, 6.0),
        MonotoneObjective(2.0, 0.25, 9.0, 6.0),
        SoftmaxObjective(1.5, 3, 9.0, 6.0),
        PureObjective(2.0, 0.5, 9.0, 6.0),
        NoisyMajority(9.0),
        OneOf((Gaussian(3.0), PureEpsilon(0.2))),
        RareLeak(1e-7),
        SmoothGaussian(9.0, 0.05),
        ZeroConcentrated(0.02),
        NonPrivate("the noise is seeded", would_be=Gaussian(3.0)),
        Gaussian(2.0, Relation.ADD_REMOVE_PERSON),
    ]
    return [Guarantee(event, 1e-5, ("one is one.",), ("Note.",)) for event in events]


def _write_certificates(folder: Path) -> None:
    texts = [promise.to_json() for promise in _promises()]
    models = [
        LogisticRegression(1.0, 1e-5, row_norm=2.0, mechanism=word, **told)
        for word in ("objective_perturbation", "noisy_gradient", "output_perturbation")
        for told in ({}, {"class_weight": "balanced"}, {"inference": 0.1})
        if not (word == "output_perturbation" and "inference" in told)
    ]
    fitted = (model.fit(tables.numbers(), tables.labels()) for model in models)
    texts.extend(model.privacy_.to_json() for model in fitted)
    (folder / "certificates.json").write_text("\n".join(texts) + "\n")


def _read_certificates(folder: Path) -> Written:
    lines = (folder / "certificates.json").read_text().splitlines()
    promises = [Guarantee.from_json(line) for line in lines]
    found = [
        {
            "event": event_pins(promise.event),
            "epsilon": promise.epsilon(1e-5),
            "void": bool(promise.voided_by),
            "relation": promise.relation.value,
            "sentences": [len(promise.assumptions), len(promise.notes)],
        }
        for promise in promises
    ]
    return {"certificates.json": encoded(found)}


# --- trainings ------------------------------------------------------------------------------------


class _Stop(Exception):
    pass


def _trainer(path: Path, *callbacks: Any, **told: Any) -> Any:
    import torch
    from torch import nn

    from tacit.deep import AdaptiveClip, PrivateTrainer

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        network = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))
    return PrivateTrainer(
        network,
        nn.CrossEntropyLoss(reduction="none"),
        torch.optim.SGD(network.parameters(), lr=0.3, momentum=0.5),
        Budget(2.0, 1e-5),
        n_records=60,
        batch_size=30,
        n_steps=6,
        noise_multiplier=6.0,
        clip=AdaptiveClip(0.5, count_noise=0.2),
        average_last=0.5,
        checkpoint=path,
        checkpoint_every=2,
        callbacks=callbacks,
        **told,
    )


def _records() -> tuple[Any, Any]:
    rows = np.random.default_rng(4).standard_normal((60, 3)).astype(np.float32)
    return rows, (rows[:, 0] > 0).astype(np.int64)


def _write_trainings(folder: Path) -> None:
    def stop(moment: Any) -> None:
        if moment.step == 3:
            raise _Stop

    _trainer(folder / "training_ended").fit(*_records())
    try:
        _trainer(folder / "training_stopped", stop).fit(*_records())
    except _Stop:
        return


def _read_trainings(folder: Path) -> Written:
    ended = _trainer(folder / "training_ended").restore()
    weights = [p.detach().numpy().ravel().tolist() for p in ended.model.parameters()]
    steps: list[int] = []
    stopped = _trainer(folder / "training_stopped", lambda moment: steps.append(moment.step))
    stopped.fit(*_records())
    return {
        "training_ended": encoded({"weights": weights, "event": event_pins(ended.privacy_.event)}),
        "training_stopped": encoded({"steps": steps, "event": event_pins(stopped.privacy_.event)}),
    }


# --- local privacy --------------------------------------------------------------------------------

_LAWS: dict[str, Callable[[], Any]] = {
    "sphere": lambda: SphereNoise(2.0, 3),
    "priv_unit": lambda: PrivUnit(2.0, 3),
    "gaussian": lambda: GaussianNoise(2.0, 1e-5, 3),
}


def _answer(agreed: Agreement, number: int, question: bytes) -> bytes:
    row = np.random.default_rng(number).normal(size=agreed.n_columns)
    token = number.to_bytes(16, "little")
    client = Client(row, 1.0, agreed, source=seeded_source(number), token=token)
    return client.answer(question)


def _write_servers(folder: Path) -> None:
    for name, law in _LAWS.items():
        agreed = Agreement(Logistic(), law())
        learner: Any = Banco(agreed.sanitizer.tail, agreed.sanitizer.norm)
        if name == "gaussian":
            learner = GradientDescent(rate=0.1)
        server = Server(learner, agreed)
        server.receive(_answer(agreed, 0, server.question()))
        server.save(folder / f"local_{name}", synced=False)
        question = server.question()
        report = _answer(agreed, 1, question)
        server.receive(report)  # in the journal, after the snapshot
        server.close()
        (folder / f"local_{name}.json").write_text(agreed.to_json())
        (folder / f"local_{name}.question").write_bytes(question)
        (folder / f"local_{name}.report").write_bytes(report)


def _read_servers(folder: Path) -> Written:
    made: Written = {}
    for name in _LAWS:
        agreed = Agreement.from_json((folder / f"local_{name}.json").read_text())
        server = Server.load(folder / f"local_{name}", synced=False)
        report = Report.from_bytes((folder / f"local_{name}.report").read_bytes())
        question = (folder / f"local_{name}.question").read_bytes()
        assert server.agreement == agreed
        assert server.has_counted(report.token)
        state = state_to_bytes(server.state)
        assert state_to_bytes(state_from_bytes(state)) == state
        made[f"local_{name}"] = encoded(
            {
                "n_reports": server.n_reports,
                "estimate": server.estimate,
                "steps": report.steps,
                "asked": Question.from_bytes(question).to_bytes().hex(),
                "answered": _answer(agreed, 1, question).hex(),
                "event": event_pins(server.privacy.event),
            }
        )
        server.close()
    return made


# --- votes and schemas ----------------------------------------------------------------------------


def _write_votes(folder: Path) -> None:
    from sklearn.naive_bayes import GaussianNB

    from tacit.pate.sites import Round, TeacherSite, digest_of

    pool = np.random.default_rng(6).standard_normal((5, 3))
    site = TeacherSite("north", GaussianNB(), 6, folder / "north", classes=[False, True])
    agreed = Round("may", (site.entry(),), 2, digest_of(pool), 5, noise_std=4.0)
    message = site.answer(agreed, tables.numbers(), tables.labels(), pool)
    for kept in (folder / "north").iterdir():
        kept.unlink()
    (folder / "north").rmdir()
    (folder / "votes.round").write_bytes(agreed.to_bytes())
    (folder / "votes.message").write_bytes(message)


def _read_votes(folder: Path) -> Written:
    from tacit.pate.sites import Round, VoteCollector
    from tacit.pate.sites.messages import SiteVotes

    agreed = Round.from_bytes((folder / "votes.round").read_bytes())
    message = (folder / "votes.message").read_bytes()
    collector = VoteCollector(agreed)
    assert collector.add(message)
    found = {
        "answers": collector.answers(),
        "steps": SiteVotes.from_bytes(message).steps.astype(str),
        "event": event_pins(collector.guarantee(1e-5).event),
    }
    return {"votes": encoded(found)}


def _write_schemas(folder: Path) -> None:
    for name, schema in {"closed": tables.ILL, "cost": tables.COST, "open": tables.OPEN}.items():
        (folder / f"schema_{name}.toml").write_text(schema.to_toml())
        text = json.dumps(schema.with_unit("who").to_dict(), indent=1)
        (folder / f"schema_{name}.json").write_text(text)


def _read_schemas(folder: Path) -> Written:
    made: Written = {}
    for path in sorted(folder.glob("schema_*")):
        schema = Schema.from_file(path)
        made[path.name] = encoded(
            {
                "names": list(schema.feature_names),
                "norm": schema.row_norm,
                "again": schema.to_dict(),
            }
        )
    return made


WRITERS: dict[str, Callable[[Path], None]] = {
    "ledger": _write_ledgers,
    "certificates": _write_certificates,
    "training": _write_trainings,
    "local": _write_servers,
    "votes": _write_votes,
    "schema": _write_schemas,
}
READERS: dict[str, Callable[[Path], Written]] = {
    "ledger": _read_ledgers,
    "certificates": _read_certificates,
    "training": _read_trainings,
    "local": _read_servers,
    "votes": _read_votes,
    "schema": _read_schemas,
}
