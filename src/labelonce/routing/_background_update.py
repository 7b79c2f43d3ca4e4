"""An update of a router that another thread computes."""

from collections.abc import Callable


class BackgroundUpdate:
    """A computation that runs while a router hands out tasks and takes answers, and is used when it is done.

    `compute` takes long, changes nothing of the router, and may run in another thread; `finish` takes a moment, where
    the router is used. It is False, and nothing has changed, where the update must be asked for again.
    """

    def __init__(self, compute: Callable[[], None], finish: Callable[[], bool]) -> None:
        self.compute, self.finish = compute, finish
