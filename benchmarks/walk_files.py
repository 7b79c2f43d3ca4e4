"""Make the files of the six walks of docs/walks.md: real texts, photographs, raters and classes; simulated mistakes.

LABELONCE_DATA=~/data python benchmarks/walk_files.py FOLDER
"""

import argparse
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from PIL import Image

DATA = Path(os.environ.get("LABELONCE_DATA", "data"))
SCENES = ["highway", "inside city", "tall building", "street", "forest", "coast", "mountain", "open country"]


def scientist(folder: Path, rng: Generator) -> None:
    """1,500 reviews by 40 people as a German Excel writes them: three always say book, four guess, one lies."""
    texts, gold = (pd.read_parquet(DATA / "amazon_isbook" / f"{name}.parquet") for name in ("texts", "gold"))
    rows = texts.merge(gold, on="task").sample(1500, random_state=1)
    rows["Review ID"] = 4320 + np.arange(len(rows))
    names = np.array(["not a book", "book"])
    worker, true = rng.integers(40, size=len(rows)), rows["label"].to_numpy()
    right = np.r_[np.ones(3), np.full(4, 0.5), 0.07, rng.choice([0.95, 0.85, 0.75], 32)]
    said = np.where(worker < 3, 1, np.where(rng.random(len(rows)) < right[worker], true, 1 - true))
    table = pd.DataFrame(
        {"Review ID": rows["Review ID"], "Annotator e-mail": [f"worker{w:02d}@acme.org" for w in worker]}
    )
    table["Rating"], table["Review"] = names[said], rows["text"].str.replace("\n", " ").to_numpy()
    table.assign(truth=names[true])[["Review ID", "truth"]].to_csv(folder / "truth.csv", index=False)
    table["Review ID"] = [f"{one},0" for one in table["Review ID"]]
    chance = rng.random(len(table))
    table.loc[chance < 0.1, "Rating"] = table["Rating"].str.upper()
    table.loc[(chance > 0.1) & (chance < 0.15), "Rating"] += " "
    table.loc[rng.random(len(table)) < 0.004, "Rating"] = ""
    table = pd.concat([table, table.sample(12, random_state=0)])
    table.to_csv(folder / "book_excel.csv", sep=";", index=False, encoding="utf-8-sig")


