"""The instructions of a project: Markdown with images, as a tree of plain elements that a page can show safely."""

import base64
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from labelonce._messages import show
from labelonce.service._tasks import IMAGE_TYPES, why_unusable

FILE = "instructions.md"
_LARGEST = 4 * 1024 * 1024  # bytes of the text and its images: all of it goes to every browser
_TAGS = re.compile(r"p|h[1-6r]|[uo]l|li|strong|em|s|code|blockquote|table|thead|tbody|t[rhd]|br|a")
_DEEPEST = 40

Node = str | dict[str, Any]


def copy_instructions(source: Path, folder: Path) -> None:
    """Copy a Markdown file and the images that it shows into a project; what cannot be shown is an error."""
    text = _text_of(source)
    names = _images(text)
    for name in names:
        path = source.parent / name
        inside = path.resolve().is_relative_to(source.parent.resolve()) and path.suffix.lower() in IMAGE_TYPES
        why = why_unusable(path) if inside else f"it must be a file ({', '.join(IMAGE_TYPES)}) next to the text"
        if why is not None:
            raise ValueError(f"{source} must show images that can be read; got {show(name)}: {why}.")
    size = len(text.encode()) + sum((source.parent / name).stat().st_size for name in names)
    if size > _LARGEST:
        raise ValueError(f"{source} and its images must have at most {_LARGEST:,} bytes; got {size:,}.")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.parent / name, folder / name)
    (folder / FILE).write_text(text, "utf-8")


def read_instructions(folder: Path) -> list[Node]:
    """Return the instructions of a project as elements, none where it has no such file.

    An element has a `tag`, `children`, and maybe `href`, `src` and `alt`. No HTML in the text becomes an element, links
    lead to web pages only, and images are those in the folder, as data.
    """
    from markdown_it.tree import SyntaxTreeNode

    path = folder / FILE
    if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
        return []
    return _nodes(SyntaxTreeNode(_parsed(_text_of(path))), folder.resolve(), _DEEPEST)


def _text_of(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"the instructions must be a Markdown file; got none at {path}.")
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"{path} must have at most {_LARGEST:,} bytes; got {path.stat().st_size:,}.")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8; got another encoding ({error.reason}).") from error


def _parsed(text: str) -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).parse(text)


def _images(text: str) -> list[str]:
    found = [child for token in _parsed(text) for child in token.children or () if child.type == "image"]
    return list(dict.fromkeys(unquote(str(one.attrs["src"])) for one in found))


def _nodes(parent: Any, folder: Path, depth: int) -> list[Node]:
    return [one for node in parent.children if depth for one in _made(node, folder, depth - 1)]


def _made(node: Any, folder: Path, depth: int) -> list[Node]:
    """Return a part of the text as an element, as its content, or nothing."""
    if node.type in ("text", "softbreak"):
        return [node.content or "\n"]
    if node.type == "image":
        return _image(folder, unquote(str(node.attrs["src"])), node.content)
    inside: list[Node] = [node.content] if node.content and not node.children else _nodes(node, folder, depth)
    if node.type == "fence" or node.type == "code_block":
        return [{"tag": "pre", "children": inside}]
    if not _TAGS.fullmatch(node.tag):
        return inside
    made: dict[str, Any] = {"tag": node.tag, "children": inside}
    if node.tag == "a":
        if not re.match(r"https?://", str(node.attrs.get("href", ""))):
            return inside
        made["href"] = str(node.attrs["href"])
    return [made]


def _image(folder: Path, name: str, words: str) -> list[Node]:
    path = (folder / name).resolve()
    kind = IMAGE_TYPES.get(path.suffix.lower())
    if kind is None or not path.is_relative_to(folder) or not path.is_file() or path.stat().st_size > _LARGEST:
        return [words]
    data = base64.b64encode(path.read_bytes()).decode()
    return [{"tag": "img", "src": f"data:{kind};base64,{data}", "alt": words, "children": []}]
