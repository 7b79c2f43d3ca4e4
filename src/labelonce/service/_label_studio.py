"""Label Studio's words and ours: its labelling interface, its annotations and its predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from labelonce._messages import show
from labelonce.service._store import Answer

SKIPPED = "skipped in Label Studio"


@dataclass(frozen=True)
class Control:
    """The choices of a labelling interface: their name, what they are about, and the classes."""

    name: str
    to_name: str
    classes: tuple[str, ...]
    shown: tuple[tuple[str, str], ...] = ()
    """Kind and field of what is shown, such as ("Text", "review")."""

    def prediction(self, label: str, confidence: float, version: str) -> dict[str, Any]:
        """Return a prediction as Label Studio takes it."""
        value = {"choices": [label]}
        result = {"from_name": self.name, "to_name": self.to_name, "type": "choices", "value": value}
        return {"result": [result], "score": confidence, "model_version": version}

    def label(self, result: Any) -> str | None:
        """Return the choice in the result of an annotation, None if there is not exactly one."""
        found = [
            choice
            for one in (result if isinstance(result, list) else [])
            if isinstance(one, Mapping) and one.get("from_name") == self.name
            for choice in (one.get("value") or {}).get("choices", [])
        ]
        return str(found[0]) if len(found) == 1 else None


def read_config(config: str) -> Control:
    """Return the one set of choices in a labelling interface.

    Examples
    --------
    >>> control = read_config(
    ...     '<View><Text name="t" value="$review"/><Choices name="mood" toName="t"><Choice value="good"/>'
    ...     '<Choice value="bad" alias="poor"/></Choices></View>'
    ... )
    >>> control.name, control.to_name, control.classes, control.shown
    ('mood', 't', ('good', 'poor'), (('Text', 'review'),))
    >>> control.prediction("good", 0.9, "1")["result"]
    [{'from_name': 'mood', 'to_name': 't', 'type': 'choices', 'value': {'choices': ['good']}}]
    """
    if "<!" in config.replace("<!--", ""):  # entities can be made to grow without end
        raise ValueError("the labelling interface must have no DOCTYPE.")
    try:
        root = ElementTree.fromstring(config)
    except ElementTree.ParseError as error:
        raise ValueError(f"the labelling interface must be XML; got: {error}.") from error
    controls = [one for one in root.iter("Choices") if one.get("choice", "single") != "multiple"]
    if len(controls) != 1:
        names = [one.get("name") for one in controls]
        raise ValueError(f"the labelling interface must have one <Choices> of a single choice; got {show(names)}.")
    (choices,) = controls
    classes = tuple(one.get("alias") or one.get("value") or "" for one in choices.iter("Choice"))
    shown = tuple((one.tag, value[1:]) for one in root.iter() if (value := one.get("value") or "").startswith("$"))
    return Control(choices.get("name") or "", choices.get("toName") or "", classes, shown)


def worker_name(user: Any) -> str:
    """Return what we call one of Label Studio's users.

    >>> worker_name(3), worker_name({"id": 3, "email": "ann@example.com"})
    ('label-studio 3', 'label-studio 3')
    """
    return f"label-studio {user.get('id') if isinstance(user, Mapping) else user}"


def origin(number: Any) -> str:
    """Return the name of one of Label Studio's annotations."""
    return f"label-studio {number}"


def answer_of(annotation: Mapping[str, Any], task: str, control: Control) -> Answer | None:
    """Return one of Label Studio's annotations as an answer; None where it says nothing."""
    name = origin(annotation["id"])
    cancelled = bool(annotation.get("was_cancelled"))
    label = None if cancelled else control.label(annotation.get("result"))
    if label is None and not cancelled:
        return None
    seconds = annotation.get("lead_time")
    return Answer(
        worker_name(annotation.get("completed_by")),
        f"{name} {annotation.get('updated_at', '')}",
        task,
        label,
        SKIPPED if cancelled else None,
        float(seconds) if isinstance(seconds, int | float) else None,
        name,
    )
