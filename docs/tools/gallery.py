"""Run every example and write docs/gallery.md: its code, what it printed, and what it drew.

Run `python docs/tools/gallery.py` from the root of the repository.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAD = """# Gallery

Short programs that run without changes, on data that comes with scikit-learn or labelonce; the tests run them too. Each
entry shows the code, what it printed and what it drew. `python docs/tools/gallery.py` writes this page. A longer
tutorial is the notebook `examples/tutorial.ipynb`.
"""


def entry(example: Path) -> str:
    """Return the part of the page about one example."""
    drawn = ROOT / "docs" / "images" / f"gallery-{example.stem.removeprefix('plot_')}.svg"
    arguments = [str(drawn)] if example.stem.startswith("plot_") else []
    printed = subprocess.run(
        [sys.executable, str(example), *arguments], check=True, capture_output=True, text=True
    ).stdout
    printed = re.sub(r"/\S*/tmp\w+", "FOLDER", printed)
    printed = re.sub(r"\d{4}-\d\d-\d\dT[\d:+]+", "TODAY", printed).expandtabs(12)
    summary = ast.get_docstring(ast.parse(example.read_text())) or ""
    shown = f"\n![{example.stem}](images/{drawn.name})\n" if arguments else ""
    title = example.stem.removeprefix("plot_").replace("_", " ").capitalize()
    return (
        f'\n## {title}\n\n{summary}\n{shown}\n```text\n{printed.strip()}\n```\n\n??? "examples/{example.name}"\n\n'
        f'    ```{{ .python }}\n    --8<-- "examples/{example.name}"\n    ```\n'
    )


if __name__ == "__main__":
    entries = [entry(example) for example in sorted((ROOT / "examples").glob("*.py"))]
    (ROOT / "docs" / "gallery.md").write_text(HEAD + "".join(entries))
    print(f"{len(entries)} examples -> docs/gallery.md")
