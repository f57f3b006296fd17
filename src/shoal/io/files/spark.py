"""Read and write folders of files with Spark."""

from __future__ import annotations

import codecs
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import JobError, Problem, ResourceError
from shoal.io import formats
from shoal.io.connector import SparkInput
from shoal.io.files.atomic import atomic_write
from shoal.io.format import Format
from shoal.io.formats import file_type
from shoal.io.text.dialect import PLAIN, Dialect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["COLUMNS", "FolderWriter", "read_sample", "read_stream"]

#: The file in which the columns of the input are kept.
COLUMNS = "columns.json"
#: The encodings that Spark reads line by line as we do, by Python's names of them.
SPARK_ENCODINGS = {"utf-8": "UTF-8", "iso8859-1": "ISO-8859-1", "ascii": "US-ASCII"}


def read_stream(
    session: SparkSession, path: str, form: str | None, dialect: Dialect, asked: SparkInput
) -> DataFrame:
    """Return the files of a folder as a stream."""
    from pyspark.sql.types import StringType, StructField, StructType

    found = _read_format("input", path, form, dialect)
    options = dict(found.spark_options)
    schema = _columns(session, path, found, asked.folder)
    if found.text is not None:
        # Lines that aren't rows are set apart; Spark would fill them with nulls.
        fields = [field for field in schema.fields if field.name != "_corrupt_record"]
        schema = StructType([*fields, StructField(asked.corrupt, StringType())])
        options |= {"columnNameOfCorruptRecord": asked.corrupt, "mode": "PERMISSIVE"}
    if asked.n_files is not None:
        options |= {"maxFilesPerTrigger": asked.n_files}
    reader = session.readStream.format(str(found.spark))
    return reader.options(**options).schema(schema).load(path)


def read_sample(session: SparkSession, path: str, form: str | None, dialect: Dialect) -> DataFrame:
    """Read a file or folder, in the given format unless its name has an ending."""
    found = _read_format("--sample", path, None if Path(path).suffix else form, dialect)
    try:
        return session.read.format(str(found.spark)).options(**found.spark_options).load(path)
    except Exception as error:
        raise ResourceError(f"{path}: Spark can't read it ({type(error).__name__}).") from None


class FolderWriter:
    """Writes a folder with one subfolder for each epoch, which is replaced as a whole."""

    def __init__(self, path: str, form: str | None) -> None:
        self._path = path.rstrip("/")
        self._format = _format("output", path, form)

    def __call__(self, rows: DataFrame, epoch: str) -> None:
        """Write the rows of an epoch."""
        # An empty text isn't a missing one.
        options = {"emptyValue": ""} if self._format.spark == "csv" else {}
        writer = rows.write.format(str(self._format.spark))
        writer = writer.options(**self._format.spark_options, **options).mode("overwrite")
        writer.save(f"{self._path}/{epoch}")


def _read_format(section: str, path: str, name: str | None, dialect: Dialect) -> Format:
    """Return a format with the options with which Spark reads a dialect of it."""
    found = _format(section, path, name)
    if found.in_dialect is None or dialect == PLAIN:
        return found
    return replace(found, spark_options={**found.spark_options, **dialect_options(dialect)})


def dialect_options(dialect: Dialect) -> dict[str, str]:
    """Return the options with which Spark reads a dialect of CSV.

    Raises
    ------
    JobError
        For what Spark reads differently, or not at all.

    >>> dialect_options(Dialect(";", encoding="latin-1", null=("?",)))
    {'sep': ';', 'encoding': 'ISO-8859-1', 'nullValue': '?'}
    """
    problems = []
    encoding = SPARK_ENCODINGS.get(codecs.lookup(dialect.encoding).name)
    if encoding is None:
        what = f"{dialect.encoding} isn't supported on Spark, which reads UTF-8 and Latin-1"
        problems.append(Problem("input.encoding", what, None, "Convert the files to UTF-8"))
    if dialect.decimal != ".":
        what = "a decimal comma isn't supported on Spark"
        problems.append(Problem("input.decimal", what, None, "Write numbers with a point"))
    if len(dialect.null) > 1:
        what = "must be one text on Spark"
        problems.append(Problem("input.null", what, str(len(dialect.null)), "Keep one of them"))
    if problems:
        raise JobError(problems)
    options = {} if dialect.delimiter is None else {"sep": dialect.delimiter}
    if dialect.quote != '"':
        # Spark's word for no quoting is a character that no text has.
        options |= {"quote": dialect.quote or "\0", "escape": dialect.quote or "\0"}
    if encoding not in (None, "UTF-8"):
        options["encoding"] = str(encoding)
    if dialect.null:
        options["nullValue"] = dialect.null[0]
    return options


def _format(section: str, path: str, name: str | None) -> Format:
    if path == "-":
        raise JobError(
            Problem(f"{section}.path", "is missing: Spark reads and writes no pipes", None,
                    f"Set {section}.path to a folder that all machines reach")
        )  # fmt: skip
    found = name or (file_type(path).name if Path(path).suffix else None)
    if found is None and section == "output":
        found = "parquet"
    known = {form.name: form for form in map(formats.find, formats.names()) if form.spark}
    if found not in known:
        raise JobError(
            Problem(f"{section}.format", f"must be one of {', '.join(known)}",
                    None if found is None else repr(found),
                    "Set it, since the name of a folder doesn't show it")
        )  # fmt: skip
    return known[found]


def _columns(session: SparkSession, path: str, form: Format, folder: Path) -> StructType:
    """Return the columns and types of the first files, which are kept with the state.

    At another start Spark might infer other types from other files.
    """
    from pyspark.sql.types import StructType

    kept = folder / COLUMNS
    if kept.is_file():
        return StructType.fromJson(json.loads(kept.read_text()))
    try:
        reader: Any = session.read.format(str(form.spark)).options(**form.spark_options)
        found: StructType = reader.load(path).schema
    except Exception as error:
        raise ResourceError(
            f"{path}: Spark finds no columns in it as {form.name} ({type(error).__name__}). "
            "Check path and format; a first file must be there before the job begins."
        ) from None
    with atomic_write(kept, private=True) as output:
        output.write(found.json().encode())
    return found
