"""From rows, a loss and frozen settings to a frozen result. No estimator is known here.

`fit` tells the whole way of a fit, `extend` that of more rows.
"""

from rflaf.fitting.fit import Fit, Online, fit
from rflaf.fitting.in_time import fit_in_time
from rflaf.fitting.members import Member, describe_members, leading_team
from rflaf.fitting.online import extend
from rflaf.fitting.settings import Choice, FitSettings, Start

__all__ = [
    "Choice",
    "Fit",
    "FitSettings",
    "Member",
    "Online",
    "Start",
    "describe_members",
    "extend",
    "fit",
    "fit_in_time",
    "leading_team",
]
