"""Saved objects come back whole; a file that names anything foreign is refused before anything in it is made."""

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crowds import crowd_with_features
from forging import Bomb
from numpy.testing import assert_array_equal, assert_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from skops.io import dumps
from small_files import reloaded

import labelonce as lo
from labelonce import runs
from labelonce.aggregation import Aggregator
from labelonce.aggregation._registry import aggregators
from labelonce.learning import TextFeatures, text_model


def named_crowd(redundancy: int = 3) -> tuple[Any, lo.Annotations]:
    X, ann, *_ = crowd_with_features(90, redundancy=redundancy)
    named = [np.array([f"{kind}-{i} ž影" for i in range(n)]) for kind, n in (("t", 90), ("w", 6), ("c", 3))]
    ids = [names[codes] for names, codes in zip(named, (ann.task, ann.worker, ann.label), strict=True)]
    return X, lo.Annotations.from_arrays(*ids).align(named[0])


def same(first: Any, second: Any) -> None:
    for name in ("posterior_", "confusion_", "prior_", "skill_", "labels_", "classes_", "tasks_", "workers_"):
        if hasattr(first, name):
            assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


@pytest.mark.parametrize("kind", aggregators().values(), ids=lambda kind: kind.__name__)
def test_an_aggregator_comes_back_whole(kind: type[Aggregator], tmp_path: Path) -> None:
    _, ann = named_crowd()
    fitted = kind().fit(ann)
    again = reloaded(fitted, tmp_path)
    assert type(again) is kind
    assert str(again.get_params()) == str(fitted.get_params())
    same(fitted, again)
    assert again.to_frame().equals(fitted.to_frame())
    assert again.workers_to_frame().equals(fitted.workers_to_frame())


LEARNERS: dict[str, Any] = {
    "softmax": lambda: lo.SoftmaxRegression(),
    "list": lambda: [lo.SoftmaxRegression(C=0.1), lo.SoftmaxRegression()],
    "boost": lambda: lo.BoostedTrees(n_estimators=20, min_child_samples=5),
    "scikit-learn": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
}


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # a few labels, of which little can be told
@pytest.mark.parametrize("name", LEARNERS)
def test_mbem_comes_back_whole_and_goes_on(name: str, tmp_path: Path) -> None:
    X, ann = named_crowd(1)
    fitted = lo.MBEM(LEARNERS[name](), rounds=1).fit(X, ann)
    again = reloaded(fitted, tmp_path)
    same(fitted, again)
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert_array_equal(again.worker_model_.skill_interval(), fitted.worker_model_.skill_interval())
    stages = lo.MBEM(LEARNERS[name](), rounds=1).stages(X, ann)
    next(stages)
    lo.save(next(stages), tmp_path / "stage.skops")
    half = lo.load(tmp_path / "stage.skops")
    list(half.stages(X, ann, resume=True))
    same(fitted, half)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
@pytest.mark.parametrize("gold", [None, {0: 0, 1: 1, 2: 0, 3: 1}])
def test_a_panel_of_judges_comes_back_whole(gold: Any, tmp_path: Path) -> None:
    verdicts = lo.Annotations.from_matrix([[0, 0, 0], [1, 1, 1], [0, 1, 1], [1, 1, 0]] * 25)
    fitted = lo.JudgePanel().fit(verdicts, gold=gold)
    again = reloaded(fitted, tmp_path)
    assert_array_equal(again.posterior_, fitted.posterior_)
    for table in (lo.JudgePanel.to_frame, lo.JudgePanel.workers_to_frame, lo.JudgePanel.pairs_to_frame):
        assert_equal(table(again).to_pydict(), table(fitted).to_pydict())
    assert again.next_tasks(5).equals(fitted.next_tasks(5))
    assert again.class_shares().equals(fitted.class_shares())


def test_a_text_model_comes_back_whole(tmp_path: Path) -> None:
    texts = ["good film", "bad film", "very good", "very bad"] * 10
    fitted = lo.MBEM(text_model(), rounds=1).fit(texts, np.tile([1, 0, 1, 0], 10))
    lo.save(fitted, tmp_path / "model.skops")
    assert_array_equal(lo.load(tmp_path / "model.skops").predict_proba(texts), fitted.predict_proba(texts))


