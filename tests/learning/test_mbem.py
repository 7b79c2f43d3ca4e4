"""MBEM: Algorithm 1 against its loops, the laws of the rounds, and scikit-learn's contract."""

import pickle
import warnings
from dataclasses import replace
from itertools import islice
from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
from checks import permuted
from crowds import crowd_with_features
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import labelonce
from labelonce import MBEM, Annotations, MajorityVote, OracleConfusion, SoftmaxRegression, TrainOnAggregate, simulate
from labelonce._rules import RULES
from labelonce._types import Floats
from labelonce.learning import DoubtWarning, _choice, annotation_log_likelihood
from labelonce.workers import Counted, OneCoin

EXPECTED = {
    "check_supervised_y_2d": "a column of labels is a matrix with one worker, and needs no warning",
}


def quick(**options: Any) -> MBEM:
    """MBEM with nothing left to choose."""
    fixed: dict[str, Any] = {"learner": SoftmaxRegression(), "rounds": 2, "worker_model": OneCoin()}
    return MBEM(**(fixed | options))


def algorithm_1(X: Floats, ann: Annotations, *, rounds: int, prior: str) -> tuple[Any, Floats, Floats]:
    """The paper's Algorithm 1 in loops: the model, the confusion matrices and the posteriors of its last round."""
    posterior = np.zeros((ann.n_tasks, ann.n_classes))
    for i, z in zip(ann.task, ann.label, strict=True):
        posterior[i, z] += 1
    posterior /= posterior.sum(axis=1, keepdims=True)
    for _ in range(rounds):
        model = SoftmaxRegression().fit(X, posterior)
        picks = model.predict(X)
        confusion = np.zeros((ann.n_workers, ann.n_classes, ann.n_classes))
        for i, j, z in zip(ann.task, ann.worker, ann.label, strict=True):
            confusion[j, picks[i], z] += 1
        for matrix in confusion:
            for row in matrix:
                row[:] = row / row.sum() if row.sum() else 1 / ann.n_classes
        share = np.bincount(picks, minlength=ann.n_classes) / ann.n_tasks
        posterior = np.tile(share if prior == "picks" else np.ones(ann.n_classes), (ann.n_tasks, 1))
        for i, j, z in zip(ann.task, ann.worker, ann.label, strict=True):
            posterior[i] *= np.maximum(confusion[j, :, z], 1e-10)
        posterior /= posterior.sum(axis=1, keepdims=True)
    return model, confusion, posterior


@pytest.mark.parametrize("prior", ["uniform", "picks"])
@pytest.mark.parametrize("redundancy", [1, 3])
def test_paper_is_algorithm_1(prior: str, redundancy: int) -> None:
    X, ann, _, _ = crowd_with_features(redundancy=redundancy)
    ours = MBEM.paper(SoftmaxRegression(), rounds=3, prior=prior).fit(X, ann)
    model, confusion, posterior = algorithm_1(X, ann, rounds=3, prior=prior)
    assert_allclose(ours.confusion_, confusion, atol=1e-12)
    assert_allclose(ours.posterior_, posterior, atol=1e-9)
    assert_allclose(ours.predict_proba(X), model.predict_proba(X), atol=1e-6)
    assert ours.n_rounds_ == 3


def test_one_round_of_the_paper_is_training_on_the_weighted_majority_vote() -> None:
    X, ann, _, _ = crowd_with_features(redundancy=3)
    voted = TrainOnAggregate(MajorityVote(), SoftmaxRegression(), targets="soft").fit(X, ann)
    assert_array_equal(MBEM.paper(SoftmaxRegression(), rounds=1).fit(X, ann).predict_proba(X), voted.predict_proba(X))


def test_rounds_stop_where_the_posterior_no_longer_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    X, ann, _, _ = crowd_with_features()
    stop_at(0.01, monkeypatch)
    stopped = quick(rounds=50).fit(X, ann)
    changes = [entry["posterior_change"] for entry in stopped.history_]
    assert stopped.n_rounds_ < 50
    assert changes[-1] < 0.01 <= min(changes[1:-1])


