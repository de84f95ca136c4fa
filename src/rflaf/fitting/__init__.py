"""From rows and frozen settings to a frozen result. No estimator is known here.

`fit_regression` and `fit_classification` tell the whole way of a fit.
"""

from rflaf.fitting.classification import (
    ClassificationFit,
    extend_classification,
    fit_classification,
)
from rflaf.fitting.judged import RegressionFit
from rflaf.fitting.members import Member, describe_members, leading_team
from rflaf.fitting.regression import extend_regression, fit_regression
from rflaf.fitting.settings import Choice, FitSettings, Start

__all__ = [
    "Choice",
    "ClassificationFit",
    "FitSettings",
    "Member",
    "RegressionFit",
    "Start",
    "describe_members",
    "extend_classification",
    "extend_regression",
    "fit_classification",
    "fit_regression",
    "leading_team",
]
