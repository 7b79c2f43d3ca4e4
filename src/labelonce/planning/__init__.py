"""How many labels to buy: labels per task and number of tasks for a budget, from a pilot or from assumptions.

Examples
--------
>>> from labelonce import planning
>>> found = planning.plan(planning.assume(skill=0.7), budget=1000, task_price=2)
>>> found.redundancy, found.tasks
(4, 166)
"""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
from labelonce.planning._crowd import Crowd, assume
from labelonce.planning._curve import Row
from labelonce.planning._plan import Plan, plan

__all__ = ["Crowd", "Plan", "Row", "assume", "plan"]

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.planning._overlap import wanted_overlap
else:
    __getattr__, _, _ = lazy_names(__name__)
