"""LearnableActivation as a module like any other."""

import copy
import pickle
import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest
import torch
from torch import nn

from rflaf import Activation
from rflaf.bases import RBF, BSpline
from rflaf.nn import LearnableActivation


def network(seed=0, **options):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), LearnableActivation(**options), nn.Linear(8, 2))


@pytest.mark.parametrize("init", ["relu", "silu", "tanh", "gelu", "identity", np.cos])
def test_starts_as_a_known_function(init):
    layer = LearnableActivation(BSpline(40, degree=3), init=init, dtype=torch.float64)
    z = torch.linspace(-1.9, 1.9, 101, dtype=torch.float64)
    known = {"identity": lambda z: z, np.cos: torch.cos}
    expected = known.get(init) or getattr(nn.functional, init)
    assert (layer(z) - expected(z)).abs().max() < 0.02


def test_random_start_is_that_of_the_paper():
    a = LearnableActivation("polynomial", 4000, init="random").coefficients.detach()
    assert abs(float(a.std()) * 4000**0.5 - 1) < 0.05


def test_random_start_follows_the_generator():
    first, second = (
        LearnableActivation(init="random", generator=torch.Generator().manual_seed(3))
        for _ in range(2)
    )
    assert torch.equal(first.coefficients, second.coefficients)


def test_both_ways_to_activation(rng):
    sigma = Activation(RBF(17), rng.normal(size=17))
    layer = LearnableActivation.from_activation(sigma, dtype=torch.float64)
    assert layer.to_activation() == sigma
    z = rng.normal(size=(4, 5))
    np.testing.assert_allclose(layer(torch.from_numpy(z)).detach(), sigma(z), atol=1e-5)


def test_one_activation_a_channel_after_a_convolution(generator):
    layer = LearnableActivation(init="random", shared=False, channels=3, dim=1, generator=generator)
    z = torch.randn(2, 3, 4, 5, generator=generator)
    y = layer(z)
    assert y.shape == z.shape
    for c in range(3):
        expected = layer.to_activation(c)(z[:, c].numpy())
        np.testing.assert_allclose(y[:, c].detach(), expected, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"shared": False, "channels": 8}])
def test_state_dict_deepcopy_and_pickle(options):
    model, x = network(init="random", **options), torch.randn(4, 5)
    other = network(1, init="random", **options)
    assert not torch.equal(other(x), model(x))
    other.load_state_dict(model.state_dict())
    for twin in (other, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin(x), model(x))


def test_a_step_of_training_lowers_the_loss(generator):
    model, x = network(), torch.randn(64, 5, generator=generator)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _ in range(5):
        loss = (model(x) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision(dtype, generator):
    layer = LearnableActivation(init="tanh")
    z = torch.randn(50, generator=generator)
    low = layer(z.to(dtype))
    assert low.dtype == dtype
    torch.testing.assert_close(low.float(), layer(z.to(dtype).float()), atol=2e-2, rtol=2e-2)


def test_autocast(generator):
    model, x = network(init="silu"), torch.randn(16, 5, generator=generator)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x)
    assert y.dtype == torch.bfloat16
    y.float().sum().backward()
    gradient = model[1].coefficients.grad.clone()
    model.zero_grad()
    model(x).sum().backward()
    assert gradient.dtype == torch.float32
    torch.testing.assert_close(gradient, model[1].coefficients.grad, atol=0.5, rtol=0.1)


def test_gradient_penalty(generator):
    model, x = network(init="silu"), torch.randn(8, 5, generator=generator, requires_grad=True)
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    slope.square().sum().backward()
    assert model[1].coefficients.grad.abs().sum() > 0


def test_meta_device_and_no_grad():
    layer = LearnableActivation().to("meta")
    assert layer(torch.empty(3, 4, device="meta")).shape == (3, 4)
    with torch.no_grad():
        assert not LearnableActivation()(torch.zeros(3)).requires_grad


def test_compile_has_no_graph_break(generator):
    model, x = network(init="random"), torch.randn(6, 5, generator=generator)
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(model, backend=backend, fullgraph=True)
    assert torch.equal(compiled(x), model(x))
    assert len(graphs) == 1


