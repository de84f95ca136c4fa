"""Solvers: arrays in, arrays out, no estimator known.

`ridge`: the output weights for given features. `varpro`: the activation and the metric, by the
held-out error of the ridge solution. `cg`: the output weights where the features are too many for a
Gram matrix. `softmax`: multinomial logistic regression on the features.
"""

from rflaf.solvers.cg import WideProblem, WideSettings, solve_cg
from rflaf.solvers.result import Solution
from rflaf.solvers.ridge import NormalEquations, choose_alpha
from rflaf.solvers.sketches import Problem
from rflaf.solvers.softmax import ClassRows, SoftmaxProblem, SoftmaxSettings, fit_softmax
from rflaf.solvers.starts import Learned, LearnSettings
from rflaf.solvers.varpro import learn_activation

__all__ = [
    "ClassRows",
    "LearnSettings",
    "Learned",
    "NormalEquations",
    "Problem",
    "SoftmaxProblem",
    "SoftmaxSettings",
    "Solution",
    "WideProblem",
    "WideSettings",
    "choose_alpha",
    "fit_softmax",
    "learn_activation",
    "solve_cg",
]
