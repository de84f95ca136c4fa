"""Pages of one HTML file each: tables, charts and lists as plain data, and what writes them.

The page of the paper's runs and the page about a model are both made of these.
"""

from rflaf.pages.layout import (
    Bar,
    BarList,
    Cell,
    Histogram,
    KeyFigure,
    Line,
    Page,
    Panel,
    Section,
    Subsection,
    TableView,
)

__all__ = [
    "Bar",
    "BarList",
    "Cell",
    "Histogram",
    "KeyFigure",
    "Line",
    "Page",
    "Panel",
    "Section",
    "Subsection",
    "TableView",
]
