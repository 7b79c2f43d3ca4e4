import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose

from labelonce import Annotations, DawidSkene, MajorityVote, OneCoin, compare_aggregators, metrics, simulate
from labelonce._kernels import Beliefs, Matrices, label_likelihoods
from labelonce._types import Codes
from labelonce.aggregation import Aggregator
from labelonce.aggregation._base import Fit
from labelonce.aggregation._registry import COMMANDS
from labelonce.data._annotations import Annotations as Rows
from labelonce.data._rows import hold_out

QUICK: dict[str, Aggregator] = {"vote": MajorityVote(), "one coin": OneCoin(), "matrices": DawidSkene()}


class BinaryOnly(MajorityVote):
    """A method that refuses more than two classes."""

    def _fit(self, annotations: Rows, gold: Codes | None, rng: np.random.Generator) -> Fit:
        if annotations.n_classes != 2:
            raise ValueError(f"BinaryOnly must have 2 classes; got {annotations.n_classes}.")
        return super()._fit(annotations, gold, rng)


def test_every_aggregator_is_compared_and_one_that_cannot_run_has_its_reason() -> None:
    rows = compare_aggregators(crowd(n_tasks=60)[0]).rows
    assert {row.method for row in rows} == set(COMMANDS)
    comparison = compare_aggregators(crowd()[0], methods=QUICK | {"binary": BinaryOnly()})
    last = comparison.rows[-1]
    assert (last.method, last.held_out, last.note) == ("binary", None, "BinaryOnly must have 2 classes; got 3.")


def test_the_model_that_a_crowd_follows_is_recommended() -> None:
    confusion = simulate.one_coin(np.random.default_rng(0).uniform(0.2, 0.95, 40), 5)
    ann, _ = crowd(n_tasks=400, confusion=confusion, redundancy=4)
    comparison = compare_aggregators(ann, methods=QUICK)
    assert comparison.recommended == "one coin"
    assert comparison.rows[0].method == "one coin"
    assert "held-out annotations best" in comparison.reason
    ann, _ = crowd(n_tasks=3000)
    assert compare_aggregators(ann, methods=QUICK).recommended == "matrices"


def test_gold_is_measured_and_changes_nothing_else() -> None:
    ann, y_true = crowd()
    blind, seen = compare_aggregators(ann, methods=QUICK), compare_aggregators(ann, gold=y_true, methods=QUICK)
    assert [row.held_out for row in blind.rows] == [row.held_out for row in seen.rows]
    by_name = {row.method: row for row in seen.rows}
    posterior = OneCoin().fit(ann).posterior_
    assert by_name["one coin"].accuracy == metrics.accuracy(y_true, posterior)
    assert by_name["one coin"].log_loss == metrics.log_loss(y_true, posterior)
    assert blind.rows[0].accuracy is None


def test_where_no_task_is_labelled_twice_none_is_recommended_and_notes_say_why() -> None:
    comparison = compare_aggregators(crowd()[0].sample(redundancy=1, random_state=0), methods=QUICK)
    assert comparison.recommended is None
    assert comparison.reason.startswith("no task is labelled twice, so nothing tells the methods apart")
    assert len(comparison.rows) == 3
    ann = crowd()[0].sample(redundancy=1, random_state=0)
    notes = {row.method: row.note for row in compare_aggregators(ann, methods=QUICK).rows}
    assert "only 0 of 200 tasks" in notes["matrices"]
    assert notes["vote"] == ""


def test_agreement_is_the_share_of_labels_kept_and_the_simpler_of_two_equals_wins() -> None:
    ann = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    row = compare_aggregators(ann, methods={"vote": MajorityVote()}).rows[0]
    assert row.agreement == pytest.approx(10 / 12)
    comparison = compare_aggregators(crowd()[0], methods={"a": OneCoin(), "b": OneCoin()})
    assert comparison.recommended == "a"


def test_the_same_seed_gives_the_same_scores_and_the_table_has_a_row_a_method() -> None:
    first, again = (compare_aggregators(crowd()[0], methods=QUICK, random_state=3) for _ in range(2))
    assert [row.held_out for row in first.rows] == [row.held_out for row in again.rows]
    frame = first.to_frame()
    assert frame.num_rows == 3
    assert frame.column_names[0] == "method"


def test_bad_arguments_are_named() -> None:
    with pytest.raises(TypeError, match="got list"):
        compare_aggregators([[0, 1]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 2 annotations, to hold one out; got 1"):
        compare_aggregators(Annotations.from_arrays([1], [1], [0]))
    with pytest.raises(ValueError, match="gold must hold the label of one task at least; got none"):
        compare_aggregators(crowd()[0], gold={}, methods=QUICK)
    with pytest.raises(ValueError, match=r"share must be in \[0.01, 0.9\]; got 1.0"):
        compare_aggregators(crowd()[0], share=1.0)
    with pytest.raises(ValueError, match="no method could run: binary: BinaryOnly must have 2 classes; got 3"):
        compare_aggregators(crowd()[0], methods={"binary": BinaryOnly()})


def test_held_out_rows_and_the_rest_are_all_rows_and_likelihoods_sum_over_true_labels() -> None:
    ann, _ = crowd()
    seen, held = hold_out(ann, 0.2, np.random.default_rng(0))
    assert (len(held), len(seen)) == (200, 800)
    rows = [np.stack([part.task, part.worker, part.label], axis=1) for part in (seen, held)]
    both = np.concatenate(rows)
    assert_allclose(both[np.lexsort(both.T[::-1])], np.stack([ann.task, ann.worker, ann.label], axis=1))
    ann = Annotations.from_arrays([0, 1], [0, 0], [0, 1])
    posterior = np.array([[0.9, 0.1], [0.4, 0.6]])
    confusion = np.array([[[0.8, 0.2], [0.3, 0.7]]])
    found = label_likelihoods(ann, Beliefs.of(posterior), Matrices(confusion))
    assert_allclose(found, [0.9 * 0.8 + 0.1 * 0.3, 0.4 * 0.2 + 0.6 * 0.7])
