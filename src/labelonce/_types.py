"""Types that every layer shares: of arrays, and of the words that arguments take.

No library is loaded here, so that the command line can offer these words in `--help`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Codes = npt.NDArray[np.int32]
    """Dense integer codes: position in a table of ids; -1 where unknown."""

    Floats = npt.NDArray[np.floating[Any]]
    """Real numbers, float64 or float32."""

    Ids = npt.NDArray[Any]
    """Ids as the user wrote them: int64, or str in an object array."""

    Mask = npt.NDArray[np.bool_]
    """True where kept."""
else:
    Codes = Floats = Ids = Mask = Any


@dataclass(frozen=True)
class Estimate:
    """A number that is not known, and the ends of its 90 % range."""

    value: float
    low: float
    high: float


Duplicates = Literal["error", "first", "last", "keep"]
"""What to do when one worker labelled one task more than once."""

Missing = Literal["error", "drop"]
"""What to do with rows that have no task, no worker or no label."""

Spellings = Literal["error", "keep"]
"""What to do with labels that are one class spelled in several ways."""

Table = Literal["csv", "tsv", "parquet", "jsonl", "arrow"]
Tool = Literal["label-studio", "mturk", "toloka", "prodigy", "matrix"]
Format = Literal[Table, Tool]
"""The file formats: plain tables, and the exports of tools."""

Rejected = Literal["drop", "keep"]
"""What to do with answers that were rejected or cancelled."""

Multiple = Literal["error", "join", "split", "questions"]
"""What to do with an answer of several labels; the last is for the commands that take questions."""

"""What does the sums of the aggregators."""

Model = Literal["softmax", "boost"]
"""What `labelonce train` fits to features."""

Effort = Literal["quick", "thorough"]
"""How much work a run on texts or images may be, where it is not the default."""

Strategy = Literal["Information", "Random", "FewestLabels", "ActiveLab", "AdaptiveRounds", "WorkerTesting"]
"""By what `labelonce next` chooses."""

GROUPINGS = ("auto", "taxonomy")
"""Groups of classes that need no file: found in the labels, or in their names."""

DUPLICATES: tuple[str, ...] = get_args(Duplicates)
TABLES: tuple[str, ...] = get_args(Table)
TOOLS: tuple[str, ...] = get_args(Tool)
MISSING: tuple[str, ...] = get_args(Missing)
REJECTED: tuple[str, ...] = get_args(Rejected)
MULTIPLE: tuple[str, ...] = get_args(Multiple)[:3]
MODELS: tuple[str, ...] = get_args(Model)
STRATEGIES: tuple[str, ...] = get_args(Strategy)
STRATEGIES_OF_QUESTIONS = STRATEGIES[:3]
"""Those that take several questions per task, such as check boxes."""
