"""How a live job does: ``python -m benchmarks.live throughput|checkpoints|soak``.

``throughput`` sets CASTLE against a job that decides nothing, from topic to topic; ``checkpoints``
tells what they cost; ``soak`` runs a job for as long as asked, watches it from outside and
judges whether memory, file handles and lag stay flat. A broker is started for each, or that of
``SHOAL_TEST_KAFKA`` is used. Targets of speed are reported, never enforced; a soak that isn't flat,
or that loses or doubles a row, ends with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.live_costs import (
    LiveSizes,
    checkpoints,
    checkpoints_text,
    throughput,
    throughput_text,
)
from benchmarks.machine_use import set_apart
from benchmarks.markdown import replace_section
from benchmarks.measure import machine, say
from benchmarks.options import add_options, sizes_of, tell
from benchmarks.soak import BROKER, Soak, soak
from benchmarks.soak_judge import judge, summary_text
from shoal.testing.broker import ENVIRONMENT, Broker

__all__ = ["main"]


@contextmanager
def a_broker(settings: Mapping[str, object] | None = None) -> Iterator[str]:
    """The address of a broker: one of our own, unless another is named."""
    if address := os.environ.get(ENVIRONMENT):
        yield address
        return
    with Broker(settings=settings) as broker:
        set_apart(broker.pid)
        yield broker.address


def costs(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    sizes = sizes_of(LiveSizes, parser, options)
    with a_broker() as address:
        if options.what == "throughput":
            found: Any = throughput(address, sizes, options.data)
            report = throughput_text(found)
        else:
            found = checkpoints(address, sizes, options.data)
            report = checkpoints_text(found)
    where = machine()
    report = (
        "Measured on {processor}, {cores} cores, which the broker shares; medians, with minimum "
        "and maximum in brackets.".format(**where)
        + f"\n\n{report}"
    )
    tell(options, f"live-{options.what}", {"machine": where, options.what: found}, report)
    return 0


def soaking(options: argparse.Namespace) -> int:
    from benchmarks.soak_plot import draw

    plan = Soak.quick() if options.quick else Soak()
    if options.minutes is not None:
        plan = replace(plan, seconds=60 * options.minutes)
    with a_broker(BROKER) as address:
        found = soak(address, plan, say)
    if not found.moments:
        raise SystemExit(f"the job published nothing:\n{found.said}")
    judgement = judge(found.moments, found.ledger, found.n_fed, found.exit_code)
    report = summary_text(found.moments, judgement)
    print(report)
    if found.said:
        say(f"the job said:\n{found.said}")
    if options.json is not None:
        values = judgement.as_dict() | {"moments": [asdict(moment) for moment in found.moments]}
        options.json.write_text(json.dumps(values) + "\n", encoding="utf-8")
    if options.figure is not None:
        draw(found.moments, options.figure)
    if options.write is not None:
        replace_section(options.write, "live-soak", report)
    return 0 if judgement.kept else 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ("throughput", "checkpoints"):
        one = commands.add_parser(name)
        add_options(one, rows="the census (default 1,000,000)")
        one.set_defaults(action=partial(costs, one))
    one = commands.add_parser("soak")
    one.add_argument("--minutes", type=float, help="for how long (default 30)")
    one.add_argument("--quick", action="store_true", help="seconds: does it work at all?")
    one.add_argument("--json", type=Path, metavar="FILE", help="write all that was seen here")
    one.add_argument("--figure", type=Path, metavar="SVG", help="draw all that was seen here")
    one.add_argument("--write", type=Path, metavar="PAGE", help="put the verdict in this page")
    one.set_defaults(action=soaking)
    options = parser.parse_args(arguments)
    code: int = options.action(options)
    return code


if __name__ == "__main__":
    sys.exit(main())
