"""The paper's experiments: specs, runs, records, tables and figures.

Reading records and making tables needs neither PyTorch nor the data; running does.
"""

from rflaf.experiments.records import Store
from rflaf.experiments.specs import Spec, matrix

__all__ = ["Spec", "Store", "matrix"]
