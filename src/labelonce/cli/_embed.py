"""`labelonce embed`."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from labelonce import embed
from labelonce._messages import argument, named
from labelonce.cli._print import print_json, print_status, warnings_as_notes
from labelonce.cli._progress import shown_progress
from labelonce.cli._source import check_outputs
from labelonce.data import _ids
from labelonce.files import pictures_in
from labelonce.formats import Fields, integers_if_all
from labelonce.io import write
from labelonce.runs import read_texts


def run_embed(
    source: Path, output: Path, *, model: str | None, text: str | None, task: str | None, suffix: bool, as_json: bool
) -> None:
    """Write one row of numbers per text or image."""
    check_outputs([source], output=(output, None))
    if source.is_dir() == (text is not None):
        got = f"a folder and {named('text')}" if text is not None else f"the file {source} alone"
        raise ValueError(f"embed must have a folder of images, or a table with {argument('text')}; got {got}.")
    with warnings_as_notes(), shown_progress(as_json=as_json) as progress:
        if text is None:
            paths = pictures_in(source, suffix=suffix)
            ids = integers_if_all(list(paths))
            found = embed.images(dict(zip(ids, paths.values(), strict=True)), model=model, progress=progress)
        else:
            rows = read_texts(source, text, fields=Fields(task))
            found = embed.texts(rows.X, model=model, progress=progress)._replace(ids=rows.tasks)
    columns = {f"{place}": found.X[:, place] for place in range(found.X.shape[1])}
    write(pa.table({"task": _ids.decode(np.arange(len(found.ids), dtype=np.int32), found.ids)} | columns), output)
    if as_json:
        print_json({"rows": len(found.ids), "numbers": found.X.shape[1], "model": found.model, "output": str(output)})
    else:
        print_status(f"{len(found.ids):,} rows of {found.X.shape[1]} numbers by {found.model} -> {output}")
