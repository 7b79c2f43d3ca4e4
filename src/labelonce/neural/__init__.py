"""Neural networks as learners (needs the `neural` extra: torch)."""

try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("labelonce.neural needs PyTorch; install it with: pip install 'labelonce[neural]'.") from error

from labelonce.neural._image_learner import image_learner
from labelonce.neural._learner import TorchLearner
from labelonce.neural._networks import FastNet, fast_net, mlp, resnet9, resnet18, resnet20
from labelonce.neural._sigmoid_heads import SigmoidHeads

__all__ = [
    "FastNet",
    "SigmoidHeads",
    "TorchLearner",
    "fast_net",
    "image_learner",
    "mlp",
    "resnet9",
    "resnet18",
    "resnet20",
]
