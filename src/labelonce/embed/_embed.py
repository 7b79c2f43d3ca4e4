"""`texts` and `images`: what is known comes from the cache, the rest from the model, kept batch by batch."""

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelonce._messages import show
from labelonce._types import Floats, Ids
from labelonce.data import _ids
from labelonce.embed._encoders import Encoder, image_encoder, text_encoder
from labelonce.embed._models import check_extra, fingerprint, folder_of, found_model
from labelonce.files._pictures import content_of, picture, pictures_in, strict_about_bombs
from labelonce.learning._text import as_texts

Progress = Callable[[str, int, int], None]
_BATCHES = {"text": 256, "image": 32}  # what is lost by a kill at most
_MOST = 500  # keys asked of the cache in one question


class Embeddings(NamedTuple):
    """One row of numbers per task: row i of `X`, float32 (n_tasks, n_numbers), is task `ids[i]`; by `model`."""

    ids: Ids
    X: Floats
    model: str


def texts(
    texts: Sequence[str] | Mapping[Any, str], *, model: str | None = None, progress: Progress | None = None
) -> Embeddings:
    """Return texts as the numbers of a pretrained model.

    Parameters
    ----------
    texts : sequence of str, or mapping of task id to str
        The ids of a sequence are 0, 1, 2, ...
    model : str, optional
        The name of a sentence-transformers model or of any encoder of transformers on the Hugging Face Hub, or a local
        folder of one; default: what LABELONCE_EMBED names, else all-MiniLM-L6-v2. What is not on this machine is
        downloaded.
    progress : callable, optional
        Is called with "embedding", how many texts are done and how many there are.

    Notes
    -----
    What was encoded once is kept in ~/.cache/labelonce (or LABELONCE_CACHE) by its content, so a stopped call resumes.
    """
    ids, listed = _listed(texts)
    known = found_model("text", model)
    return Embeddings(ids, text_vectors(listed, folder_of(known), progress=progress), known)


def images(
    images: str | os.PathLike[str] | Sequence[Any] | Mapping[Any, Any],
    *,
    model: str | None = None,
    progress: Progress | None = None,
) -> Embeddings:
    """Return images as the numbers of a pretrained model.

    Parameters
    ----------
    images : folder, sequence of paths, or mapping of task id to path
        The ids in a folder are the names of the files without suffix, those of a sequence 0, 1, 2, ...
    model : str, optional
        The name of an image model of transformers or timm on the Hugging Face Hub, or a local folder of one; default:
        what LABELONCE_EMBED names, else DINOv2 small.
    progress : callable, optional
        As for `texts`.
    """
    if isinstance(images, str | os.PathLike):
        images = pictures_in(Path(images))
    ids, listed = _listed(images)
    known = found_model("image", model)
    return Embeddings(ids, image_vectors(listed, folder_of(known), progress=progress), known)


def text_vectors(texts: Sequence[str], folder: Path, *, progress: Progress | None = None) -> Floats:
    """Return the vectors of texts by the model in a folder."""
    listed = as_texts(texts)
    keys = [hashlib.sha256(text.encode()).digest() for text in listed]
    lengths = [len(text) for text in listed]
    return _vectors(keys, lengths, lambda row: listed[row], lambda: text_encoder(folder), folder, "text", progress)


def image_vectors(
    paths: Sequence[Any], folder: Path, *, mirrored: bool = False, progress: Progress | None = None
) -> Floats:
    """Return the vectors of image files by the model in a folder; `mirrored`: the mean with those of mirror images."""
    check_extra("image")
    listed = [Path(path) for path in paths]
    with ThreadPoolExecutor() as pool:
        keys = list(pool.map(lambda path: hashlib.sha256(content_of(path)).digest(), listed))

    def load(row: int) -> Any:
        return picture(content_of(listed[row]), listed[row])

    def mirror(row: int) -> Any:
        from PIL import ImageOps

        return ImageOps.mirror(load(row))

    def found(keys: list[bytes], load: Callable[[int], Any]) -> Floats:
        return _vectors(keys, [0] * len(keys), load, lambda: image_encoder(folder), folder, "image", progress)

    with strict_about_bombs():
        own = found(keys, load)
        return own if not mirrored else (own + found([key + b"mirror" for key in keys], mirror)) / np.float32(2)


def _vectors(
    keys: list[bytes],
    lengths: list[int],
    load: Callable[[int], Any],
    encoder: Callable[[], Encoder],
    folder: Path,
    kind: str,
    progress: Progress | None,
) -> Floats:
    """Return one vector per key; of equal keys and of those in the cache nothing is encoded again.

    A batch has rows of about one length; the batches are shuffled, so that the time left can be told.
    """
    row_of = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
    tell, size = progress or (lambda *_: None), _BATCHES[kind]
    with opened(fingerprint(folder)) as cache:
        known = cache.get(list(row_of))
        rows = sorted((row for key, row in row_of.items() if key not in known), key=lambda row: (lengths[row], row))
        if rows:
            encode, n_known = encoder(), len(known)
            tell("embedding", 0, len(rows))
        for start in np.random.default_rng(0).permutation(np.arange(0, len(rows), size)).tolist():
            batch = rows[start : start + size]
            vectors = np.ascontiguousarray(encode([load(row) for row in batch]), dtype=np.float32)
            if vectors.ndim != 2 or len(vectors) != len(batch) or not np.isfinite(vectors).all():
                raise ValueError(f"the model must give one vector of finite numbers each; got shape {vectors.shape}.")
            made = {keys[row]: vector.tobytes() for row, vector in zip(batch, vectors, strict=True)}
            cache.put(made.items())
            known |= made
            tell("embedding", len(known) - n_known, len(rows))
    return np.stack([np.frombuffer(known[key], dtype=np.float32) for key in keys])


def _listed(given: Any) -> tuple[Ids, list[Any]]:
    """Return the ids and the values of a sequence or a mapping."""
    if isinstance(given, Mapping):
        return _ids.table_of(list(given), "task"), list(given.values())
    if isinstance(given, str) or not hasattr(given, "__len__"):
        raise TypeError(f"what is embedded must be a list, or a mapping of ids; got {show(given)}.")
    return np.arange(len(given)), list(given)


class Cache:
    """The vectors of one model. What was put in is there after a kill, and for other processes at once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for start in range(0, len(keys), _MOST):
            some = keys[start : start + _MOST]
            marks = ",".join("?" * len(some))
            found |= dict(self._connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some))
        return found

    def put(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", pairs)


@contextmanager
def opened(model: str) -> Iterator[Cache]:
    """Give the vectors of the model with a fingerprint, in LABELONCE_CACHE or the user's folder of caches."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("LABELONCE_CACHE") or Path(home) / "labelonce")
    path = folder / "embeddings" / f"{model[:32]}.db"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=60.0)
    except (OSError, sqlite3.OperationalError) as error:
        raise ValueError(
            f"{path} must be a file that can be written, where embeddings are kept; got: {error}. Name another folder "
            "with LABELONCE_CACHE in the environment."
        ) from error
    with closing(connection):
        yield Cache(connection)