def stop_at(change: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_choice, "RULES", replace(RULES, early_stop=change))


class Careful(SoftmaxRegression):
    """A learner whose last round is its own: with another penalty, or with the same one."""

    def __init__(self, *, C: float = 1.0, C_last: float = 1.0, note: Any = None) -> None:
        super().__init__(C=C)
        self.C_last = C_last
        self.note = note

    def for_round(self, number: int, last: int) -> Self:
        chosen: Self = clone(self).set_params(C=self.C_last if number == last else self.C)
        return chosen

    @property
    def last_round_differs(self) -> bool:
        return self.C_last != self.C


def test_a_last_round_is_done_with_its_care_where_rounds_stop_early(monkeypatch: pytest.MonkeyPatch) -> None:
    X, ann, _, _ = crowd_with_features()
    stop_at(0.01, monkeypatch)
    early = quick(learner=Careful(note=object()), rounds=50).fit(X, ann)  # of which each copy has another
    closed = quick(learner=Careful(C_last=3.0), rounds=50).fit(X, ann)
    assert closed.n_rounds_ == early.n_rounds_ + 1 < 50
    models: list[Any] = [early.model_, closed.model_]
    assert [model.C for model in models] == [1.0, 3.0]
    full = quick(learner=Careful(C_last=3.0), rounds=closed.n_rounds_).fit(X, ann)
    assert_array_equal(closed.predict_proba(X), full.predict_proba(X))


def test_a_fit_stopped_before_such_a_last_round_goes_on_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    X, ann, _, _ = crowd_with_features()
    stop_at(0.01, monkeypatch)
    whole = quick(learner=Careful(C_last=3.0), rounds=50).fit(X, ann)
    parts = quick(learner=Careful(C_last=3.0), rounds=50)
    for _ in islice(parts.stages(X, ann), whole.n_rounds_):  # the choice, then all rounds but the last
        pass
    assert [again.n_rounds_ for again in parts.stages(X, ann, resume=True)] == [whole.n_rounds_]
    assert_array_equal(parts.posterior_, whole.posterior_)


def test_the_same_seed_gives_the_same_fit() -> None:
    X, ann, _, _ = crowd_with_features(n_tasks=100)
    first, second = (quick(random_state=3).fit(X, ann) for _ in range(2))
    other = quick(random_state=4).fit(X, ann)
    assert_array_equal(first.posterior_, second.posterior_)
    assert not np.array_equal(first.posterior_, other.posterior_)


def test_clones_and_pickles_predict_alike() -> None:
    X, ann, _, _ = crowd_with_features()
    fitted = quick().fit(X, ann)
    assert_array_equal(clone(fitted).fit(X, ann).posterior_, fitted.posterior_)
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))
    assert clone(fitted).get_params()["learner__C"] == 1.0


def test_arguments_stay_whole() -> None:
    X, ann, y_true, _ = crowd_with_features()
    gold = np.where(np.arange(len(X)) < 5, y_true, -1)
    learner, prior = SoftmaxRegression(), np.array([0.2, 0.3, 0.5])
    before = pickle.dumps((X, ann, gold, learner, prior))
    quick(learner=learner, prior=prior).fit(X, ann, gold=gold)
    assert pickle.dumps((X, ann, gold, learner, prior)) == before


@pytest.mark.filterwarnings("ignore:MBEM")  # nothing is held out
def test_task_and_worker_permutations_commute() -> None:
    X, ann, _, _ = crowd_with_features()
    rng = np.random.default_rng(1)
    task, worker = (rng.permutation(n).astype(np.int32) for n in (ann.n_tasks, ann.n_workers))
    shuffled_X = np.empty_like(X)
    shuffled_X[task] = X
    one = quick(folds=1)  # folds are drawn by the places of the tasks
    plain, shuffled = clone(one).fit(X, ann), clone(one).fit(shuffled_X, permuted(ann, task=task, worker=worker))
    assert_allclose(shuffled.posterior_[task], plain.posterior_, atol=1e-4)
    assert_allclose(shuffled.confusion_[worker], plain.confusion_, atol=1e-4)