def test_compile_with_the_default_backend(tmp_path):
    """In a process of its own, because the compiler warns and keeps threads."""
    code = """
    import torch
    from rflaf.nn import RFLAF
    model = RFLAF(5, 8, seed=0)
    x = torch.randn(6, 5)
    try:
        compiled = torch.compile(model, fullgraph=True)
        y = compiled(x)
    except Exception as error:
        print("NO COMPILER", type(error).__name__, str(error)[:200])
        raise SystemExit
    y.sum().backward()
    gradient = model.activation.coefficients.grad.clone()
    model.zero_grad()
    model(x).sum().backward()
    torch.testing.assert_close(y, model(x))
    torch.testing.assert_close(gradient, model.activation.coefficients.grad)
    print("COMPILED")
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    if "NO COMPILER" in result.stdout:
        pytest.skip(result.stdout.strip())
    assert "COMPILED" in result.stdout, result.stderr


def test_export(generator, tmp_path):
    model, x = network(init="random").eval(), torch.randn(6, 5, generator=generator)
    rows = {"input": {0: torch.export.Dim("rows")}}
    program = torch.export.export(model, (x,), dynamic_shapes=rows)
    torch.export.save(program, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    for n in (6, 9):
        x = torch.randn(n, 5, generator=generator)
        torch.testing.assert_close(loaded(x), model(x))


def test_autograd_keeps_nothing_n_times_as_large(generator):
    """What a graph keeps for backward: z, and a of N numbers, whatever N is."""
    z = torch.randn(64, 500, generator=generator, requires_grad=True)
    kept = {}
    for n in (9, 257):
        layer, sizes = LearnableActivation("rbf", n, init="random"), []

        def pack(tensor, sizes=sizes):
            sizes.append(tensor.numel() * tensor.element_size())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            layer(z).sum()
        kept[n] = sum(sizes)
    assert kept[9] <= 4 * (z.numel() + 9)
    assert kept[257] <= 4 * (z.numel() + 257)


@pytest.mark.parametrize("plain", [False, True])
def test_peak_memory_of_a_backward_pass(plain, generator, monkeypatch):
    from torch.profiler import ProfilerActivity, profile

    from rflaf.nn import ops

    if plain:
        monkeypatch.setattr(ops, "_runs_fused", lambda *_: False)
    z = torch.randn(256, 1000, generator=generator, requires_grad=True)
    layer = LearnableActivation("rbf", 129, init="random")
    layer(z).sum().backward()
    tracemalloc.start()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        layer(z).sum().backward()
    in_numpy = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    levels = np.cumsum([e.nbytes() for e in _allocations(seen.profiler.kineto_results)])
    # twenty-five arrays of z's size at most, where dense values of the basis would be 129
    assert in_numpy + levels.max() < 25 * z.numel() * 4


def _allocations(results):
    return [event for event in results.events() if event.name() == "[memory]"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"basis": "relu"}, "pass it as 'init'"),
        ({"basis": "wavelet"}, "Unknown basis 'wavelet'"),
        ({"init": "wiggly"}, "Got 'wiggly'"),
        ({"init": np.zeros(3)}, r"17 coefficients.*\(3,\)"),
        ({"shared": False}, "'channels' parameter"),
        ({"channels": 3}, "'channels' parameter"),
    ],
)
def test_errors_name_the_argument(options, message):
    with pytest.raises(ValueError, match=message):
        LearnableActivation(**options)


def test_wrong_inputs():
    with pytest.raises(TypeError, match=r"floating-point.*int64"):
        LearnableActivation()(torch.arange(3))
    with pytest.raises(ValueError, match="3 channels in dimension 1"):
        LearnableActivation(shared=False, channels=3, dim=1)(torch.zeros(2, 4))
    with pytest.raises(ValueError, match="'channel' must be given"):
        LearnableActivation(shared=False, channels=3).to_activation()


@pytest.mark.parametrize("module", ["rflaf.nn", "rflaf.paper.training"])
def test_missing_torch_names_the_extra(module):
    code = f"import sys, rflaf; sys.modules['torch'] = None; import {module}"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "pip install 'rflaf[torch]'" in result.stderr


def test_how_close_the_start_is_inside_the_grid():
    z = torch.linspace(-2, 2, 4001)  # what docs/nn.md says
    known = {"relu": z.relu(), "identity": z}
    for basis, most in (("rbf", 0.22), ("bspline", 0.02)):
        starts = {name: LearnableActivation(basis, init=name)(z) for name in known}
        apart = max((starts[name] - known[name]).abs().max().item() for name in known)
        assert round(apart, 2) == most
