"""Import every module of the installed wheel, and use it: python check_wheel.py SITE_FOLDER."""

import importlib
import importlib.util
import pathlib
import pkgutil
import sys

import numpy as np

import rflaf

site = pathlib.Path(sys.argv[1]).resolve()
found = pathlib.Path(rflaf.__file__).resolve()
if site not in found.parents:
    sys.exit(f"rflaf was imported from {found}, not from the wheel in {site}")

names = [m.name for m in pkgutil.walk_packages(rflaf.__path__, "rflaf.")]
if importlib.util.find_spec("triton") is None:  # no part of `all`: it is for GPUs alone
    names.remove("rflaf.nn.gpu")
for name in names:
    importlib.import_module(name)
pages = ("page.html.j2", "panel.svg.j2", "page.js", "style.css")
files = ("py.typed", "paper/paper_tables.csv", "datasets/airfoil.csv")
for file in (*files, *(f"pages/{name}" for name in pages)):
    if not (found.parent / file).exists():
        sys.exit(f"the wheel has no {file}")

basis = rflaf.bases.RBF(17)
sigma = rflaf.Activation(basis, basis.fit(np.tanh))
z = np.linspace(-2, 2, 1001, dtype=np.float32)
if not np.allclose(sigma.table()(z), sigma(z), atol=1e-4):
    sys.exit("the wheel's kernels give a wrong answer")
print(f"wheel {rflaf.__version__}: {len(names)} modules import, the kernels run")
