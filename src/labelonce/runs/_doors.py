"""The features of texts and images: a pretrained model if one is installed, else n-grams or pixels."""

from dataclasses import replace
from typing import Any, NamedTuple, get_args

import numpy as np

from labelonce import embed
from labelonce._messages import argument
from labelonce._rules import RULES
from labelonce._types import Effort
from labelonce.embed import ImageEmbedding, TextEmbedding
from labelonce.embed._models import folder_of, n_bytes
from labelonce.learning import BoostedTrees, TextComponents, default_learner, text_model
from labelonce.learning._default import behind
from labelonce.multilabel import default_heads, text_heads
from labelonce.runs._images import SMALL, network_for
from labelonce.runs._record import Options

EFFORTS: tuple[Effort, ...] = get_args(Effort)
QUICK_SIZE = 16  # pixels
# Seconds on one core, for the first line: of experiments/embeddings.py, and of one fit of each network
_LOADING = 15
_PER_WEIGHT_AND_TOKEN = 1.5e-11
_PER_LETTER = {"components": 1.5e-5, "n-grams": 3e-5}
_PER_VECTOR = 0.002
_PER_PIXELS = 0.002
_SMALL_NETWORK = (100, 0.08)  # at least, and per image
_PER_IMAGE = 1.4  # of the network for 5,000 images and more
_IMAGE_TOKENS = 257
_LETTERS = 4.5  # per token
_MOST_TOKENS = 256


def settled(options: Options) -> Options:
    """Return the options with the model that embeds the texts or images by name, "none" where none does.

    If none is named, it is the default model if that is on disk; nothing is downloaded.
    """
    kind = kind_of(options)
    if kind is None:
        for name in ("embed", "effort"):
            if (value := getattr(options, name)) is not None:
                raise ValueError(
                    f"{argument(name)} must go with {argument('text')} or {argument('images')}; got {value!r} alone."
                )
        return options
    if options.effort == "quick":
        if options.embed not in (None, "auto", "none"):
            raise ValueError(f"a quick run must go without {argument('embed')}; got {options.embed!r}.")
        return replace(options, embed="none")
    if options.embed in (None, "auto"):
        return replace(options, embed=embed.at_hand(kind) or "none")
    return options if options.embed == "none" else replace(options, embed=embed.found_model(kind, options.embed))


def kind_of(options: Options) -> Any:
    """Return whether a run is on texts or images, None where it is on numbers."""
    return "text" if options.text is not None else "image" if options.images is not None else None


def embeds(options: Options) -> bool:
    """Return whether a pretrained model is used; in the records of earlier versions there was none."""
    return options.embed not in (None, "none")


def size_of(options: Options) -> int | None:
    """Return the side to which images are brought, None where their files are embedded."""
    return None if embeds(options) else QUICK_SIZE if options.effort == "quick" else options.image_size


def learner_of(options: Options, n_tasks: int, *, heads: bool = False) -> Any:
    """Return the learner, for classes or as heads of questions; None: the default for numbers."""
    thorough, numbers = options.effort == "thorough", default_heads if heads else default_learner
    one = np.zeros((1, 1))
    words: Any = text_heads if heads else text_model
    if options.text is not None:
        if options.effort == "quick":
            return behind(TextComponents(), numbers(one))
        found = behind(TextEmbedding(options.embed), numbers(one)) if embeds(options) else []
        return [*found, *words()] if thorough or not found else found
    if options.images is not None and embeds(options):
        return behind(ImageEmbedding(options.embed, mirrored=thorough), numbers(one))
    if options.images is not None and options.effort != "quick":
        return network_for(n_tasks, longer=thorough)
    return BoostedTrees() if options.model == "boost" else None


def fill_cache(options: Options, X: Any, progress: Any) -> None:
    """Encode what was not encoded before, with progress; the fit takes it from the cache."""
    if options.text is not None and embeds(options):
        embed.texts(X, model=options.embed, progress=progress)
    elif options.images is not None and embeds(options):
        embed.images(X, model=options.embed, progress=progress)


class _Encoder(NamedTuple):
    what: str
    seconds: float

    def __str__(self) -> str:
        minutes, hours = self.seconds / 60, self.seconds / 3600
        long = f"{minutes:.0f} min" if minutes < 90 else f"{hours:.0f} h"
        return f"{self.what}, about {f'{self.seconds:.0f} s' if minutes < 1.5 else long}"


def first_line(options: Options, X: Any) -> str:
    """Return a sentence on the features of texts or images: which, how long they take, and the alternatives.

    The times are rough: of one core, with nothing in the cache.
    """
    kind, efforts = kind_of(options), (None, *EFFORTS)
    known: dict[Effort | None, Options] = dict.fromkeys(efforts, options)
    if options.effort == "quick":  # which names no model
        known |= dict.fromkeys((None, "thorough"), replace(options, embed=embed.at_hand(kind) or "none"))
    ways = {one: _way(replace(known[one], effort=one), X) for one in efforts}
    own = ways.pop(options.effort)
    others = "; ".join(f"{f'--{one}' if one else 'by default'}: {way}" for one, way in ways.items())
    return f"{len(X):,} {kind}s by {own} on one core ({others})"


def _way(options: Options, X: Any) -> _Encoder:
    n, model, thorough = len(X), options.embed or "none", options.effort == "thorough"
    name = model.rstrip("/").rpartition("/")[2]
    if options.text is not None:
        letters = sum(map(len, X))
        if options.effort == "quick":
            what = f"{RULES.text_components} components of their n-grams"
            return _Encoder(what, 5 + _PER_LETTER["components"] * letters)
        words = _Encoder("n-grams", 5 + _PER_LETTER["n-grams"] * letters)
        if not embeds(options):
            return words
        seconds = _LOADING + n * (_encoding(model, min(letters / n / _LETTERS + 2, _MOST_TOKENS)) + _PER_VECTOR)
        return _Encoder(f"{name} and n-grams", seconds + words.seconds) if thorough else _Encoder(name, seconds)
    if options.effort == "quick":
        return _Encoder(f"{QUICK_SIZE} x {QUICK_SIZE} pixels", 5 + _PER_PIXELS * n)
    if embeds(options):
        seconds = _LOADING + n * (_encoding(model, _IMAGE_TOKENS) * (2 if thorough else 1) + _PER_VECTOR)
        return _Encoder(f"{name}{' of both sides' if thorough else ''}", seconds)
    seconds = max(_SMALL_NETWORK[0], _SMALL_NETWORK[1] * n) if n < SMALL else _PER_IMAGE * n
    return _Encoder(f"a network on pixels{', twice as long' if thorough else ''}", seconds * (2 if thorough else 1))


def _encoding(model: str, tokens: float) -> float:
    return _PER_WEIGHT_AND_TOKEN * n_bytes(folder_of(model)) / 4 * tokens
