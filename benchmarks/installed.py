"""What a user gets from the wheel: every file of the package and the first commands, away from the source.

`make dist` builds the wheel, installs it into an environment of its own, and runs this with that Python.

    python benchmarks/installed.py
"""

import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

NEEDED: tuple[str, ...] = ("py.typed", "report/page.html", "report/page.js", "report/questions.html")
NEEDED += ("service/pages/label.html", "service/pages/dashboard.html")


def labelonce(words: str, folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "labelonce", *words.split()], cwd=folder, check=True)


def main() -> None:
    package = files("labelonce")
    assert "site-packages" in str(package), f"{package} is not the installed wheel"
    missing = [name for name in NEEDED if not package.joinpath(name).is_file()]
    assert not missing, missing
    import labelonce as lo

    for name, question in (("bluebird", None), ("crowdtruth_video", "Chef"), ("pandalm", None)):
        print("shipped data:", lo.datasets.load(name, question=question))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        labelonce("demo", folder)
        lo.write(lo.datasets.load("bluebird").annotations, folder / "labels.csv")
        labelonce("aggregate labels.csv --method one-coin -o clean.csv", folder)
        (folder / "texts.csv").write_text("task,text\n1,good\n2,bad\n")
        labelonce("project p --tasks texts.csv --text text --classes a,b --workers ann", folder)
    print("the wheel works")


if __name__ == "__main__":
    main()
