"""Take the screenshots of the report for the docs: desktop, phone, dark and the demo's, by a headless Chromium.

Run `python docs/tools/report_screenshots.py`, or with the names of some of them; it writes docs/images/report-*.webp.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits

import labelonce as lo
from labelonce.cli._demo import run_demo

IMAGES = Path(__file__).parents[1] / "images"
SHOTS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1200, "height": 1500}},
    "phone": {"viewport": {"width": 390, "height": 1500}},
    "dark": {"viewport": {"width": 1200, "height": 1500}, "color_scheme": "dark"},
    "demo": {"viewport": {"width": 1200, "height": 1500}},
}


def report_of(name: str, folder: Path) -> Path:
    """Return the report that a screenshot shows, made where it is not there yet."""
    path = folder / "demo" / "run" / "report.html" if name == "demo" else folder / "report.html"
    if name == "demo":
        run_demo(0, folder / "demo")
    elif not path.exists():
        write(path)
    return path


def write(path: Path) -> None:
    digits = load_digits()
    rng = np.random.default_rng(0)
    confusion = lo.simulate.class_wise_hammer_spammer(40, 10, 0.6, rng)
    codes = lo.simulate.annotate(digits.target, confusion, lo.simulate.assign(1797, 40, 1, rng), rng)
    names = np.array([f"worker {i:02d}" for i in range(40)], dtype=object)
    ann = lo.Annotations(codes.task, codes.worker, codes.label, codes.tasks, names, codes.classes)
    clf = lo.MBEM(lo.SoftmaxRegression()).fit(digits.data / 16, ann)
    lo.write_report(path, clf, ann, title="Digits, each labelled once", images=digits.images)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in sys.argv[1:] or SHOTS:
            page = browser.new_page(**SHOTS[name])
            page.goto(report_of(name, Path(folder)).as_uri())
            if name == "dark":
                page.locator(".name").nth(2).click()
            image = Image.open(io.BytesIO(page.screenshot()))
            image.save(IMAGES / f"report-{name}.webp", quality=70, method=6)
            print(name, (IMAGES / f"report-{name}.webp").stat().st_size)
        browser.close()
