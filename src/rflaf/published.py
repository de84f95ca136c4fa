"""Facts of the published experiments that more than one part of the package needs."""

from __future__ import annotations

SEEDS = (402025, 102025, 202025, 302025, 3070, 4080, 5090, 20250101, 72, 46852)
UNFROZEN_SEEDS = SEEDS[:3]  # for the models whose first layer is trained: LAN, MLP and KAN
EPOCHS = {
    "mnist": 10,
    "cifar10": 20,
    "adult": 15,
    "protein": 30,
    "ct": 30,
    "workloads": 30,
    "millionsongs": 10,
    "covtype": 10,
    "f1": 45,
    "f2": 45,
    "f3": 45,
}
N_COMPONENTS = {"mnist": 1000, "covtype": 1000}  # 3000 for all others
