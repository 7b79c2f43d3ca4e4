"""The numbers that decide a fit stand in one table, and the layouts of arrays are known in one place."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import labelonce
from labelonce import MBEM
from labelonce._rules import all_rules
from labelonce.multilabel import MultiLabelMBEM

PACKAGE = Path(labelonce.__file__).parent
ROOT = PACKAGE.parent.parent
ROOMS = [path for room in ("learning", "workers", "multilabel") for path in sorted((PACKAGE / room).rglob("*.py"))]
ABOVE = [path for path in sorted(PACKAGE.rglob("*.py")) if "_kernels" not in path.parts]
# How sums are cut into blocks, how exactly a number is found, and what a file or a table looks like.
NUMERICS = {
    "learning": {
        "NEGLIGIBLE": "weight below which a class has no row",
        "LEAST": "smallest probability of which a log is taken",
        "LEVEL": "of the intervals that are shown",
        "_AT_ONCE": "block",
        "_BLOCK": "block",
        "_FEW": "rows of X that tell ids from numbers",
        "_KINDS": "of words",
        "_LATE": "steps after which convergence is looked for",
        "_MIDDLE_OF_NORMAL": "unit",
        "_SINGLE": "size from which float32 is used",
        "_SMALL_FOR_BLAS": "threads",
        "_SMALL_FOR_OPENMP": "threads",
        "_TASKS": "block",
        "_WIDE": "columns that tell a frame of labels from a matrix",
    },
    "workers": {
        "_COARSE": "quadrature",
        "_FARTHEST": "end of a search",
        "_FINE": "quadrature",
        "_LEAST": "smallest count that a distribution takes",
        "_LEAST_LEAK": "end of a search",
        "_MANY": "block",
        "_MOST_PAIRS": "memory",
        "_N_POINTS": "quadrature",
        "_PASSES": "end of a loop",
        "_SAMPLE": "where a search begins",
        "_STEPS": "end of a loop",
        "_WIDTH": "of the interval that is shown",
    },
    "multilabel": {
        "NOT_ASKED": "code",
        "STRENGTHS": "grid of a search",
        "WORDS": "of answers",
        "_CONSTANT": "answers of a worker worth a look, in a check of files",
        "_FIRST_STEPS": "where a search begins",
        "_LEAST": "smallest count of which a log is taken",
        "_MOST_ROWS": "to search by",
        "_STEPS": "end of a loop",
        "_TINY": "smallest count of which a log is taken",
    },
}


def numbers(path: Path) -> Iterator[str]:
    """Yield the names of the module's constants in which a number stands."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            parts = [one for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
            if not any(isinstance(one.value, int | float) and not isinstance(one.value, bool) for one in parts):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_number_that_decides_a_fit_is_a_rule(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0]
    own = {name for name in numbers(path) if not (room == "workers" and name == "LEAK")}  # made of a rule
    assert own <= NUMERICS[room].keys()


def test_every_rule_is_used_and_says_what_it_means_and_where_it_comes_from() -> None:
    for rule in all_rules():
        assert rule.meaning
        assert rule.source == "judgement" or (ROOT / rule.source).exists(), rule
    text = "".join(path.read_text() for path in ABOVE)
    assert [rule.name for rule in all_rules() if f"RULES.{rule.name}" not in text] == []


def test_nothing_above_the_kernels_asks_for_a_layout() -> None:
    layouts = "Beliefs|Factors|Matrices|Tallies|Counts|SlotEvidence|ScipyEngine|TorchEngine"
    asks = re.compile(rf"isinstance\([^)]*\b({layouts})\b")
    assert [str(path) for path in ABOVE if asks.search(path.read_text())] == []


@pytest.mark.parametrize("estimator", [MBEM, MultiLabelMBEM])
def test_there_are_at_most_twelve_options(estimator: type) -> None:
    assert len(inspect.signature(estimator).parameters) <= 12


@pytest.mark.parametrize("method", [MBEM.fit, MBEM.stages, MBEM._problem, MBEM._settle, MBEM._run, MBEM._judged])
def test_a_fit_can_be_read_aloud(method: object) -> None:
    (function,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(method))).body  # type: ignore[arg-type]
    assert isinstance(function, ast.FunctionDef)
    lines = [line for node in function.body[1:] for line in ast.unparse(node).splitlines()]
    assert len(lines) <= 40
