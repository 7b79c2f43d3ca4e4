"""A torch network as a learner: probability targets, weights, and every step open to be overridden."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Generator, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from safetensors.torch import load
from torch import nn

from labelonce._kernels import Beliefs, Processes
from labelonce._sklearn import check_is_fitted, clone
from labelonce._types import Floats, Ids
from labelonce._validate import check_rng
from labelonce.neural._augment import mix_up
from labelonce.neural._checkpoint import Checkpoint, files_of, fingerprint, set_state, state_of
from labelonce.neural._data import Inputs, as_targets, check_split
from labelonce.neural._saving import from_bytes, name_of, network_named, tensor_bytes, to_bytes
from labelonce.neural._steps import Steps, explained
from labelonce.neural._training import Best, Rows, Run, Training, end_of, make_rows

_AT_ONCE = 4096  # tasks predicted in one batch


class TorchLearner(Steps):
    """A neural network that takes probability targets and weights.

    Features may be an array or tensor (n_tasks, n_features), images (n_tasks, 3, height, width) or
    (n_tasks, height, width, 3), or a map-style data set that gives one task's tensor for each index. Arrays are
    moved to the device once if they fit there. Every task's loss is its weight times the cross-entropy against its
    targets; weights are scaled to a mean of 1. The learning rate climbs from zero and falls back to zero; the
    parameters of the last epoch are kept.

    Each step is a method to override: `make_module`, `make_optimizer`, `rate`, `views`, `loss`, `step` and
    `predict_batch`.

    Parameters
    ----------
    module_fn : callable
        Takes the number of classes and returns a module: `neural.mlp`, `fast_net`, `resnet9`, `resnet18`,
        `resnet20` or your own. A module with a method `start` is given the first inputs before training.
    epochs, batch_size : int
        Passes over the tasks that have a weight, and tasks per step.
    epochs_by_round : sequence of int
        Epochs in the first, second, ... round of `MBEM`, the last entry standing for all later ones; the last round
        has `epochs`. Early rounds only have to tell the workers apart. Empty: `epochs` in every round.
    one_training : bool
        The rounds after those of `epochs_by_round` are stages of one training of `epochs`: after each the workers are
        judged by the network as it is, and the next stage has new targets and weights.
    early_learner : TorchLearner, optional
        Another network and its options for the rounds before; where and how it computes is decided here.
    min_steps : int
        Small sets get as many more epochs as it takes to make this many steps in `epochs`.
    optimizer : {"sgd", "adamw"}
        Stochastic gradient descent with Nesterov momentum, or AdamW.
    lr, momentum, weight_decay, warmup : float
        The highest rate; the momentum; the decay; the share of the steps on which the rate climbs.
    augment : {"auto", "images", "none"}
        Random flips and moves by up to `pad` pixels; "auto": for images.
    pad, cutout : int
        Pixels: how far images move, and the side of a square that is hidden (0: none).
    strong : float
        Share of every batch of images that is also turned, scaled, sheared and recoloured.
    mixup : float
        Mix pairs of tasks with shares from Beta(mixup, mixup); 0: not at all.
    label_smoothing : float
        Share of every target that is spread over all classes.
    holdout : float
        Share of the tasks that are not trained on and on whose (noisy) targets the loss is watched: training stops
        when it has not fallen for `patience` epochs, and the best epoch is kept. 0: train on all tasks, to the last
        epoch.
    patience : int
    ema : float
        Predict with an average of the weights that forgets the steps with this factor; 0: with the last weights.
    n_models : int
        Networks to train, from different starts; their predictions are averaged.
    flip_predictions : bool
        Average the predictions of an image and its mirror image.
    shift_predictions : int
        Average, once training is over, also those of the image moved by N pixels both ways along the diagonal,
        each counting half as much; 0: not at all.
    shared : bool
        Under `torchrun`, train one network together with the other processes, each of which is given its own tasks;
        `MBEM` then adds up what the workers did over all of them. Batches are drawn from the tasks of all.
    device : str, optional
        Default: "cuda" where there is one, else "cpu".
    precision : {"auto", "bfloat16", "float32"}
        "auto": bfloat16 on a GPU.
    compile : bool
        Use `torch.compile`; it pays only where the same network is trained for minutes.
    record : bool, optional
        Record a step as a CUDA graph and replay it, since launching the kernels of a small network may take longer
        than running them. Default: on a GPU, for the networks of `labelonce.neural`, where no step is overridden; set
        it for your own if nothing in their steps waits for the GPU or draws random numbers on the host.
    checkpoint : path, optional
        File that is rewritten after every epoch, one for each of `n_models`; a fit that was stopped resumes from it if
        options, targets and weights are the same, and removes it at the end.
    callbacks : sequence of callables
        Each is called after every epoch with a dict: model, epoch, loss, held_out_loss.
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    modules_ : list of torch.nn.Module
    classes_ : (n_classes,)
    history_ : list of dict
        What the callbacks were given.

    Examples
    --------
    >>> import numpy as np
    >>> from labelonce import neural
    >>> X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    >>> net = neural.TorchLearner(neural.mlp, epochs=20, batch_size=32, lr=0.1, device="cpu", random_state=0)
    >>> bool(net.fit(X, (X[:, 0] > 0).astype(int)).score(X, (X[:, 0] > 0).astype(int)) > 0.95)
    True
    """

    any_shape = True
    takes_slots = True
    n_folds = 2
    auto: ClassVar[Mapping[str, Any]] = {"rounds": 9, "predictions": "in_sample"}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to labels (n_tasks,), to probability targets (n_tasks, n_classes) or to `Beliefs`."""
        for _ in self.stages(X, y, sample_weight):
            pass
        return self

    def stages(
        self, X: Any, y: Any, sample_weight: Any = None, *, n: int = 1, after: Any = None
    ) -> Generator[Self, tuple[Any, Any] | None]:
        """Train once, and yield after each of `n` stages what predicts by then; new targets and weights may be sent.

        `after` is what another training on the same tasks yielded: training continues from there.
        """
        self._check()
        return self._stages(X, *self._targets(X, y, sample_weight), n, after)

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Return targets and weights of the tasks, and set the classes."""
        targets, weight, self.classes_ = as_targets(X, y, sample_weight)
        return targets, weight

    def _fit(self, X: Any, targets: Any, weight: Any) -> Self:
        """Train the networks; `targets` and `weight` have a row for whatever `_make_rows` makes of them."""
        for _ in self._stages(X, targets, weight):
            pass
        return self

    def _stages(
        self, X: Any, targets: Any, weight: Any, n: int = 1, after: Any = None
    ) -> Generator[Self, tuple[Any, Any] | None]:
        processes = Processes(shared=self.shared)
        inputs = Inputs(X, self._device(), self._dtype(), add_up=processes.sum)
        self._moments, self.n_features_in_, self._seen = inputs.moments, inputs.shape[0], (X, inputs)
        rng = check_rng(self.random_state)
        seeds = [processes.same(int(rng.integers(2**31)), inputs.device) for _ in range(self.n_models)]
        done, states = (0, []) if after is None else after._reached
        self.history_: list[dict[str, Any]] = [] if after is None else list(after.history_)
        rows = np.flatnonzero(weight > 0) if n == 1 else np.arange(len(weight))  # later targets may be of any task
        runs: list[Run] = []
        for stage in range(done, n):
            self.modules_: list[nn.Module] = []
            for number, seed in enumerate(seeds):
                if number == len(runs):
                    runs.append(self._begin(inputs, rows, targets, weight, seed))
                    if states:
                        set_state(runs[number].job, runs[number].best, *states[number])
                self.modules_.append(self._train(inputs, runs[number], targets, weight, number, end_of(stage, n)))
            if stage + 1 == n:
                break
            sent = yield self._at_stage(stage + 1, runs)
            if sent is not None:
                targets, weight = self._targets(X, *sent)
                for run in runs:
                    run.rows = self._make_rows(run.fitted, targets, weight, inputs.device, processes)
        if processes.rank == 0:
            for file in files_of(self.checkpoint, self.n_models):
                file.unlink(missing_ok=True)
        del self._seen
        yield self

    def _at_stage(self, stage: int, runs: list[Run]) -> Self:
        """Return what predicts now, with all that is needed to continue from here."""
        found = type(self).__new__(type(self))
        found.__dict__.update(vars(self))
        states = [state_of(run.job, run.best) for run in runs]
        found._reached = (
            stage,
            [({name: value.clone() for name, value in tensors.items()}, reached) for tensors, reached in states],
        )
        found.modules_, found.history_ = [deepcopy(module) for module in self.modules_], list(self.history_)
        return found

    def with_sigmoid_heads(self) -> TorchLearner:
        """Return a learner with the same options and a head per question, for several labels at once."""
        from labelonce.neural._sigmoid_heads import SigmoidHeads  # it extends what is defined here

        early: Any = self.early_learner
        options = self.get_params(deep=False)
        return SigmoidHeads(**options | {"early_learner": None if early is None else early.with_sigmoid_heads()})

    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | features), shape (n_tasks, n_classes), the mean over the networks."""
        return self._predict(X, self.predict_batch)

    def _predict(self, X: Any, predict_batch: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> Floats:
        """Return what a function gives for all tasks, batch by batch, the mean over the networks."""
        check_is_fitted(self, "modules_")
        seen, inputs = getattr(self, "_seen", (None, None))  # within a training
        if inputs is None or seen is not X:
            inputs = Inputs(X, self._place(), self._dtype(), self._moments)
        parts = []
        for rows in torch.split(torch.arange(inputs.n_rows, device=inputs.device), inputs.at_most(_AT_ONCE)):
            batch = inputs.take(rows)
            with explained(self.module_fn, batch, fitted=True):
                parts.append(torch.stack([predict_batch(module, batch) for module in self.modules_]).mean(dim=0))
        return np.asarray(torch.cat(parts).double().cpu())

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy; a copied callback would report to a copy of what it reports to."""
        shared = ("callbacks", "module_fn")
        options = self.get_params(deep=False)
        copy = type(self)(**{name: one if name in shared else clone(one, safe=False) for name, one in options.items()})
        if "_metadata_request" in self.__dict__:
            copy._metadata_request = deepcopy(self._metadata_request)
        return copy

    def _held_state(self) -> dict[str, Any]:
        """Return all attributes but the inputs that a training has at hand."""
        return {name: value for name, value in super().__getstate__().items() if name != "_seen"}

    def __getstate__(self) -> dict[str, Any]:
        """Return what a file may hold: plain values, arrays and bytes; neither code nor a path to write to."""
        state = self._held_state() | {"callbacks": (), "checkpoint": None}
        state["module_fn"] = name_of(self.module_fn)
        if type(self).make_module is not TorchLearner.make_module:
            raise ValueError(
                f"a network can be saved if its learner does not override make_module; {type(self).__name__} does. "
                "Save its parameters yourself: safetensors.torch.save_model(clf.model_.modules_[0], path)."
            )
        if "_reached" in state:
            stage, states = self._reached
            state["_reached"] = [stage, [[tensor_bytes(tensors), reached] for tensors, reached in states]]
        if "modules_" in state:
            state["modules_"] = [to_bytes(module) for module in self.modules_]
            if self._moments is not None:
                state["_moments"] = [moment.cpu().numpy() for moment in self._moments]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if not callable(state["module_fn"]):
            state["module_fn"] = network_named(*state["module_fn"])
        super().__setstate__(state)
        device = self._device() if torch.cuda.is_available() else torch.device("cpu")
        if state.get("_moments") is not None:
            self._moments = tuple(torch.as_tensor(moment, device=device) for moment in state["_moments"])
        if "_reached" in state:
            stage, states = state["_reached"]
            self._reached = (
                stage,
                [(load(tensors) if isinstance(tensors, bytes) else tensors, reached) for tensors, reached in states],
            )
        if "modules_" in state:
            self.modules_ = [
                one if isinstance(one, nn.Module) else from_bytes(one, self.module_fn, len(self.classes_), device)
                for one in state["modules_"]
            ]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Keep everything in pickles and copies, also code and modules of your own, which saved files leave out."""
        try:
            state = self.__getstate__()
        except ValueError:
            state = self._held_state()
        kept = {"module_fn": self.module_fn, "callbacks": self.callbacks, "checkpoint": self.checkpoint}
        return copyreg.__newobj__, (type(self),), state | kept  # type: ignore[attr-defined]

    def _begin(self, inputs: Inputs, rows: Ids, targets: Any, weight: Any, seed: int) -> Run:
        """Return the training of one network that has not begun."""
        processes = Processes(shared=self.shared)
        fitted, held = self._split(rows, seed, processes)
        made = self._make_rows(fitted, targets, weight, inputs.device, processes)
        return Run(self._start(inputs, made, seed), made, fitted, held, Best(self.patience))

    def _train(self, inputs: Inputs, run: Run, targets: Any, weight: Any, number: int, share: float) -> nn.Module:
        """Train one network until a share of its epochs is done, from its checkpoint if there is one; return it."""
        job, best = run.job, run.best
        fit = {
            "seed": job.seed,
            "model": number,
            "epochs": job.epochs,
            "rows": run.rows.n_all,
            "on": inputs.device.type,
        }
        files = files_of(self.checkpoint, self.n_models)
        if files:
            fit |= {"of": fingerprint(self.get_params(deep=False), targets, weight)}
        checkpoint = Checkpoint(files[number] if files else None, fit, Processes(shared=self.shared))
        checkpoint.load(job, best)
        while job.epoch < round(share * job.epochs) and not job.stopped:
            entry = {"model": number, "epoch": job.epoch + 1, "loss": self._epoch(inputs, run.rows, job)}
            if self.holdout:
                entry["held_out_loss"] = self._held_out_loss(job.predictor, inputs, targets, weight, run.held)
                job.stopped = best.is_over(entry["held_out_loss"], job.predictor)
            self._report(entry)
            checkpoint.save(job, best)
        if share == 1:
            best.restore(job.predictor)
            job.finish()
        return job.predictor.eval()

    def _make_rows(
        self, fitted: Ids, targets: Floats, weight: Floats, device: torch.device, processes: Processes
    ) -> Rows:
        """Return what is trained on."""
        return make_rows(fitted, targets[fitted], weight[fitted], device, processes)

    def _start(self, inputs: Inputs, rows: Rows, seed: int) -> Training:
        """Return a training that has not begun."""
        device = inputs.device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            module = self._new_module(inputs, rows)
        generator = torch.Generator(device).manual_seed(seed)
        size = min(self.batch_size, rows.n_all)
        epochs = max(self.epochs, -(-self.min_steps // max(rows.n_all // size, 1)))
        processes = Processes(shared=self.shared)
        optimizer = self.make_optimizer(module)
        recorded = device.type == "cuda" and processes.size == 1 and self._records()
        return Training(
            *(module, optimizer, generator, seed, size, epochs, processes),
            compiled=self.compile,
            recorded=recorded,
            teacher=self.ema,
        )

    def _epoch(self, inputs: Inputs, rows: Rows, job: Training) -> float:
        """Train for one epoch and return the mean loss."""
        n_steps = max(rows.n_all // job.size, 1)
        shares = np.random.default_rng([job.seed, job.epoch])
        total = torch.zeros((), device=inputs.device)
        with job.in_epoch(len(rows.number) / rows.n_all):
            for number, (mine, n_all) in enumerate(rows.batches(job.size, job.order)):
                job.set_rate(self.rate((job.epoch + number / n_steps) / job.epochs))
                targets = rows.targets[mine] * rows.weight[mine, None]
                share = torch.tensor(shares.beta(self.mixup, self.mixup), device=total.device) if self.mixup else None
                step = partial(self._step, job, n_all)
                total += job.do(step, inputs.take(rows.number[mine]), targets, share)
        loss = float(job.processes.sum(total)) / (n_steps * job.processes.size)
        if not np.isfinite(loss):
            raise ValueError(
                f"the network diverged: its loss is {loss} after epoch {job.epoch} with lr={self.lr:g}. Lower lr."
            )
        return loss

    def _step(
        self, job: Training, n_all: int, batch: torch.Tensor, targets: torch.Tensor, share: torch.Tensor | None
    ) -> torch.Tensor:
        """Train on one batch and return its loss."""
        batch = self.views(batch, job.generator)
        if share is not None:
            batch, targets = mix_up(batch, targets, share, job.generator)
        job.optimizer.zero_grad(set_to_none=True)
        loss = self.step(job.stepped, batch, targets, n_all)
        job.optimizer.step()
        return loss

    def _report(self, entry: dict[str, Any]) -> None:
        self.history_.append(entry)
        for callback in self.callbacks:
            callback(entry)

    def _split(self, rows: Ids, seed: int, processes: Processes) -> tuple[Ids, Ids]:
        """Return the tasks to train on, and those on whose targets the loss is watched."""
        if self.holdout == 0:
            return rows, rows[:0]
        rng = np.random.default_rng([seed, processes.rank] if processes.size > 1 else seed)
        held = rng.random(len(rows)) < self.holdout
        n_held, n_all = processes.sum(torch.tensor([held.sum(), len(held)], device=self._device())).tolist()
        check_split(n_held, n_all, self.holdout)
        return rows[~held], rows[held]

    def _held_out_loss(self, module: nn.Module, inputs: Inputs, targets: Floats, weight: Floats, held: Ids) -> float:
        """Return the loss per unit of weight on the noisy targets of tasks that are not trained on."""
        rows = torch.from_numpy(held)
        parts = torch.split(rows, inputs.at_most(_AT_ONCE))
        found = torch.cat([self.predict_batch(module, inputs.take(part)) for part in parts])
        some = Beliefs.of(targets[held]).to_dense()
        wanted = torch.from_numpy(some * weight[held, None]).to(found)
        processes = Processes(shared=self.shared)
        lost = processes.sum(-(wanted * found.clamp_min(1e-12).log()).sum())
        return float(lost / processes.sum(wanted.sum()))
