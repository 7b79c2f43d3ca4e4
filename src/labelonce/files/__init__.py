"""From bytes to tables and back: files are opened with bounds, named in every error and written whole or not at all."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names

if TYPE_CHECKING:
    from labelonce.files._atomic import atomic_path, atomic_stream, atomic_write, to_disk
    from labelonce.files._column_names import ColumnError, find_columns
    from labelonce.files._dialect import header_line, records
    from labelonce.files._open import (
        DELIMITERS,
        SUFFIXES,
        File,
        check_no_file,
        check_unpacked,
        locate,
        naming,
        row_in,
        split_codec,
        text,
        whole_text,
        with_path,
    )
    from labelonce.files._pictures import content_of, picture, pictures_in, strict_about_bombs
    from labelonce.files._places import absolute, file_system, fingerprint, places_of
    from labelonce.files._table_reader import (
        column_names,
        dialect_in_words,
        first_rows,
        give_back_memory,
        id_column,
        n_rows_of_parquet,
        read_columns,
        read_table,
        stream_of_ids,
    )
    from labelonce.files._table_writer import as_table, write_rows, write_table
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.files._pictures import by_stem, files_in, is_picture
