"""Protocols to the letter, checkpoints that lose nothing, and runs that diverge."""

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from rflaf.nn import KAN, LAN, RFLAF, RFMLP
from rflaf.paper.training import CORRECTED, PUBLISHED, Data, published_basis, regulariser, train


def test_published_protocol_step_by_step(regression):
    """A plain loop that follows the description gives the same parameters."""
    X, y, X_test, y_test = regression
    model, twin = RFLAF(2, 60, input_scale=None, seed=5), RFLAF(2, 60, input_scale=None, seed=5)
    result = train(model, regression, replace(PUBLISHED, epochs=2, batch_size=32), seed=7)

    optimizer = torch.optim.Adam(twin.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(7)
    step = 0
    for _ in range(2):
        for k, rows in enumerate(torch.randperm(700, generator=generator).split(32)):
            optimizer.param_groups[0]["lr"] = 1e-3 * (0.1 + 0.9 * min(step, 8) / 8)
            loss = (twin(X[rows]) - y[rows]).square().mean() + regulariser(twin)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if k >= 8:
                optimizer.step()
            step += 1
    torch.testing.assert_close(model.V, twin.V, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(
        model.activation.coefficients, twin.activation.coefficients, atol=1e-5, rtol=1e-4
    )
    batches = [
        (twin(x) - t).square().mean().item() for x, t in zip(X_test.split(32), y_test.split(32))
    ]
    assert math.isclose(result.history[-1].test_loss, np.mean(batches), rel_tol=1e-4)


def test_protocols_differ_as_they_should(regression):
    results = {p.name: train(RFLAF(2, 60, seed=5), regression, p, epochs=6) for p in
               (PUBLISHED, CORRECTED)}  # fmt: skip
    published, corrected = results["published"], results["corrected"]
    assert published.history[0].validation_loss is None
    assert published.test_loss == min(r.test_loss for r in published.history)
    best = min(corrected.history, key=lambda r: r.validation_loss)
    assert corrected.best_epoch == best.epoch
    assert corrected.test_loss == best.test_loss
    # two steps a batch go further in the same number of epochs
    assert published.history[2].train_loss < corrected.history[2].train_loss


def test_corrected_protocol_keeps_the_chosen_epoch(regression, generator):
    X, X_test = regression[0], regression[2]
    y, y_test = (torch.randn(len(x), generator=generator) for x in (X, X_test))
    model = RFLAF(2, 60, input_scale=None, seed=5)
    protocol = replace(CORRECTED, learning_rate=0.03, epochs=12)  # noise is soon learned by heart
    result = train(model, Data(X, y, X_test, y_test), protocol)
    assert result.best_epoch < 12
    loss = float((model(X_test) - y_test).square().mean().detach())
    assert math.isclose(loss, result.test_loss, rel_tol=1e-4)


def test_weight_decay_is_for_trained_first_layers_alone(regression):
    for network, expected in ((RFLAF, 0.0), (LAN, 1e-4)):
        model, state = network(2, 20, seed=0), {}
        original = torch.optim.Adam.__init__

        def spy(self, *args, state=state, original=original, **options):
            state.update(options)
            original(self, *args, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.optim.Adam, "__init__", spy)
            train(model, regression, "published", epochs=1)
        assert state["weight_decay"] == expected


def test_z_in_memory_or_not_gives_the_same(regression):
    models = [RFLAF(2, 60, input_scale=None, seed=5) for _ in range(2)]
    for model, budget in zip(models, (0, 1 << 30)):
        train(model, regression, "published", epochs=2, memory_budget=budget)
    torch.testing.assert_close(models[0].V, models[1].V, atol=1e-5, rtol=1e-4)


def test_classes(generator):
    X = torch.randn(600, 2, generator=generator)
    y = (X[:, 0] > 0).long() + (X[:, 1] > 0).long()
    result = train(
        RFLAF(2, 200, 3, input_scale=None, seed=0), (X[:500], y[:500], X[500:], y[500:]), epochs=20
    )
    assert result.test_accuracy > 0.75
    published = train(RFMLP(2, 200, 3, seed=0), (X[:500], y[:500], X[500:], y[500:]), "published",
                      epochs=3)  # fmt: skip
    assert published.test_accuracy == max(r.test_accuracy for r in published.history)


def test_kan_learns_more_than_the_mean(regression):
    result = train(KAN(2, 10, seed=0), regression, "published", epochs=60)
    assert result.test_loss < 0.1 * float(regression[3].var())


@pytest.mark.parametrize("powers", [17, 65])
def test_powers_end_as_diverged(powers, generator):
    """Beyond the reach of float32, and short of it but absurd."""
    X = 6 * torch.randn(300, 2, generator=generator)
    y = X[:, 0] / 10
    model = RFLAF(2, 100, basis=published_basis("pl", powers - 1), seed=0)
    result = train(model, (X[:200], y[:200], X[200:], y[200:]), "published", epochs=3)
    assert result.status == "diverged"
    assert 1 <= result.diverged_epoch <= 3
    assert result.best_epoch is None
    assert result.test_loss is None
    if powers == 65:
        assert result.diverged_epoch == len(result.history) == 1


RUN = """
import sys, torch
torch.set_num_threads(1)
from rflaf.nn import RFLAF, LAN, train
folder = sys.argv[1]
generator = torch.Generator().manual_seed(1)
X = torch.randn(1500, 3, generator=generator)
y = torch.sin(2 * X[:, 0])
data = X[:1200], y[:1200], X[1200:], y[1200:]
for network, protocol in ((RFLAF, "corrected"), (LAN, "published")):
    model = network(3, 300, seed=2)
    path = None if folder == "none" else f"{folder}/{protocol}.pt"
    result = train(model, data, protocol, epochs=12, checkpoint=path)
    bits = [p.detach().numpy().tobytes().hex() for p in model.parameters()]
    losses = [(r.train_loss, r.validation_loss, r.test_loss) for r in result.history]
    print(hash(str((bits, losses, result.best_epoch))))
"""


def test_killed_and_resumed_run_ends_with_the_same_bits(tmp_path):
    """Killed in the first epochs of one run, and then of another."""
    script, folder = tmp_path / "run.py", tmp_path / "checkpoints"
    script.write_text(RUN, encoding="utf-8")
    environment = {**os.environ, "PYTHONHASHSEED": "0"}

    def finish(where):
        command = [sys.executable, str(script), str(where)]
        result = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        )
        return result.stdout

    for protocol in ("corrected", "published"):
        process = subprocess.Popen(
            [sys.executable, str(script), str(folder)], env=environment, stdout=subprocess.PIPE
        )
        while process.poll() is None and not (folder / f"{protocol}.pt").exists():
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.communicate()
        done = torch.load(folder / f"{protocol}.pt", weights_only=True)["history"]
        assert 1 <= len(done) < 12
    assert finish(folder) == finish("none")


def test_checkpoint_of_another_run_is_refused(regression, tmp_path):
    path = tmp_path / "run.pt"
    train(
        RFLAF(2, 20, input_scale=None, seed=0), regression, "published", epochs=1, checkpoint=path
    )
    with pytest.raises(ValueError, match=r"another run: its 'seed'"):
        train(
            RFLAF(2, 20, input_scale=None, seed=0),
            regression,
            "published",
            epochs=1,
            checkpoint=path,
            seed=1,
        )
    other = (regression[0], regression[1] + 1, *regression[2:])
    with pytest.raises(ValueError, match=r"another run: its 'data'"):
        train(RFLAF(2, 20, input_scale=None, seed=0), other, "published", epochs=1, checkpoint=path)


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"no"])
def test_a_damaged_checkpoint_names_its_file(damage, regression, tmp_path):
    path = tmp_path / "run.pt"
    train(
        RFLAF(2, 20, input_scale=None, seed=0), regression, "published", epochs=1, checkpoint=path
    )
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"checkpoint '.*run\.pt' is damaged .* Delete it"):
        train(
            RFLAF(2, 20, input_scale=None, seed=0),
            regression,
            "published",
            epochs=1,
            checkpoint=path,
        )


