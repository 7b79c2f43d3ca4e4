"""Methods that live here for comparison: older aggregators, and learners and networks of the related work.

They are tested and documented as everything else is; what we advise instead is in `aggregation`, `learning` and
`neural`. The networks need the `neural` extra. Each name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names

if TYPE_CHECKING:
    from labelonce.baselines._assignment import AssignmentWarning
    from labelonce.baselines._belief_propagation import BeliefPropagation
    from labelonce.baselines._candidate_labels import CandidateLabels
    from labelonce.baselines._corrected import ForwardCorrection, UnbiasedLoss
    from labelonce.baselines._data_programming import DataProgramming
    from labelonce.baselines._eigen_ratio import EigenRatio
    from labelonce.baselines._expertise_vote import ExpertiseVote
    from labelonce.baselines._kos import KOS
    from labelonce.baselines._mean_field import MeanField
    from labelonce.baselines._minimax_entropy import MinimaxEntropy
    from labelonce.baselines._multidimensional_wisdom import MultidimensionalWisdom
    from labelonce.baselines._networks._annot_mix import AnnotMix
    from labelonce.baselines._networks._conal import CoNAL
    from labelonce.baselines._networks._crowd_network import CrowdNetwork
    from labelonce.baselines._networks._doctor_net import DoctorNet
    from labelonce.baselines._networks._matrix_layers import (
        CrowdLayer,
        DropoutNoiseLayer,
        GeoCrowdNet,
        NoiseLayer,
        UnionNet,
    )
    from labelonce.baselines._networks._max_mig import MaxMIG
    from labelonce.baselines._raykar import Raykar
    from labelonce.baselines._spectral_dawid_skene import SpectralDawidSkene

    __all__: list[str]
else:  # a type checker reads the names above
    __getattr__, __dir__, __all__ = lazy_names(__name__)
