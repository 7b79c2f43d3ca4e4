"""The battery that every aggregator must pass."""

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from crowds import crowd, label_counts
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from labelonce import Annotations, simulate
from labelonce._types import Codes, Floats
from labelonce.aggregation import Aggregator

Make = Callable[[], Aggregator]
# They maximise nothing.
WITHOUT_OBJECTIVE = {"BeliefPropagation", "EigenRatio", "ExpertiseVote", "KOS", "MajorityVote", "Wawa"}


@st.composite
def annotations(draw: st.DrawFn, *, other_answers: bool = False) -> Annotations:
    """Any small set of annotations, however odd: one worker, one class, unlabelled tasks, spammers.

    With `other_answers` also some whose answers are more than the classes, or a scale.
    """
    n_tasks, n_workers, n_classes = (draw(st.integers(1, n)) for n in (6, 4, 4))
    n_answers = n_classes + (draw(st.integers(0, 3)) if other_answers else 0)
    cells = st.integers(-1, n_answers - 1)
    rows = st.lists(cells, min_size=n_workers, max_size=n_workers)
    matrix = np.array(draw(st.lists(rows, min_size=n_tasks, max_size=n_tasks)))
    if (matrix == -1).all():
        matrix[0, 0] = 0
    classes = np.arange(n_classes) - (n_classes if other_answers and draw(st.booleans()) else 0)
    return Annotations.from_matrix(matrix, classes=classes, answers=range(n_answers) if other_answers else None)


def permuted(ann: Annotations, *, task: Codes, worker: Codes) -> Annotations:
    """Return the annotations with task i called task[i] and worker j called worker[j]."""
    tables = (ann.tasks, ann.workers, ann.classes, ann.answers)
    return Annotations(task[ann.task], worker[ann.worker], ann.label, *tables)


def check_shapes(make: Make) -> None:
    ann, _ = crowd()
    model = make().fit(ann)
    assert model.posterior_.shape == (ann.n_tasks, ann.n_classes)
    assert model.confusion_.shape == (ann.n_workers, ann.n_classes, ann.n_classes)
    assert (model.labels_.shape, model.skill_.shape) == ((ann.n_tasks,), (ann.n_workers,))
    assert len(model.log_likelihood_) in (0, model.n_iter_)
    assert isinstance(model.converged_, bool)


def check_probabilities_sum_to_one(make: Make) -> None:
    model = make().fit(crowd()[0])
    for values in (model.posterior_, model.confusion_, model.prior_):
        assert (values >= 0).all()
        assert_allclose(values.sum(axis=-1), 1, rtol=1e-5)


def check_skill_is_prior_times_diagonal(make: Make) -> None:
    model = make().fit(crowd()[0])
    diagonal = np.array([np.diag(matrix) for matrix in model.confusion_])
    assert_allclose(model.skill_, diagonal @ model.prior_)


def check_labels_are_ids_of_the_top_class(make: Make) -> None:
    ann = Annotations.from_arrays([1, 1, 1, 2, 2, 2], list("abcabc"), ["no", "no", "yes", "yes", "yes", "no"])
    assert make().fit(ann).labels_.tolist() == ["no", "yes"]


def check_task_and_worker_permutations_commute(make: Make) -> None:
    ann, _ = crowd()
    rng = np.random.default_rng(1)
    task, worker = (rng.permutation(n).astype(np.int32) for n in (ann.n_tasks, ann.n_workers))
    plain, shuffled = make().fit(ann), make().fit(permuted(ann, task=task, worker=worker))
    assert_allclose(shuffled.posterior_[task], plain.posterior_, atol=1e-6)
    assert_allclose(shuffled.confusion_[worker], plain.confusion_, atol=1e-6)


def check_class_permutation_commutes(make: Make) -> None:
    ann, _ = crowd()
    permutation = np.array([2, 0, 1])
    plain, relabelled = make().fit(ann), make().fit(ann.relabel(permutation))
    assert_allclose(relabelled.posterior_[:, permutation], plain.posterior_, atol=1e-6)
    assert_allclose(relabelled.confusion_[:, permutation][:, :, permutation], plain.confusion_, atol=1e-6)


