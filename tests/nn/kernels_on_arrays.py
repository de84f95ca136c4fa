"""The kernels of `rflaf.nn.table_kernels` on NumPy arrays, as their specification takes them."""

from torch import from_numpy

from rflaf.nn import table_kernels


def apply_tables(tables, z, out):
    table_kernels.apply_tables(tables, from_numpy(z), z.shape, from_numpy(out))


def cell_sums(tables, z, g, dz=None):
    slopes = None if dz is None else from_numpy(dz)
    return table_kernels.cell_sums(tables, from_numpy(z), z.shape, from_numpy(g), slopes).copy()


def readout_tables(tables, z, order, v, phi):
    given = (from_numpy(each) for each in (z, order, v, phi))
    return table_kernels.readout_tables(tables, *given).numpy()


def readout_sums(tables, z, order, v, h, dz=None):
    given = (from_numpy(each) for each in (z, order, v, h))
    slopes = None if dz is None else from_numpy(dz)
    return table_kernels.readout_sums(tables, *given, slopes).copy()
