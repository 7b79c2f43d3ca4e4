"""A quote that is not closed is an error, wherever it stands; every honest quote is read as before."""

import gzip
from pathlib import Path

import pytest

import labelonce as lo
from labelonce.runs import _inputs

HEADER = "task,worker,label\n"
MANY = "".join(f'{i},"bob","dog"\n' for i in range(10, 20)) * 50_000


def saved(folder: Path, content: str, name: str = "q.csv") -> Path:
    path = folder / name
    data = content.replace(",", "\t").encode() if ".tsv" in name else content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["q.csv", "q.tsv", "q.csv.gz"])
@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ('1,ann,"cat\n2,bob,dog\n3,bob,cat\n', 2),
        ('1,ann,"cat"\n2,bob,"do', 3),
        ('1,ann,"cat\r\n2,bob,dog\r\n', 2),
        ('1,ann,5" wide\n2,bob,"cat\n3,bob,cat\n', 3),
        ('1,ann,"cat\n2,bob,"dog\n3,bob,cat\n', 2),
        ('1,ann,"cat\n2,bob,"dog"\n3,bob,cat\n', 2),
        ('1,ann,"say ""hi""\n2,bob,dog\n', 2),
        ('"1,ann,cat\n2,bob,dog\n', 2),
        ('1,ann,"two\nlines"\n2,bob,"cat\n', 4),
        ('1,"ann,cat\n2,bob,dog\n3,"bob",cat\n', 2),
    ],
)
def test_a_quote_that_is_not_closed_is_named_with_its_line(tmp_path: Path, rows: str, line: int, name: str) -> None:
    path = saved(tmp_path, HEADER + rows, name)
    with pytest.raises(ValueError, match=rf'{name}: a quoted cell must end with a quote .*; got ".* at line {line},'):
        lo.read_annotations(path)


def test_a_quote_that_swallows_more_than_a_block_or_a_text_is_named_too(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a quoted cell must end with a quote .* at line 2,"):
        lo.read_annotations(saved(tmp_path, HEADER + '1,ann,"cat\n' + MANY))
    path = saved(tmp_path, 'task,text\n1,"one\n2,two\n3,three\n')
    with pytest.raises(ValueError, match=r"a quoted cell must end with a quote .* at line 2,"):
        _inputs.read_texts(path, "text")


@pytest.mark.parametrize("name", ["q.csv", "q.tsv", "q.csv.gz"])
@pytest.mark.parametrize(
    ("cell", "label"),
    [
        ('5" wide', '5" wide'),
        ('wide 5"', 'wide 5"'),
        ('"two\nlines"', "two\nlines"),
        ('"say ""hi"""', 'say "hi"'),
        ('"""\n"""', '"\n"'),
        ('"""hi"" he\nsaid"', '"hi" he\nsaid'),
        ('"a"b', "ab"),
        ('a"b"', 'a"b"'),
    ],
)
def test_honest_quotes_are_read(tmp_path: Path, cell: str, label: str, name: str) -> None:
    for start, end in (("", "\n"), ("\ufeff", ""), ("", "\n\n"), ("", "\r\n")):
        path = saved(tmp_path, f'{start}"task",worker,label\n1,ann,{cell}\n2,ann,cat{end}', name)
        assert sorted(lo.read_annotations(path).classes) == sorted([label, "cat"])


@pytest.mark.parametrize(
    ("content", "options"),
    [('task,a,b\n1,"0,1\n2,1,0\n', {"format": "matrix"}), ('HITId,WorkerId,Answer.x\n1,ann,"cat\n2,bob,dog\n', {})],
)
def test_a_quote_that_is_not_closed_in_a_tools_file(tmp_path: Path, content: str, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"a quoted cell must end with a quote .* at line 2,"):
        lo.read_annotations(saved(tmp_path, content), **options)  # type: ignore[arg-type]
