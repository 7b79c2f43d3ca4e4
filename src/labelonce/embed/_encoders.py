"""Models in folders that turn texts or images into vectors. No code from a folder is run, no pickle is read."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from labelonce._messages import show
from labelonce._types import Floats
from labelonce.embed._models import config_of

Encoder = Callable[[Sequence[Any]], Floats]


def text_encoder(folder: Path) -> Encoder:
    """Return what encodes texts: a sentence-transformers model, or the mean of a transformers encoder's tokens."""
    modules = folder / "modules.json"
    if modules.is_file():
        _check_modules(modules)
    with _quiet():
        from sentence_transformers import SentenceTransformer

        options: dict[str, Any] = {"model_kwargs": {"use_safetensors": True}, "local_files_only": True}
        model = SentenceTransformer(str(folder), device=_device(), trust_remote_code=False, **options)
    return lambda texts: np.asarray(model.encode(list(texts), batch_size=32, show_progress_bar=False))


def image_encoder(folder: Path) -> Encoder:
    """Return what encodes images: a timm model where config.json names its architecture, else one of transformers."""
    return _timm(folder) if "architecture" in config_of(folder) else _transformers(folder)


def _transformers(folder: Path) -> Encoder:
    import torch

    with _quiet():
        from transformers import AutoImageProcessor, AutoModel

        processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True, backend="pil")
        model, about = AutoModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, output_loading_info=True
        )
    lost = [name for name in about["missing_keys"] if "pooler" not in name]
    if lost:
        raise ValueError(f"{folder} must hold all weights of its model; got none for {show(sorted(lost)[0])}.")
    model = model.eval().to(_device())

    def encode(images: Sequence[Any]) -> Floats:
        with torch.inference_mode():
            pixels = processor(images=list(images), return_tensors="pt")["pixel_values"].to(model.device)
            return np.asarray(_pooled(model, pixels).float().cpu().numpy())

    return encode


def _pooled(model: Any, pixels: Any) -> Any:
    """Return one vector per image: the model's own of images, its class token, or the mean of its tokens or places."""
    if hasattr(model, "get_image_features"):  # of images and texts, such as CLIP
        found = model.get_image_features(pixel_values=pixels)
        return getattr(found, "pooler_output", found)
    found = model(pixel_values=pixels).last_hidden_state
    if found.ndim == 4:  # channels at places
        return found.mean(dim=(2, 3))
    has_class = any(name.endswith("cls_token") for name, _ in model.named_parameters())
    return found[:, 0] if has_class else found.mean(dim=1)


def _timm(folder: Path) -> Encoder:
    try:
        import timm
    except ImportError as error:
        raise ImportError("models of timm need timm; install it with: pip install 'labelonce[timm]'.") from error
    import torch
    from safetensors.torch import load_file

    config = config_of(folder)
    model = timm.create_model(str(config["architecture"]), pretrained=False, num_classes=0)
    weights = load_file(folder / "model.safetensors")
    lost = [name for name in model.load_state_dict(weights, strict=False).missing_keys if "num_batches" not in name]
    if lost:
        raise ValueError(f"{folder} must hold all weights of its model; got none for {show(lost[0])}.")
    model = model.eval().to(_device())
    about = config.get("pretrained_cfg")
    data = timm.data.resolve_data_config(pretrained_cfg=about if isinstance(about, dict) else {}, model=model)
    transform = timm.data.create_transform(**data, is_training=False)

    def encode(images: Sequence[Any]) -> Floats:
        with torch.inference_mode():
            pixels = torch.stack([transform(image) for image in images]).to(_device())
            return np.asarray(model(pixels).float().cpu().numpy())

    return encode


def _check_modules(path: Path) -> None:
    """Raise where a model names code that is not sentence-transformers' own."""
    try:
        kinds = [str(one["type"]) for one in json.loads(path.read_bytes())]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} must list the modules of a sentence-transformers model; got: {error!r}.") from error
    others = [kind for kind in kinds if not kind.startswith("sentence_transformers.")]
    if others:
        raise ValueError(f"{path} must name modules of sentence-transformers alone; got {show(others[0])}.")


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the bars and the advice of transformers from standard error while a model is loaded."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
