"""Networks: MNIST end to end, Adult beside a linear model, speed and memory beside plain torch.

Each part runs by itself (``--part``), since some need minutes, and keeps what it found; results go
to results/deep.md when all parts have been run. Settings were chosen on the last 10,000 training
images of MNIST; test images are looked at once, at the end.
"""

from __future__ import annotations

import harness

harness.pin_threads(1)

import argparse  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402
from cifar10 import load_cifar10  # noqa: E402
from torch import nn  # noqa: E402

from tacit.datasets import load_adult, load_mnist  # noqa: E402
from tacit.deep import (  # noqa: E402
    FlatClip,
    NeuralClassifier,
    PrivateTrainer,
    PublicData,
    decayed_late,
)
from tacit.deep.clipping.mixing_check import Like, book_keeper  # noqa: E402
from tacit.deep.optimizer_step import Descent, constant  # noqa: E402
from tacit.linear_model import LogisticRegression  # noqa: E402
from tacit.noise import Norm, draw_ahead  # noqa: E402
from tacit.noise.bounded import Bounded  # noqa: E402
from tacit.noise.gaussian import gaussian  # noqa: E402
from tacit.privacy import Budget, Relation  # noqa: E402

KEPT = harness.SCRATCH / "deep"
LOSS = nn.CrossEntropyLoss(reduction="none")
MEAN_LOSS = nn.CrossEntropyLoss()
# Of the recipe: the tutorial's network with tanh, 600 steps on 2048 images each.
STEPS, BATCH, CLIP = 600, 2048, 0.1
RATES = (2.0, 4.0, 8.0)
MOST_SECONDS = 480
CIFAR_STEPS = 500
OPACUS = ("opacus_hooks", "opacus_ghost")


def cnn() -> nn.Module:
    """The network of Opacus' MNIST tutorial, with tanh: 26,010 weights."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )


def mlp() -> nn.Module:
    layers = [nn.Linear(784, 256), nn.Tanh(), nn.Linear(256, 128), nn.Tanh(), nn.Linear(128, 10)]
    return nn.Sequential(*layers)


def tabular() -> nn.Module:
    layers = [nn.Linear(108, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)]
    return nn.Sequential(*layers)


def logistic() -> nn.Module:
    return nn.Linear(784, 10)


# name: network, shape of a record, batch, the ratio to reach without and with noise
SPEEDS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int, float, float]] = {
    "CNN, 256": (cnn, (1, 28, 28), 256, 1.2, float("nan")),
    "CNN, 1024": (cnn, (1, 28, 28), 1024, 1.2, 1.35),
    "MLP, 256": (mlp, (784,), 256, float("nan"), float("nan")),
    "MLP, 1024": (mlp, (784,), 1024, 1.25, 1.35),
    "tabular MLP, 256": (tabular, (108,), 256, 1.3, float("nan")),
    "tabular MLP, 4096": (tabular, (108,), 4096, float("nan"), 1.35),
    "logistic, 1024": (logistic, (784,), 1024, 1.1, 1.35),
}


def images(data: Any) -> tuple[Any, Any, Any, Any]:
    shaped = [rows.reshape(-1, 1, 28, 28) for rows in (data.train_rows, data.test_rows)]
    return shaped[0], data.train_labels, shaped[1], data.test_labels


def mnist_trainer(model: nn.Module, n: int, **told: Any) -> PrivateTrainer:
    optimizer = torch.optim.SGD(model.parameters(), told.pop("rate"), momentum=0.9)
    known = {
        "n_steps": STEPS,
        "batch_size": BATCH,
        "clip": FlatClip(CLIP),
        "schedule": decayed_late,
    }
    return PrivateTrainer(
        model, LOSS, optimizer, Budget(3.0, 1e-5), n_records=n, **{**known, **told}
    )


def run_mnist() -> list[dict[str, Any]]:
    x, y, test_x, test_y = images(load_mnist())
    wall, cpu = time.perf_counter(), time.process_time()
    model, rate = cnn(), best_rate()
    trainer = mnist_trainer(model, len(x), rate=rate).fit(x, y)
    spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    accuracy = trainer.evaluate(PublicData(test_x, test_y))
    z = trainer.plan_.settings["noise_multiplier"]
    return [{"accuracy": accuracy, "rate": rate, "noise_multiplier": z, "steps": STEPS, **spent}]


def cifar_cnn() -> nn.Module:
    """A small network of colour images: 16,394 weights."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, 2, padding=2),
        nn.Tanh(),
        nn.Conv2d(16, 32, 3, 1, padding=1),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(32, 32, 3, 1, padding=1),
        nn.Tanh(),
        nn.AvgPool2d(4),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def run_cifar() -> list[dict[str, Any]]:
    """One fit of a small network, with the settings of MNIST's and none of its own."""
    data = load_cifar10()
    shaped = [
        np.ascontiguousarray(rows.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)) * 2 - 1
        for rows in (data.train_rows, data.test_rows)
    ]
    wall, cpu = time.perf_counter(), time.process_time()
    model, told = cifar_cnn(), {"rate": RATES[1], "n_steps": CIFAR_STEPS, "batch_size": 4096}
    trainer = mnist_trainer(model, 50_000, **told).fit(shaped[0], data.train_labels)
    spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    accuracy = trainer.evaluate(PublicData(shaped[1], data.test_labels))
    z = trainer.plan_.settings["noise_multiplier"]
    return [{"accuracy": accuracy, "rate": told["rate"], "noise_multiplier": z, **spent}]


