"""Buy 600 labels from workers who each know a few digits: at random, and chosen by the router."""

import numpy as np
from sklearn.datasets import load_digits

import labelonce as lo

N_WORKERS, BUDGET, BATCH = 30, 600, 50
X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
X, y = X[order] / 16, y[order]
train, test = slice(0, 1000), slice(1000, None)

# Nobody outside this function sees the truth: a worker is always right about some digits, and guesses the others.
confusion = lo.simulate.class_wise_hammer_spammer(N_WORKERS, 10, quality=0.3, rng=0)
chances = np.cumsum(confusion, axis=2)
drawn = np.random.default_rng(1).random((1000, N_WORKERS))


def ask(task: int, worker: int) -> int:
    return int(np.searchsorted(chances[worker, y[task]], drawn[task, worker]))


def spend(strategy: lo.routing.Strategy) -> lo.routing.Router:
    """Workers arrive at random, get a task each, and after every batch the model learns from all labels."""
    learner = lo.MBEM(lo.SoftmaxRegression(), rounds=8, folds=1)
    limits = lo.routing.Limits(max_labels=5)
    router = lo.routing.Router(range(1000), range(10), X=X[train], learner=learner, strategy=strategy, limits=limits)
    arriving = np.random.default_rng(2)
    while router.spent < BUDGET:
        worker = int(arriving.integers(N_WORKERS))
        task = router.next(worker)
        router.add(task, worker, ask(task, worker))
        if router.spent % BATCH == 0:
            router.refit()
    return router


for strategy in (lo.routing.Random(), lo.routing.Information()):
    router = spend(strategy)
    assert router.model_ is not None
    accuracy = router.model_.score(X[test], y[test])
    print(f"{type(strategy).__name__:>12}: {router.spent:.0f} labels bought, {accuracy:.1%} of new digits right")

batch = router.next_batch(100)
print(f"the next 100 labels should come from {len({worker for _, worker in batch})} of {N_WORKERS} workers")
