"""Arrays in, arrays out: the sums over annotations that every model of workers is made of.

A *row* is what has one unknown class: a task, or a question about a task. `Beliefs` is P(class) of every row,
`Evidence` the labels of the rows, ready for many steps, and `Confusion` P(given | true) of all workers. Each of them
has two layouts, and nothing outside this package asks which: all classes and matrices, or a few slots of each row and
factors.

In the first an annotation is one row `worker * n_answers + label` of a table whose columns are the true classes. The
E-step adds up table rows over the annotations of each task, the M-step adds up posteriors over the annotations of each
row: one sparse matrix, used forwards and transposed. Confusion comes in and counts go out as [worker, true, given]. Two
engines do the sums: `ScipyEngine` of the base install, and `TorchEngine` for large tables, CPU threads and CUDA;
`BlockSums` does those of blocks that are streamed. On slots `SlotEvidence` does them, in numpy or torch.
"""

from typing import TYPE_CHECKING

from labelonce._kernels._beliefs import Beliefs, mean_beliefs, on_slots
from labelonce._kernels._blas import blas_threads
from labelonce._kernels._confusion import (
    Confusion,
    FittedConfusion,
    FittedFactors,
    Matrices,
    confusion_of,
    one_coin_confusion,
)
from labelonce._kernels._engine import Engine, EStep, Sweep, make_engine
from labelonce._kernels._factors import Factors, Mistakes
from labelonce._kernels._posterior import (
    after_answer,
    entropy,
    floored_log,
    mean_total_variation,
    normalise,
    normalised,
    posterior_of,
    top_class,
    vote_fractions,
)
from labelonce._kernels._tallies import Counts, Tallies
from labelonce._lazy import lazy_names

if TYPE_CHECKING:
    from labelonce._kernels._arrays import NUMPY, Arrays
    from labelonce._kernels._blocks import BLOCK_SIZE, Block, BlockSums
    from labelonce._kernels._cells import LabelCells
    from labelonce._kernels._evidence import (
        DenseEvidence,
        Evidence,
        evidence_of_votes,
        first_beliefs,
        label_chances,
        label_likelihoods,
        logs_of,
        make_evidence,
        make_slot_evidence,
    )
    from labelonce._kernels._processes import Processes, add_up, find_device, join_processes, n_processes
    from labelonce._kernels._scipy import ScipyEngine
    from labelonce._kernels._slot_evidence import SlotEvidence
    from labelonce._kernels._slots import Pattern, join_slots, label_slots, pattern_of, unique_in_rows
    from labelonce._kernels._sums import AnnotationSums
else:  # loaded when used: the torch engine needs no scipy, the base install has no torch
    __getattr__, _, _ = lazy_names(__name__)
