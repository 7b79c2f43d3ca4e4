"""The report: one HTML file that says what came out of a fit, for the person who has to trust it."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
from labelonce.report._work import worker_seconds
from labelonce.report._write import write_report

__all__ = ["worker_seconds", "write_report"]

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.report._accuracy import Accuracy, estimated_accuracy, measured_accuracy
    from labelonce.report._classes import ClassFigures, class_figures
    from labelonce.report._facts import Facts, among_classes, read_facts
    from labelonce.report._panel import panel_facts
    from labelonce.report._questions import questions_accuracy
    from labelonce.report._review import safe_cells
    from labelonce.report._work import FEWEST, clear_change
    from labelonce.report._workers import LEVEL, SPAMMER_GAIN, worker_table
    from labelonce.report._write import panel_page
else:
    __getattr__, _, _ = lazy_names(__name__)
