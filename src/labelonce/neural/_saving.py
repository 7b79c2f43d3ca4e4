"""Networks as plain values for a file: a name and options instead of a function, bytes instead of parameters."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from safetensors.torch import load, save
from torch import nn

from labelonce._messages import shorten, show
from labelonce.neural._networks import fast_net, mlp, resnet9, resnet18, resnet20

_OURS: tuple[Callable[..., nn.Module], ...] = (fast_net, mlp, resnet9, resnet18, resnet20)
NETWORKS = {function.__name__: function for function in _OURS}
_PLAIN = (bool, int, float, str, type(None))


def is_ours(module_fn: Any) -> bool:
    """Return whether it is a network of `labelonce.neural`, with or without options."""
    function = module_fn.func if isinstance(module_fn, partial) else module_fn
    return function in NETWORKS.values()


def name_of(module_fn: Any) -> list[Any]:
    """Return name and options of a network; one that is not ours, or not plainly so, is an error."""
    if not is_ours(module_fn):
        raise ValueError(
            f"a network can be saved if module_fn is one of labelonce.neural, {shorten(list(NETWORKS))}, or a "
            f"functools.partial of it; got {show(module_fn)}. Save its parameters yourself: "
            "safetensors.torch.save_model(clf.model_.modules_[0], path)."
        )
    if not isinstance(module_fn, partial):
        return [module_fn.__name__, {}]
    foreign = [value for value in module_fn.keywords.values() if not _is_plain(value)]
    if module_fn.args or foreign:
        got = module_fn.args or foreign
        raise ValueError(
            f"options of a network that is saved must be numbers, strings or tuples of them, given by name; got "
            f"{show(got[0])} of type {type(got[0]).__name__} for {module_fn.func.__name__}."
        )
    return [module_fn.func.__name__, dict(module_fn.keywords)]


def network_named(name: str, options: dict[str, Any]) -> Callable[[int], nn.Module]:
    if name not in NETWORKS:
        raise ValueError(f"a saved network must be one of {shorten(list(NETWORKS))}; got {show(name)}.")
    return partial(NETWORKS[name], **options) if options else NETWORKS[name]


def _is_plain(value: Any) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, list | tuple) and all(map(_is_plain, value)))


def to_bytes(module: nn.Module) -> bytes:
    """Return the parameters and averages of a module in the safetensors format."""
    return tensor_bytes(module.state_dict())


def tensor_bytes(tensors: dict[str, torch.Tensor]) -> bytes:
    return save({name: value.detach().cpu().contiguous() for name, value in tensors.items()})


def from_bytes(
    content: bytes, module_fn: Callable[[int], nn.Module], n_classes: int, device: torch.device
) -> nn.Module:
    """Return a module with saved parameters on the device, laid out as in training."""
    with torch.random.fork_rng([]):  # the start that is thrown away draws no one else's numbers
        module = module_fn(n_classes)
    module.load_state_dict(load(content))
    return module.to(device).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload, no-any-return]
