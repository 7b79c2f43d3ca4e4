"""Text files as programs write them: separators, decimal commas, encodings."""

from pathlib import Path

import pytest
from small_files import saved

import labelonce as lo
from labelonce.files._open import BLOCK_BYTES, locate
from labelonce.files._table_reader import dialect_in_words, read_table

EXCEL = 'task;worker;label;x;said\n1;ann;größe;1,5;"eins,\nzwei; drei"\n2;bob;maß;2;vier\n'


@pytest.mark.parametrize(("sign", "words"), [(";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")])
def test_another_separator_is_recognised_and_said(tmp_path: Path, sign: str, words: str) -> None:
    path = saved(tmp_path, f'task{sign}worker{sign}label\n1{sign}2{sign}"say{sign}, ""hi"""\n')
    assert lo.read_annotations(path).classes.tolist() == [f'say{sign}, "hi"']
    assert dialect_in_words(locate(path)) == f"csv with {words}"


def test_commas_in_a_tsv_or_a_header_do_not_hide_what_separates(tmp_path: Path) -> None:
    path = saved(tmp_path, "task,worker,label\n1,2,3\n", "labels.tsv")
    assert dialect_in_words(locate(path)) == "tsv with commas"
    path = saved(tmp_path, "task;worker, e-mail;label, final\n1;ann;cat\n2;bob;dog, big\n")
    assert lo.read_annotations(path, worker="worker, e-mail", label="label, final").n_workers == 2


@pytest.mark.parametrize("rows", ["1,ann,a;b\n", "1,ann\n", '1,ann,"cat\n', ""])
def test_a_usual_table_stays_what_it_is(tmp_path: Path, rows: str) -> None:
    assert dialect_in_words(locate(saved(tmp_path, f"task,worker,label\n{rows}"))) == "csv"


@pytest.mark.parametrize("start", ["sep=;\n", '"sep=;"\r\n', "\ufeffsep=;\n"])
def test_the_line_that_tells_excel_the_separator_is_no_header(tmp_path: Path, start: str) -> None:
    path = saved(tmp_path, f"{start}task;worker;label\n1;ann;cat\n2;bob\n")
    assert dialect_in_words(locate(path)) == "csv with semicolons"
    with pytest.raises(ValueError, match=r"3 cells, as the header has; got 2 at row 3: 2;bob\."):
        lo.read_annotations(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_of_any_kind_is_read(tmp_path: Path, encoding: str) -> None:
    start = "\ufeff" if encoding == "utf-16-be" else ""
    path = saved(tmp_path, (start + EXCEL).encode(encoding))
    assert lo.read_annotations(path).classes.tolist() == ["größe", "maß"]
    assert ("in UTF-16" in dialect_in_words(locate(path))) is encoding.startswith("utf-16")


def test_windows_text_is_read_and_said_and_json_is_never_taken_for_it(tmp_path: Path) -> None:
    path = saved(tmp_path, EXCEL.replace("zwei", "5 €").encode("cp1252"))
    with pytest.warns(UserWarning, match=r"labels\.csv: .* read as Windows-1252, for example 'größe'"):
        assert lo.read_annotations(path).classes.tolist() == ["größe", "maß"]
    path = saved(tmp_path, '{"task": 1, "worker": "a", "label": "größe"}\n'.encode("cp1252"), "labels.jsonl")
    with pytest.raises(ValueError, match="must be UTF-8"):
        lo.read_annotations(path)


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
@pytest.mark.filterwarnings("ignore:.*Windows-1252:UserWarning")
def test_other_encodings_are_read_over_many_blocks(tmp_path: Path, encoding: str) -> None:
    n = 2 * BLOCK_BYTES // 20
    rows = "".join(f"{i};ann;größe {i % 7}\n" for i in range(n))
    path = saved(tmp_path, f"task;worker;label\n{rows}".encode(encoding))
    ann = lo.read_annotations(path)
    assert (len(ann), ann.classes[0], ann.tasks[-1]) == (n, "größe 0", n - 1)


def test_decimal_commas_are_numbers_but_not_in_quotes_of_a_file_with_commas(tmp_path: Path) -> None:
    table = read_table(locate(saved(tmp_path, EXCEL.replace("2;vier", "-2,5e1;vier"))), ["task"])
    assert table.column("x").to_pylist() == [1.5, -25.0]
    assert table.column("said").to_pylist()[1] == "vier"
    assert read_table(locate(saved(tmp_path, 'task,x\n1,"1,234"\n')), ["task"]).column("x").to_pylist() == ["1,234"]


@pytest.mark.parametrize("cells", ["1.234,5", "1,2,3", "1,5 kg", "eins"])
def test_what_is_no_number_with_a_decimal_comma_stays_text(tmp_path: Path, cells: str) -> None:
    path = saved(tmp_path, f"task;x\n1;1,5\n2;{cells}\n")
    assert read_table(locate(path), ["task"]).column("x").to_pylist() == ["1,5", cells]


@pytest.mark.parametrize("name", ["labels.csv", "labels.jsonl"])
def test_rows_are_called_as_a_spreadsheet_or_an_editor_shows_them(tmp_path: Path, name: str) -> None:
    lo.write(lo.Annotations.from_arrays([1, 2, 3], ["ann", "bob", "bob"], ["cat", "dog", "cow"]), tmp_path / name)
    with pytest.raises(ValueError, match=f"got 'cow' at {'row 4' if name.endswith('csv') else 'line 3'} "):
        lo.read_annotations(tmp_path / name, classes=["cat", "dog"])
