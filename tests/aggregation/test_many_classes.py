"""With many classes memory follows the labels, and the answers are those of the dense arrays."""

import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engines import all_by
from numpy.testing import assert_allclose, assert_array_equal

import labelonce as lo
from labelonce import Annotations, metrics, simulate, workers
from labelonce.aggregation import Aggregator
from labelonce.data._memory import MOST_NUMBERS

MODELS: dict[str, Callable[[], Aggregator]] = {
    "vote": lo.MajorityVote,
    "Wawa": lo.Wawa,
    "expertise": lo.baselines.ExpertiseVote,
    "one coin": lo.OneCoin,
    "one coin, learned prior": lambda: lo.OneCoin(prior="learned"),
    "one coin, maximum likelihood": lambda: lo.OneCoin(smoothing=(0.0, 0.0), max_iter=20),
}
pytestmark = pytest.mark.filterwarnings("ignore::labelonce.aggregation.RedundancyWarning")


def labelled(n_tasks: int = 300, n_classes: int = 8, seed: int = 0, redundancy: int = 4) -> tuple[Annotations, Any]:
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, n_classes, n_tasks)
    confusion = simulate.one_coin(rng.uniform(0.3, 0.95, 20), n_classes)
    ann = simulate.annotate(y_true, confusion, simulate.assign(n_tasks, 20, redundancy, rng), rng)
    return ann, y_true


def without_labels(ann: Annotations, tasks: Any) -> Annotations:
    """Return the annotations without those of some tasks, which stay."""
    kept = ~np.isin(ann.task, tasks)
    return Annotations(ann.task[kept], ann.worker[kept], ann.label[kept], ann.tasks, ann.workers, ann.classes)


@pytest.fixture
def sparse(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Aggregator], Annotations, Any], Aggregator]:
    """Return what fits a model as if there were many classes."""

    def fit(make: Callable[[], Aggregator], ann: Annotations, gold: Any) -> Aggregator:
        with monkeypatch.context() as patch, warnings.catch_warnings(action="ignore"):
            patch.setattr("labelonce.data._memory.MOST_NUMBERS", 0)
            return make().fit(ann, gold=gold)

    return fit


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("with_gold", [False, True])
def test_candidates_have_the_probabilities_of_the_dense_posterior(name: str, with_gold: bool, sparse: Any) -> None:
    ann, y_true = labelled()
    ann = without_labels(ann, [3, 7])
    gold = dict(enumerate(y_true[:20].tolist())) if with_gold else None
    with warnings.catch_warnings(action="ignore"):
        dense = MODELS[name]().fit(ann, gold=gold)
    found = sparse(MODELS[name], ann, gold)
    assert found.posterior_.classes is not None
    if "learned" in name:  # the rest follows the prior in the fit, and is even in what is shown
        at = np.unique(np.stack([ann.task, ann.label]), axis=1)
        assert_allclose(found.posterior_.at(*at), dense.posterior_[tuple(at)], atol=1e-9)
    else:
        assert_allclose(found.posterior_.to_dense(), dense.posterior_, atol=1e-9)
        assert_allclose(found.prior_, dense.prior_, atol=1e-9)
        for measure in (metrics.accuracy, metrics.log_loss):
            assert measure(y_true, found.posterior_) == pytest.approx(measure(y_true, dense.posterior_), rel=1e-9)
    if name != "vote":  # whose workers are other numbers where there are many classes
        assert_allclose(found.skill_, dense.skill_, atol=1e-9)
        assert_allclose(found.log_likelihood_, dense.log_likelihood_, rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_labels_are_most_probable_and_the_table_shows_the_next_best(name: str, sparse: Any) -> None:
    ann, _ = labelled()
    model = sparse(MODELS[name], ann, None)
    dense = model.posterior_.to_dense()
    picks = np.searchsorted(model.classes_, model.labels_)
    assert_allclose(dense[np.arange(len(picks)), picks], dense.max(axis=1), rtol=1e-12)
    table = model.to_frame()
    assert table.column_names[:5] == ["task", "label", "confidence", "class_1", "posterior_class_1"]
    second = table["posterior_class_2"].to_numpy(zero_copy_only=False)
    several = (model.posterior_.classes >= 0).sum(axis=1) > 1
    assert_allclose(second[several], np.sort(dense, axis=1)[several, -2], rtol=1e-12)
    assert np.isnan(second[~several].astype(float)).all()


def test_a_task_without_labels_may_be_anything(sparse: Any) -> None:
    ann, _ = labelled(n_tasks=400)
    model = sparse(lo.MajorityVote, without_labels(ann, np.arange(300)), None)
    assert len(set(model.labels_[:300].tolist())) == 8
    assert_allclose(model.posterior_.rest[:300], 1.0)


@pytest.mark.parametrize("name", ["vote", "Wawa", "expertise", "one coin"])
def test_two_thousand_workers_of_a_thousand_classes_fit_into_little_memory(name: str) -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 1000, 10_000)
    crowd = simulate.grouped_hammer_spammer(2000, np.arange(1000) // 10, 0.5, rng)
    ann = simulate.annotate(y_true, crowd, simulate.assign(10_000, 2000, 3, rng), rng)
    tracemalloc.start()
    model = MODELS[name]().fit(ann)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20  # the posterior alone would take 76 MiB, the confusion 14.9 GiB
    assert MOST_NUMBERS < 2000 * 1000**2
    assert metrics.accuracy(y_true, model.posterior_) > 0.6
    good = crowd.right[:, 0] == 1
    assert model.skill_[good].mean() > model.skill_[~good].mean() + 0.2
    assert model.workers_to_frame().num_rows == 2000
    with pytest.raises(ValueError, match=r"2,000 workers with 1,000 x 1,000 classes"):
        model.confusion_  # noqa: B018


@pytest.mark.parametrize("name", ["Wawa", "expertise", "one coin", "one coin, learned prior"])
def test_candidates_ignore_the_order_of_tasks_and_workers_and_follow_a_renaming(name: str, sparse: Any) -> None:
    ann, _ = labelled()
    rng = np.random.default_rng(1)
    task, worker, code = (rng.permutation(n).astype(np.int32) for n in (ann.n_tasks, ann.n_workers, ann.n_classes))
    moved = Annotations(task[ann.task], worker[ann.worker], code[ann.label], ann.tasks, ann.workers, ann.classes)
    before, after = sparse(MODELS[name], ann, None), sparse(MODELS[name], moved, None)
    assert_allclose(after.posterior_.to_dense()[np.ix_(task, code)], before.posterior_.to_dense(), atol=1e-9)
    assert_allclose(after.skill_[worker], before.skill_, atol=1e-9)


GROUPS = np.arange(60) // 6


def grouped(redundancy: int = 3, seed: int = 0, n_tasks: int = 3000) -> tuple[Annotations, Any]:
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, 60, n_tasks)
    crowd = simulate.grouped_class_wise_hammer_spammer(50, GROUPS, 0.5, rng)
    return simulate.annotate(y_true, crowd, simulate.assign(n_tasks, 50, redundancy, rng), rng), y_true


