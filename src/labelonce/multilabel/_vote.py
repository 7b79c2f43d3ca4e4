"""The mean answer: what every other model has to beat."""

from labelonce._types import Floats
from labelonce.multilabel._annotations import MultiLabelAnnotations
from labelonce.multilabel._base import MultiLabelAggregator, votes_of


class MultiLabelVote(MultiLabelAggregator):
    """The mean value of the answers to every question about every task; "maybe" counts half.

    Parameters
    ----------
    threshold : {"half", "expected_f1"}
        Above which vote a label is a yes: one half, or for each question where F1 is expected to be highest if votes
        were probabilities.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.MultiLabelAnnotations.from_ticked(
    ...     ["p1", "p1", "p1", "p2"], ["ann", "bob", "eve", "bob"], [["dog", "sea"], ["dog"], [], ["sea"]]
    ... )
    >>> lo.MultiLabelVote().fit(ann).posterior_.round(2)
    array([[0.67, 0.33],
           [0.  , 1.  ]])
    """

    def __init__(self, *, threshold: str = "half") -> None:
        self.threshold = threshold

    def _fit(self, annotations: MultiLabelAnnotations, gold: Floats) -> Floats:
        return votes_of(annotations)