def lead(folder: Path, _: Generator) -> None:
    """240 photographs, next to a file that is no image, other files and a folder."""
    tiles = np.load(DATA / "labelme" / "images64.npz")
    content, at = tiles["webp"].tobytes(), tiles["offsets"]
    (folder / "photos" / "sub").mkdir(parents=True)
    for number in range(240):
        tile, place = divmod(number, 48)
        image = Image.open(io.BytesIO(content[at[tile] : at[tile + 1]]))
        row, column = divmod(place, image.width // 64)
        corner = (64 * column, 64 * row, 64 * column + 64, 64 * row + 64)
        image.crop(corner).resize((256, 256)).save(folder / "photos" / f"IMG_{number:04d}.png")
    (folder / "photos" / "broken.jpg").write_text("no image")
    (folder / "photos" / "notes.txt").write_text("notes")
    (folder / "guide.md").write_text("Choose what the picture shows **most**.\n\n## coast\nSea and land.\n")


def buyer(folder: Path, rng: Generator) -> None:
    """Write a batch of MTurk, 200 photographs with two labels each, and features of 1,500; 3 of 25 workers guess."""
    gold = pd.read_parquet(DATA / "labelme" / "gold.parquet").set_index("task")["label"]
    features = np.load(DATA / "labelme" / "features_vgg16.npz")["x"][:1500].astype(float).round(4)
    addresses = [f"https://acme.example/img/{number:04d}.jpg" for number in range(1500)]
    table = pd.DataFrame(features, columns=[f"v{i}" for i in range(512)])
    table.insert(0, "image_url", addresses)
    table.to_csv(folder / "features.csv", index=False)
    skill = np.r_[np.full(3, 1 / 8), rng.uniform(0.7, 0.97, 22)]
    rows: list[dict[str, Any]] = []
    for task in range(200):
        for worker in rng.choice(25, 2, replace=False):
            said = gold[task] if rng.random() < skill[worker] else rng.integers(8)
            row: dict[str, Any] = {"HITId": f"H{task}", "WorkerId": f"W{worker:02d}", "Reward": "$0.05"}
            row |= {"AssignmentStatus": "Rejected" if rng.random() < 0.03 else "Approved"}
            row |= {"WorkTimeInSeconds": int(rng.integers(5, 60)), "Input.image_url": addresses[task]}
            rows.append(row | {"Answer.category": SCENES[said]})
    pd.DataFrame(rows).to_csv(folder / "Batch_1.csv", index=False)


def medical(folder: Path, rng: Generator) -> None:
    """200 sentences and five relations by real raters, 6 % of whose answers are turned into maybe; wide and long."""
    relations = ["TREATS", "CAUSES", "PREVENTS", "SYMPTOM", "SIDE_EFFECT"]
    home = DATA / "medical_relations_multilabel"
    answers, texts = (pd.read_parquet(home / f"{name}.parquet") for name in ("annotations_wide", "texts"))
    kept = answers["task"].drop_duplicates().sample(200, random_state=0)
    wide = answers[answers["task"].isin(kept)][["task", "worker", *relations]].copy()
    for name in relations:
        wide[name] = np.where(rng.random(len(wide)) < 0.06, "maybe", wide[name].map({1: "yes", 0: "no"}))
    wide["worker"] = "Dr. " + wide["worker"].astype(str)
    wide = wide.rename(columns={"task": "sentence", "worker": "rater"})
    wide.assign(comment="").to_csv(folder / "wide.csv", index=False)
    wide.melt(["sentence", "rater"], var_name="relation", value_name="says").to_csv(folder / "long.csv", index=False)
    shown = texts[texts["task"].isin(kept)][["task", "text"]].rename(columns={"task": "sentence"})
    shown.to_csv(folder / "texts.csv", index=False)


def engineer(folder: Path, rng: Generator) -> None:
    """Four models right with 80 %, 70 % of whose mistakes are shared, on 1,500 items; two people on 100 each."""
    n, names = 1500, np.array(["good", "fair", "bad", "spam"])
    true = rng.integers(4, size=n)
    common, wrong = rng.random(n) < 0.14, (true + rng.integers(1, 4, size=n)) % 4
    rows = []
    for model in ("gpt-a", "gpt-b", "llama-c", "mistral-d"):
        own = np.where(rng.random(n) < 0.07, (true + rng.integers(1, 4, size=n)) % 4, true)
        rows += [(f"item{i}", model, one) for i, one in enumerate(names[np.where(common, wrong, own)])]
    for person in ("anna", "ben"):
        for i in rng.choice(n, 100, replace=False):
            rows.append((f"item{i}", person, names[true[i] if rng.random() < 0.92 else rng.integers(4)]))
    pd.DataFrame(rows, columns=["item", "model", "answer"]).to_csv(folder / "labels.csv", index=False)
    known = pd.DataFrame({"task": [f"item{i}" for i in range(n)], "label": names[true]})
    known.to_csv(folder / "truth.csv", index=False)
    known[:150].to_csv(folder / "gold150.csv", index=False)


def weak(folder: Path, rng: Generator) -> None:
    """3,000 film reviews as 64 numbers each, by 40 workers who are all right with 90 %, one label each."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, gold = (pd.read_parquet(DATA / "sentiment_polarity" / f"{name}.parquet") for name in ("texts", "gold"))
    rows = texts.merge(gold, on="task").sample(3000, random_state=2)
    numbers = TruncatedSVD(64, random_state=0).fit_transform(
        TfidfVectorizer(sublinear_tf=True).fit_transform(rows["text"])
    )
    table = pd.DataFrame(numbers.round(6), columns=[f"f{i}" for i in range(64)])
    table.insert(0, "task", rows["task"].to_numpy())
    table.to_csv(folder / "features.csv", index=False)
    names, true = np.array(["bad", "good"]), rows["label"].to_numpy()
    said = np.where(rng.random(3000) < 0.9, true, 1 - true)
    workers = [f"w{w}" for w in rng.integers(40, size=3000)]
    pd.DataFrame({"task": rows["task"], "worker": workers, "label": names[said]}).to_csv(
        folder / "labels.csv", index=False
    )
    pd.DataFrame({"task": rows["task"], "truth": names[true]}).to_csv(folder / "truth.csv", index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    place = parser.parse_args().folder
    for number, make in enumerate((scientist, lead, buyer, medical, engineer, weak)):
        folder = place / make.__name__
        folder.mkdir(parents=True)
        make(folder, np.random.default_rng(number))
        print(folder, flush=True)


if __name__ == "__main__":
    main()