def with_groups(groups: Any = GROUPS, **options: Any) -> lo.DawidSkene:
    return lo.DawidSkene(worker_model=workers.Grouped(groups, **options))


def test_workers_in_groups_beat_one_coin_and_a_matrix_each() -> None:
    ann, y_true = grouped()
    models = {"coin": lo.OneCoin(), "matrix": lo.DawidSkene(), "groups": with_groups(rows="position")}
    accuracy = {name: metrics.accuracy(y_true, model.fit(ann).posterior_) for name, model in models.items()}
    assert accuracy["groups"] > max(accuracy["coin"], accuracy["matrix"]) + 0.05
    known = lo.DawidSkene(worker_model=workers.Grouped("auto", rows="position"))
    assert metrics.accuracy(y_true, known.fit(ann).posterior_) > max(accuracy["coin"], accuracy["matrix"])


def test_grouped_posteriors_ignore_the_order_of_tasks_and_workers_and_follow_a_renaming() -> None:
    ann, _ = grouped(n_tasks=600)
    rng = np.random.default_rng(1)
    task, worker, name = (rng.permutation(n).astype(np.int32) for n in (ann.n_tasks, ann.n_workers, ann.n_classes))
    moved = Annotations(task[ann.task], worker[ann.worker], name[ann.label], ann.tasks, ann.workers, ann.classes)
    renamed = np.empty_like(GROUPS)
    renamed[name] = GROUPS
    before, after = with_groups().fit(ann), with_groups(renamed).fit(moved)
    assert_allclose(after.posterior_.to_dense()[np.ix_(task, name)], before.posterior_.to_dense(), atol=1e-6)
    assert_allclose(after.skill_[worker], before.skill_, atol=1e-6)


@pytest.mark.neural
def test_groups_are_fitted_alike_by_both_engines() -> None:
    ann, _ = grouped(n_tasks=600)
    found: list[Any] = []
    for engine in ("scipy", "torch"):
        with all_by(engine):
            found.append(with_groups().set_params(device="cpu").fit(ann))
    assert_allclose(found[1].posterior_.to_dense(), found[0].posterior_.to_dense(), atol=1e-9)
    assert_allclose(found[1].skill_, found[0].skill_, atol=1e-9)


def test_groups_of_one_class_make_everybody_right_and_known_labels_are_certain() -> None:
    ann, _ = grouped(n_tasks=300)
    model = with_groups(np.arange(60), leak=0.0).fit(ann)
    assert_allclose(model.skill_, 1.0)
    ann, y_true = grouped(n_tasks=600)
    model = with_groups().fit(ann, gold=dict(enumerate(y_true[:100].tolist())))
    assert_array_equal(model.labels_[:100], y_true[:100])
    assert_allclose(model.posterior_.at(np.arange(100), y_true[:100]), 1.0)


def test_a_group_of_all_classes_is_about_one_coin() -> None:
    ann, y_true = labelled(n_tasks=1000, n_classes=8)
    one = workers.Grouped(np.zeros(8, int), errors="uniform")
    one_group = lo.DawidSkene(worker_model=one, prior="uniform").fit(ann)
    coin = lo.OneCoin().fit(ann)
    assert_allclose(one_group.skill_, coin.skill_, atol=0.02)
    assert (one_group.labels_ == coin.labels_).mean() > 0.98
    assert metrics.accuracy(y_true, one_group.posterior_) > 0.8


def test_only_workers_in_groups_take_the_place_of_matrices_and_need_none() -> None:
    ann, _ = grouped(n_tasks=100)
    with pytest.raises(TypeError, match=r"worker_model must be None or workers.Grouped\(...\); got OneCoin\(\)"):
        lo.DawidSkene(worker_model=workers.OneCoin()).fit(ann)
    with pytest.raises(ValueError, match=r"partial_fit must have worker_model=None; got Grouped\(\)"):
        lo.DawidSkene(worker_model=workers.Grouped()).partial_fit(ann)
    label = np.array([[3, 3, 59_999], [7, 7, 7]])
    ann = lo.Annotations.from_matrix(label, classes=np.arange(60_000))
    model = lo.DawidSkene(worker_model=workers.Grouped(np.arange(60_000) // 10))
    assert model.fit(ann).labels_.tolist() == [3, 7]
