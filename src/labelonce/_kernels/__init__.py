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

from labelonce._kernels._beliefs import Beliefs as Beliefs
from labelonce._kernels._beliefs import fractions as fractions
from labelonce._kernels._beliefs import mean_beliefs as mean_beliefs
from labelonce._kernels._beliefs import on_slots as on_slots
from labelonce._kernels._blas import blas_threads as blas_threads
from labelonce._kernels._confusion import Confusion as Confusion
from labelonce._kernels._confusion import FittedConfusion as FittedConfusion
from labelonce._kernels._confusion import FittedFactors as FittedFactors
from labelonce._kernels._confusion import Matrices as Matrices
from labelonce._kernels._confusion import confusion_of as confusion_of
from labelonce._kernels._confusion import one_coin_confusion as one_coin_confusion
from labelonce._kernels._engine import DEVICES as DEVICES
from labelonce._kernels._engine import Engine as Engine
from labelonce._kernels._engine import EStep as EStep
from labelonce._kernels._engine import Sweep as Sweep
from labelonce._kernels._engine import make_engine as make_engine
from labelonce._kernels._factors import Factors as Factors
from labelonce._kernels._factors import Mistakes as Mistakes
from labelonce._kernels._posterior import after_answer as after_answer
from labelonce._kernels._posterior import entropy as entropy
from labelonce._kernels._posterior import floored_log as floored_log
from labelonce._kernels._posterior import log_sums as log_sums
from labelonce._kernels._posterior import mean_total_variation as mean_total_variation
from labelonce._kernels._posterior import normalise as normalise
from labelonce._kernels._posterior import posterior_of as posterior_of
from labelonce._kernels._posterior import top_class as top_class
from labelonce._kernels._posterior import vote_fractions as vote_fractions
from labelonce._kernels._shared import SharedEngine as SharedEngine
from labelonce._kernels._tallies import Counts as Counts
from labelonce._kernels._tallies import Tallies as Tallies
from labelonce._lazy import lazy_names

if TYPE_CHECKING:
    from labelonce._kernels._arrays import NUMPY as NUMPY
    from labelonce._kernels._arrays import Arrays as Arrays
    from labelonce._kernels._blocks import BLOCK_SIZE as BLOCK_SIZE
    from labelonce._kernels._blocks import Block as Block
    from labelonce._kernels._blocks import BlockSums as BlockSums
    from labelonce._kernels._cells import LabelCells as LabelCells
    from labelonce._kernels._evidence import DenseEvidence as DenseEvidence
    from labelonce._kernels._evidence import Evidence as Evidence
    from labelonce._kernels._evidence import evidence_of_votes as evidence_of_votes
    from labelonce._kernels._evidence import first_beliefs as first_beliefs
    from labelonce._kernels._evidence import label_chances as label_chances
    from labelonce._kernels._evidence import label_likelihoods as label_likelihoods
    from labelonce._kernels._evidence import logs_of as logs_of
    from labelonce._kernels._evidence import make_evidence as make_evidence
    from labelonce._kernels._evidence import make_slot_evidence as make_slot_evidence
    from labelonce._kernels._scipy import ScipyEngine as ScipyEngine
    from labelonce._kernels._slot_evidence import SlotEvidence as SlotEvidence
    from labelonce._kernels._slots import Pattern as Pattern
    from labelonce._kernels._slots import join_slots as join_slots
    from labelonce._kernels._slots import label_slots as label_slots
    from labelonce._kernels._slots import pattern_of as pattern_of
    from labelonce._kernels._slots import unique_in_rows as unique_in_rows
    from labelonce._kernels._sums import AnnotationSums as AnnotationSums
else:  # loaded when used: the torch engine needs no scipy, the base install has no torch
    __getattr__, _, _ = lazy_names(__name__)
