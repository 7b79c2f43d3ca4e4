"""Panels of judges who share mistakes, such as language models, with a few people: labels, judges and rates.

`JudgePanel` combines them, `class_shares` gives the share of every class with an interval, and
`alternative_annotator_test` says whether a judge may replace a person.
"""

from labelonce.judges._law import Law, Panel
from labelonce.judges._panel import JudgePanel
from labelonce.judges._rates import class_shares
from labelonce.judges._replace import alternative_annotator_test
from labelonce.judges._shown import Shown, Versus
from labelonce.judges._votes import Pairs, Votes

__all__ = ["JudgePanel", "Versus", "alternative_annotator_test", "class_shares"]
