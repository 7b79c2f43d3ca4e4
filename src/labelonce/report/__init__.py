"""The report: one HTML file that says what came out of a fit, for the person who has to trust it."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
from labelonce.report._speed import worker_seconds
from labelonce.report._write import write_report

__all__ = ["worker_seconds", "write_report"]

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.report._accuracy import Accuracy as Accuracy
    from labelonce.report._accuracy import estimated_accuracy as estimated_accuracy
    from labelonce.report._accuracy import measured_accuracy as measured_accuracy
    from labelonce.report._classes import ClassFigures as ClassFigures
    from labelonce.report._classes import class_figures as class_figures
    from labelonce.report._facts import Facts as Facts
    from labelonce.report._facts import among_classes as among_classes
    from labelonce.report._facts import read_facts as read_facts
    from labelonce.report._lists import safe_cells as safe_cells
    from labelonce.report._panel import panel_facts as panel_facts
    from labelonce.report._questions import questions_accuracy as questions_accuracy
    from labelonce.report._work import FEWEST as FEWEST
    from labelonce.report._work import clear_change as clear_change
    from labelonce.report._workers import LEVEL as LEVEL
    from labelonce.report._workers import SPAMMER_GAIN as SPAMMER_GAIN
    from labelonce.report._workers import worker_table as worker_table
    from labelonce.report._write import panel_page as panel_page
else:
    __getattr__, _, _ = lazy_names(__name__)
