"""Kernels whose cost does not depend on the number of basis functions.

`reference` is what they compute, in NumPy; `cpu` computes it fast. numba is imported when a kernel
is first called, not before.
"""

from rflaf.fused.cpu import (
    Readout,
    adjoint,
    apply,
    predict,
    predict_inputs,
    readout_gradient,
    row_moments,
    slope,
)
from rflaf.fused.gradients import Tables, apply_tables, cell_sums, readout_sums, readout_tables
from rflaf.fused.table import (
    DEFAULT_TOL,
    Direct,
    Layout,
    Sigma,
    Table,
    basis_layout,
    compile_activation,
)
from rflaf.runtime.threads import thread_count

__all__ = [
    "DEFAULT_TOL",
    "Direct",
    "Layout",
    "Readout",
    "Sigma",
    "Table",
    "Tables",
    "adjoint",
    "apply",
    "apply_tables",
    "basis_layout",
    "cell_sums",
    "compile_activation",
    "predict",
    "predict_inputs",
    "readout_gradient",
    "readout_sums",
    "readout_tables",
    "row_moments",
    "slope",
    "thread_count",
]
