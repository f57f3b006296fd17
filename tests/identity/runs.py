"""Fixed-seed runs of every algorithm, with the digests of all that they wrote.

``python -m tests.identity.runs record`` writes the digests to ``digests.json``; ``check`` runs
everything again and compares. A change that moves or renames code must leave every digest as it
is. A change of what is decided records new digests, and its commit message says why.

Only the command line is used, so that this program runs on any layout of the package.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import io
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

__all__ = ["CASES", "Case", "digests", "recorded"]

RECORD = Path(__file__).with_name("digests.json")
N_ROWS = 260

DEADLINE = ("castle", "fads", "fast", "idea", "k-varp", "iot")
#: Most runs reuse groups, one row at a time; those called ``company`` and ``default`` don't.
REUSE: dict[str, dict[str, Any]] = {
    name: {"kept": kept, "joins": "alone"}
    for name, kept in zip(DEADLINE, (1000, 50, 50, 200, 200, 200), strict=True)
}
TREES = ("min-delay", "tree-basic", "tree-density", "tree-full")
TABLES = (
    "sabre-ak", "sabre-knn", "burel", "mondrian", "t-mondrian", "l-mondrian", "d-mondrian",
    "t-incognito", "dynamic-group",
)  # fmt: skip
BY_WINDOW = ("sabre-w", "burel-w", "t-mondrian-w", "t-incognito-w")


@dataclass(frozen=True)
class Case:
    """One run: an algorithm, what is promised, and how rows are read and written."""

    name: str
    algorithm: str
    policy: dict[str, Any]
    knobs: dict[str, Any] = field(default_factory=dict)
    quasi: str = "plain"
    sensitive: bool = True
    gaps: bool = False
    timed: bool = False
    publish: dict[str, Any] = field(default_factory=dict)
    formats: tuple[str, str] = ("csv", "csv")
    checkpoints: bool = False


def _cases() -> Iterator[Case]:
    rows = {"rows": 40}
    formats = [("csv", "csv"), ("jsonl", "jsonl"), ("parquet", "parquet"), ("arrow", "arrow")]
    formats += [("csv", "jsonl"), ("parquet", "csv")]
    for number, name in enumerate((*DEADLINE, *TREES)):
        shape = formats[number % len(formats)]
        reuse = REUSE.get(name, {})
        plain = {"k": 4, "delay": rows}
        yield Case(f"{name} k", name, plain, reuse, sensitive=False, formats=shape)
        yield Case(f"{name} k l", name, {"k": 4, "l": 2, "delay": rows}, reuse)
        seconds = {"k": 3, "delay": {"seconds": 25.0}}
        yield Case(f"{name} seconds", name, seconds, reuse, timed=True, checkpoints=number % 2 == 0)
        yield Case(
            f"{name} uncertainty", name, plain, {"loss": "uncertainty"} | reuse,
            quasi="weighted", publish={"numeric": "bounds"},
        )  # fmt: skip
    for name in ("castle", "fads", "idea", "k-varp", "iot", *TREES):
        reuse = REUSE.get(name, {})
        entropy = {"k": 3, "l": {"entropy": 2.0}, "delay": rows}
        yield Case(f"{name} entropy", name, entropy, reuse)
        recursive = {"k": 3, "l": {"recursive": 2, "c": 3.0}, "delay": rows}
        yield Case(f"{name} recursive", name, recursive, knobs={"loss": "lm"} | reuse)
    for name in ("castle", "fads", "idea", "k-varp", "iot"):
        window = {"rows": 120, "advance": 60}
        close = {"k": 3, "t": 0.5, "window": window, "delay": rows}
        yield Case(f"{name} t", name, close, REUSE[name], publish={"order": "shuffled"})
        alike = {"k": 3, "beta": {"enhanced": 4}, "window": window, "delay": rows}
        yield Case(f"{name} beta", name, alike, REUSE[name], publish={"suppressed": "root"})
        given = {"disclosure": 3.0, "window": window, "delay": rows}
        yield Case(f"{name} disclosure", name, given, REUSE[name])
    for name in (*DEADLINE, *TREES):
        for missing in ("extended", "maybe"):
            gaps = {"k": 3, "delay": rows, "missing": missing}
            yield Case(f"{name} {missing}", name, gaps, REUSE.get(name, {}), gaps=True)
    for name in TREES[1:]:
        drawn = {"due": "drawn"}
        yield Case(f"{name} drawn", name, {"k": 4, "l": 2, "delay": rows}, drawn, checkpoints=True)
        seconds = {"k": 3, "delay": {"seconds": 25.0}}
        yield Case(f"{name} drawn seconds", name, seconds, {**drawn, "instant": 1.0}, timed=True)
    for name in DEADLINE:
        diverse = {"k": 4, "l": 2, "delay": rows}
        yield Case(f"{name} default", name, diverse, checkpoints=True)
        yield Case(f"{name} company", name, diverse, {"kept": 20}, checkpoints=True)
    yield Case(
        "castle reuse", "castle", {"k": 3, "delay": rows},
        {"kept": 20, "joins": "alone", "clusters": 5, "recent": 10}, checkpoints=True,
        publish={"order": "arrival"},
    )  # fmt: skip
    for name in TABLES:
        yield Case(f"{name} k", name, {"k": 3, "window": "all"})
        yield Case(f"{name} t", name, {"k": 3, "t": 0.4, "window": "all"})
        yield Case(f"{name} beta", name, {"beta": {"basic": 3}, "window": "all"})
        semantic = {"beta": {"semantic": 4, "level": 1}, "window": "all"}
        yield Case(f"{name} semantic", name, semantic)
        yield Case(f"{name} disclosure", name, {"disclosure": 2.5, "window": "all"})
        yield Case(f"{name} l", name, {"k": 3, "l": 2, "window": "all"})
    for number, name in enumerate(BY_WINDOW):
        window = {"rows": 100, "advance": 50}
        yield Case(
            f"{name} t",
            name,
            {"t": 0.4, "window": window},
            formats=formats[number],
            checkpoints=True,
        )
        yield Case(f"{name} beta", name, {"k": 3, "beta": {"enhanced": 4}, "window": window})
        early = {"k": 3, "t": 0.5, "window": window, "delay": {"seconds": 60.0}}
        yield Case(f"{name} early", name, early, timed=True)
    yield from _tide_cases()
    z: dict[str, Any] = {"z": 4, "window": {"rows": 80}}
    named = {"pseudonym": {"rotate": 50}}
    for quasi in ("open", "ladders"):
        of_z = {"quasi": quasi, "sensitive": False}
        yield Case(f"z {quasi} rows", "z-anonymity", z, formats=("jsonl", "csv"), **of_z)
        seconds = {"z": 3, "window": {"seconds": 40.0}, "lateness": 5.0}
        yield Case(
            f"z {quasi} seconds", "z-anonymity", seconds, timed=True, publish=named,
            checkpoints=True, **of_z,
        )  # fmt: skip
        yield Case(f"z {quasi} plain", "z-anonymity", z, {"count": "plain"}, **of_z)
        follows = {"probability": 0.8, "k": 2, "estimates": 3}
        yield Case(f"z {quasi} adaptive", "z-anonymity", z, follows, **of_z)
        maybe = {**z, "missing": "maybe"}
        yield Case(f"z {quasi} gaps", "z-anonymity", maybe, gaps=True, **of_z)


def _tide_cases() -> Iterator[Case]:
    rows, window = {"rows": 60}, {"rows": 120}
    for release in ("batch", "rolling"):
        knobs = {"release": release}
        asked: dict[str, dict[str, Any]] = {
            "k": {"k": 4, "delay": rows},
            "k l": {"k": 4, "l": 2, "delay": rows},
            "entropy": {"k": 3, "l": {"entropy": 2.0}, "delay": rows},
            "t": {"k": 3, "t": 0.5, "window": window, "delay": rows},
            "beta": {"k": 3, "beta": {"enhanced": 4}, "window": window, "delay": rows},
        }
        for what, policy in asked.items():
            yield Case(f"tide {release} {what}", "tide", policy, knobs)
        seconds = {"k": 3, "delay": {"seconds": 45.0}}
        yield Case(f"tide {release} seconds", "tide", seconds, knobs, timed=True, checkpoints=True)
        for missing in ("extended", "maybe"):
            gaps = {"k": 3, "delay": rows, "missing": missing}
            yield Case(f"tide {release} {missing}", "tide", gaps, knobs, gaps=True)
        yield Case(
            f"tide {release} uncertainty", "tide", {"k": 4, "delay": rows},
            {**knobs, "loss": "uncertainty"}, quasi="weighted", publish={"numeric": "bounds"},
        )  # fmt: skip
    yield Case("tide-table k", "tide-table", {"k": 3, "window": "all"}, {"workers": 2})
    yield Case("tide-table t", "tide-table", {"k": 3, "t": 0.4, "window": "all"})
    yield Case("tide-table l", "tide-table", {"k": 3, "l": 2, "window": "all"})


CASES = tuple(_cases())

WORK = {
    "office": {"clerk": ["accountant", "teller"], "manager": ["director", "lead"]},
    "manual": {"craft": ["baker", "tailor", "joiner"], "field": ["farmer"]},
}
ILLS = {"lung": ["asthma", "flu"], "heart": ["angina", "stroke"], "mind": ["anxiety"]}


def _people(case: Case) -> list[dict[str, Any]]:
    draw = random.Random("people")
    jobs = [leaf for branch in WORK.values() for twigs in branch.values() for leaf in twigs]
    ills = [leaf for leaves in ILLS.values() for leaf in leaves]
    rows: list[dict[str, Any]] = []
    now = 1000.0
    for i in range(N_ROWS):
        now += draw.choice([0.0, 0.5, 1.0, 2.0, 9.0 if i % 41 == 0 else 1.0])
        row: dict[str, Any] = {
            "person": f"p{draw.randrange(130)}",
            "at": now - (draw.choice([0, 0, 3, 8]) if case.policy.get("lateness") else 0),
            "age": draw.randrange(18, 90),
            "income": round(draw.paretovariate(1.3) * 1000, 2) % 90_000,
            "work": draw.choice(jobs) if draw.random() < 0.98 else "unheard of",
            "post": draw.choice(["10115", "10117", "10243", "20095", "20097", "80331"]),
            "path": "/".join(draw.choice(["a", "b", "c"]) for _ in range(draw.randrange(1, 4))),
            "ill": draw.choices(ills, [5, 4, 3, 2, 2])[0],
            "stay": draw.randrange(1, 9),
        }
        if case.gaps:
            for column in ("age", "work", "post", "path"):
                if draw.random() < 0.15:
                    row[column] = None
        rows.append(row)
    return rows


def _write_input(case: Case, rows: list[dict[str, Any]], path: Path) -> None:
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist(rows)
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
                out.write_table(table)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


QUASI = {
    "plain": 'age = { range = [18, 90], step = 5 }\nwork = { hierarchy = "work.csv" }\n'
    'post = { mask = ["10115", "10117", "10243", "20095", "20097", "80331"] }\n',
    "weighted": "age = { range = [18, 90], step = 1 }\n"
    "income = { range = [0, 90000], weight = 0.5 }\n"
    'work = { hierarchy = "work.csv", weight = 2.0 }\n',
    "open": "work = {}\npost = {}\n",
    "ladders": 'age = { range = [18, 90], step = 5 }\nwork = { hierarchy = "work.csv" }\n'
    'path = { path = "/", levels = 3 }\n',
}  # fmt: skip


def _write_job(case: Case, folder: Path) -> Path:
    work = [
        f"{leaf};{twig};{branch};*"
        for branch, twigs in WORK.items()
        for twig, leaves in twigs.items()
        for leaf in leaves
    ]
    (folder / "work.csv").write_text("\n".join(work) + "\n")
    ills = [f"{leaf};{node};*" for node, leaves in ILLS.items() for leaf in leaves]
    (folder / "ill.csv").write_text("\n".join(ills) + "\n")
    lines = ["[schema]", 'subject = "person"']
    if case.timed:
        lines.append('time = "at"')
    lines += ["[schema.quasi]", QUASI[case.quasi]]
    if case.sensitive:
        lines += ["[schema.sensitive]", 'ill = { hierarchy = "ill.csv" }']
    lines += ["[schema.keep]", 'columns = ["stay"]'] if case.algorithm != "z-anonymity" else []
    lines += ["[policy]", *(f"{key} = {_toml(value)}" for key, value in case.policy.items())]
    lines += ["[algorithm]", f'name = "{case.algorithm}"']
    lines += [f"{key} = {_toml(value)}" for key, value in case.knobs.items()]
    lines += ["[publish]", *(f"{key} = {_toml(value)}" for key, value in case.publish.items())]
    lines += ["[run]", "seed = 7"]
    if case.checkpoints:
        # Seldom, so that where files end doesn't depend on how fast the machine is.
        lines.append('checkpoint = { folder = "state", every = 3600 }')
    # Many rows of some cases come too late on purpose.
    lines += ["[bad_rows]", "limit = 1"]
    path = folder / "job.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def _shoal(*arguments: str) -> tuple[int, str]:
    """Run a command in this process: its exit code and its stdout."""
    from shoal.cli import main

    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["shoal", *arguments]),
        # The keys of pseudonyms don't come from the seed.
        mock.patch("secrets.token_bytes", lambda n=32: bytes(range(n))),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), out.getvalue()
    raise AssertionError("a command always exits")


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def _published(output: Path) -> bytes:
    files = sorted(output.iterdir()) if output.is_dir() else [output]
    return b"".join(
        file.name.encode() + b"\0" + file.read_bytes() for file in files if file.is_file()
    )


def digests(case: Case) -> dict[str, Any]:
    """Run a case: its exit codes, and digests of its output, trace, bad rows and audit."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path(name)
        job = _write_job(case, folder)
        source = folder / f"in.{case.formats[0]}"
        output, trace = folder / f"out.{case.formats[1]}", folder / "trace.parquet"
        rows = _people(case)
        flags = ["--undo-pseudonyms"] if case.publish.get("pseudonym") else []
        if case.checkpoints:
            output, trace = folder / "out", folder / "traces"
            flags += ["--to", case.formats[1]]
        end = "/" if case.checkpoints else ""
        command = [str(job), "-i", str(source), "-o", f"{output}{end}", "--trace", f"{trace}{end}"]
        if not case.checkpoints:
            _write_input(case, rows, source)
        else:
            source.mkdir()
            for part in range(3):
                cut = rows[part * N_ROWS // 3 : (part + 1) * N_ROWS // 3]
                _write_input(case, cut, source / f"part-{part}.{case.formats[0]}")
            flags += ["--from", case.formats[0]]
        code, _ = _shoal("run", *command, "-q", *flags)
        found: dict[str, Any] = {"exit": code}
        if code not in (0, 3):
            return found
        if output.exists():
            found["output"] = _digest(_published(output))
        if trace.exists():
            found["trace"] = _digest(_published(trace))
        bad = sorted(folder.glob("*quarantine*"))
        found["bad_rows"] = [_digest(file.read_bytes()) for file in bad]
        evidence = ["--original", str(source), "--trace", str(trace)]
        code, said = _shoal("audit", str(job), str(output), *evidence, "--json")
        found["audit_exit"], found["audit"] = code, _digest(said.encode())
        return found


def recorded() -> dict[str, dict[str, Any]]:
    """The digests on record, by the name of the case."""
    return json.loads(RECORD.read_text())  # type: ignore[no-any-return]


def main() -> int:
    """Record or check all cases, or those whose names contain a word."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=["record", "check"])
    parser.add_argument("word", nargs="?", default="")
    options = parser.parse_args()
    found = {}
    for case in CASES:
        if options.word in case.name:
            found[case.name] = digests(case)
    if not found:
        parser.error(f"no run has {options.word!r} in its name")
    if options.action == "record":
        everything = recorded() | found if options.word else found
        RECORD.write_text(json.dumps(everything, indent=1) + "\n")
        print(f"recorded {len(found)} runs")
        return 0
    before = recorded()
    wrong = {
        name: (before.get(name), now) for name, now in found.items() if before.get(name) != now
    }
    for name, (was, now) in wrong.items():
        print(f"{name}\n  was {was}\n  is  {now}")
    print(f"{len(found) - len(wrong)} of {len(found)} runs are identical")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