def test_finished_checkpoint_gives_the_result_again(regression, tmp_path):
    path = tmp_path / "run.pt"
    models = [RFLAF(2, 20, input_scale=None, seed=0) for _ in range(2)]
    first, again = (train(m, regression, epochs=3, checkpoint=path) for m in models)
    assert first == again
    assert torch.equal(models[0].V, models[1].V)
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize("tqdm", [True, False])
def test_progress(tqdm, regression, capsys, monkeypatch):
    if not tqdm:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    else:
        pytest.importorskip("tqdm")
    train(RFLAF(2, 20, input_scale=None, seed=0), regression, epochs=2, progress=True)
    assert ("validation_loss" if tqdm else "epochs: 2/2, train loss") in capsys.readouterr().err


def test_errors(regression):
    X, y, X_test, _ = regression
    with pytest.raises(
        ValueError, match=r"output must have the shape of the target.*Got n × \[1\]"
    ):
        train(RFLAF(2, 20, 1), regression)
    with pytest.raises(ValueError, match=r"C more than the largest class, 4"):
        train(RFLAF(2, 20, 3), (X, torch.full((700,), 4)))
    with pytest.raises(ValueError, match=r"'protocol' parameter of train.*Got 'right'"):
        train(RFLAF(2, 20), regression, "right")
    with pytest.raises(ValueError, match="needs test data"):
        train(RFLAF(2, 20), (X, y), "published")
    with pytest.raises(ValueError, match="as many rows"):
        train(RFLAF(2, 20), (X, y[:-1]))
    with pytest.raises(ValueError, match="given together"):
        train(RFLAF(2, 20), (X, y, X_test))
    with pytest.raises(ValueError, match=r"'epochs' parameter of Protocol.*Got 0"):
        replace(PUBLISHED, epochs=0)
    with pytest.raises(ValueError, match="'validation_fraction'"):
        replace(CORRECTED, validation_fraction=1.5)


def test_pairs_are_the_published_kans_loss(regression):
    """n × 1 outputs against n targets: every output meets every target of its batch."""
    protocol = replace(PUBLISHED, epochs=1, batch_size=32, pairs=True)
    model = RFLAF(2, 60, input_scale=None, seed=5)
    result = train(model, regression, protocol)
    X, _, X_test, y = regression
    out = model(X_test).detach()
    batches = zip(out.split(32), y.split(32))
    expected = np.mean([float((a[:, None] - b[None, :]).square().mean()) for a, b in batches])
    assert result.history[0].test_loss == pytest.approx(expected, rel=1e-5)
    assert result.history[0].test_loss >= float(y.var(correction=0)) * 0.8
    with pytest.raises(ValueError, match="'pairs'"):
        train(model, (X, torch.zeros(len(X)).long()), replace(CORRECTED, pairs=True))