def test_every_form_of_the_annotations_gives_the_same_fit() -> None:
    X, ann, _, _ = crowd_with_features()
    dense = ann.to_matrix(dense=True)
    expected = quick().fit(X, ann).posterior_
    missing = np.where(dense < 0, np.nan, dense)
    stored = ann.to_matrix()
    for form in (dense, dense.tolist(), missing, pd.DataFrame(missing), stored, sparse.csc_array(stored)):
        assert_array_equal(quick().fit(X, form).posterior_, expected)


def test_plain_labels_are_one_workers() -> None:
    X, _, y_true, _ = crowd_with_features()
    plain, column = quick().fit(X, y_true), quick().fit(X, y_true[:, None])
    assert_array_equal(plain.posterior_, column.posterior_)
    assert plain.confusion_.shape == (1, 3, 3)


def test_tasks_without_labels_are_used() -> None:
    X, ann, y_true, _ = crowd_with_features(redundancy=2)
    matrix = ann.to_matrix(dense=True)
    matrix[:60] = -1
    fitted = quick(rounds=3).fit(X, matrix)
    assert np.isfinite(fitted.posterior_).all()
    assert (fitted.labels_[:60] == y_true[:60]).mean() > 0.9


@pytest.mark.filterwarnings("ignore:MBEM")  # two known answers, both wrong
def test_gold_is_kept() -> None:
    X, ann, y_true, _ = crowd_with_features()
    wrong = (y_true + 1) % 3
    matrix = ann.to_matrix(dense=True)
    matrix[7] = -1
    fitted = quick().fit(X, matrix, gold={0: wrong[0], 7: wrong[7]})
    assert_array_equal(fitted.posterior_[[0, 7]], np.eye(3)[wrong[[0, 7]]])
    assert_array_equal(fitted.confidence_[[0, 7]], 1)


@pytest.mark.filterwarnings("ignore:MBEM")  # the features say nothing
def test_gold_tells_workers_apart() -> None:
    X, ann, y_true, confusion = crowd_with_features(redundancy=2)
    fitted = quick(worker_model=Counted()).fit(np.zeros_like(X), ann, gold=y_true)
    counts = np.zeros((6, 3, 3))
    np.add.at(counts, (ann.worker, y_true[ann.task], ann.label), 1)
    assert_allclose(fitted.worker_model_.confusion_, counts / counts.sum(axis=2, keepdims=True))
    assert fitted.skill_[confusion[:, 0, 0] == 1].min() > 0.98  # nobody is taken to be always right


def test_predictions_and_labels_are_the_users_class_ids() -> None:
    X, ann, _, _ = crowd_with_features()
    names = np.array(["bird", "cat", "dog"], dtype=object)
    named = Annotations.from_arrays(ann.task, ann.worker, names[ann.label])
    plain, fitted = quick().fit(X, ann), quick().fit(X, named)
    assert_array_equal(fitted.predict(X), names[plain.predict(X)])
    assert_array_equal(fitted.labels_, names[plain.labels_])
    assert_array_equal(fitted.classes_, names)


def test_a_frame_gives_its_feature_names() -> None:
    X, ann, _, _ = crowd_with_features()
    frame = pd.DataFrame(X, columns=["width", "height", "weight"])
    fitted = quick().fit(frame, ann)
    assert fitted.feature_names_in_.tolist() == ["width", "height", "weight"]
    assert_allclose(fitted.predict_proba(frame), quick().fit(X, ann).predict_proba(X))
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame.rename(columns={"width": "depth"}))


def test_texts_go_through_a_pipeline() -> None:
    texts = ["good film", "bad film", "very good", "very bad"] * 20
    matrix = np.tile(np.array([1, 0, 1, 0]), 20)[:, None].repeat(2, axis=1)
    fitted = quick(learner=make_pipeline(TfidfVectorizer(), SoftmaxRegression())).fit(texts, matrix)
    assert fitted.predict(["good", "bad"]).tolist() == [1, 0]
    assert [name for name, _ in fitted.recipe_["learner"].steps] == ["tfidfvectorizer", "softmaxregression"]


