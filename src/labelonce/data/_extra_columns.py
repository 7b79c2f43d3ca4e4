"""The optional columns of annotations as their attributes and methods."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from labelonce._types import Codes, Floats, Ids
from labelonce.data._extra import Extra, extra_of, name_families


class ExtraColumns:
    """What `Annotations` say besides their labels, see there."""

    extra: Extra
    worker: Codes
    label: Codes
    workers: Ids
    classes: Ids

    @property
    def probability(self) -> Floats | None:
        """P(class) as each annotation states it, (n_annotations, n_classes), or None."""
        return self.extra.probability

    @property
    def weight(self) -> Floats | None:
        """How often each annotation counts, or None: once."""
        return self.extra.weight

    @property
    def order(self) -> Codes | None:
        """Code of how each annotation's choices were shown, or None."""
        return self.extra.order

    @property
    def orders(self) -> Ids | None:
        """The ids behind `order`."""
        return self.extra.orders

    @property
    def family(self) -> Codes | None:
        """Code of the family of each worker, or None."""
        return self.extra.family

    @property
    def families(self) -> Ids | None:
        """The names behind `family`."""
        return self.extra.families

    @property
    def has_weights(self) -> bool:
        """Whether there are weights or probabilities, so that annotations do not count as one whole label each."""
        return self.extra.has_weights

    def parts(self, *, above_chance: bool = False) -> tuple[Codes, Codes, Floats]:
        """Return the annotations as whole labels with amounts: the row of each, its answer code, how much it counts.

        A distribution counts its share for each class, times the weight; `above_chance`, what it has above an even
        one, so that 1 counts as a whole label and an even distribution as none.

        >>> from labelonce import Annotations
        >>> row, label, amount = Annotations.from_arrays([1, 2], [1, 1], ["no", "yes"], probability=[1, 0.8]).parts()
        >>> row, label, amount.round(2)
        (array([0, 1, 1], dtype=int32), array([0, 0, 1], dtype=int32), array([1. , 0.2, 0.8]))
        """
        n, extra = len(self.label), self.extra
        weight = np.ones(n) if extra.weight is None else np.asarray(extra.weight)
        if extra.probability is None:
            return np.arange(n, dtype=np.int32), self.label, weight
        stated = ~np.isnan(extra.probability[:, 0])
        row, label = np.nonzero(np.where(stated[:, None], extra.probability, 0.0))
        even = 1 / extra.probability.shape[1] if above_chance else 0.0
        amount = np.maximum(extra.probability[row, label] - even, 0.0) / (1 - even) * weight[row]
        whole = np.flatnonzero(~stated)
        order = np.argsort(np.concatenate([row, whole]), kind="stable")
        pairs = ((row, whole), (label, self.label[whole]), (amount, weight[whole]))
        rows, labels, amounts = (np.concatenate(pair)[order] for pair in pairs)
        return rows.astype(np.int32), labels.astype(np.int32), amounts

    def without(self, *names: str) -> Self:
        """Return the annotations without the optional columns of these names; without a name, without all of them."""
        return self._with(self.extra.without(names))

    def with_families(self, family: Any) -> Self:
        """Return the annotations with families: a mapping of worker ids, or one entry per worker."""
        given = family if isinstance(family, Mapping) else dict(zip(self.workers.tolist(), family, strict=True))
        found = extra_of({"family": given}, self.worker, self.label, self.workers, self.classes)
        return self._with(replace(self.extra, family=found.family, families=found.families))

    def name_families(self) -> Codes | None:
        """Return a code of each worker's family by name, as in model/prompt; None where names have no such pattern."""
        return name_families(self.workers)

    def _with(self, extra: Extra) -> Self:
        changed: Any = self
        made: Self = replace(changed, extra=extra)
        return made
