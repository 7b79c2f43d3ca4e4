"""Tokens: who may do what. Only their hashes are kept."""

import hashlib
import secrets
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
