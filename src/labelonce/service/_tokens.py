"""Who may do what: tokens, of which only hashes are kept, a limit on requests, and texts without secrets."""

import hashlib
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Role = Literal["worker", "admin"]
MOST_LETTERS = 100  # of a worker's name
_CONTROL = "\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"  # the last ones turn around what follows them
NAME = rf"^[^\s{_CONTROL}][^{_CONTROL}]*$"


@dataclass(frozen=True)
class Person:
    """Whose token it was: a worker, or somebody who sees everything."""

    role: str
    worker: str
    hashed: str

    @property
    def is_admin(self) -> bool:
        """Whether it may see other people's labels."""
        return self.role == "admin"


def new_token() -> str:
    """Return a token that cannot be guessed: 256 random bits, so that a fast hash of it is enough.

    >>> len(new_token()), new_token() == new_token()
    (43, False)
    """
    return secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """Return what is kept of a token.

    >>> hash_of("abc")[:8]
    'ba7816bf'
    """
    return hashlib.sha256(token.encode()).hexdigest()


_MOST = 100_000  # buckets that are remembered


class Rate:
    """Allow everybody `per_second` requests on average, and `burst` at once.

    Examples
    --------
    >>> now = 0.0
    >>> rate = Rate(per_second=1, burst=2, clock=lambda: now)
    >>> [rate.wait("ann"), rate.wait("ann"), rate.wait("ann"), rate.wait("bob")]
    [0.0, 0.0, 1.0, 0.0]
    >>> now = 1.0
    >>> rate.wait("ann")
    0.0
    """

    def __init__(self, per_second: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second, self.burst, self._clock = per_second, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when

    def wait(self, who: str) -> float:
        """Count a request, and return 0, or after how many seconds to ask again."""
        now = self._clock()
        left, then = self._buckets.pop(who, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.per_second)
        allowed = left >= 1
        self._buckets[who] = (left - allowed, now)
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self.per_second


_PASSWORDS = (
    (re.compile(r"(?<=://)[^/@\s'\"]*@"), "...@"),  # user:password of a URL
    (re.compile(r"(password\s*=\s*)('[^']*'|[^\s&'\"]+)", re.IGNORECASE), r"\1..."),
    (re.compile(r"(?<=/label-studio/)[0-9a-f]{40}"), "..."),  # the part of our address that Label Studio knows
    (re.compile(r"((?:Bearer|Token|#token=)\s*)[\w.~+/=-]{8,}"), r"\1..."),
)


def without_secrets(text: str) -> str:
    """Return a text without passwords, tokens and secret addresses.

    >>> without_secrets("postgresql://ann:hunter2@db/pets?password=hunter2 cannot be reached")
    'postgresql://...@db/pets?password=... cannot be reached'
    """
    for pattern, instead in _PASSWORDS:
        text = pattern.sub(instead, text)
    return text
