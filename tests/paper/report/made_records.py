"""Records as runs would leave them, made up quickly."""

import numpy as np

from rflaf.paper.printed import paper_numbers
from rflaf.paper.specs import ESTIMATORS, RECOVERY, Spec, parse_model, seeds_of

MACHINE = {"processor": "Some processor", "cores": 2, "system": "Linux"}
VERSIONS = {"rflaf": "0.1.0", "python": "3.11.2", "numpy": "1.26.4", "torch": "2.4.0"}
COMMON = {"status": "finished", "versions": VERSIONS, "machine": MACHINE, "date": "2026-01-31"}
CLASSES = ("mnist", "cifar10", "adult")
HOSTILE = (
    "<script>window.hostile = 1</script>",
    '"><img src=x onerror="window.hostile = 2">',
    "</title><svg onload=window.hostile=3>",
    "{{ 7 * 7 }} & 'quoted' \u202e \ud800",
)


def paper_models(dataset):
    """The paper's models on a data set, with its test loss, which is None where it diverged."""
    figures = paper_numbers().items()
    return {
        key[3]: figure.mean
        for key, figure in figures
        if key[:3] in (("table8", "test_loss", dataset), ("table4", "test_loss", dataset))
    }


def training(dataset, model, protocol, seed, level, rng):
    spec = Spec.of(dataset, model, protocol, seed)
    epochs = np.arange(1, spec.epochs + 1)
    loss = level * (1 + 0.01 * rng.standard_normal() + 1.5 * np.exp(-epochs))
    history = {"train_loss": list(0.95 * loss), "test_loss": list(loss)}
    if protocol == "corrected":
        history["validation_loss"] = list(1.01 * loss)
    history["train_seconds"] = [1.5] * len(epochs)
    record = {
        "key": spec.key,
        "kind": "training",
        "spec": spec.to_dict(),
        **COMMON,
        "test_loss": float(loss.min()),
        "test_accuracy": 0.9 + 0.001 * rng.standard_normal() if dataset in CLASSES else None,
        "best_epoch": int(loss.argmin()),
        "history": history,
        "seconds": 60.0,
    }
    if parse_model(model).family in ("rflaf", "lan"):
        record["sigma"] = list(curve(rng, 81))
    return record


def curve(rng, points):
    z = np.linspace(-2, 2, points)
    a, b, c = rng.standard_normal(3)
    return a * np.sin(2 * z + 0.3 * b) + 0.3 * c * z**2


def diverged(record):
    history = {name: [*values[:2], None] for name, values in record["history"].items()}
    return {**record, "status": "diverged", "test_loss": None, "history": history, "sigma": None}


def estimator(dataset, model, seed, level, rng):
    spec = Spec.of(dataset, model, "corrected", seed)
    return {
        "key": spec.key,
        "kind": "estimator",
        "spec": spec.to_dict(),
        **COMMON,
        "test_loss": level * (1 + 0.01 * rng.standard_normal()),
        "test_accuracy": 0.95 if dataset in CLASSES else None,
        "best_epoch": None,
        "fit_seconds": 4.5,
        "history": {"held_out_loss": list(level * (1 + np.exp(-np.arange(12.0))))},
        "sigma": list(curve(rng, 81)),
        "seconds": 5.0,
    }


def timing(dataset, model):
    spec = {**Spec.of(dataset, model, "published", 0).to_dict(), "epochs": 1, "rows": 4096}
    ratio = 1 + 0.01 * parse_model(model).cells
    return {
        "key": f"timing/{dataset}/{model}",
        "kind": "timing",
        "spec": spec,
        **COMMON,
        "train_time_ratio": ratio,
        "test_time_ratio": ratio / 2,
        "train_seconds": ratio,
        "test_seconds": ratio / 10,
        "seconds": ratio,
    }


def recovery(function, method, seed, rng):
    z = np.linspace(-2, 2, 201)
    truth = np.sin(3 * z)
    error = 0.2 + 0.1 * RECOVERY.index(method) + 0.05 * rng.random()
    spec = Spec.of(function, method, "corrected", seed)
    return {
        "key": spec.key,
        "kind": "recovery",
        "spec": spec.to_dict(),
        **COMMON,
        "error": error,
        "z": list(z),
        "sigma": list(truth + error * np.cos(z + seed)),
        "truth": list(truth),
        "seconds": 12.0,
    }


def make_records(datasets=("mnist", "protein"), n_seeds=2):
    """All models of the paper and ours on some data sets, with times and recoveries."""
    rng = np.random.default_rng(0)
    records = []
    for dataset in datasets:
        for model, level in paper_models(dataset).items():
            for protocol in ("published", "corrected"):
                for seed in seeds_of(model, n_seeds):
                    record = training(dataset, model, protocol, seed, level or 1.0, rng)
                    records.append(diverged(record) if level is None else record)
            records.append(timing(dataset, model))
        for model in ESTIMATORS:
            seeds = seeds_of(model, n_seeds)
            records += [estimator(dataset, model, seed, 0.15, rng) for seed in seeds]
    for function in ("f1", "f2", "f3"):
        for method in RECOVERY:
            records += [recovery(function, method, seed, rng) for seed in seeds_of(method, n_seeds)]
    return records


def hostile_records():
    """Every name from outside, as somebody might who wants the page to run a script."""
    records = []
    for k, text in enumerate(HOSTILE):
        model = Spec.of("protein", "rfmlp-relu", "published", k).to_dict()
        dataset = {**model, "dataset": text}
        records += [
            {"key": f"a{k}{text}", "kind": text, "spec": {**model, "model": text}, "error": text},
            {"key": f"b{k}", "kind": "training", "spec": dataset, **COMMON, "test_loss": 0.5,
             "versions": {text: text}, "machine": {"processor": text}, "date": text,
             "history": {text: [1.0, 2.0], "test_loss": [1.0, 0.5]}, "sigma": [0.0, 1.0]},
        ]  # fmt: skip
    return records
