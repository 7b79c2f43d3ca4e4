"""Write docs/rules.md, the numbers that decide what a default fit does, from src/labelonce/_rules.py.

Run `python docs/tools/rules.py` from the root of the repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from labelonce._rules import all_rules

PAGE = Path(__file__).parents[1] / "rules.md"
SOURCE = Path(__file__).parents[2] / "src" / "labelonce" / "_rules.py"
HEAD = """# The rules of the default

Every number that decides what `MBEM()` does, in the order in which a fit meets them. `python docs/tools/rules.py`
writes this page from `src/labelonce/_rules.py`, the only place where they stand. *Source* is the experiment that chose
a number, the page that says why, or "judgement": a number that no experiment has compared with others.
"""


def sections() -> dict[str, str]:
    """Return the section of the first rule under each comment in the code, by the rule's name."""
    found = re.findall(r"^    # (.+)\n    (\w+):", SOURCE.read_text(), re.MULTILINE)
    return {name: title for title, name in found}


def shown(value: Any) -> str:
    """Return a value as people write it."""
    if isinstance(value, tuple):
        return ", ".join(map(shown, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def linked(source: str) -> str:
    """Return a source: a link from the page to a page or a script's results, or the word."""
    if source.startswith("docs/"):
        path = source.removeprefix("docs/")
        return f"[{path}]({path})"
    return source if " " in source or "/" not in source else f"`{source}`"


def page() -> str:
    """Return the whole page."""
    titles, lines = sections(), [HEAD]
    for rule in all_rules():
        if rule.name in titles:
            title = titles[rule.name]
            lines += [f"## {title[0].upper()}{title[1:]}\n", "| name | value | meaning | source |\n|---|---|---|---|"]
        lines.append(f"| `{rule.name}` | {shown(rule.value)} | {rule.meaning} | {linked(rule.source)} |")
    text = "\n".join(lines) + "\n"
    return re.sub(r"\|\n## ", "|\n\n## ", text)


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{len(list(all_rules()))} rules -> {PAGE.relative_to(PAGE.parents[1])}")
