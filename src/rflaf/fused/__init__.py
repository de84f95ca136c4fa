"""Kernels whose cost does not depend on the number of basis functions.

`reference` is what they compute, in NumPy. numba is imported when a kernel is first called, not
before. Other parts of the package use the names below, and no module of this folder.
"""

from rflaf.fused.binned import BinnedMatrix, Bins
from rflaf.fused.blas import capsule_address
from rflaf.fused.channel_tables import Tables, tables_frame
from rflaf.fused.chunks import for_each, split_rows
from rflaf.fused.cpu import Readout, adjoint, apply, cache_folder, predict, predict_inputs, slope
from rflaf.fused.held_out import Gradients, HeldOut, HeldOutRows
from rflaf.fused.part_models import PartModels, PartRows, fit_parts, part_scores, part_slopes
from rflaf.fused.powers import adjoint_powers, evaluate_powers
from rflaf.fused.products import interpolated, quotients, slopes, times
from rflaf.fused.spline_sums import combine_splines, spline_gradients
from rflaf.fused.table import (
    DEFAULT_TOL,
    Direct,
    Layout,
    Sigma,
    Table,
    basis_layout,
    compile_activation,
    table_frame,
)
from rflaf.runtime.threads import thread_count

__all__ = [
    "DEFAULT_TOL",
    "BinnedMatrix",
    "Bins",
    "Direct",
    "Gradients",
    "HeldOut",
    "HeldOutRows",
    "Layout",
    "PartModels",
    "PartRows",
    "Readout",
    "Sigma",
    "Table",
    "Tables",
    "adjoint",
    "adjoint_powers",
    "apply",
    "basis_layout",
    "cache_folder",
    "capsule_address",
    "combine_splines",
    "compile_activation",
    "evaluate_powers",
    "fit_parts",
    "for_each",
    "interpolated",
    "part_scores",
    "part_slopes",
    "predict",
    "predict_inputs",
    "quotients",
    "slope",
    "slopes",
    "spline_gradients",
    "split_rows",
    "table_frame",
    "tables_frame",
    "thread_count",
    "times",
]
