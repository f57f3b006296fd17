"""Follow the tutorials as a reader does: commands in order, in an empty folder, outputs compared.

python -m tests.docs.tutorials        follow all of them; write how long they take into their index
python -m tests.docs.tutorials 1 4    follow these two; with -v, print what their commands print

A page has three kinds of steps:

- a block of ``console``: each line after ``$`` is typed, and what the page shows below it must be
  what is printed, stderr included. ``…`` stands for anything. A command that fails is followed by
  ``$ echo $?``;
- a block below ``<!-- file NAME -->`` is the text of a file that the reader saves, and one below
  ``<!-- more NAME -->`` is added to its end;
- a block of ``diff`` below ``<!-- edit NAME -->`` is a change that the reader makes to one.

What is below ``<!-- by hand: … -->`` isn't done here, for the reason that the comment says.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from tests.docs.test_docs import FENCE, ROOT, Block, blocks

FOLDER = ROOT / "docs" / "tutorials"
INDEX = FOLDER / "README.md"
#: No command of a tutorial takes longer, not even on a busy machine.
TIMEOUT_SECONDS = 3600
#: What pages say and a test can't count on: the broker of `make broker`, and a port for the page.
BROKER, PAGE = "127.0.0.1:9092", "127.0.0.1:8800"
TIMES = re.compile(r"(?<=<!-- Written by `python -m tests\.docs\.tutorials`\. -->\n).*?(?=\n<!-- End)", re.S)  # fmt: skip  # noqa: E501


class Command(NamedTuple):
    """A command, and what the page says that it prints."""

    line: int
    text: str
    expected: str
    may_fail: bool


class Pace(NamedTuple):
    """How long the commands of a tutorial took: all together, and the processor."""

    n_commands: int
    seconds: float
    processor_seconds: float


def pages() -> list[Path]:
    """The tutorials, in their order."""
    return sorted(FOLDER.glob("[0-9]-*.md"))


def commands(block: Block) -> Iterator[Command]:
    """The commands of a block of the console; a line that begins with ``>`` continues one."""
    first, *parts = re.split(r"^\$ ", block.text, flags=re.M)
    assert not first, f"{block}: begins with output"
    line = block.line + 1
    for i, part in enumerate(parts):
        typed, *rest = part.splitlines()
        while rest and rest[0].startswith("> "):
            typed += "\n" + rest.pop(0)[2:]
        may_fail = parts[i + 1 :][:1] != [] and parts[i + 1].startswith("echo $?\n")
        yield Command(line, typed, "\n".join(rest), may_fail)
        line += part.count("\n")


def is_as_shown(expected: str, got: str) -> bool:
    """Whether an output is the one on the page, where ``…`` stands for anything."""
    shown, printed = (
        "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
        for text in (expected, got)
    )
    pattern = ".*?".join(map(re.escape, shown.split("…")))
    return re.fullmatch(pattern, printed, re.S) is not None


def edited(text: str, change: str) -> str:
    """Apply a change that is written as a diff: its old lines must be in the text once."""
    lines = change.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(old) == 1, f"{text.count(old)} places instead of one have:\n{old}"
    return text.replace(old, new)


class Shell:
    """A bash in which commands run one after the other, as in a terminal."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], cwd=folder, env=dict(environment), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip

    def run(self, command: str) -> tuple[int, str]:
        """Run a command; return its exit code and all that it printed."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        mark = uuid.uuid4().hex
        # The next command may ask for the exit code of this one.
        self._bash.stdin.write(
            f"{{ {command}\n}} < /dev/null\n_code=$?; echo {mark} $_code; (exit $_code)\n"
        )
        self._bash.stdin.flush()
        printed = ""
        timer = threading.Timer(TIMEOUT_SECONDS, self._kill)
        timer.start()
        try:
            while mark not in printed:
                line = self._bash.stdout.readline()
                assert line, f"the shell ended, or a command took too long:\n{command}\n{printed}"
                printed += line
        finally:
            timer.cancel()
        output, _, code = printed.rpartition(mark)
        return int(code), output

    def processor_seconds(self) -> float:
        """How long the processor worked for all commands that have ended."""
        of_children = self.run("times")[1].splitlines()[1].split()
        minutes, seconds = zip(*(word.rstrip("s").split("m") for word in of_children), strict=True)
        return 60 * sum(map(float, minutes)) + sum(map(float, seconds))

    def close(self) -> None:
        """End the shell, and what it has left in the background."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.close()
        self._kill()
        self._bash.wait()
        self._bash.stdout.close()

    def _kill(self) -> None:
        """Kill the session of the shell, which is its own."""
        with suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGKILL)


