"""Learn two properties of digits at once, from one judgement per picture and workers who mostly guess."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import labelonce as lo
from labelonce import multilabel
from labelonce.multilabel import bootstrap_interval, f1_score

QUESTIONS = {"even": [0, 2, 4, 6, 8], "has a loop": [0, 6, 8, 9], "below three": [0, 1, 2]}


def main() -> None:
    X, digit = load_digits(return_X_y=True)
    y_true = np.stack([np.isin(digit, digits) for digits in QUESTIONS.values()], axis=1).astype(int)
    X, X_test, y_true, y_test = train_test_split(X / 16, y_true, test_size=600, random_state=0)
    rng = np.random.default_rng(0)
    worker = rng.integers(20, size=len(X))
    good = worker < 8  # the other twelve tick at random
    said = np.where(good[:, None], y_true, rng.integers(2, size=y_true.shape))
    ticked = [[name for name, yes in zip(QUESTIONS, row, strict=True) if yes] for row in said]
    ann = lo.MultiLabelAnnotations.from_ticked(np.arange(len(X)), worker, ticked, questions=list(QUESTIONS))
    print(ann)

    clf = lo.MultiLabelMBEM().fit(X, ann)
    for name, model in (("answers as they are", multilabel.SigmoidRegression(C=0.1).fit(X, said)), ("MBEM", clf)):
        value, low, high = bootstrap_interval(f1_score, y_test, model.predict(X_test), n_draws=200)
        print(f"{name}: micro F1 {value:.3f} ({low:.3f} to {high:.3f})")
    right = clf.confusion_[:, :, [0, 1], [0, 1]].mean(axis=(1, 2))
    print(f"chance of being right: good workers {right[:8].mean():.2f}, the others {right[8:].mean():.2f}")


if __name__ == "__main__":
    main()
