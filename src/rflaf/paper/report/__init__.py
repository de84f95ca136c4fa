"""Records as one HTML page. Knows no model: it reads what runs have left behind."""

from rflaf.paper.report.page import write_report

__all__ = ["write_report"]
