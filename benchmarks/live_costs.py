"""What CASTLE costs from topic to topic, and what checkpoints do."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import runs
from benchmarks.live_runs import RARELY, Taken, castle, fill, pass_through
from benchmarks.machine_use import DISTURBED
from benchmarks.markdown import table
from benchmarks.measure import Sample, say
from benchmarks.workloads import census_file
from shoal.run.state.seal import Seal

__all__ = ["LiveSizes", "checkpoints", "checkpoints_text", "throughput", "throughput_text"]

#: CASTLE must reach at least this share of the pass-through's rows per second.
LEAST_SHARE = 0.5
#: This many times the rounds that are asked for are run at most, where other work disturbs.
MOST_ROUNDS = 2
#: The key of the sealed runs; it keeps nothing secret.
KEY = bytes(range(32))

Action = Callable[[], Taken]


@dataclass(frozen=True)
class LiveSizes:
    """How much is measured."""

    rows: int = 1_000_000
    #: Of a topic with one row to a message: that takes its time.
    single_rows: int = 100_000
    repeats: int = 5
    k: int = runs.K
    delay: int = runs.DELAY_ROWS
    message_rows: int = 1000
    #: For checkpoints the topic is filled this many times over: a run must last for some of them.
    times: int = 2
    often: tuple[float, ...] = (10.0, 1.0)
    warm_rows: int = 20_000

    @classmethod
    def quick(cls) -> LiveSizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=150, single_rows=60, repeats=1, k=5, delay=50, message_rows=10, times=1,
            often=(10.0, 0.001), warm_rows=60,
        )  # fmt: skip


def throughput(address: str, sizes: LiveSizes, folder: Path) -> list[dict[str, Any]]:
    """CASTLE and the pass-through in turn, by the form of messages and the rows in one."""
    workload = census_file(sizes.rows, folder)
    _warm(address, sizes, folder)
    found = []
    for form, message_rows, n_rows in (
        ("json", sizes.message_rows, sizes.rows),
        ("arrow", sizes.message_rows, sizes.rows),
        ("json", 1, sizes.single_rows),
    ):
        source = fill(address, workload, form, message_rows, n_rows)
        used, n_rounds = _rounds(
            sizes.repeats,
            lambda source=source: pass_through(source),
            lambda source=source: castle(source, k=sizes.k, delay=sizes.delay),
        )
        passing, deciding = ([pair[i] for pair in used] for i in (0, 1))
        ratio = _seconds(passing).per(_seconds(deciding))
        found.append(
            {
                "form": form,
                "message_rows": message_rows,
                "n_rows": n_rows,
                "k": sizes.k,
                "delay": sizes.delay,
                "rows_per_second": {
                    "pass-through": _speeds(passing).as_dict(),
                    "castle": _speeds(deciding).as_dict(),
                },
                "own_seconds": {
                    "pass-through": _own(passing).as_dict(),
                    "castle": _own(deciding).as_dict(),
                },
                "ratio": ratio.as_dict(),
                "target": LEAST_SHARE,
                "met": ratio.median >= LEAST_SHARE,
                "others": [_disturbance(pair) for pair in used],
                "n_rounds": {"used": len(used), "all": n_rounds},
            }
        )
    return found


def checkpoints(address: str, sizes: LiveSizes, folder: Path) -> dict[str, Any]:
    """The same job with checkpoints from never to often, unsealed and sealed."""
    workload = census_file(sizes.rows, folder)
    _warm(address, sizes, folder)
    source = fill(address, workload, "json", sizes.message_rows, sizes.rows, sizes.times)
    knobs = {"k": sizes.k, "delay": sizes.delay}
    ways: list[tuple[float, Seal | None]] = [
        (RARELY, None),
        *((every, None) for every in sizes.often),
        (sizes.often[-1], Seal(KEY)),
    ]
    used, n_rounds = _rounds(
        min(3, sizes.repeats),
        *(
            lambda every=every, seal=seal: castle(source, **knobs, every=every, seal=seal)
            for every, seal in ways
        ),
    )
    never = [turn[0] for turn in used]
    lines = []
    for place, (every, seal) in enumerate(ways):
        taken = [turn[place] for turn in used]
        saved = [one for run in taken for one in run.saved]
        lines.append(
            {
                "every": every,
                "sealed": seal is not None,
                "n_checkpoints": [len(run.saved) for run in taken],
                "rows_per_second": _speeds(taken).as_dict(),
                "share": _seconds(never).per(_seconds(taken)).as_dict(),
                "own_share": _own(never).per(_own(taken)).as_dict(),
                "bytes": _figures([float(n_bytes) for n_bytes, _ in saved]),
                "save_seconds": _figures([seconds for _, seconds in saved]),
                "stop_seconds": _figures([s for run in taken for s in run.stopped]),
                "roll_seconds": _figures([s for run in taken for s in run.rolled]),
            }
        )
    return {
        "n_rows": source.n_rows,
        "k": sizes.k,
        "delay": sizes.delay,
        "ways": lines,
        "seal_seconds": _figures(_sealing(max((n_bytes for n_bytes, _ in saved), default=0))),
        "others": [_disturbance(turn) for turn in used],
        "n_rounds": {"used": len(used), "all": n_rounds},
    }


def _sealing(n_bytes: int) -> list[float]:
    """The processor seconds of sealing this many bytes, some times."""
    seal, data = Seal(KEY), bytes(n_bytes)
    seconds = []
    for _ in range(10):
        begin = time.thread_time()
        seal.close(data, b"benchmark")
        seconds.append(time.thread_time() - begin)
    return seconds


def _warm(address: str, sizes: LiveSizes, folder: Path) -> None:
    """Load the kernels, and let the broker's Java get going."""
    n_rows = sizes.warm_rows
    source = fill(address, census_file(n_rows, folder), "json", sizes.message_rows, n_rows)
    pass_through(source)
    castle(source, k=sizes.k, delay=sizes.delay)


