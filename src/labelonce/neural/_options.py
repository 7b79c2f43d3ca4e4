"""The options of a network's training: what they are, what they may be, and where and how precisely it computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass
from math import inf
from pathlib import Path
from typing import Any, Self, cast

import torch
from torch import nn

from labelonce._kernels import find_device
from labelonce._messages import show
from labelonce._rules import RULES
from labelonce._sklearn import clone
from labelonce._validate import RandomState, check_choice, check_int, check_number
from labelonce.learning import Learner
from labelonce.learning._mbem import Callback
from labelonce.neural._networks import mlp

_SURROUNDINGS = ("shared", "device", "precision", "compile", "record", "callbacks")  # the same in all rounds
# The least of each integer, and the most of each number from 0
_INTEGERS = {"epochs": 1, "batch_size": 1, "min_steps": 0, "n_models": 1, "pad": 0, "cutout": 0}
_INTEGERS |= {"shift_predictions": 0, "patience": 1}
_NUMBERS = {"lr": inf, "weight_decay": inf, "mixup": inf, "momentum": 0.99, "warmup": 0.99, "label_smoothing": 0.99}
_NUMBERS |= {"holdout": 0.99, "strong": 1.0, "ema": 0.9999}


@dataclass(eq=False, repr=False)
class TrainingOptions(Learner):
    """The options of `TorchLearner`, which explains them."""

    module_fn: Callable[[int], nn.Module] = mlp
    _: KW_ONLY
    epochs: int = 16
    epochs_by_round: Sequence[int] = ()
    one_training: bool = False
    early_learner: TrainingOptions | None = None
    batch_size: int = 256
    min_steps: int = 0
    optimizer: str = "sgd"
    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    warmup: float = 0.2
    augment: str = "auto"
    pad: int = 4
    cutout: int = 0
    strong: float = 0.0
    mixup: float = 0.0
    label_smoothing: float = 0.0
    holdout: float = 0.0
    patience: int = 3
    ema: float = 0.0
    n_models: int = 1
    flip_predictions: bool = True
    shift_predictions: int = 0
    shared: bool = False
    device: str | None = None
    precision: str = "auto"
    compile: bool = False
    record: bool | None = None
    checkpoint: str | Path | None = None
    callbacks: Sequence[Callback] = ()
    random_state: RandomState = None

    def _check(self) -> None:
        for name, least in _INTEGERS.items():
            check_int(getattr(self, name), name, least)
        check_choice(self.optimizer, "optimizer", ("sgd", "adamw"))
        check_choice(self.augment, "augment", ("auto", "images", "none"))
        check_choice(self.precision, "precision", ("auto", "bfloat16", "float32"))
        for name, most in _NUMBERS.items():
            check_number(getattr(self, name), name, 0.0, most)
        if self.one_training and self.holdout:
            raise ValueError(
                f"holdout must be 0 with one_training, whose targets change; got {self.holdout:g}. Leave it out."
            )
        if not isinstance(self.epochs_by_round, list | tuple):
            raise ValueError(
                f"epochs_by_round must be a list or tuple such as (6, 12); got {show(self.epochs_by_round)}."
            )
        for epochs in self.epochs_by_round:
            check_int(epochs, "epochs_by_round", 1)
        self._device()

    def _check_module_fn(self) -> None:
        if isinstance(self.module_fn, nn.Module) or not callable(self.module_fn):
            got = f"the module {type(self.module_fn).__name__}" if callable(self.module_fn) else show(self.module_fn)
            raise TypeError(
                "module_fn must be a function that takes the number of classes and returns a fresh module, such as "
                f"neural.mlp; got {got}. Give the function or class that makes it."
            )

    def _device(self) -> torch.device:
        return find_device(self.device, shared=self.shared)

    def _dtype(self) -> torch.dtype:
        half = self.precision == "bfloat16" or (self.precision == "auto" and self._device().type == "cuda")
        return torch.bfloat16 if half else torch.float32

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._dtype() == torch.float32:
            return nullcontext()
        return torch.autocast(self._device().type, self._dtype())

    def for_round(self, number: int, last: int) -> Self:
        """Return the learner for a round of `MBEM`: a copy with that round's epochs."""
        self._check()
        if not self.epochs_by_round or number >= (self.joint_from(last) or last):
            return cast(Self, clone(self))
        return self._early(self.epochs_by_round[min(number, len(self.epochs_by_round)) - 1])

    def _early(self, epochs: int) -> Self:
        """Return the network of the rounds before the one training, or this one, with this number of epochs."""
        chosen: Any = clone(self) if self.early_learner is None else clone(self.early_learner)
        if self.early_learner is not None:
            chosen.set_params(**{name: getattr(self, name) for name in _SURROUNDINGS})
        return cast(Self, chosen.set_params(epochs=epochs, min_steps=chosen.min_steps * epochs // chosen.epochs))

    def for_folds(self, last: int) -> Self:
        """Return the learner of which copies predict the tasks of each other at the end.

        After one training it is the early network, which learns much in few epochs.
        """
        if not self.one_training:
            return self.for_round(last, last)
        chosen = self._early(max(1, round(RULES.folds_epochs * self.epochs)))
        return cast(Self, chosen.set_params(n_models=1, strong=0.0))

    def joint_from(self, last: int) -> int | None:
        """Return the first of the rounds that are stages of one training."""
        return min(len(self.epochs_by_round), last - 1) + 1 if self.one_training else None

    @property
    def own_rounds(self) -> int:
        """How many rounds `MBEM` does: judgements of one training come after those of `epochs_by_round`."""
        judged = min(int((1 - RULES.first_judgement) * self.epochs) + 1, RULES.judgements)
        return len(self.epochs_by_round) + judged if self.one_training else int(self.auto["rounds"])

    @property
    def last_round_differs(self) -> bool:
        """Whether the last round of `MBEM` has other epochs than those before it."""
        return self.one_training or any(epochs != self.epochs for epochs in self.epochs_by_round)

    @property
    def may_overfit(self) -> bool:
        """Whether the first round of `MBEM` has to tell if the network overfits.

        Where early rounds are short it does not, and one that is shared cannot be fitted to folds.
        """
        self._check()
        return not (self.last_round_differs or self.shared)
