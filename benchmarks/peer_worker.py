"""Fit diffprivlib in its own environment: a job as JSON on stdin, an answer as JSON on stdout.

The job names an .npz file with train_rows, train_labels, test_rows, test_labels; a model
("logistic" or "linear") with its parameters; and the number of repeats. The answer has one score
on the test rows and one time of the fit per repeat. Runs without tacit.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any


def make(model: str, parameters: dict[str, Any]) -> Any:
    from diffprivlib import models

    if model == "logistic":
        return models.LogisticRegression(**parameters)
    # JSON has no tuples.
    bounds = {key: tuple(value) for key, value in parameters.items() if key.startswith("bounds")}
    return models.LinearRegression(**{**parameters, **bounds})


def main() -> None:
    import numpy as np

    job = json.load(sys.stdin)
    data = np.load(job["data"])
    rows, labels = data["train_rows"], data["train_labels"]
    test_rows, test_labels = data["test_rows"], data["test_labels"]
    scores, times = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(job["repeats"]):
            estimator = make(job["model"], job["parameters"])
            start = time.perf_counter()
            estimator.fit(rows, labels)
            times.append(time.perf_counter() - start)
            scores.append(float(estimator.score(test_rows, test_labels)))
    print(json.dumps({"scores": scores, "seconds": times}))


if __name__ == "__main__":
    main()
