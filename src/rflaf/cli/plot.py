"""A curve in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

# the bit of each of a braille character's 2 × 4 dots, [column][row from the top]
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_EMPTY = 0x2800


def braille(x: Sequence[float], *curves: Sequence[float], width: int = 60, height: int = 10) -> str:
    """Curves in width × height braille characters of 2 × 4 dots, with their range on the axes.

    x is ascending, and a curve is its heights there; all numbers are finite.

    Examples
    --------
    >>> from rflaf.cli.plot import braille
    >>> print(braille([0.0, 1.0, 2.0], [0.0, 1.0, 0.0], width=10, height=2))
    <BLANKLINE>
             1 ┤⠀⠀⢀⡠⠊⠑⢄⡀⠀⠀
             0 ┤⡠⠔⠁⠀⠀⠀⠀⠈⠢⢄
                0        2
    """
    import numpy as np

    columns, rows = 2 * width, 4 * height
    low, high = min(map(min, curves)), max(map(max, curves))
    span = high - low or 1.0
    cells = [[_EMPTY] * width for _ in range(height)]
    for y in curves:
        above = None
        values = np.interp(np.linspace(x[0], x[-1], columns), x, y)
        for column, value in enumerate(values.tolist()):
            row = round((high - value) / span * (rows - 1))
            # join neighbours by a vertical line, so that steep parts have no gaps
            start, stop = (row, row) if above is None else (min(above, row), max(above, row))
            if stop > start:
                start, stop = (start + 1, stop) if above == start else (start, stop - 1)
            for at in range(start, stop + 1):
                cells[at // 4][column // 2] |= _DOTS[column % 2][at % 4]
            above = row
    labels = [f"{high:>10.3g} ┤", *[" " * 11 + "│"] * (height - 2), f"{low:>10.3g} ┤"]
    lines = [label + "".join(map(chr, line)) for label, line in zip(labels, cells)]
    left, right = f"{x[0]:.3g}", f"{x[-1]:.3g}"
    return "\n".join([*lines, " " * 12 + left + right.rjust(width - len(left))])
