"""``shoal checkpoint show``: show the content of a state folder, without values of persons."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shoal.cli.terminal import print_result
from shoal.errors import CheckpointError, ResourceError
from shoal.run.state.checkpoint import check_intact, job_of, read_body, read_checkpoint_heading
from shoal.run.state.folder import CHECKPOINT, HISTORY, SEGMENT, numbers_of, path_of
from shoal.run.state.heading import Heading
from shoal.run.state.seal import Seal
from shoal.run.state.segment import Segment
from shoal.run.state.store import Checkpoint, read_file, when

__all__ = ["show"]

#: Facts that hold no value of a person. Of all others only the length is shown.
PLAIN = (
    "seq", "now", "rows", "position", "marks", "n_shards", "first_shard", "plan", "parent",
    "is_partitioned", "n_in", "n_out", "n_bytes",
)  # fmt: skip
#: Facts about the job: its changes are shown, its sections and files are in the job file.
_OF_JOB = ("changes", "sections", "private")
#: The kinds of files of a job on Spark, in its folder and in those of its shards.
OF_SPARK = ("plan", "epoch", "commit", "idle", "driver", HISTORY, "state", "figures")
#: The most characters of a fact, and the most facts that are printed.
TEXT, LINES = 80, 20
#: The characters of a digest that are printed.
DIGEST = 12


def show(folder: Path, *, seal: str | None, as_json: bool, short: bool = False) -> int:
    """Print the content of a state folder; return 5 if a file is damaged or can't be opened.

    ``short`` is for people: a line for each checkpoint and each segment of the journal. A damaged
    history of the page is shown, and is no failure: a run ignores it.
    """
    if not folder.is_dir():
        raise ResourceError(f"{folder}: isn't a folder that can be read. Check the path.")
    key = None if seal is None else Seal.from_spec(seal)
    checkpoints = list(_present(_checkpoint, folder, CHECKPOINT, key))
    segments: list[Segment] = []
    journal = list(_present(_segment, folder, SEGMENT, key, segments))
    shards = list(_of_spark(folder, key))
    report = {
        "folder": str(folder), "checkpoints": checkpoints, "journal": journal, "spark": shards,
    }  # fmt: skip
    if as_json:
        print_result(json.dumps(report))
    else:
        for line in _short_lines(report) if short else _lines(report):
            print_result(line)
    needed = [entry for entry in shards if entry["kind"] != HISTORY]
    return 5 if any(entry["problem"] for entry in [*checkpoints, *journal, *needed]) else 0


def _of_spark(folder: Path, key: Seal | None) -> Iterator[dict[str, Any]]:
    for place in (folder, *sorted(folder.glob("shard-*"))):
        for kind in OF_SPARK:
            for entry in _present(_checkpoint, place, kind, key):
                where = "" if place == folder else f"{place.name}/"
                yield entry | {"kind": f"{where}{kind}"}


def _present(look: Any, folder: Path, kind: str, *more: Any) -> Iterator[dict[str, Any]]:
    """Yield an entry for each file of a kind. A running job may remove some meanwhile."""
    for number in numbers_of(folder, kind):
        path = path_of(folder, kind, number)
        entry: dict[str, Any] = {"number": number, "file": path.name, "problem": None}
        try:
            look(entry, path, *more)
        except (CheckpointError, ResourceError) as error:
            if not path.exists():
                continue
            entry["problem"] = str(error)
        yield entry


def _checkpoint(entry: dict[str, Any], path: Path, seal: Seal | None) -> None:
    data = read_file(path)
    entry["n_bytes"] = len(data)
    heading = read_checkpoint_heading(path, data, entry["number"])
    entry |= _heading(heading) | {"job": job_of(heading)}
    if heading.key is None or seal is not None:
        # A file that isn't sealed can be read even if a key is given for others.
        entry |= _inside(read_body(path, data, heading, seal if heading.key else None))
    else:
        check_intact(path, data)


def _inside(checkpoint: Checkpoint) -> dict[str, Any]:
    facts = checkpoint.facts
    return {
        "facts": {name: dict(_plain(facts[name])) for name in PLAIN if name in facts},
        "changes": [_change(each) for each in facts.get("changes", [])],
        "other_facts": {
            name: _length(facts[name]) for name in facts if name not in (*PLAIN, *_OF_JOB)
        },
        "batches": [
            {
                "name": name,
                "n_rows": batch.num_rows,
                "columns": {_word(field.name): str(field.type) for field in batch.schema},
            }
            for name, batch in checkpoint.batches.items()
        ],
        "arrays": [
            {"name": name, "type": _type(array.dtype), "shape": list(array.shape)}
            for name, array in checkpoint.arrays.items()
        ],
    }


def _change(change: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a change of the job was, and how many rows were published before it."""
    return {name: change.get(name) for name in ("time", "what", "weaker", "rows_in", "published")}