def test_it_may_end_a_pipeline_itself() -> None:
    X, ann, y_true, _ = crowd_with_features()
    assert make_pipeline(StandardScaler(), quick(rounds=3)).fit(X, ann).score(X, y_true) > 0.9


def test_any_scikit_learn_classifier_will_do() -> None:
    X, ann, y_true, _ = crowd_with_features(redundancy=2)
    forest = RandomForestClassifier(10, min_samples_leaf=5, random_state=0)
    assert quick(learner=forest).fit(X, ann).score(X, y_true) > 0.8


def test_the_better_learner_of_a_list_is_chosen() -> None:
    X, ann, _, _ = crowd_with_features(n_tasks=300)
    weak, strong = SoftmaxRegression(C=1e-6), SoftmaxRegression(C=1.0)
    fitted = quick(learner=[weak, strong]).fit(X, ann)
    assert fitted.recipe_["learner"].C == 1.0
    assert [choice["learner"].C for choice in fitted.choices_] == [1e-6, 1.0]
    assert fitted.history_[1]["held_out_score"] == fitted.choices_[1]["held_out_scores"][1]


def test_the_default_chooses_all_by_itself() -> None:
    X, ann, y_true, _ = crowd_with_features()
    fitted = MBEM(worker_model=OneCoin()).fit(X, ann)
    assert fitted.score(X, y_true) > 0.9
    assert [choice["learner"].C for choice in fitted.choices_] == [0.001, 0.01, 0.1, 1.0, 10.0]
    assert fitted.recipe_["rounds"] == fitted.n_rounds_ <= 6


@pytest.mark.filterwarnings("ignore:MBEM")  # a tree of noisy labels is doubted, and rightly
@pytest.mark.parametrize(
    ("learner", "expected"),
    [(SoftmaxRegression(), "in_sample"), (DecisionTreeClassifier(random_state=0), "out_of_fold")],
)
def test_a_learner_that_memorises_judges_workers_out_of_fold(learner: Any, expected: str) -> None:
    X, ann, _, _ = crowd_with_features()
    assert quick(learner=learner, rounds=1).fit(X, ann).recipe_["predictions"] == expected


def test_callbacks_get_every_rounds_entry() -> None:
    X, ann, _, _ = crowd_with_features()
    seen: list[dict[str, Any]] = []
    fitted = quick(callbacks=[seen.append], rounds=3).fit(X, ann)
    assert all(one is other for one, other in zip(seen, fitted.history_, strict=True))
    assert [entry["round"] for entry in seen] == [1, 2, 3]


def test_history_holds_numbers_a_reader_can_trust() -> None:
    X, ann, _, _ = crowd_with_features()
    fitted = quick(rounds=3).fit(X, ann)
    first, second, third = fitted.history_
    for name in ("agreement", "mean_confidence", "log_likelihood"):
        assert np.isfinite([entry[name] for entry in fitted.history_]).all()
    assert np.isnan(first["posterior_change"])
    assert 0 < third["posterior_change"] < 1
    predicted = fitted.predict(X)
    assert third["agreement"] == (predicted[ann.task] == ann.label).mean()
    assert second["round"] == 2


def test_the_score_is_how_often_predictions_are_the_labels() -> None:
    X, ann, y_true, _ = crowd_with_features()
    fitted, dense = quick().fit(X, ann), ann.to_matrix(dense=True)
    agreed = (fitted.predict(X)[ann.task] == ann.label).mean()
    assert fitted.score(X, ann) == fitted.score(X, dense) == fitted.score(X, dense.tolist()) == pytest.approx(agreed)
    assert fitted.score(X, y_true) == (fitted.predict(X) == y_true).mean()