def environment(tools: Path, here: Mapping[str, str]) -> dict[str, str]:
    """What a reader has after the set-up: the programs on the path, and where the examples are."""
    tools.mkdir(parents=True, exist_ok=True)
    examples = shutil.copytree(
        ROOT / "examples", tools / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    for job in examples.rglob("*.toml"):
        job.write_text(replaced(job.read_text(), here))
    python = shlex.quote(sys.executable)
    for name, words in {"python": "", "shoal": '-c "from shoal.cli import main; main()" '}.items():
        program = tools / name
        program.write_text(f'#!/bin/sh\nexec {python} {words}"$@"\n')
        program.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path))),
        "EXAMPLES": str(examples),
        "COLUMNS": "100",
    }


def follow(page: Path, folder: Path, here: Mapping[str, str] | None = None) -> Pace:
    """Do all that a page says, in an empty folder; ``here`` has other words for some of it."""
    here = here or {}
    folder.mkdir(parents=True, exist_ok=True)
    shell = Shell(folder, environment(folder.parent / f"{folder.name}-tools", here))
    started, n_commands = time.monotonic(), 0
    try:
        for block in blocks(page):
            if block.mark.startswith("by hand: "):
                continue
            verb, _, name = block.mark.partition(" ")
            if verb in ("file", "more", "edit"):
                path = Path(shell.run("pwd")[1].strip()) / name
                before = "" if verb == "file" else path.read_text()
                text = replaced(block.text, here)
                path.write_text(edited(before, text) if verb == "edit" else before + text)
                continue
            for command in commands(block) if block.kind == "console" else ():
                _do(shell, block.page, command, here)
                n_commands += 1
        return Pace(n_commands, time.monotonic() - started, shell.processor_seconds())
    finally:
        shell.close()


def _do(shell: Shell, page: str, command: Command, here: Mapping[str, str]) -> None:
    code, printed = shell.run(replaced(command.text, here))
    got = replaced(printed, {other: word for word, other in here.items()})
    if "-v" in sys.argv:
        print(f"$ {command.text}\n{got}", end="", flush=True)
    where = f"{page}:{command.line}: $ {command.text}\n"
    assert is_as_shown(command.expected, got), f"{where}prints:\n{got}\nnot:\n{command.expected}"
    assert command.may_fail or code == 0, f"{where}has exit code {code}; show it by `echo $?`"


def replaced(text: str, words: Mapping[str, str]) -> str:
    for word, other in words.items():
        text = text.replace(word, other)
    return text


def free_port() -> str:
    """An address on which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def with_broker(stack: ExitStack) -> dict[str, str]:
    """A broker with the topics of `make broker`, and a free port for the page."""
    from shoal.testing.broker import create_topics, find_broker

    address = stack.enter_context(find_broker())
    create_topics({"bootstrap.servers": address}, ["people", "public"])
    return {BROKER: address, PAGE: free_port()}


def n_words(page: Path) -> int:
    """How many words a reader reads, without the blocks."""
    return len(FENCE.sub("", page.read_text(encoding="utf-8")).split())


def line(page: Path, pace: Pace) -> str:
    """The line of a tutorial in the table of times."""
    title = page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
    kernels = "plain Python" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "compiled"
    return (
        f"| [{title}]({page.name}) | {n_words(page)} | {pace.n_commands} | {kernels} "
        f"| {pace.seconds:.0f} s | {pace.processor_seconds:.0f} s |"
    )


def with_line(index: str, page: Path, new: str) -> str:
    """The index with another line for a tutorial in its table of times."""
    head, *lines = TIMES.search(index).group().split("\n|--", 1)  # type: ignore[union-attr]
    rule, *rows = lines[0].splitlines()
    kept = {row.split("](")[1].partition(")")[0]: row for row in rows} | {page.name: new}
    return TIMES.sub(
        lambda _: "\n".join([head, f"|--{rule}", *(kept[name] for name in sorted(kept))]), index
    )


def main(numbers: list[str]) -> None:
    for page in pages():
        if numbers and page.name[0] not in numbers:
            continue
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "empty"
            here = with_broker(stack) if "kafka" in page.name else {}
            found = line(page, follow(page, folder, here))
        print(found, flush=True)
        index = with_line(INDEX.read_text(encoding="utf-8"), page, found)
        INDEX.write_text(index, encoding="utf-8")


if __name__ == "__main__":
    main([word for word in sys.argv[1:] if not word.startswith("-")])
