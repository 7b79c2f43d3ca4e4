"""Neural networks as learners (needs the `neural` extra: torch)."""

try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("labelonce.neural needs PyTorch; install it with: pip install 'labelonce[neural]'.") from error

from labelonce.neural._annot_mix import AnnotMix
from labelonce.neural._conal import CoNAL
from labelonce.neural._crowd_layer import CrowdLayer
from labelonce.neural._crowd_network import CrowdNetwork
from labelonce.neural._doctor_net import DoctorNet
from labelonce.neural._geo_crowd_net import GeoCrowdNet
from labelonce.neural._learner import TorchLearner, image_learner
from labelonce.neural._max_mig import MaxMIG
from labelonce.neural._networks import FastNet, fast_net, mlp, resnet9, resnet18, resnet20
from labelonce.neural._noise_layer import DropoutNoiseLayer, NoiseLayer
from labelonce.neural._sigmoid_heads import SigmoidHeads
from labelonce.neural._union_net import UnionNet

__all__ = [
    "AnnotMix",
    "CoNAL",
    "CrowdLayer",
    "CrowdNetwork",
    "DoctorNet",
    "DropoutNoiseLayer",
    "FastNet",
    "GeoCrowdNet",
    "MaxMIG",
    "NoiseLayer",
    "SigmoidHeads",
    "TorchLearner",
    "UnionNet",
    "fast_net",
    "image_learner",
    "mlp",
    "resnet9",
    "resnet18",
    "resnet20",
]