def best_rate() -> float:
    """Return the learning rate that did best on held-out training images, if any was tried."""
    path = KEPT / "rates.json"
    tried = json.loads(path.read_text())["rows"] if path.exists() else []
    found = max(tried, key=lambda row: row["accuracy"], default={"rate": RATES[0]})
    return float(found["rate"])


def run_mnist_rates() -> list[dict[str, Any]]:
    """A sixth of the steps, with the noise of all: which learning rate, on held-out images."""
    x, y, _, _ = images(load_mnist())
    rows = []
    for rate in RATES:
        model = cnn()
        told = {"rate": rate, "n_steps": STEPS // 6, "noise_multiplier": 1.5}
        trainer = mnist_trainer(model, 50_000, **told).fit(x[:50_000], y[:50_000])
        score = trainer.evaluate(PublicData(x[50_000:], y[50_000:]))
        rows.append({"rate": rate, "accuracy": score})
        print(rows[-1], flush=True)
    return rows


def run_adult() -> list[dict[str, Any]]:
    data = load_adult()
    told: dict[str, Any] = {"classes": [False, True], "n_records": len(data.train_rows)}
    models: dict[str, Callable[[], Any]] = {
        "LogisticRegression": lambda: LogisticRegression(1.0, 1e-5, row_norm=3.4642, **told),
        "NeuralClassifier, mlp": lambda: NeuralClassifier(1.0, 1e-5, **told),
        "NeuralClassifier, linear": lambda: NeuralClassifier(1.0, 1e-5, network="linear", **told),
    }
    rows = []
    for name, made in models.items():
        scores, start = [], time.perf_counter()
        for _ in range(3):
            model = made().fit(data.train_rows, data.train_labels)
            scores.append(float(np.mean(model.predict(data.test_rows) == data.test_labels)))
        seconds = (time.perf_counter() - start) / 3
        rows.append(
            {
                "model": name,
                "mean": statistics.fmean(scores),
                "spread": harness.spread(scores),
                "seconds": seconds,
            }
        )
        print(rows[-1], flush=True)
    return rows


def timed(make: Callable[[], nn.Module], shape: tuple[int, ...], batch: int, repeats: int) -> Any:
    """Return seconds of plain, clipped, and clipped and noisy steps, and of Opacus, taken in turn.

    Of the thread that trains, so that neighbours do not count: drawing noise has another core.
    """
    from concurrent.futures import ThreadPoolExecutor

    torch.set_num_threads(1)
    model = make()
    x, y = torch.randn(batch, *shape), torch.randint(0, 2, (batch,))
    keeper = book_keeper(model, LOSS, Like(shape, x.dtype), Like((), y.dtype))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    descent = Descent(keeper.parameters, optimizer, 1, constant, 0.0)
    pool, clip = ThreadPoolExecutor(1), FlatClip(1.0)
    other = make()
    other_optimizer = torch.optim.SGD(other.parameters(), 0.01)

    def plain() -> None:
        other_optimizer.zero_grad()
        MEAN_LOSS(other(x), y).backward()
        other_optimizer.step()

    def clipped() -> None:
        descent.step(keeper.sums(x, y, clip).value.numpy() / batch, 0)

    def noisy() -> None:
        ahead = pool.submit(draw_ahead, keeper.n_parameters)
        total = keeper.sums(x, y, clip).value.numpy()
        bounded = Bounded(total, 1.0, Norm.L2, Relation.ADD_REMOVE)
        descent.step(np.asarray(gaussian(bounded, 1.0, ahead=ahead.result()).value) / batch, 0)

    def seconds(step: Callable[[], None]) -> Callable[[], float]:
        def run() -> float:
            step()  # what another left in caches and of memory is not its own
            start = time.thread_time()
            step()
            return time.thread_time() - start

        return run

    steps = {"plain": plain, "clipped": clipped, "noisy": noisy, **opacus_steps(make, x, y)}
    return harness.in_turn({name: seconds(step) for name, step in steps.items()}, repeats)


def opacus_steps(
    make: Callable[[], nn.Module], x: torch.Tensor, y: torch.Tensor
) -> dict[str, Callable[[], None]]:
    """Return steps of Opacus with noise of torch's generator; none where it is not installed."""
    try:
        from opacus import GradSampleModule
        from opacus.grad_sample import GradSampleModuleFastGradientClipping as Ghost
        from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
        from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
    except ImportError:
        return {}
    known: dict[str, Any] = {
        "noise_multiplier": 1.0,
        "max_grad_norm": 1.0,
        "expected_batch_size": len(x),
    }
    hooks = GradSampleModule(make())
    of_hooks = DPOptimizer(torch.optim.SGD(hooks.parameters(), 0.01), **known)
    ghost = Ghost(make(), max_grad_norm=1.0, use_ghost_clipping=True)
    of_ghost = DPOptimizerFastGradientClipping(torch.optim.SGD(ghost.parameters(), 0.01), **known)
    loss = DPLossFastGradientClipping(ghost, of_ghost, nn.CrossEntropyLoss(), "mean")

    def by_hooks() -> None:
        of_hooks.zero_grad()
        MEAN_LOSS(hooks(x), y).backward()
        of_hooks.step()

    def by_ghost() -> None:
        of_ghost.zero_grad()
        loss(ghost(x), y).backward()
        of_ghost.step()

    return {"opacus_hooks": by_hooks, "opacus_ghost": by_ghost}


def run_speed() -> list[dict[str, Any]]:
    rows = []
    for name, (make, shape, batch, without, with_noise) in SPEEDS.items():
        repeats = 12 if make in (cnn, mlp) else 60
        times = timed(make, shape, batch, repeats)
        middle = {key: statistics.median(values) for key, values in times.items()}
        least = {key: min(values) for key, values in times.items()}
        ratios = {key: middle[key] / middle["plain"] for key in middle if key != "plain"}
        peers = {key: ratios.get(key, "not installed") for key in OPACUS}
        rows.append(
            {
                "case": name,
                "plain_ms": 1e3 * middle["plain"],
                "clipped": ratios["clipped"],
                "noisy": ratios["noisy"],
                "clipped_least": least["clipped"] / least["plain"],
                "noisy_least": least["noisy"] / least["plain"],
                "reach": without,
                "reach_with_noise": with_noise,
                **peers,
            }
        )
        print(rows[-1], flush=True)
    return rows


def peak(kind: str) -> None:
    """Print the peak memory of this process after three steps; run in a process of its own."""
    torch.set_num_threads(1)
    model, batch = cnn(), 256 if kind == "plain" else 4096
    x, y = torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(3):
        if kind == "plain":
            optimizer.zero_grad()
            MEAN_LOSS(model(x), y).backward()
            optimizer.step()
        else:
            keeper = book_keeper(model, LOSS, Like((1, 28, 28), x.dtype), Like((), y.dtype))
            keeper.sums(x, y, FlatClip(1.0))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def run_memory() -> list[dict[str, Any]]:
    found = {}
    for kind in ("plain", "clipped"):
        command = [sys.executable, __file__, "--peak", kind]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[kind] = float(done.stdout)
    return [{**found, "ratio": found["clipped"] / found["plain"]}]


PARTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "rates": run_mnist_rates,
    "mnist": run_mnist,
    "cifar": run_cifar,
    "adult": run_adult,
    "speed": run_speed,
    "memory": run_memory,
}