@pytest.mark.parametrize(
    "make",
    [
        lambda _: lo.TrainOnAggregate(lo.DawidSkene(), lo.SoftmaxRegression(), targets="soft"),
        lambda _: lo.OracleConfusion(np.tile(np.eye(3), (6, 1, 1)) * 0.7 + 0.1, lo.SoftmaxRegression()),
        lambda ann: lo.OracleCorrect(np.zeros(ann.n_tasks, dtype=int), lo.SoftmaxRegression()),
    ],
)
def test_the_baselines_come_back_whole(make: Any, tmp_path: Path) -> None:
    X, ann = named_crowd()
    fitted = make(ann).fit(X, ann)
    again = reloaded(fitted, tmp_path)
    assert_array_equal(again.predict(X), fitted.predict(X))
    if hasattr(fitted, "aggregator_"):
        same(fitted.aggregator_, again.aggregator_)


NOISE = np.eye(3) * 0.7 + 0.1
ALONE: dict[str, Any] = {
    "SoftmaxRegression": (lo.SoftmaxRegression(C=2.0), False),
    "BoostedTrees": (lo.BoostedTrees(n_estimators=20, min_child_samples=5), False),
    "ForwardCorrection": (lo.baselines.ForwardCorrection(NOISE), True),
    "UnbiasedLoss": (lo.baselines.UnbiasedLoss(NOISE), True),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_learner_alone_comes_back_whole(name: str, tmp_path: Path) -> None:
    X, ann = named_crowd()
    learner, takes_annotations = ALONE[name]
    fitted = learner.fit(X, ann if takes_annotations else np.array(["a", "b", "c"], dtype=object)[X.argmax(axis=1)])
    again = reloaded(fitted, tmp_path)
    assert type(again) is type(fitted)
    assert str(again.get_params()) == str(fitted.get_params())
    assert again.classes_.dtype == fitted.classes_.dtype
    assert_array_equal(again.predict(X), fitted.predict(X))
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_a_file_names_no_module_of_ours_and_each_type_once_so_that_classes_may_move(tmp_path: Path) -> None:
    X, ann = named_crowd(1)
    pipeline = make_pipeline(StandardScaler(), lo.SoftmaxRegression())
    lo.save(lo.MBEM(pipeline, rounds=1).fit(X, ann), tmp_path / "model.skops")
    with zipfile.ZipFile(tmp_path / "model.skops") as file:
        assert b"labelonce." not in file.read("schema.json")
    names = [runs._model_file._name_in_file(home) for home in set(runs._model_file._our_types())]
    assert sorted(names) == sorted(set(names))


def test_state_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lo.save(lo.MajorityVote().fit(named_crowd()[1]), tmp_path / "model.skops")
    monkeypatch.setitem(runs._model_file._VERSIONS, "MajorityVote", 2)
    with pytest.raises(ValueError, match="fit and save again with this release; got MajorityVote of version 1"):
        lo.load(tmp_path / "model.skops")


def test_callbacks_are_left_out_and_the_object_stays_as_it_was(tmp_path: Path) -> None:
    X, ann = named_crowd(1)
    callbacks = [print]
    fitted = lo.MBEM(lo.SoftmaxRegression(), rounds=1, callbacks=callbacks).fit(X, ann)
    lo.save(fitted, tmp_path / "model.skops")
    assert fitted.callbacks is callbacks
    assert fitted.classes_.dtype == object
    assert lo.load(tmp_path / "model.skops").callbacks == ()


def test_what_is_not_fitted_or_not_ours_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        lo.save(lo.MBEM(), tmp_path / "model.skops")
    with pytest.raises(NotFittedError):
        lo.save(lo.SoftmaxRegression(), tmp_path / "model.skops")
    for other in (LogisticRegression(), TextFeatures()):
        with pytest.raises(TypeError, match=f"got {type(other).__name__}. Save an MBEM or TrainOnAggregate with it"):
            lo.save(other, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # three trees
def test_trees_need_a_word_of_trust(tmp_path: Path) -> None:
    X, ann = named_crowd(1)
    fitted = lo.MBEM(RandomForestClassifier(3, random_state=0), rounds=1).fit(X, ann)
    lo.save(fitted, tmp_path / "model.skops")
    with pytest.raises(ValueError, match=r"got \['sklearn.tree._tree.Tree'\]"):
        lo.load(tmp_path / "model.skops")
    again = lo.load(tmp_path / "model.skops", trusted=["sklearn.tree._tree.Tree"])
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


# Forged files. Each would create the file `mark` if anything in it ran.


class Foreign:
    """A type that the file's maker has at hand; loading it would run its `__setstate__`."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __setstate__(self, state: Any) -> None:
        Path(state["mark"]).touch()


def archive(schema: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("schema.json", json.dumps(schema))
    return buffer.getvalue()


def call(module: str, function: str, argument: str) -> dict[str, Any]:
    """Return the skops node of function(argument)."""
    text = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(argument)}
    content = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": [text]}
    return {"__class__": function, "__module__": module, "__loader__": "ConstructorFromReduceNode", "content": content}


def forged(node: dict[str, Any], **files: bytes) -> bytes:
    """Return a genuine file with a foreign node inside."""
    source = runs._model_file.dumped(lo.MajorityVote().fit(named_crowd()[1]))
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(source)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                schema["content"]["fitted"]["content"]["state"]["content"]["prior_"] = node
                content = json.dumps(schema).encode()
            new.writestr(name, content)
        for name, content in files.items():
            new.writestr(name, content)
    return buffer.getvalue()


def bad_files(mark: Path) -> dict[str, bytes]:
    X, ann = named_crowd(1)
    touch = f"touch {mark}"
    pipeline = make_pipeline(FunctionTransformer(os.system), lo.SoftmaxRegression())
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=1).fit(X, ann)
    clf.learner = pipeline
    state = {"labelonce": lo.__version__, "format": 2}
    array = io.BytesIO()
    np.save(array, np.array([Bomb(mark)], dtype=object), allow_pickle=True)
    node = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode"}
    return {
        "pickle": pickle.dumps(Bomb(mark)),
        "os.system": forged(call("posix", "system", touch)),
        "os.system by another name": forged(call("os", "system", touch)),
        "subprocess": forged(call("subprocess", "getoutput", touch)),
        "eval": forged(call("builtins", "eval", f"open({str(mark)!r}, 'w')")),
        "our own module's names": forged(call("labelonce.runs._folder", "os", touch)),
        "a foreign type": dumps(state | {"fitted": Foreign(mark)}),
        "a function as an option": runs._model_file.dumped(clf),
        "a pickled array": forged(node | {"type": "numpy", "file": "bomb"}, bomb=array.getvalue()),
        "not ours": dumps({"hello": 1}),
        "another format": dumps(state | {"format": 3, "fitted": 1}),
        "the format of an earlier release": dumps({"labelonce": "0.1", "format": 1, "fitted": lo.MajorityVote()}),
        "no model": dumps(state | {"fitted": [1, 2]}),
        "a list": dumps([1]),
        "no schema": archive({}),
        "an empty archive": b"PK\x05\x06" + bytes(18),
        "nothing": b"",
        "truncated": forged(call("os", "system", touch))[:-200],
    }


@pytest.mark.parametrize("name", list(bad_files(Path("mark"))))
def test_a_forged_or_broken_file_is_refused_in_a_sentence_and_runs_nothing(name: str, tmp_path: Path) -> None:
    path, mark = tmp_path / "model.skops", tmp_path / "mark"
    path.write_bytes(bad_files(mark)[name])
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        lo.load(path)
    assert str(refused.value).startswith(f"{path} must ")
    assert not mark.exists()


def test_the_forged_node_is_named_and_would_run_if_it_were_trusted(tmp_path: Path) -> None:
    path, mark = tmp_path / "model.skops", tmp_path / "mark"
    path.write_bytes(bad_files(mark)["os.system"])
    lo.load(path, trusted=["posix.system"])
    assert mark.exists()
    path = tmp_path / "model.skops"
    path.write_bytes(bad_files(tmp_path / "mark")["os.system"])
    with pytest.raises(ValueError, match=r"got \['posix.system'\]. Nothing was loaded"):
        lo.load(path)


def test_a_failed_save_leaves_the_earlier_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, ann = named_crowd()
    path = tmp_path / "model.skops"
    lo.save(lo.MajorityVote().fit(ann), path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        lo.save(lo.DawidSkene().fit(ann), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.skops"]
