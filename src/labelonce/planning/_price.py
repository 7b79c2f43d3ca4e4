"""The price of a label: as given, or the mean pay in the files of a run."""

from typing import Any

import numpy as np

from labelonce._messages import argument
from labelonce.planning._pilot import Pilot


def price_of(pilot: Pilot, given: Any) -> tuple[float, list[str]]:
    """Return the price of a label, and the notes on it."""
    if given is not None:
        return given, []
    fix = f"{argument('label_price')} sets another price."
    paid = [] if pilot.pay is None else [pay for pay in pilot.pay.values() if np.isfinite(pay) and pay > 0]
    if not paid:
        return 1.0, [f"No price is given, so one label costs 1 and the budget counts labels. {fix}"]
    mean, low, high = float(np.mean(paid)), min(paid), max(paid)
    by_worker = "" if high - low < 0.005 * mean else f" ({low:,.4g} to {high:,.4g} by worker)"
    return mean, [f"One label costs {mean:,.4g}, the mean pay per worker in the files{by_worker}. {fix}"]
