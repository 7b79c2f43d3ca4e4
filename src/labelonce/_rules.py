"""Every number that decides what a default fit does: its value, what it means, and where it comes from.

[The rules](../rules.md) show this table. The source is the page or the experiment that tells why, or "judgement".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

_JUDGEMENT = "judgement"
_PAGE = "docs/mbem.md"
_IMAGES = "docs/neural.md"
_GUIDE = "docs/guides/multi-label.md"
_JUDGES = "experiments/judges.py"


def _rule(value: Any, meaning: str, source: str = _JUDGEMENT) -> Any:
    return field(default=value, metadata={"meaning": meaning, "source": source})


@dataclass(frozen=True)
class Rules:
    """The numbers, in the order in which a fit meets them."""

    # the learner and the rounds
    extreme_feature: tuple[float, float] = _rule(
        (20.0, 0.1),
        "times the deviation of a column of features that its middle half tells, from which it is scaled by this half, "
        "and the most values, as a share, that may be clipped then",
    )
    clipped_feature: float = _rule(5.0, "deviations at which such a column is clipped")
    penalties: tuple[float, ...] = _rule((0.001, 0.01, 0.1, 1.0, 10.0), "C of the default softmax regressions", _PAGE)
    text_penalties: tuple[float, ...] = _rule((0.1, 1.0, 10.0), "C of the default model of texts")
    text_components: int = _rule(64, "components of the n-grams of texts with --quick")
    head_penalties: tuple[float, ...] = _rule((0.001, 0.01, 0.1, 1.0), "C of the default heads of questions")
    group_first: int = _rule(200, "classes from which the default predicts the group first, where groups are known")
    cheap: int = _rule(10**8, "values times classes up to which a fit is cheap: no limit on the number of fits")
    fits: int = _rule(15, "most fits of a learner that is not cheap", "docs/what-was-tried.md")
    fits_more: int = _rule(5, "more of them for every further learner")
    folds: int = _rule(4, "parts of the tasks that are left out in turn", _PAGE)
    rounds: int = _rule(6, "most rounds that are tried", "docs/what-was-tried.md")
    finalists: int = _rule(3, "learners that go on after the first round", _PAGE)
    heats: int = _rule(3, "round after which only the best of them is continued", _PAGE)
    choice_tasks: int = _rule(50_000, "tasks that settle a choice: of more a draw")
    choice_labels: int = _rule(20_000, "held-out labels that the power of predictions is searched by")
    overfits: float = _rule(
        0.25, "share of the disagreement with unseen labels that a learner which overfits does not have with its own"
    )
    early_stop: float = _rule(1e-3, "change of the posteriors below which given rounds stop, mean total variation")
    judgements: int = _rule(16, "times at most that the workers are judged while one network is trained", _IMAGES)
    first_judgement: float = _rule(
        0.25, "share of its epochs from which its predictions are better than before", _IMAGES
    )
    folds_epochs: float = _rule(
        0.4, "epochs of the networks that predict the tasks of each other then, as a share", _IMAGES
    )
    # a round
    top_classes: int = _rule(5, "most probable classes of the model that have a slot")
    exponents: tuple[float, float] = _rule((0.3, 5.0), "between which the exponents of predictions are searched")
    exponent_by_classes: float = _rule(
        2.2, "more of it with many classes, per log of their number: predictions of noisy labels are flatter"
    )
    most_shift: float = _rule(10.0, "largest shift of a class's log-probability")
    calibration_steps: int = _rule(50, "steps of the search for a calibration")
    warm_calibration_steps: int = _rule(5, "steps from the calibration of the stage before, on the most rows below")
    warm_calibration_rows: int = _rule(20_000, "most rows to calibrate by then")
    first_calibration_steps: int = _rule(5, "steps for the exponent between groups alone")
    calibration_rows: tuple[int, int] = _rule((10_000, 50_000), "fewest and most rows to calibrate by")
    calibration_numbers: int = _rule(500_000, "rows times slots to calibrate by, within these")
    pulls: tuple[float, ...] = _rule(
        (1.0, 0.5, 0.25, 0.125, 0.1), "pull on the class balance in rounds 2, 3, ...: rows it counts as, as a share"
    )
    known_pull: float = _rule(3.0, "pull on a class balance that is given, in every round", "docs/what-was-tried.md")
    same_exponent: float = _rule(20.0, "labels that the belief in one exponent for all kinds of rows is worth")
    same_shift: float = _rule(0.1, "labels that the belief in the same shifts for all kinds of rows is worth")
    refinements: int = _rule(10, "E and M steps on the workers within a round at most")
    settled: float = _rule(1e-3, "change of the workers in such a step near the fixed point")
    few_labels: float = _rule(
        100.0, "labels per chance of a worker below which true classes and chances are drawn in a round", _IMAGES
    )
    draws: tuple[int, int] = _rule((5, 5), "draws that are left out, and those that are averaged", _IMAGES)
    draw_steps: int = _rule(8, "steps of the search for a calibration in each of them", _IMAGES)
    # the verdict
    taus: tuple[float, ...] = _rule(
        (0.5, 0.6, 0.7, 0.79, 0.86, 0.91, 0.95, 0.985), "how often the best fifth of the labels may be right", _PAGE
    )
    best_share: float = _rule(0.2, "share of the labels that are the best", _PAGE)
    tau_prior: tuple[float, float] = _rule(
        (12.0, 2.0), "Beta prior of tau: the best workers are nearly always right", _PAGE
    )
    skill_prior: tuple[float, float] = _rule((16.0, 4.0), "Beta prior of how often the labels are right", _PAGE)
    likelihood_power: float = _rule(
        0.03, "power of the likelihood of labels: models are wrong", "docs/what-was-tried.md"
    )
    differ_power: float = _rule(
        0.25,
        "power of what the predicted classes say about how workers differ: their probabilities have no part",
        _PAGE,
    )
    ceiling_power: float = _rule(
        0.2,
        "power of what the agreement with surer and surer predictions says of how right workers can be",
        "docs/what-was-tried.md",
    )
    trained_power: float = _rule(
        0.1, "power of how much better rounds predict labels left out, if their labels are believed", _PAGE
    )
    echo: float = _rule(
        0.02,
        "nats by which a learner that overfits may predict a label better in its second round than it should",
    )
    echoed: tuple[float, float] = _rule(
        (0.05, 2.0),
        "share of the labels that predictions agree with beyond those of rounds that never saw them, from which the "
        "first round's are judged by; standard errors taken off",
        _PAGE,
    )
    sure_gain: float = _rule(
        1.0, "standard errors that are taken off how much better rounds predict labels left out", _PAGE
    )
    swapped: float = _rule(
        4.0,
        "standard errors by which a label is given more often to another class of the rounds than to its own",
        _PAGE,
    )
    ceiling_tie: tuple[float, float] = _rule(
        (-0.3, 1.5), "log-odds that the predicted class is right where another is as probable: prior mean, deviation"
    )
    ceiling_slope: float = _rule(4.0, "prior deviation of how fast these grow with how sure the model is")
    ceiling_cells: tuple[int, int] = _rule((30, 10), "most cells of a predicted class, and labels in each at least")
    pairs_power: float = _rule(1.0, "power of what pairs of labels say, in which there is no model", _PAGE)
    sure_change: float = _rule(0.9, "weight of the candidates from which a given label is changed", _PAGE)
    least_gain: float = _rule(
        10.0, "log-likelihood of labels over that of their shares from which given labels are changed", _PAGE
    )
    people: tuple[float, float] = _rule(
        (0.77, 0.18), "how many labels of people are right, where nothing tells: mean and deviation"
    )
    ranked: float = _rule(
        1.0, "standard deviations by which predictions must rank the answers to questions to change any", _GUIDE
    )
    most_yes: float = _rule(2.0, "times as many answers are taken for yes as people said yes to, at most", _GUIDE)
    start_share: float = _rule(0.8, "share of the labels, or of the predicted classes, in the two starts")
    other_tasks: float = _rule(
        5.0, "standard deviations from which workers are taken to have tasks of their own", _PAGE
    )
    assignment_labels: float = _rule(10.0, "labels that the class balance is worth in that of a worker's tasks")
    mixing_classes: tuple[int, int] = _rule((3, 8), "fewest and most classes that predictions may mix up")
    mixing_kept: float = _rule(3.0, "rows that a predicted class is worth as being that class")
    verdict_steps: int = _rule(25, "steps of EM for each candidate at most")
    verdict_settled: float = _rule(1e-3, "change of the posteriors at which these stop")
    verdict_exponents: tuple[float, float] = _rule((0.05, 5.0), "between which the power of predictions is searched")
    verdict_rows: int = _rule(20_000, "rows that settle the candidates and their weights: of more a draw")
    verdict_folds: int = _rule(
        5, "parts of the rows by which workers are counted without the label they are asked about"
    )
    least_weight: float = _rule(1e-3, "weight from which a candidate counts")
    least_skill: float = _rule(0.05, "of the way from chance to always right that the mean skill must be above")
    skill_doubt: float = _rule(0.02, "standard deviation of a skill for what the model of workers leaves out")
    chosen_doubt: float = _rule(
        0.2, "doubt of a skill per share of the worker's tasks that others do not have, where workers chose them", _PAGE
    )
    unsure_errors: tuple[float, float] = _rule(
        (0.5, 0.25), "relative doubt about the share of wrong labels, without pairs of labels and with many", _PAGE
    )
    shared_errors: tuple[float, float] = _rule(
        (0.4, 0.25),
        "doubt about mistakes that all share, relative to how often people, or they and the model, contradict; most",
        _PAGE,
    )
    common_causes: float = _rule(
        3.0, "standard deviations from which labels of a task disagree more where the model is unsure", _PAGE
    )
    surest: tuple[float, float, float] = _rule(
        (0.2, 0.05, 0.3),
        "share of the predictions that are the surest, and how many more labels than are estimated to be wrong these "
        "contradict before a doubt is raised; most: beyond it the model is taken to be wrong",
    )
    sure_excess: float = _rule(3.0, "standard errors above which they do")
    least_pairs: int = _rule(50, "pairs of labels of one task from which that is looked at")
    copies: tuple[float, float, float, float] = _rule(
        (0.95, 0.12, 0.15, 0.25),
        "agreement beyond chance from which two workers copy, how far above what others explain, and a quantile of all",
    )
    copies_surprise: float = _rule(3.0, "log of how unlikely their agreement is otherwise, over the number of pairs")
    copies_tasks: int = _rule(20, "common tasks of two workers from which that is looked at")
    copies_workers: int = _rule(5, "workers from which it is")
    least_doubt: float = _rule(0.03, "standard deviation of the share of right labels, however sure", _PAGE)
    gold_calibration: tuple[float, float] = _rule(
        (0.7, 0.3),
        "how far known classes may move and stretch the log-odds of labels: prior standard deviations",
        _PAGE,
    )
    gold_says: float = _rule(2.0, "standard deviations from which known classes decide whether given labels stay")
    # warnings and advice
    wide_range: float = _rule(0.25, "width of the range of the estimated accuracy that raises a doubt")
    contradictions: tuple[float, float] = _rule(
        (0.1, 2.5),
        "share of single labels that the model contradicts from which a doubt is raised, and how many times "
        "the share that is estimated to be wrong it must be",
    )
    narrow_range: float = _rule(0.05, "half width of that range from which nothing needs to be done")
    nearly_narrowest: float = _rule(1.25, "of the narrowest range that second labels can bring: enough of them")
    more_labels: tuple[int, ...] = _rule(
        (20, 30, 40, 50, 60, 80, 100, 150, 200, 300, 400, 500, 1000),
        "numbers of second or checked labels that are advised",
    )
    drifted: tuple[float, float] = _rule(
        (0.2, 0.2),
        "share of the labels that rounds change, and of these changes that are shown, from which the model is that of "
        "the votes",
    )
    kept_share: float = _rule(
        0.05, "share of the tasks whose given label stays against the model from which a doubt is reported"
    )
    most_drift: float = _rule(0.3, "distance of the predicted classes from the given ones that raises a doubt")
    review_replace: float = _rule(0.9, "probability from which another label may replace a given one unseen")
    review_keep: float = _rule(0.8, "probability below which a person should look at a label")
    review_least: float = _rule(0.2, "chance of being wrong from which a given label is worth checking")
    # workers
    matrix_labels: float = _rule(
        0.01, "labels per mistake that a worker may make, mean, from which matrices are estimated"
    )
    group_labels: int = _rule(200, "labels per class from which groups can be found", "docs/what-was-tried.md")
    population_rows: int = _rule(2_000, "rows of workers that a population is learned from")
    population_moved: float = _rule(0.003, "mean change of the shares of right labels from which it is learned again")
    own_mistakes: int = _rule(19, "commonest mistakes of a class with a probability of their own, without groups")
    leak_prior: tuple[float, float] = _rule((1.0, 19.0), "wrong labels outside and inside groups, before any is seen")
    groups_told: float = _rule(0.5, "share of the disagreements that found groups must explain")
    group_meetings: int = _rule(3, "tasks on which two classes of a group must meet")
    false_pairs: float = _rule(0.01, "pairs of classes kept by chance, over all pairs")
    groups_surest: float = _rule(0.05, "share of the labels with the surest predictions, which say whether groups hold")
    groups_contradictions: int = _rule(20, "of these, the fewest that must contradict their label")
    groups_sure: tuple[float, ...] = _rule(
        (0.95, 0.9, 0.8, 0.7, 0.6, 0.5), "confidence of the predictions that show groups: the first with enough"
    )
    groups_predictions: int = _rule(50, "predictions per class that are enough")
    community_resolutions: tuple[float, ...] = _rule((0.0, 1.0, 3.0), "from which that of the communities is learned")
    groups_inside: float = _rule(0.5, "share of those within the group for it to hold", "docs/what-was-tried.md")
    # workers who share mistakes
    correlated_errors: tuple[float, float] = _rule(
        (2.0, 2.5),
        "Beta prior of how far the errors of a task's workers correlate, in aggregators",
        "experiments/crowd_confidence.py",
    )
    errors_correlate: float = _rule(
        0.5, "how probable that is with features, where errors may also be independent", _PAGE
    )
    too_sure: float = _rule(0.1, "by how much the posterior is surer than gold allows from which an aggregator warns")
    refitted_labels: int = _rule(2_000_000, "labels up to which an aggregator is fitted again without some of the gold")
    models_share: tuple[float, float] = _rule(
        (4.0, 2.0), "Beta prior of the share of the agreement of language models that is shared error", _JUDGES
    )
    models_independent: tuple[float, float] = _rule(
        (1.0, 15.0), "the same of models whose errors are their own", _JUDGES
    )
    models_copy: tuple[float, float] = _rule((10.0, 1.0), "the same of models that copy nearly everything", _JUDGES)
    models_kinds: tuple[float, float] = _rule((0.15, 0.2), "how often models are independent, and copies", _JUDGES)
    models_know: tuple[float, float] = _rule(
        (0.57, 0.17), "how often a model knows the truth and does not guess: mean and standard deviation", _JUDGES
    )
    uneven_usual: float = _rule(
        0.2, "how unevenly models that share mistakes agree: mean of an exponential prior", _JUDGES
    )
    uneven_doubt: float = _rule(0.03, "error of how unevenly models agree, however many the tasks", _JUDGES)
    uneven_votes: tuple[int, int, int] = _rule(
        (4, 30, 200_000),
        "fewest votes of a task and tasks that tell even from uneven agreement, and most votes of a draw",
    )
    uneven_draws: int = _rule(10, "draws of independent judges that the unevenness is compared with")
    panel_grid: tuple[float, float, int] = _rule(
        (0.02, 0.98, 25), "shares of the agreement that are shared error, which are averaged over: ends and number"
    )
    panel_person_grid: tuple[float, float, int] = _rule(
        (0.05, 0.99, 30), "the same of how often persons know the truth, where they contradict models"
    )
    panel_shares_pull: float = _rule(5.0, "votes that the panel's shares of the classes are worth in those of a judge")
    panel_pairs: float = _rule(3e7, "pairs of votes from which agreement is counted on a draw of the tasks")
    panel_least_agreement: float = _rule(0.02, "least agreement beyond chance that judges are taken to have")
    panel_doubt: float = _rule(0.05, "standard deviation of what persons or gold say of judges, however many")
    persons_share: tuple[float, float] = _rule(
        (1.5, 8.0), "the same of people: most of their mistakes are their own", _JUDGES
    )
    panel_least_doubt: float = _rule(0.03, "standard deviation of the share of right labels of a panel, however sure")
    panel_correlation_worth: float = _rule(50.0, "tasks that the usual correlation of errors is worth for a pair")
    panel_gold_correlation_worth: float = _rule(10.0, "gold tasks that it is worth where gold shows it", _JUDGES)
    panel_enough: float = _rule(0.98, "share of the signal that must be left when useless judges are dropped")
    panel_stretch: tuple[float, float] = _rule(
        (0.1, 0.3), "mean and deviation of the log by which gold stretches a panel's log-odds", _JUDGES
    )
    panel_wide: float = _rule(0.15, "width of the range of the estimated accuracy from which a panel warns")
    panel_steady_power: float = _rule(
        1.25, "power of the odds that a judge repeats its verdict by which it counts", _JUDGES
    )
    panel_gold: tuple[float, ...] = _rule(
        (0.5, 1.0, 0.5, 1.5, 1.0),
        "with gold: variance of a class's offset, mean and deviation of the slope of the panel's log-odds, the same of "
        "the weight of one trusted judge",
        _JUDGES,
    )
    panel_gold_deviations: tuple[tuple[float, float], ...] = _rule(
        ((0.0, 0.5), (0.25, 0.4), (0.5, 1.0), (1.0, 0.4)), "deviations of a judge's weight, and how probable", _JUDGES
    )
    panel_doubters: tuple[float, float] = _rule(
        (0.4, 0.05),
        "prior that one judge is to be trusted next to the panel, and that the panel is not at all",
        _JUDGES,
    )
    panel_trusted: int = _rule(10, "judges with most right verdicts on gold, of whom one may be trusted")
    panel_gold_judges: int = _rule(200, "most judges with a weight of their own on gold")
    panel_loading_steps: int = _rule(100, "steps of the search for how far each judge agrees with the others")
    panel_loading_pull: float = _rule(10.0, "votes that the mean of the judges is worth in it")
    panel_least_guess: float = _rule(0.1, "of the class balance, the least share of a class when a judge guesses")
    panel_person: tuple[float, float] = _rule(
        (0.82, 20.0), "how often a person knows the truth, before agreement is seen, and the votes that this is worth"
    )
    same_family: float = _rule(
        0.64, "correlation of the errors of two prompts of one model, when a router buys", "docs/judges-market.md"
    )
    person_right: tuple[float, float] = _rule(
        (18.0, 2.0), "Beta prior of how often the people whom a router asks are right; it narrows with their answers"
    )
    # learners with many classes
    slot_stages: tuple[tuple[float, int], ...] = _rule(
        ((0.04, 40), (0.25, 12), (1.0, 5)), "shares of many tasks that a softmax regression is fitted to, and the steps"
    )
    slot_stages_warm: tuple[tuple[float, int], ...] = _rule(((1.0, 3),), "the same, from the model of a round before")
    slot_sample: int = _rule(200_000, "tasks times classes over 100 from which it is fitted so")
    group_negligible: float = _rule(1e-3, "share of a task's target below which a group is not trained on")
    group_rough_steps: int = _rule(20, "steps within a group where there are many tasks")
    # questions without features
    answer_powers: tuple[float, ...] = _rule(
        (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3), "powers of what several answers say together, of which one is chosen"
    )
    answer_powers_fit: tuple[float, ...] = _rule((1.0, 0.75, 0.5), "those that a fit is made with")
    context_questions: int = _rule(100, "questions up to which each has coefficients of its own for the others")
    context_penalty: float = _rule(10.0, "penalty on these coefficients")


class Rule(NamedTuple):
    """One number: its name, value, meaning and source."""

    name: str
    value: Any
    meaning: str
    source: str


RULES = Rules()


def all_rules() -> Iterator[Rule]:
    """Yield every rule, in the order in which a fit meets them.

    >>> next(all_rules()).name
    'extreme_feature'
    """
    for one in fields(Rules):
        yield Rule(one.name, getattr(RULES, one.name), one.metadata["meaning"], one.metadata["source"])
