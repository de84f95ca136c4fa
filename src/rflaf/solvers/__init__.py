"""Solvers: arrays or rows in, arrays out, no estimator known.

`ridge`: output weights from sums over rows. `objective`: any loss as a function of output weights,
and `newton`: those with the best penalty. `cg`: output weights where the features are too many for
a Gram matrix. `varpro`: the activation and the metric, by the held-out error of the ridge solution.
`penalty`: the one search for a penalty.
"""

from rflaf.solvers.cg import WideProblem, WideSettings, solve_cg
from rflaf.solvers.newton import NewtonProblem, NewtonSettings, solve_newton
from rflaf.solvers.objective import FeatureMap, Objective
from rflaf.solvers.parts import RowPart
from rflaf.solvers.penalty import Walk, walk
from rflaf.solvers.result import Solution
from rflaf.solvers.ridge import NormalEquations, choose_alpha
from rflaf.solvers.sketches import Problem
from rflaf.solvers.starts import Learned, LearnSettings
from rflaf.solvers.varpro import learn_activation

__all__ = [
    "FeatureMap",
    "LearnSettings",
    "Learned",
    "NewtonProblem",
    "NewtonSettings",
    "NormalEquations",
    "Objective",
    "Problem",
    "RowPart",
    "Solution",
    "Walk",
    "WideProblem",
    "WideSettings",
    "choose_alpha",
    "learn_activation",
    "solve_cg",
    "solve_newton",
    "walk",
]
