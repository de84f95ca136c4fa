"""Solvers: arrays in, arrays out, no estimator known.

`ridge`: the output weights for given features. `varpro`: the activation and the metric, by the
held-out error of the ridge solution. `cg`: the output weights where the features are too many for a
Gram matrix. `softmax`: multinomial logistic regression on the features.
"""

from rflaf.solvers.cg import solve_cg
from rflaf.solvers.result import Solution
from rflaf.solvers.ridge import NormalEquations, choose_alpha, gcv_losses, leave_one_out_losses
from rflaf.solvers.softmax import fit_softmax
from rflaf.solvers.varpro import Learned, learn_activation

__all__ = [
    "Learned",
    "NormalEquations",
    "Solution",
    "choose_alpha",
    "fit_softmax",
    "gcv_losses",
    "learn_activation",
    "leave_one_out_losses",
    "solve_cg",
]
