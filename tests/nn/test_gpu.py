"""The kernels in Triton, by its interpreter on the CPU, against the specification in NumPy."""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from rflaf.bases import RBF, BSpline, Continued
from rflaf.nn import ops
from rflaf.nn.layouts import basis_name
from rflaf.nn.table_maps import table_map

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="needs Triton: pip install 'rflaf[triton]'"
)
BASES = [RBF(9), Continued(RBF(17)), BSpline(9, degree=3, extrapolate="constant"), RBF(65)]


@pytest.fixture
def gpu(monkeypatch):
    """The module with its kernels interpreted, which Triton decides when it is imported."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    sys.modules.pop("rflaf.nn.gpu", None)
    yield importlib.import_module("rflaf.nn.gpu")
    sys.modules.pop("rflaf.nn.gpu", None)


def inputs(basis, shape, dtype, generator):
    z = (2 * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)
    z[z.abs() == 2] = 0.5  # at the grid's edge there are two slopes
    g = torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    a = torch.randn(shape[0], basis.n, generator=generator, dtype=torch.float64)
    return z, g, a, table_map(basis_name(basis)).device_tables(a, z)


@pytest.mark.parametrize("basis", BASES, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1), (1, 63), (1, 5000), (3, 130)], ids=str)
def test_against_the_specification(gpu, basis, dtype, shape, generator):
    z, g, a, tables = inputs(basis, shape, dtype, generator)
    y = gpu.apply(z, *tables)
    dz, sums = gpu.gradients(g, z, *tables, True, True)
    da = table_map(basis_name(basis)).device_pull_back(sums, a)
    assert y.dtype == dz.dtype == dtype
    points, weights = z.double().numpy(), g.double().numpy()
    rough = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 0)
    for c, coefficients in enumerate(a.numpy()):
        value = basis.combine(coefficients, points[c])
        slope = weights[c] * basis.combine(coefficients, points[c], 1)
        np.testing.assert_allclose(y[c].double(), value, atol=2e-5, rtol=rough)
        np.testing.assert_allclose(
            dz[c].double(), slope, atol=1e-2 * basis.spacing**-1 + 1e-4, rtol=rough
        )
        expected = weights[c] @ basis(points[c])
        np.testing.assert_allclose(
            da[c], expected, atol=3e-5 * (1 + np.abs(weights[c]).sum() ** 0.5)
        )


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_the_same_as_on_the_cpu(gpu, basis, generator):
    z, g, a, tables = inputs(basis, (2, 700), torch.float64, generator)
    name = basis_name(basis)
    dz, da = ops.gradients(g, z, a, name)
    found, sums = gpu.gradients(g, z, *tables, True, True)
    torch.testing.assert_close(gpu.apply(z, *tables), ops.evaluate(z, a, name, 0))
    torch.testing.assert_close(found, dz)
    torch.testing.assert_close(table_map(name).device_pull_back(sums, a), da)


def test_nan_and_infinity(gpu, generator):
    *_, tables = inputs(RBF(9), (1, 1), torch.float32, generator)
    z = torch.tensor([[float("nan"), float("inf"), -float("inf"), 1e30]])
    y, (dz, _) = gpu.apply(z, *tables), gpu.gradients(torch.ones_like(z), z, *tables, True, True)
    for values in (y, dz):
        assert values.isnan().tolist() == [[True, False, False, False]]
        assert values[0, 1:].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("need_z", "need_sums"), [(True, False), (False, True)])
def test_only_what_is_asked_for(gpu, need_z, need_sums, generator):
    z, g, _, tables = inputs(RBF(9), (2, 100), torch.float32, generator)
    both = gpu.gradients(g, z, *tables, True, True)
    found = gpu.gradients(g, z, *tables, need_z, need_sums)
    for one, all_of_it, wanted in zip(found, both, (need_z, need_sums)):
        assert torch.equal(one, all_of_it) if wanted else one.numel() == 0


def test_compiles_for_two_architectures_without_a_gpu():
    root = Path(__file__).parents[2]
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    result = subprocess.run(
        [sys.executable, root / "tools" / "gpu_kernels.py"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    rows = [line for line in result.stdout.splitlines() if line.startswith("arch")]
    assert len(rows) == 2 * 4 * 4, result.stderr[-2000:]
    stacks = [int(row.split("stack ")[1].split()[0]) for row in rows]
    assert max(stacks) <= 128, rows  # next to nothing spills
