"""The paper's theory as functions: kernels in closed form, their series, bounds, a planner.

>>> from rflaf.theory import Target, plan
>>> sizes = plan(0.3, 0.05, target=Target(sup_norm=1.0, lipschitz=1.0, support=4.0, radius=1.0))
>>> sizes.M > 1e6
True
"""

from rflaf.theory.approximation import (
    FeatureBound,
    Grid,
    approximation_bound,
    feature_bound,
    grid_coefficients,
    grid_error,
    grid_for,
    largest_spacing,
    largest_width,
    sup_error_bound,
)
from rflaf.theory.generalization import (
    ConstraintSet,
    ExcessRisk,
    constraint_set,
    excess_risk_bound,
    output_bound,
    rademacher_bound,
    theorem_5_1_constant,
)
from rflaf.theory.hermite import P_k, Q_k, R_n, log_R_n
from rflaf.theory.kernel import gaussian_cross_kernel, gaussian_kernel, rotation_invariant_kernel
from rflaf.theory.planner import (
    Guarantee,
    SampleComplexity,
    guarantee,
    plan,
    sample_complexity,
)
from rflaf.theory.series import (
    RepresentedClass,
    TensorSeries,
    feature_map,
    rkhs_norm_bound,
    taylor_coefficients,
)
from rflaf.theory.target import Target, weight_radius

__all__ = [
    "ConstraintSet",
    "ExcessRisk",
    "FeatureBound",
    "Grid",
    "Guarantee",
    "P_k",
    "Q_k",
    "R_n",
    "RepresentedClass",
    "SampleComplexity",
    "Target",
    "TensorSeries",
    "approximation_bound",
    "constraint_set",
    "excess_risk_bound",
    "feature_bound",
    "feature_map",
    "gaussian_cross_kernel",
    "gaussian_kernel",
    "grid_coefficients",
    "grid_error",
    "grid_for",
    "guarantee",
    "largest_spacing",
    "largest_width",
    "log_R_n",
    "output_bound",
    "plan",
    "rademacher_bound",
    "rkhs_norm_bound",
    "rotation_invariant_kernel",
    "sample_complexity",
    "sup_error_bound",
    "taylor_coefficients",
    "theorem_5_1_constant",
    "weight_radius",
]
