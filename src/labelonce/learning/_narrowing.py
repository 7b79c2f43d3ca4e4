"""What would settle how right labels are: how many second labels, or checked ones, and how narrow the range becomes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from scipy.stats import norm

from labelonce._rules import RULES


@dataclass(frozen=True)
class Narrowing:
    """How many labels would narrow the range of the estimated accuracy, and to what: its half width.

    A number is 0 where there are too few tasks for labels of that kind to help.
    """

    second: int
    after_second: float
    checked: int
    after_checked: float

    @classmethod
    def of(cls, doubt: Callable[..., float], n_labels: int) -> Self | None:
        """Return what would narrow the range of N labels by `Verdict.doubt`; None where it is narrow."""

        def half(**more: float) -> float:
            return float(norm.ppf(0.95) * doubt(**more) ** 0.5)

        now, most = half(), n_labels // 2
        if now <= RULES.narrow_range:
            return None
        best = RULES.nearly_narrowest * half(second=1e9)
        second = next((n for n in RULES.more_labels if half(second=n) < best), 0)
        second = second if second <= most and best < 0.9 * now else 0
        checked = (n for n in RULES.more_labels if half(checked=n) <= RULES.narrow_range)
        checks = min(next(checked, RULES.more_labels[-1]), n_labels)
        return cls(second, half(second=second), checks, half(checked=checks))

    def __str__(self) -> str:
        """Return what to do in half a sentence.

        >>> print(Narrowing(60, 0.091, 100, 0.048))
        60 second labels would narrow that to about ± 9 points, 100 checked ones to about ± 5
        >>> print(Narrowing(0, 0.2, 40, 0.06))
        40 checked labels would narrow that to about ± 6 points
        """
        if not self.second:
            return f"{self.checked:,} checked labels would narrow that to about ± {100 * self.after_checked:.0f} points"
        return (
            f"{self.second:,} second labels would narrow that to about ± {100 * self.after_second:.0f} points, "
            f"{self.checked:,} checked ones to about ± {100 * self.after_checked:.0f}"
        )