def check_objective_never_falls(make: Make) -> None:
    for seed in range(3):
        model = make().fit(crowd(seed)[0])
        path = model.log_likelihood_
        assert (len(path) < 2) == (type(model).__name__ in WITHOUT_OBJECTIVE)  # else nothing would be checked
        assert (np.diff(path) >= -1e-9 * np.abs(path[1:])).all()


def check_unanimous_workers_are_believed(make: Make) -> None:
    y_true = np.arange(60) % 3
    model = make().fit(Annotations.from_matrix(np.repeat(y_true[:, None], 4, axis=1)))
    assert_array_equal(model.labels_, y_true)
    assert (model.posterior_.max(axis=1) > 0.99).all()


def check_a_uniform_spammer_changes_no_label(make: Make) -> None:
    y_true = np.arange(300) % 3
    rng = np.random.default_rng(0)
    matrix = np.column_stack([y_true, y_true, y_true, rng.integers(0, 3, 300)])
    assert_array_equal(make().fit(Annotations.from_matrix(matrix)).labels_, y_true)


def check_good_workers_rank_above_spammers(make: Make) -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 3, 500)
    confusion = simulate.one_coin(np.array([0.9] * 6 + [1 / 3] * 4), 3)
    ann = simulate.annotate(y_true, confusion, simulate.assign(500, 10, 5, rng, replace=False), rng)
    skill = make().fit(ann).skill_
    assert skill[:6].min() > skill[6:].max()


def check_gold_is_kept(make: Make) -> None:
    ann, y_true = crowd()
    wrong = (y_true + 1) % 3
    model = make().fit(ann, gold={0: wrong[0], 7: wrong[7]})
    assert_array_equal(model.posterior_[[0, 7]], np.eye(3)[wrong[[0, 7]]])
    assert_array_equal(model.labels_[[0, 7]], wrong[[0, 7]])


def check_all_gold_gives_the_empirical_confusion(make: Make) -> None:
    ann, y_true = crowd(n_tasks=3000, n_workers=6)
    counts = label_counts(ann, y_true)
    empirical = np.einsum("wkk->w", counts) / counts.sum(axis=(1, 2))
    assert_allclose(make().fit(ann, gold=y_true).skill_, empirical, atol=0.02)


def check_tasks_and_workers_without_annotations(make: Make) -> None:
    matrix = np.full((5, 4), -1)
    matrix[:3, :3] = [[0, 0, 1], [1, 1, 1], [0, 0, 0]]
    model = make().fit(Annotations.from_matrix(matrix, classes=[0, 1, 2]))
    assert np.isfinite(model.posterior_).all()
    assert np.isfinite(model.confusion_).all()
    assert model.confusion_.shape == (4, 3, 3)


def check_arguments_stay_whole(make: Make) -> None:
    ann, y_true = crowd()
    before, gold = pickle.dumps(ann), np.where(np.arange(len(y_true)) < 5, y_true, -1)
    gold_before = gold.copy()
    make().fit(ann, gold=gold)
    assert pickle.dumps(ann) == before
    assert_array_equal(gold, gold_before)


def check_clone_and_repeat_give_the_same(make: Make) -> None:
    ann, _ = crowd()
    first, second = make().fit(ann), clone(make()).fit(ann)
    assert_array_equal(first.posterior_, second.posterior_)
    assert_array_equal(first.labels_, second.labels_)


def check_the_method_itself_leaves_the_model_as_it_is(make: Make) -> None:
    model = make()
    before = dict(vars(model))
    model._fit(crowd()[0], None, np.random.default_rng(0))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def check_wrong_type_is_refused(make: Make) -> None:
    with pytest.raises(TypeError, match="got list"):
        make().fit([[0, 1]])  # type: ignore[arg-type]


def check_frames_hold_every_task_and_worker(make: Make) -> None:
    ann, _ = crowd()
    model = make().fit(ann)
    tasks, workers = model.to_frame(), model.workers_to_frame()
    assert tasks.column_names == ["task", "label", "confidence", "posterior_0", "posterior_1", "posterior_2"]
    assert (tasks.num_rows, workers.num_rows) == (ann.n_tasks, ann.n_workers)
    assert sum(workers["annotations"].to_pylist()) == len(ann)
    assert (np.diff(workers["skill"].to_numpy()) <= 0).all()


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")]


def one_hot(codes: Codes, n_classes: int) -> Floats:
    """Return rows with a 1 at each code."""
    return np.eye(n_classes)[codes]