def _segment(entry: dict[str, Any], path: Path, seal: Seal | None, segments: list[Segment]) -> None:
    segment = Segment(path, entry["number"])
    entry |= {"n_bytes": segment.n_bytes} | _heading(segment.heading)
    if segment.heading.key is not None and seal is None:
        entry["n_records"] = sum(1 for _ in segment.records())
        entry["n_torn"] = segment.n_torn
        return
    key = seal if segment.heading.key else None
    kinds = Counter(type(found).__name__.lower() for found in segment.entries(key))
    entry["entries"] = {kind: kinds[kind] for kind in ("read", "tick", "flush", "change")}
    if not kinds["change"]:
        del entry["entries"]["change"]
    entry |= {"n_records": segment.n_records, "n_torn": segment.n_torn, "closed": segment.closed}
    before = segments[-1] if segments else None
    segments.append(segment)
    if before is not None:
        segment.check_follows(before)


def _heading(heading: Heading) -> dict[str, Any]:
    return {
        "format": heading.format,
        "version": heading.version,
        "time": heading.time,
        "age_s": max(0.0, time.time() - heading.time),
        "key": heading.key,
    }


def _plain(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested numbers and short texts, each with its path."""
    if isinstance(value, Mapping | list):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, inner in pairs:
            yield from _plain(inner, f"{path}.{_word(str(key))}" if path else _word(str(key)))
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, str(value)  # JSON has no number for it
    elif not isinstance(value, str) or len(value) <= TEXT:
        yield path, value


def _length(value: Any) -> int:
    return len(value) if isinstance(value, Mapping | list) else 1


def _type(dtype: Any) -> str:
    return str(dtype) if dtype.names is None else f"({', '.join(dtype.names)})"


def _word(name: str) -> str:
    """Return a name that a terminal can show; internal columns begin with a NUL."""
    name = name.removeprefix("\0")
    return name if name.isprintable() else ascii(name)


# -- for people ---------------------------------------------------------------------------------


def _lines(report: dict[str, Any]) -> Iterator[str]:
    if not report["checkpoints"] and not report["journal"] and not report["spark"]:
        yield f"{report['folder']}: no checkpoint, no journal"
    for entry in (*report["checkpoints"], *report["spark"]):
        yield f"{entry.get('kind', 'checkpoint')} {entry['number']}: {', '.join(_about(entry))}"
        yield from _problem(entry)
        if "job" in entry:
            job = [f"{name} {digest[:DIGEST]}" for name, digest in entry["job"].items()]
            yield _row("job", ", ".join(job))
        yield from _inside_lines(entry)
    for entry in report["journal"]:
        yield f"journal {entry['number']}: {', '.join(_about(entry))}"
        yield from _problem(entry)
        if "entries" in entry:
            yield _row(
                "entries", ", ".join(f"{n:,} {kind}" for kind, n in entry["entries"].items())
            )
        if "closed" in entry:
            yield _row("ends", "closed: another segment follows" if entry["closed"] else "open")
        if entry.get("n_torn"):
            yield _row("torn", f"{entry['n_torn']:,} bytes of a crash; they are ignored")


def _short_lines(report: dict[str, Any]) -> Iterator[str]:
    """Yield the least that tells how far a job has come, and whether it can be resumed."""
    if not report["checkpoints"] and not report["journal"] and not report["spark"]:
        yield f"{report['folder']}: no checkpoint, no journal"
    for entry in report["checkpoints"]:
        yield f"checkpoint {entry['number']}: {', '.join(_short(entry))}"
        yield from _problem(entry)
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for entry in report["spark"]:
        by_kind.setdefault(entry["kind"], []).append(entry)
    for kind, entries in by_kind.items():
        last = entries[-1]
        words = [f"{len(entries):,} files" if len(entries) > 1 else "1 file"]
        words += [f"the last is {last['number']}", *_short(last)]
        yield f"{kind}: {', '.join(words)}"
        for entry in entries:
            yield from _problem(entry)
    for entry in report["journal"]:
        n = sum(entry["entries"].values()) if "entries" in entry else entry.get("n_records", 0)
        words = [f"{n:,} {'entries' if 'entries' in entry else 'records'}"]
        words += ["closed"] if entry.get("closed") else []
        yield f"journal {entry['number']}: {', '.join(words)}"
        yield from _problem(entry)


def _short(entry: dict[str, Any]) -> Iterator[str]:
    if "time" in entry:
        yield f"{when(entry['time'])} ({entry['age_s']:,.0f} s ago)"
    rows = entry.get("facts", {}).get("rows", {})
    yield from (f"{n:,} {name}" for name, n in rows.items() if n or name in ("in", "held"))
    if "key" in entry and entry["key"] is not None and "facts" not in entry:
        yield "sealed"


def _about(entry: dict[str, Any]) -> Iterator[str]:
    if "n_bytes" in entry:
        yield f"{entry['n_bytes']:,} bytes"
    if "time" in entry:
        yield f"of {when(entry['time'])} ({entry['age_s']:,.0f} s ago)"
        yield f"format {entry['format']} of Shoal {entry['version']}"
        yield "not sealed" if entry["key"] is None else f"sealed with key {entry['key']}"
    if "facts" not in entry and "entries" not in entry and not entry["problem"]:
        yield "undamaged (--seal shows more)"


def _problem(entry: dict[str, Any]) -> Iterator[str]:
    if entry["problem"]:
        yield _row("PROBLEM", entry["problem"])


def _inside_lines(entry: dict[str, Any]) -> Iterator[str]:
    for name, facts in entry.get("facts", {}).items():
        words = [f"{path} {_shown(value)}".strip() for path, value in facts.items()]
        more = [f"and {len(words) - LINES:,} more"] if len(words) > LINES else []
        yield _row(name, ", ".join(words[:LINES] + more))
    for change in entry.get("changes", ()):
        weaker = ", weaker" if change["weaker"] else ""
        text = f"{', '.join(change['what'])}{weaker}, from published row {change['published']:,} on"
        yield _row("changed", f"{when(change['time'])}: {text}")
    for name, length in entry.get("other_facts", {}).items():
        yield _row(_word(name), f"{length:,} not shown")
    for batch in entry.get("batches", ()):
        columns = ", ".join(f"{name} {kind}" for name, kind in batch["columns"].items())
        yield _row("batch", f"{batch['name']}: {batch['n_rows']:,} rows of {columns}")
    for array in entry.get("arrays", ()):
        shape = " × ".join(f"{n:,}" for n in array["shape"]) or "1"
        yield _row("array", f"{array['name']}: {shape} {array['type']}")


def _shown(value: Any) -> str:
    return f"{value:,}" if type(value) is int else json.dumps(value)


def _row(name: str, text: str) -> str:
    return f"  {name:<9} {text}"
