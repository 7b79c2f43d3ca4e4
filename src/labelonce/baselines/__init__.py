"""Methods that live here for comparison: older aggregators, and learners and networks of the related work.

They are tested and documented as everything else is; what we advise instead is in `aggregation`, `learning` and
`neural`. The networks need the `neural` extra. Each name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names

if TYPE_CHECKING:
    from labelonce.baselines._assignment import AssignmentWarning as AssignmentWarning
    from labelonce.baselines._belief_propagation import BeliefPropagation as BeliefPropagation
    from labelonce.baselines._candidate_labels import CandidateLabels as CandidateLabels
    from labelonce.baselines._corrected import ForwardCorrection as ForwardCorrection
    from labelonce.baselines._corrected import UnbiasedLoss as UnbiasedLoss
    from labelonce.baselines._data_programming import DataProgramming as DataProgramming
    from labelonce.baselines._eigen_ratio import EigenRatio as EigenRatio
    from labelonce.baselines._expertise_vote import ExpertiseVote as ExpertiseVote
    from labelonce.baselines._kos import KOS as KOS
    from labelonce.baselines._mean_field import MeanField as MeanField
    from labelonce.baselines._minimax_entropy import MinimaxEntropy as MinimaxEntropy
    from labelonce.baselines._multidimensional_wisdom import MultidimensionalWisdom as MultidimensionalWisdom
    from labelonce.baselines._networks._annot_mix import AnnotMix as AnnotMix
    from labelonce.baselines._networks._conal import CoNAL as CoNAL
    from labelonce.baselines._networks._crowd_network import CrowdNetwork as CrowdNetwork
    from labelonce.baselines._networks._doctor_net import DoctorNet as DoctorNet
    from labelonce.baselines._networks._matrix_layers import CrowdLayer as CrowdLayer
    from labelonce.baselines._networks._matrix_layers import DropoutNoiseLayer as DropoutNoiseLayer
    from labelonce.baselines._networks._matrix_layers import GeoCrowdNet as GeoCrowdNet
    from labelonce.baselines._networks._matrix_layers import NoiseLayer as NoiseLayer
    from labelonce.baselines._networks._matrix_layers import UnionNet as UnionNet
    from labelonce.baselines._networks._max_mig import MaxMIG as MaxMIG
    from labelonce.baselines._raykar import Raykar as Raykar
    from labelonce.baselines._spectral_dawid_skene import SpectralDawidSkene as SpectralDawidSkene

    __all__: list[str]
else:  # a type checker reads the names above
    __getattr__, __dir__, __all__ = lazy_names(__name__)