def test_annotations_are_scored_by_their_log_likelihood() -> None:
    X, ann, _, _ = crowd_with_features()
    fitted, dense = quick().fit(X, ann), ann.to_matrix(dense=True)
    expected = annotation_log_likelihood(ann, fitted.predict_proba(X), fitted.confusion_)
    assert fitted.score_annotations(X, ann) == fitted.score_annotations(X, dense) == expected
    assert fitted.score_annotations(X[:50], dense[:50]) != expected


def test_scores_need_the_workers_and_classes_of_the_fit() -> None:
    X, ann, _, _ = crowd_with_features()
    fitted = quick().fit(X, ann)
    strangers = Annotations.from_arrays(ann.task, ann.worker + 10, ann.label)
    with pytest.raises(ValueError, match=r"6 workers of the fit, \[0, 1, 2, 3, 4, 5\]; got 6, \[10, 11"):
        fitted.score_annotations(X, strangers)
    with pytest.raises(ValueError, match=r"classes of the fit, \[0, 1, 2\]; got \[0, 1, 2, 3\]"):
        fitted.score(X, Annotations.from_matrix(ann.to_matrix(), classes=range(4)))


@pytest.mark.filterwarnings("ignore:MBEM")  # the smallest C learns nothing
@pytest.mark.parametrize("form", ["annotations", "matrix"])
def test_grid_search_and_cross_validation_take_annotations_and_matrices(form: str) -> None:
    X, ann, _, _ = crowd_with_features()
    y = ann if form == "annotations" else ann.to_matrix(dense=True)
    grid = GridSearchCV(quick(), {"learner__C": [1e-5, 1.0]}, cv=2, error_score="raise").fit(X, y)
    assert grid.best_params_ == {"learner__C": 1.0}
    shares = cross_val_score(quick(), X, y, cv=2, error_score="raise")
    assert ((shares > 0.5) & (shares < 1)).all()
    likelihoods = cross_val_score(quick(), X, y, cv=2, scoring=MBEM.score_annotations, error_score="raise")
    assert (likelihoods < 0).all()


def test_one_label_per_task_beats_the_vote_and_finds_the_hammers() -> None:
    X, ann, y_true, confusion = crowd_with_features(n_tasks=300)
    X = np.hstack([X, np.random.default_rng(1).normal(size=(300, 20))])
    fitted = quick(rounds=4).fit(X, ann)
    voted = TrainOnAggregate(MajorityVote(), SoftmaxRegression(), targets="soft").fit(X, ann)
    hammer = confusion[:, 0, 0] == 1
    assert fitted.score(X, y_true) > voted.score(X, y_true) + 0.05
    assert fitted.skill_[hammer].min() > 0.85  # a mean over how right the best workers may be
    assert fitted.skill_[~hammer].max() < 0.6
    frame = fitted.workers_to_frame()
    low, skill, high = (frame[name].to_numpy() for name in ("skill_low", "skill", "skill_high"))
    assert ((low <= skill) & (skill <= high)).all()


def test_a_class_that_few_workers_know_is_not_lost() -> None:
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(10, 100))
    centres *= 3.3 / np.sqrt((centres**2).sum(axis=1).mean())
    y_true = rng.integers(0, 10, 8000)
    X = centres[y_true] + rng.normal(size=(8000, 100))
    confusion = simulate.class_wise_hammer_spammer(12, 10, 0.15, rng)
    ann = simulate.annotate(y_true[:6000], confusion, simulate.assign(6000, 12, 1, rng), rng)
    learner = SoftmaxRegression(C=0.001)
    fitted = MBEM(learner, rounds=7, random_state=0).fit(X[:6000], ann)
    oracle = OracleConfusion(confusion, learner).fit(X[:6000], ann)
    assert fitted.score(X[6000:], y_true[6000:]) > oracle.score(X[6000:], y_true[6000:])
    assert np.bincount(fitted.labels_, minlength=10).min() > 200


