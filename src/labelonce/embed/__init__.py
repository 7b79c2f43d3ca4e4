"""Texts and images as the numbers of a pretrained model, which is loaded where something must be encoded."""

from labelonce.embed._embed import Embeddings, images, texts
from labelonce.embed._models import IMAGE_MODEL, TEXT_MODEL, at_hand, found_model
from labelonce.embed._transformers import ImageEmbedding, TextEmbedding, embedding_model

__all__ = [
    "IMAGE_MODEL",
    "TEXT_MODEL",
    "Embeddings",
    "ImageEmbedding",
    "TextEmbedding",
    "at_hand",
    "embedding_model",
    "found_model",
    "images",
    "texts",
]
