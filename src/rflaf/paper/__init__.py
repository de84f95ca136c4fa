"""All that exists for the paper: protocols, training, recovery, runs, records, tables and figures.

Reading records and making tables needs neither PyTorch nor the data; running does.
"""

from rflaf.paper.records import Store
from rflaf.paper.specs import Spec, matrix
from rflaf.paper.splits import Split, load_split

__all__ = ["Spec", "Split", "Store", "load_split", "matrix"]