@pytest.mark.parametrize("rounds", [3, 8])
def test_a_rare_class_is_not_made_frequent(rounds: int) -> None:
    rng = np.random.default_rng(0)
    y_true = (rng.random(5000) < 0.1).astype(int)
    X = rng.normal(size=(5000, 20)) + np.outer(y_true, [3.0, 1.0, *np.zeros(18)])
    confusion = simulate.one_coin(rng.uniform(0.6, 0.95, 30), 2)
    ann = simulate.annotate(y_true[:3000], confusion, simulate.assign(3000, 30, 1, rng), rng)
    fitted = MBEM(SoftmaxRegression(), rounds=rounds, random_state=0).fit(X[:3000], ann)
    assert fitted.score(X[3000:], y_true[3000:]) > 0.91
    assert fitted.predict(X[3000:]).mean() < 0.18


def test_features_that_fit_noise_are_a_warning() -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(400, 40)), rng.integers(0, 4, 400)  # agrees with far more labels than by chance
    ann = Annotations.from_arrays(np.arange(400), np.arange(400) % 5, labels)
    with pytest.warns(DoubtWarning, match=r"held-out labels is -\d\.\d{3}, and -1\.3\d{2} by how often each label"):
        MBEM(SoftmaxRegression(), rounds=3).fit(X, ann)


def test_one_class_is_a_fit_too() -> None:
    assert quick().fit(np.ones((4, 1)), np.zeros((4, 2), dtype=int)).predict(np.ones((2, 1))).tolist() == [0, 0]


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_a_handful_of_tasks_is_a_fit_too() -> None:
    fitted = MBEM(SoftmaxRegression(), worker_model=OneCoin()).fit(np.array([[0.0], [1.0], [2.0]]), [0, 1, 1])
    assert fitted.posterior_.shape == (3, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds must be an integer of at least 1, or auto; got 0"),
        ({"rounds": "few"}, "rounds must be an integer of at least 1, or auto; got 'few'"),
        ({"folds": 0}, "folds must be an integer of at least 1, or auto; got 0"),
        ({"max_fits": 0}, "max_fits must be an integer of at least 1, or auto; got 0"),
        ({"algorithm": "own"}, "algorithm must be one of 'joint', 'paper', 'paper_equation_7'; got 'own'"),
        ({"algorithm": "paper", "rounds": "auto"}, "rounds must be given with algorithm='paper'; got 'auto'"),
        ({"prior": [0.5, 0.5]}, r"prior must have shape \(3,\); got \(2,\)"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any], message: str) -> None:
    X, ann, _, _ = crowd_with_features(n_tasks=50)
    with pytest.raises(ValueError, match=message):
        quick(**options).fit(X, ann)


def test_an_unfitted_classifier_says_so() -> None:
    with pytest.raises(NotFittedError, match="MBEM instance is not fitted"):
        MBEM().predict([[0.0]])


def test_scikit_learns_checks_pass() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks of unusual inputs warn, as do fits to random features
        check_estimator(quick(), on_skip=None, expected_failed_checks=EXPECTED)


@pytest.mark.filterwarnings("ignore:MBEM")  # four small trees are doubted, and rightly
def test_what_is_left_to_chance_before_the_rounds_has_the_seed_too() -> None:
    X, ann, _, _ = crowd_with_features()
    forest = RandomForestClassifier(4, max_depth=2)
    fits = [MBEM(forest, rounds=1, random_state=0).fit(X, ann) for _ in range(4)]
    assert len({(fit.recipe_["predictions"], fit.posterior_.tobytes()) for fit in fits}) == 1


def test_an_aggregator_is_no_worker_model() -> None:
    X, ann, _, _ = crowd_with_features()
    with pytest.raises(TypeError, match=r"worker_model must be a model of labelonce\.workers; got OneCoin"):
        quick(worker_model=labelonce.OneCoin()).fit(X, ann)
    wrong: Any = OneCoin()
    with pytest.raises(TypeError, match=r"aggregator must be an aggregator, such as .*; got OneCoin"):
        TrainOnAggregate(wrong, SoftmaxRegression()).fit(X, ann)
