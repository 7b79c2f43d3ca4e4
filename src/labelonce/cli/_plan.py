"""`labelonce plan`."""

from functools import partial
from pathlib import Path
from typing import Any

from labelonce import planning
from labelonce._messages import argument
from labelonce.cli._print import print_json, print_note, print_plain, print_table
from labelonce.cli._progress import shown_progress

_SHOWN = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)  # rows of the curve, with those near the plan
_ASSUMED = ("skill", "skills", "quality")


def run_plan(
    *, run: Path | None, assume: str | None, classes: int | None, picture: Path | None, as_json: bool, **options: Any
) -> None:
    """Print how many labels to buy, the curve, the reasons and what to watch out for."""
    if (run is None) == (assume is None):
        got = "neither" if run is None else "both"
        raise ValueError(f"plan must have a run folder or {argument('assume')}; got {got}.")
    if assume is None and classes is not None:
        raise ValueError(f"{argument('classes')} must go with {argument('assume')}; got {classes} and a run folder.")
    workers: Any = run if assume is None else _crowd(assume, 2 if classes is None else classes)
    seed = options.pop("seed")
    with shown_progress(as_json=as_json) as progress:
        found = planning.plan(workers, **options, random_state=seed, progress=partial(progress, "simulating"))
    if picture is not None:
        found.plot(picture)
    if as_json:
        print_json(found.to_dict() | {"picture": picture and str(picture)})
        return
    for sentence in found.reasons:
        print_plain(sentence)
    _print_curve(found)
    print_note("worth: true labels with the same information. One more point: by more labels of the same tasks.")
    for sentence in found.guards:
        print_note(sentence)


def _crowd(assumed: str, n_classes: int) -> planning.Crowd:
    """Return the crowd of an assumption such as `skill=0.8` or `skills=0.9,0.7`."""
    name, _, text = assumed.partition("=")
    try:
        values = [float(one) for one in text.split(",")]
    except ValueError:
        values = []
    if name not in _ASSUMED or not values or (name != "skills" and len(values) > 1):
        raise ValueError(
            f"{argument('assume')} must be skill=0.8, skills=0.9,0.7,0.6 or quality=0.3, with your numbers; "
            f"got {assumed!r}."
        )
    stated: dict[str, Any] = {name: values if name == "skills" else values[0]}
    return planning.assume(n_classes=n_classes, **stated)


def _print_curve(found: planning.Plan) -> None:
    """Print the curve around the best redundancy."""
    names = ["labels per task", "tasks", "labels", "cost", "worth", "labels right", "one more point", "model right"]
    shown = {*_SHOWN, *found.chosen.values(), *(found.redundancy + step for step in (-1, 0, 1))}
    rows = []
    for row in found.rows:
        if row.redundancy not in shown:
            continue
        model = "" if row.accuracy is None else f"{row.accuracy.value:.1%}"
        point = "" if row.point_cost is None else f"{row.point_cost:,.{'4g' if row.point_cost < 1000 else '0f'}}"
        amounts = (f"{amount:,.0f}" for amount in (row.tasks, row.labels, row.cost, row.worth))
        rows.append([row.redundancy, *amounts, f"{row.label_accuracy:.1%}", point, model])
    print_table("What the budget buys", names, rows)
