"""The examples of docs/extending.md work as they are written, and entry points bring them into the commands."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import labelonce as lo
from labelonce import routing

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text()
RECIPES = re.findall(r'^```python\n(""".*?)^```$', PAGE, re.MULTILINE | re.DOTALL)


def recipe(name: str) -> Any:
    (code,) = [code for code in RECIPES if re.search(rf"^(class|def) {name}\b", code, re.MULTILINE)]
    names: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(code, "extending.md", "exec"), names)
    return names[name]


def crowd(confusion: Any) -> tuple[Any, Any, lo.Annotations]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X.argmax(axis=1)
    return X, y, lo.simulate.annotate(y, confusion, lo.simulate.assign(300, len(confusion), 1, rng), rng)


def test_there_are_six_recipes() -> None:
    assert len(RECIPES) == 6


@pytest.mark.parametrize("name", ["AgreementVote", "OneMatrix"])
def test_a_new_aggregator_keeps_gold_and_is_compared(name: str) -> None:
    rng, confusion = np.random.default_rng(0), lo.simulate.one_coin([0.8] * 6, 3)
    y = rng.integers(0, 3, 200)
    annotations = lo.simulate.annotate(y, confusion, lo.simulate.assign(200, 6, 3, rng, replace=False), rng)
    model = recipe(name)().fit(annotations)
    assert (model.labels_ == y).mean() > 0.85
    wrong = {0: int((y[0] + 1) % 3)}
    assert clone(model).fit(annotations, gold=wrong).labels_[0] == wrong[0]
    found = lo.compare_aggregators(annotations, methods={name: recipe(name)(), "vote": lo.MajorityVote()})
    assert {row.method for row in found.rows} == {name, "vote"}


def test_a_router_with_a_strategy_of_ones_own_is_loaded_with_it(tmp_path: Path) -> None:
    margin = recipe("Margin")
    router = routing.Router(["a", "b", "c"], ["yes", "no"], strategy=margin(floor=0.1))
    router.add("a", "ann", "yes")
    assert router.next("bob") in {"b", "c"}
    router.save(tmp_path / "router.npz")
    with pytest.raises(ValueError, match="got 'Margin'"):
        routing.Router.load(tmp_path / "router.npz")
    assert isinstance(routing.Router.load(tmp_path / "router.npz", strategy=margin()).strategy, margin)


@pytest.fixture
def package(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process in which a package with two entry points is installed."""
    folder = tmp_path / "site"
    about = folder / "my_package-1.dist-info"
    about.mkdir(parents=True)
    about.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1\n")
    about.joinpath("entry_points.txt").write_text(
        "[labelonce.aggregators]\nagreement-vote = my_package:AgreementVote\nbroken = my_package:Missing\n"
        "[labelonce.strategies]\nMargin = my_package:Margin\n"
    )
    code = [code for code in RECIPES if "class AgreementVote" in code or "class Margin" in code]
    folder.joinpath("my_package.py").write_text("\n\n".join(code))
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_entry_points_appear_in_the_commands_and_in_projects(package: dict[str, str], tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text(
        "task,worker,label\n" + "".join(f"t{i},w{j},{(i + (i == j)) % 2}\n" for i in range(6) for j in range(3))
    )
    done = labelonce(package, "aggregate", labels, "--method", "agreement-vote", "-o", tmp_path / "clean.csv")
    assert done.returncode == 0
    assert len((tmp_path / "clean.csv").read_text().splitlines()) == 7
    done = labelonce(package, "next", labels, "--strategy", "Margin", "-n", "1", "--json")
    assert done.returncode == 0
    done = labelonce(package, "aggregate", labels, "--method", "broken")
    assert done.returncode != 0
    assert "my_package:Missing of my-package must be loaded as 'broken'" in done.stderr
    code = (
        "from labelonce.service._settings import Settings as S; print(S('t', ('a', 'b'), strategy='Margin').strategy)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=package, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "Margin"


def labelonce(package: dict[str, str], *arguments: Any) -> Any:
    command = [sys.executable, "-m", "labelonce", *map(str, arguments)]
    return subprocess.run(command, env=package, capture_output=True, text=True, check=False)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_a_new_worker_model_serves_the_rounds_and_the_verdict() -> None:
    X, y, annotations = crowd(lo.simulate.one_coin([0.8] * 5, 2))
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=2, worker_model=recipe("OneCrowd")()).fit(X, annotations)
    assert (clf.labels_ == y).mean() > (annotations.label == y).mean()
    assert np.ptp(clf.skill_) < 0.01


def test_a_new_worker_model_has_intervals_and_a_new_answer_type_refuses_what_is_no_percent() -> None:
    model = recipe("OneCrowd")().fit_counts(np.array([[[8.0, 2.0], [1.0, 9.0]]]))
    low, high = model.confusion_interval()
    assert ((low < model.confusion_) & (model.confusion_ < high)).all()
    with pytest.raises(ValueError, match=r"from 0 to 100; got -1\.0 to 20\.0"):
        recipe("from_percent")([0, 1], [0, 0], [-1, 20])


@pytest.mark.filterwarnings("ignore:.*out-of-fold models contradict:labelonce.DoubtWarning")
def test_a_new_answer_type_serves_mbem_and_aggregators() -> None:
    X, y, annotations = crowd(lo.simulate.one_coin([0.9] * 5, 2))
    rng = np.random.default_rng(0)
    percent = np.where(annotations.label == 1, 100, 0) * 0.6 + rng.uniform(0, 40, len(annotations))
    found = recipe("from_percent")(annotations.task, annotations.worker, percent)
    yes = y == 1
    assert ((lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X, found).labels_ == "yes") == yes).mean() > 0.9
    assert ((lo.MajorityVote().fit(found).labels_ == "yes") == yes).mean() > 0.8


def test_a_new_learner_is_chosen_and_cloned_as_others_are() -> None:
    X, y, annotations = crowd(lo.simulate.one_coin([0.9, 0.9, 0.6, 0.6], 2))
    learner = clone(recipe("NearestMean")())
    clf = lo.MBEM([learner, lo.SoftmaxRegression(C=1e-4)]).fit(X, annotations)
    assert (clf.predict(X) == y).mean() > 0.9
    assert len(clf.choices_) == 2
