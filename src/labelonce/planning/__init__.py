"""How many labels to buy: labels per task and number of tasks for a budget, from a pilot or from assumptions.

Examples
--------
>>> from labelonce import planning
>>> found = planning.plan(planning.assume(skill=0.7), budget=1000, task_price=2)
>>> found.redundancy, found.tasks
(4, 166)
"""

from labelonce.planning._crowd import Crowd, assume
from labelonce.planning._curve import Row
from labelonce.planning._plan import Plan, plan

__all__ = ["Crowd", "Plan", "Row", "assume", "plan"]
