"""Embeddings as the first step of a pipeline: `MBEM` fits and predicts on texts, or on paths of images."""

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from labelonce._sklearn import BaseEstimator, check_is_fitted
from labelonce._types import Floats
from labelonce.embed._embed import image_vectors, text_vectors
from labelonce.embed._models import Kind, fingerprint, folder_of, found_model
from labelonce.learning._default import behind, default_learner


class _Embedding(BaseEstimator):
    kind: ClassVar[Kind]

    def __init__(self, model: str | None = None) -> None:
        self.model = model

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  # pipelines hand it over
        """Find the model, which is downloaded where it is not on this machine."""
        self.model_ = found_model(self.kind, self.model)
        self.fingerprint_ = fingerprint(folder_of(self.model_))
        return self

    def transform(self, X: Any) -> Floats:
        """Return the vectors, (n_tasks, n_numbers), by the very model that was there at `fit`."""
        check_is_fitted(self, "fingerprint_")
        folder = folder_of(self.model_, download=False)
        if fingerprint(folder) != self.fingerprint_:
            raise ValueError(f"{self.model_} must have the weights that the fit was made with; got others in {folder}.")
        return self._vectors(X, folder).astype(np.float64)  # in which the default learners converge

    @abstractmethod
    def _vectors(self, X: Any, folder: Any) -> Floats:
        """Return the vectors by the model in a folder."""


class TextEmbedding(_Embedding):
    """Texts as the numbers of a pretrained model, for the first step of a pipeline.

    Parameters
    ----------
    model : str, optional
        As for `labelonce.embed.texts`.
    """

    kind = "text"

    def _vectors(self, X: Any, folder: Any) -> Floats:
        return text_vectors(X, folder)


class ImageEmbedding(_Embedding):
    """Image files as the numbers of a pretrained model, for the first step of a pipeline; X is a list of paths.

    Parameters
    ----------
    model : str, optional
        As for `labelonce.embed.images`.
    mirrored : bool
        Take the mean of the numbers of each image and of its mirror image: twice the work.
    """

    kind = "image"

    def __init__(self, model: str | None = None, *, mirrored: bool = False) -> None:
        super().__init__(model)
        self.mirrored = mirrored

    def _vectors(self, X: Any, folder: Any) -> Floats:
        return image_vectors(X, folder, mirrored=self.mirrored)


def embedding_model(embedding: _Embedding) -> list[Any]:
    """Return the default learners after an embedding, for `MBEM` to choose from; they share the embedding."""
    return behind(embedding, default_learner(np.zeros((1, 1))))
