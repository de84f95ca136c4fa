"""Solvers: arrays in, arrays out, no estimator known.

`ridge`: the output weights for given features. `varpro`: the activation and the metric, by the
held-out error of the ridge solution. `cg`: the output weights where the features are too many for a
Gram matrix. `softmax`: multinomial logistic regression on the features. `recovery`: the activation
behind f(x) = E[v(w) sigma(w·x)] for a smooth v.
"""

from rflaf.solvers.cg import solve_cg
from rflaf.solvers.recovery import Recovered, recover
from rflaf.solvers.result import Solution
from rflaf.solvers.ridge import NormalEquations, choose_alpha, gcv_losses, leave_one_out_losses
from rflaf.solvers.softmax import fit_softmax
from rflaf.solvers.varpro import Learned, learn_activation

__all__ = [
    "Learned",
    "NormalEquations",
    "Recovered",
    "Solution",
    "choose_alpha",
    "fit_softmax",
    "gcv_losses",
    "learn_activation",
    "leave_one_out_losses",
    "recover",
    "solve_cg",
]