def _rounds(repeats: int, *actions: Action) -> tuple[list[list[Taken]], int]:
    """Run actions in turn; give the rounds that were disturbed least, and how many were run.

    Rounds are repeated until enough of them are undisturbed, up to a limit.
    Every other round goes backwards, so that no action always follows the same one.
    """
    rounds: list[list[Taken]] = []
    while len(rounds) < MOST_ROUNDS * repeats:
        turn: dict[int, Taken] = {}
        order: Sequence[int] = range(len(actions))
        for i in order if len(rounds) % 2 == 0 else reversed(order):
            gc.collect()
            turn[i] = actions[i]()
        rounds.append([turn[i] for i in order])
        reported = ", ".join(f"{one.seconds:.1f} s" for one in rounds[-1])
        say(f"round {len(rounds)}: {reported}; others {100 * _disturbance(rounds[-1]):.0f} %")
        if sum(_disturbance(one) <= DISTURBED for one in rounds) >= repeats:
            break
    return sorted(rounds, key=_disturbance)[:repeats], len(rounds)


def _disturbance(taken: Sequence[Taken]) -> float:
    return max(one.others for one in taken)


def _seconds(taken: Sequence[Taken]) -> Sample:
    return Sample(tuple(one.seconds for one in taken))


def _own(taken: Sequence[Taken]) -> Sample:
    return Sample(tuple(one.own_seconds for one in taken))


def _speeds(taken: Sequence[Taken]) -> Sample:
    return Sample(tuple(one.rows_per_second for one in taken))


def _figures(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


# -- telling ---------------------------------------------------------------------------------------


def throughput_text(found: Sequence[dict[str, Any]]) -> str:
    """The results as Markdown."""
    rows = [
        [
            one["form"],
            f"{one['message_rows']:,}",
            f"{one['n_rows']:,}",
            _thousands(one["rows_per_second"]["pass-through"]),
            _thousands(one["rows_per_second"]["castle"]),
            spread(one["ratio"]),
            "met" if one["met"] else "**not met**",
            f"{one['own_seconds']['pass-through']['median']:.1f} and "
            f"{one['own_seconds']['castle']['median']:.1f}",
            f"{100 * max(one['others']):.0f} %",
        ]
        for one in found
    ]
    first = found[0]
    return (
        f"CASTLE with k = {first['k']} and a delay of {first['delay']:,} rows, checkpoints every "
        f"10 s; the target is a ratio of at least {first['target']:g}.\n\n"
        + table(
            ["messages", "rows in one", "rows", "pass-through, 1000 rows/s", "CASTLE, 1000 rows/s",
             "ratio", "target", "processor seconds of both", "other work"],
            rows,
        )
        + "\n\n"
        + _others(found)
    )  # fmt: skip


def checkpoints_text(found: dict[str, Any]) -> str:
    """The results as Markdown."""
    rows = []
    for one in found["ways"]:
        often = "never" if one["every"] == RARELY else f"every {one['every']:g} s"
        rows.append(
            [
                often + ", sealed" * one["sealed"],
                f"{statistics.median(one['n_checkpoints']):g}",
                _thousands(one["rows_per_second"]),
                spread(one["share"]),
                spread(one["own_share"]),
                _of(one["bytes"], 1e6, 1),
                _of(one["save_seconds"], 1e-3, 0),
                _of(one["stop_seconds"], 1e-3, 1),
                _of(one["roll_seconds"], 1e-3, 1),
            ]
        )
    return (
        f"{found['n_rows']:,} rows of JSON, CASTLE with k = {found['k']} and a delay of "
        f"{found['delay']:,} rows.\n\n"
        + table(
            ["checkpoints", "in a run", "1000 rows/s", "speed, to never", "processor, to never",
             "MB each", "ms to write", "ms of deciding", "of these, journal"],
            rows,
        )
        + "\n\n"
        + " ".join(_shares(one) for one in found["ways"] if one["save_seconds"])
        + f" Of that, sealing takes {_of(found['seal_seconds'], 1e-3, 0)} ms of processor time."
        + "\n\n"
        + _others([found])
    )  # fmt: skip


def _shares(way: dict[str, Any]) -> str:
    """How much of their time both threads have lost to checkpoints."""
    stopped, writing = (
        spread({n: 100 * v / way["every"] for n, v in way[name].items()})
        for name in ("stop_seconds", "save_seconds")
    )
    return (
        f"Every {way['every']:g} s{', sealed' * way['sealed']}: deciding stops for "
        f"{stopped} % of the time, and the writing thread works on it for {writing} %."
    )


def spread(sample: dict[str, Any], digits: int = 2) -> str:
    """Median, least and most."""
    median, least, most = (f"{sample[name]:,.{digits}f}" for name in ("median", "least", "most"))
    return f"{median} ({least} to {most})"


def _thousands(sample: dict[str, Any]) -> str:
    return spread({name: sample[name] / 1000 for name in ("median", "least", "most")}, 0)


def _of(reported: dict[str, float] | None, unit: float, digits: int) -> str:
    return "–" if reported is None else spread({n: v / unit for n, v in reported.items()}, digits)


def _others(found: Sequence[dict[str, Any]]) -> str:
    used, rounds = (sum(one["n_rounds"][name] for one in found) for name in ("used", "all"))
    others = max(share for one in found for share in one["others"])
    return (
        f"These are the {used} least disturbed of {rounds} rounds; in them, other work had up to "
        f"{100 * others:.0f} % of the machine."
    )