def report(found: dict[str, Any]) -> str:
    """Return the page, of the parts that have been run."""
    parts = ["# Networks\n"]
    titles = {
        "rates": "MNIST, learning rates on 10,000 held-out training images, a sixth of the steps",
        "mnist": "MNIST end to end, epsilon 3, delta 1e-5 (published 98.1; to reach 97.8)",
        "cifar": "CIFAR-10 end to end, epsilon 3, delta 1e-5, a small network (published 59.2)",
        "adult": "Adult, epsilon 1, delta 1e-5, three runs",
        "speed": "Seconds of a step over those of plain torch, of the thread that trains, in turn",
        "memory": "Peak memory of a process (MB): plain torch at 256, clipped at 4096",
    }
    for name, title in titles.items():
        if name not in found:
            continue
        rows = found[name]["rows"]
        header = list(rows[0])
        cells = [
            [f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows
        ]
        parts += [
            f"## {title}\n",
            harness.markdown_table(header, cells),
            found[name]["machine"],
            "",
        ]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--peak", choices=["plain", "clipped"])
    told = parser.parse_args()
    if told.peak:
        peak(told.peak)
        return
    KEPT.mkdir(parents=True, exist_ok=True)
    for name in PARTS if told.part == "all" else [told.part]:
        run = harness.Run()
        rows = PARTS[name]()
        kept = {"rows": rows, "machine": harness.machine(run).partition(" Peers:")[0]}
        (KEPT / f"{name}.json").write_text(json.dumps(kept))
    found = {
        name: json.loads(p.read_text()) for name in PARTS if (p := KEPT / f"{name}.json").exists()
    }
    folder = harness.results_folder(partial=len(found) < len(PARTS))
    (folder / "deep.md").write_text(report(found))
    if told.part in ("mnist", "all") and found["mnist"]["rows"][0]["accuracy"] < 0.978:
        sys.exit("MNIST is below 97.8 %")


if __name__ == "__main__":
    main()
