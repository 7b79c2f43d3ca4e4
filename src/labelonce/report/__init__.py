"""The report: one HTML file that says what came out of a fit, for the person who has to trust it."""

from labelonce.report._speed import worker_seconds
from labelonce.report._write import write_report

__all__ = ["worker_seconds", "write_report"]
