"""The columns that messages of a subject of the registry can have, for drafting a job."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shoal.errors import JobError, Problem, ResourceError, did_you_mean
from shoal.io.kafka.schemas.avro import SchemaTextError, leaf_paths, parse_avro
from shoal.io.kafka.schemas.client import Registered, Registry
from shoal.io.kafka.schemas.columns import Leaf
from shoal.io.kafka.schemas.proto_text import parse_proto
from shoal.io.kafka.schemas.protobuf import proto_paths
from shoal.io.kafka.schemas.settings import FORMATS

__all__ = ["MOST_COLUMNS", "Described", "column_names", "describe_subject"]

#: The maximum number of columns that are proposed. Types that nest others may have very many.
MOST_COLUMNS = 500
#: The fields by which an envelope of a change of a database is known.
_ENVELOPE = {"before", "after", "op"}


@dataclass(frozen=True)
class Described:
    """What the newest schema of a subject says.

    Parameters
    ----------
    format
        Of the messages: ``avro`` or ``protobuf``.
    leaves
        How each column is stored.
    paths
        Where each column is in a message.
    is_envelope
        Whether a message is a change of a database, in Debezium's form. Columns are then those of
        the row.
    """

    format: str
    leaves: Mapping[str, Leaf]
    paths: Mapping[str, str]
    is_envelope: bool = False

    @property
    def fields(self) -> dict[str, str]:
        """The paths that a job must name: those that aren't the name of the column."""
        return {name: path for name, path in self.paths.items() if name != path}


def describe_subject(registry: Registry, subject: str) -> Described:
    """Describe the newest schema of a subject.

    Raises
    ------
    JobError
        If there is no such subject.
    ResourceError
        If the registry doesn't answer, or its schema can't be read.
    """
    schema = registry.latest(subject)
    if schema is None:
        what = f"subject {subject} isn't in {registry.where}"
        near = did_you_mean(subject, registry.subjects())
        fix = near or "Name one that is, or register the schema first"
        raise JobError(Problem("--schema", what, None, fix))
    where = f"{registry.where}: subject {subject}"
    kind = schema.kind.lower()
    if kind not in FORMATS:
        known = " and ".join(FORMATS)
        raise ResourceError(f"{where}: is of format {kind}. Those that can be read are {known}.")
    try:
        found, is_envelope = _avro(schema) if kind == "avro" else _protobuf(schema)
    except SchemaTextError as error:
        raise ResourceError(f"{where}: its schema can't be read: it {error}.") from None
    leaves = dict(itertools.islice(found, MOST_COLUMNS))
    if not leaves:
        raise ResourceError(f"{where}: has no field that can be a column.")
    paths = {name: path for path, name in column_names(leaves).items()}
    described = {name: leaves[path] for name, path in paths.items()}
    return Described(kind, described, paths, is_envelope)


def _avro(schema: Registered) -> tuple[Iterable[tuple[str, Leaf]], bool]:
    found = parse_avro(schema.text, schema.references.values())
    if found.kind != "record":
        raise SchemaTextError("isn't a record")
    if not found.fields.keys() >= _ENVELOPE:
        return leaf_paths(found), False
    inner = leaf_paths(found, only="after")
    return ((path.removeprefix("after."), leaf) for path, leaf in inner), True


def _protobuf(schema: Registered) -> tuple[Iterable[tuple[str, Leaf]], bool]:
    types = parse_proto(schema.text, schema.references.values())
    # Which type a message has is known when one is there; nearly always it is the first.
    message = types.at((0,))
    if message is None:
        raise SchemaTextError("has no message type")
    return proto_paths(types, message), False


def column_names(paths: Iterable[str]) -> dict[str, str]:
    """Return a name for each path: its last part, or all of them if several end with that.

    >>> column_names(["id", "patient.age", "home.zip", "work.zip"])
    {'id': 'id', 'patient.age': 'age', 'home.zip': 'home_zip', 'work.zip': 'work_zip'}
    """
    paths = list(paths)
    ends = Counter(path.rpartition(".")[2] for path in paths)
    # A field at the top keeps its name, whatever else is called so.
    names = {path: path for path in paths if "." not in path}
    for path in paths:
        if path in names:
            continue
        end = path.rpartition(".")[2]
        wished = end if ends[end] == 1 else path.replace(".", "_")
        name, number = wished, 2
        while name in names.values():
            name, number = f"{wished}_{number}", number + 1
        names[path] = name
    return {path: names[path] for path in paths}
