"""Translation between Label Studio and labelonce: its labelling interface, its annotations and its predictions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from labelonce._messages import clip, printable, show
from labelonce.service._messages import MOST_SECONDS
from labelonce.service._project import check_worker
from labelonce.service._store import Answer

SKIPPED = "skipped in Label Studio"
_LARGEST = 2**63
_LONGEST_KEY = 200


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
        ours = [one for one in mappings(result) if one.get("from_name") == self.name]
        values = [one["value"] for one in ours if isinstance(one.get("value"), Mapping)]
        found = [choice for value in values for choice in as_list(value.get("choices"))]
        return found[0] if len(found) == 1 and isinstance(found[0], str) else None


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
    """Return the name of the worker for a Label Studio user.

    >>> worker_name(3), worker_name({"id": 3, "email": "ann@example.com"})
    ('label-studio 3', 'label-studio 3')
    """
    return check_worker(f"label-studio {user.get('id') if isinstance(user, Mapping) else user}")


def origin(annotation: Mapping[str, Any]) -> str:
    """Return the name of one of Label Studio's annotations."""
    return f"label-studio {number_of(annotation)}"


def number_of(found: Mapping[str, Any]) -> int:
    """Return the id of a task or an annotation."""
    number = found.get("id")
    if type(number) is not int or abs(number) > _LARGEST:
        raise ValueError(f"what Label Studio sends must have an integer as id; got {show(number)}.")
    return number


def answer_of(annotation: Mapping[str, Any], task: str, control: Control) -> Answer | None:
    """Return one of Label Studio's annotations as an answer, None if it is empty."""
    name = origin(annotation)
    cancelled = bool(annotation.get("was_cancelled"))
    label = None if cancelled else control.label(annotation.get("result"))
    if label is None and not cancelled:
        return None
    seconds: Any = annotation.get("lead_time")
    is_known = type(seconds) in (int, float) and 0 <= seconds <= MOST_SECONDS
    return Answer(
        worker_name(annotation.get("completed_by")),
        clip(f"{name} {printable(str(annotation.get('updated_at', '')))}", _LONGEST_KEY),
        task,
        label,
        SKIPPED if cancelled else None,
        float(seconds) if is_known else None,
        name,
    )


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the JSON objects of a list, or a single object."""
    return [one for one in as_list(value) if isinstance(one, Mapping)]


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, and anything else as the only one in a list; nothing of None."""
    return value if isinstance(value, list) else [] if value is None else [value]
