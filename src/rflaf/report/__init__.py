"""Model reports: a page about one fitted model, and its predictions of rows it has not seen.

It knows no estimator by name: whatever has what RFLAF's estimators have, alone or as the last step
of a pipeline, can be shown.
"""

from rflaf.report.writer import write_report

__all__ = ["write_report"]
