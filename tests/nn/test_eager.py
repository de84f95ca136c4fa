"""The short way on the CPU equals the operators, and uses memory again."""

import pytest
import torch
from torch import nn

from rflaf.bases import RBF, Continued
from rflaf.nn import LearnableActivation, buffers, eager, ops
from rflaf.nn.layouts import basis_name, layout_of
from tests.nn.test_operators import draw, inside_cells


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shape", "dim"), [((40, 9), -1), ((3, 9, 5, 7), 1), ((9, 1200), 0), ((70, 9, 1), -2)], ids=str
)
def test_channels_equal_the_operators(basis, shape, dim, dtype, generator):
    name = basis_name(basis)
    if layout_of(name) is None:
        pytest.skip("powers have no table")
    z = inside_cells(draw(shape, generator), name).to(dtype).requires_grad_()
    a = draw((9, basis.n), generator, dtype, 1.0).requires_grad_()
    h = draw(shape, generator, dtype)
    assert eager.runs_here(z, a, name)
    fast = eager.activate(z, a, name, dim)
    slow = ops.evaluate(z.movedim(dim, 0).reshape(9, -1), a, name, 0)
    slow = slow.reshape(z.movedim(dim, 0).shape).movedim(0, dim)
    results = [(fast, slow)]
    results += zip(*(torch.autograd.grad(y, (z, a), h) for y in (fast, slow)))
    eps = torch.finfo(dtype).eps
    for one, other in results:
        height = float(other.detach().abs().max())
        torch.testing.assert_close(one, other, atol=500 * eps * height, rtol=500 * eps)


@pytest.mark.parametrize("channels", [None, 3])
def test_second_derivatives(basis, channels, generator):
    name = basis_name(basis)
    z = inside_cells(draw((4, 3, 2), generator), name).requires_grad_()
    a = draw((basis.n,) if channels is None else (channels, basis.n), generator).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda z, a: eager.activate(z, a, name, 1), (z, a))


def test_both_gradients_in_one_operator(basis, generator):
    name = basis_name(basis)
    z, g = draw((30, 50), generator), draw((30, 50), generator)
    a = draw(basis.n, generator, scale=1.0)
    dz, da = ops.gradients(g, z, a, name)
    torch.testing.assert_close(dz, ops.slope(g, z, a, name, 1))
    torch.testing.assert_close(da, ops.adjoint(g, z, a, name, 0))


def test_registration_of_both_gradients(generator):
    tensors = [draw(shape, generator).requires_grad_() for shape in ((4, 3), (4, 3), 9)]
    torch.library.opcheck(ops.gradients, (*tensors, basis_name(RBF(9))))


def test_only_what_is_asked_for(generator):
    name = basis_name(Continued(RBF(9)))
    for need_z, need_a in ((True, False), (False, True)):
        z = draw((20, 30), generator).requires_grad_(need_z)
        a = draw(9, generator).requires_grad_(need_a)
        eager.activate(z, a, name).sum().backward()
        assert (z.grad is not None, a.grad is not None) == (need_z, need_a)


def test_threads_change_no_bit(generator):
    name = basis_name(Continued(RBF(17)))
    a = draw(17, generator, torch.float32).requires_grad_()
    z, h = (draw((600, 700), generator, torch.float32) for _ in range(2))
    z.requires_grad_()
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            y = eager.activate(z, a, name)
            results.append((y, *torch.autograd.grad(y, (z, a), h)))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(*results))


@pytest.mark.parametrize("options", [{}, {"shared": False, "channels": 5}, {"basis": "polynomial"}])
def test_transforms_go_the_plain_way(options, generator):
    layer = LearnableActivation(init="tanh", **options)
    z = torch.randn(7, 5, generator=generator)
    slopes = torch.func.grad(lambda z: layer(z).sum())(z)
    each = torch.func.vmap(torch.func.grad(lambda z: layer(z).sum()))(z)
    z.requires_grad_()
    layer(z).sum().backward()
    torch.testing.assert_close(slopes, z.grad, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(each, z.grad, atol=1e-4, rtol=1e-4)


def test_memory_is_used_again():
    buffers._kept.clear()
    first = buffers.empty((300, 300), torch.float32)
    place = first.data_ptr()
    assert place % 64 == 0
    view = first[10:, 5]
    del first  # the view still looks at it
    assert buffers.empty((300, 300), torch.float32).data_ptr() != place
    kept = view.sum().item() if view.numel() else None
    del view
    assert kept is None or buffers.empty((300, 300), torch.float32).data_ptr() == place
    other = buffers.empty((300, 300), torch.float64)
    assert other.dtype == torch.float64


def test_kept_memory_is_bounded(monkeypatch):
    buffers._kept.clear()
    monkeypatch.setattr(buffers, "_MOST", 1 << 20)
    tensors = [buffers.empty((100 + k, 1000), torch.float32) for k in range(10)]
    assert sum(map(len, buffers._kept)) <= 1 << 20
    for k, tensor in enumerate(tensors):
        tensor.fill_(k)
    assert [float(tensor[0, 0]) for tensor in tensors] == list(range(10))


def test_a_step_uses_the_memory_of_the_step_before(generator):
    buffers._kept.clear()
    layer, x = LearnableActivation(), torch.randn(200, 500, generator=generator)
    model = nn.Sequential(nn.Linear(500, 500), layer, nn.Linear(500, 1))
    for _ in range(5):
        model(x).sum().backward()
    assert sum(map(len, buffers._kept)) <= 2 * x.numel() * 4  # the values and the gradient for z


@pytest.mark.filterwarnings("ignore")  # of the exporters, about themselves
def test_onnx_by_either_exporter(tmp_path, generator):
    pytest.importorskip("onnxscript", reason="torch.onnx.export needs onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    per_channel = LearnableActivation(shared=False, channels=4, dim=1, init="silu")
    model = nn.Sequential(nn.Conv1d(3, 4, 3), per_channel, nn.Flatten(), LearnableActivation())
    model.eval()
    x = torch.randn(6, 3, 8, generator=generator)
    options = {
        True: {"dynamic_shapes": ({0: torch.export.Dim("rows")},)},
        False: {"input_names": ["x"], "dynamic_axes": {"x": {0: "rows"}}},
    }
    for dynamo, shapes in options.items():
        path = tmp_path / f"{dynamo}.onnx"
        torch.onnx.export(model, (x,), path, dynamo=dynamo, **shapes)
        session = runtime.InferenceSession(path)
        rows = 3 * torch.randn(9, 3, 8, generator=generator)
        (found,) = session.run(None, {session.get_inputs()[0].name: rows.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), model(rows).detach())
