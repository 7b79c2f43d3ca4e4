"""Responses from Argilla, which come as Standard Webhooks: signed, and sent again if they are not answered."""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Any

from labelonce._messages import clip, printable
from labelonce.service._project import check_worker
from labelonce.service._store import Answer

_DIGITS = 12  # of a time
_PATIENCE = 300.0  # seconds by which clocks may differ
_LONGEST = 200  # of a name
_SKIPPED = "discarded in Argilla"


def is_signed(secret: str, headers: Mapping[str, str], body: bytes, *, now: float | None = None) -> bool:
    """Return whether the body was signed with the secret, and recently, as Standard Webhooks requires.

    Examples
    --------
    >>> secret = "whsec_" + base64.b64encode(b"a secret").decode()
    >>> signed = hmac.new(b"a secret", b"msg_1.1000.{}", hashlib.sha256).digest()
    >>> headers = {"webhook-id": "msg_1", "webhook-timestamp": "1000"}
    >>> headers["webhook-signature"] = "v1," + base64.b64encode(signed).decode()
    >>> is_signed(secret, headers, b"{}", now=1010), is_signed(secret, headers, b"{ }", now=1010)
    (True, False)
    >>> is_signed(secret, headers, b"{}", now=9999)  # somebody sends an old one again
    False
    """
    said, now = headers.get("webhook-timestamp", ""), time.time() if now is None else now
    if not said.isdecimal() or len(said) > _DIGITS or abs(now - int(said)) > _PATIENCE:
        return False
    content = f"{headers.get('webhook-id', '')}.{said}.".encode() + body
    expected = base64.b64encode(hmac.new(_key(secret), content, hashlib.sha256).digest())
    given = [one.partition(",") for one in headers.get("webhook-signature", "").split()]
    return any(version == "v1" and hmac.compare_digest(found.encode(), expected) for version, _, found in given)


def read_response(event: Any, question: str) -> tuple[str, Answer | None] | None:
    """Return the name of a response and what it answers, None if it was taken back; None for all other events.

    A record is our task by its external id, or by its own.
    """
    kind, data = (event.get("type"), event.get("data")) if isinstance(event, Mapping) else (None, None)
    if kind not in ("response.created", "response.updated", "response.deleted") or not isinstance(data, Mapping):
        return None
    origin = clip(f"argilla {printable(str(data.get('id')))}", _LONGEST)
    value, status = _part(_part(data, "values"), question).get("value"), data.get("status")
    skipped = status == "discarded"
    given = skipped or (status == "submitted" and value is not None)
    if kind == "response.deleted" or not given:
        return origin, None
    record, user = _part(data, "record"), _part(data, "user")
    return origin, Answer(
        check_worker(f"argilla {user.get('username') or user.get('id')}"),
        clip(f"{origin} {printable(str(data.get('updated_at', '')))}", _LONGEST),
        str(record.get("external_id") or record.get("id")),
        None if skipped else str(value),
        _SKIPPED if skipped else None,
        None,
        origin,
    )


def _part(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object of that name, an empty one where there is none."""
    part = found.get(name)
    return part if isinstance(part, Mapping) else {}


def _key(secret: str) -> bytes:
    """Return the bytes of a secret, which is written in base64."""
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        return secret.encode()
