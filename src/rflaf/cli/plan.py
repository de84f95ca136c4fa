"""rflaf plan"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from rflaf.cli.app import app
from rflaf.cli.console import say


@app.command()
def plan(
    epsilon: Annotated[float | None, typer.Option(help="Target excess risk.")] = None,
    n: Annotated[int | None, typer.Option("-n", help="Number of samples.")] = None,
    features: Annotated[int | None, typer.Option("-M", help="Number of random features.")] = None,
    gaussians: Annotated[int | None, typer.Option("-N", help="Number of Gaussians.")] = None,
    width: Annotated[float | None, typer.Option(help="Width of the Gaussians, h.")] = None,
    delta: Annotated[float, typer.Option(help="Probability of failure.")] = 0.1,
    sup_norm: Annotated[float, typer.Option(help="The target's largest |σ|.")] = 1.0,
    lipschitz: Annotated[float, typer.Option(help="Lipschitz constant of the target's σ.")] = 1.0,
    support: Annotated[float, typer.Option(help="Length of the interval where σ is not 0.")] = 4.0,
    radius: Annotated[float, typer.Option(help="R, which bounds √E[v(w)²].")] = 1.0,
    loss_lipschitz: Annotated[float, typer.Option(help="Lipschitz constant of the loss.")] = 1.0,
    constants: Annotated[
        Literal["paper", "sharp"],
        typer.Option(help="Constants as printed in the paper, or sharpened."),
    ] = "paper",
) -> None:
    """Compute sizes that guarantee an excess risk, or the guarantee for given sizes.

    Give --epsilon, or all of -n, -M, -N and --width.
    """
    positive = {"epsilon": epsilon, "n": n, "M": features, "N": gaussians, "width": width}
    for name, value in positive.items():  # said at once: the theory takes a while to import
        if value is not None and value <= 0:
            raise ValueError(f"'{name}' must be positive. Got {value}.")
    from rflaf import theory

    known: theory.Guarantee
    sizes: Any = {"n": n, "M": features, "N": gaussians, "h": width}
    about: Any = {
        "target": theory.Target(sup_norm, lipschitz, support, radius),
        "loss_lipschitz": loss_lipschitz,
        "constants": constants,
    }
    if epsilon is not None and set(sizes.values()) == {None}:
        known = theory.plan(epsilon, delta, **about)
    elif epsilon is None and None not in sizes.values():
        known = theory.guarantee(**sizes, delta=delta, **about)
    else:
        raise typer.BadParameter("give either --epsilon, or all of -n, -M, -N and --width.")
    say(str(known))
