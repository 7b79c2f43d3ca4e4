"""Draw sentences at random from docs, help and messages.

A reader judges whether each is understood at first reading.

python docs/tools/reader.py --seed 1 --number 20
"""

import argparse
import ast
import random
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def prose(path: Path) -> str:
    """Return the prose of a page: without code, tables, headings and included results."""
    text = FENCE.sub("", path.read_text())
    kept = [line for line in text.splitlines() if not line.startswith(("|", "#", "--8<--", ":::", "!["))]
    return re.sub(r"^[-\d.]+ ", "", "\n".join(kept), flags=re.MULTILINE)


def strings(path: Path) -> list[str]:
    """Return docstrings, help texts and messages of a module."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that are long enough to be misunderstood."""
    found = re.split(r"(?<=[.!?:])\s+(?=[A-Z`*\"])", " ".join(text.split()))
    return [one for one in found if len(one.split()) >= 7 and one.endswith((".", "!", "?"))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, default=20)
    options = parser.parse_args()
    pool = [(page, one) for page in sorted((ROOT / "docs").rglob("*.md")) for one in sentences(prose(page))]
    code = sorted((ROOT / "src" / "labelonce").rglob("*.py"))
    pool += [(module, one) for module in code for text in strings(module) for one in sentences(text)]
    for path, sentence in random.Random(options.seed).sample(pool, options.number):
        print(f"{path.relative_to(ROOT)}: {sentence}")


if __name__ == "__main__":
    main()
