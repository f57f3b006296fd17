"""``--page``: what the live page tells about a job, and how it is opened."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli.terminal import print_message
from shoal.engine.base import Anonymizer
from shoal.errors import JobError, Problem
from shoal.job import Job
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

if TYPE_CHECKING:
    from shoal.run.observe import PageServer
    from shoal.run.observe.listener import Route

__all__ = ["PageOptions", "described", "described_job", "open_page"]

#: The seconds between two changes of the figures, as in ``/metrics``.
INTERVAL = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """The options of the live page.

    Parameters
    ----------
    address
        Host and port.
    token
        Where the token is: ``file:PATH`` or ``env:NAME``; None: there is none.
    certificate, key
        Files of PEM for TLS.
    hosts
        Further names under which the page may be asked for.
    """

    address: str
    token: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    hosts: tuple[str, ...] = ()

    @classmethod
    def given(
        cls,
        address: str | None,
        token: str | None,
        certificate: Path | None,
        key: Path | None,
        hosts: list[str] | None,
    ) -> PageOptions | None:
        """Return the options of a command line, or None without ``--page``.

        Raises
        ------
        JobError
            If an option has nothing to belong to.
        """
        others: dict[str, object] = {
            "--page-token": token, "--page-cert": certificate, "--page-key": key,
            "--page-host": hosts or None,
        }  # fmt: skip
        if address is None:
            for name, value in others.items():
                if value is not None:
                    what, fix = "needs --page", "Add --page 127.0.0.1:8800"
                    raise JobError(Problem(name, what, None, fix))
            return None
        if key is not None and certificate is None:
            raise JobError(Problem("--page-key", "needs --page-cert", None, None))
        return cls(
            address=address, token=token, certificate=certificate, key=key,
            hosts=tuple(hosts or ()),
        )  # fmt: skip


def open_page(
    options: PageOptions,
    job: dict[str, Any],
    *,
    with_metrics: bool = False,
    routes: Mapping[str, Route] | None = None,
    interval: float | None = None,
    activity: Callable[[], str | None] = lambda: None,
) -> PageServer:
    """Open the page, and warn if its token would cross a network in clear, also with ``-q``."""
    from shoal.report.style import STYLE
    from shoal.run.observe import PageServer
    from shoal.run.observe.access import is_loopback, read_address, read_token

    token = None if options.token is None else read_token(options.token)
    page = PageServer(
        options.address, job=job, style=STYLE, token=token,
        interval=INTERVAL if interval is None else interval,
        certificate=options.certificate, key=options.key, hosts=options.hosts,
        with_metrics=with_metrics, activity=activity, routes=routes,
    )  # fmt: skip
    host, _ = read_address("--page", options.address, "8800")
    if options.certificate is None and not is_loopback(host):
        print_message(
            "warning: --page without --page-cert sends the token and all data unencrypted: use it "
            "only behind a proxy that encrypts"
        )
    return page


def described_job(
    job: Job, ends: tuple[str, str], checkpoints: str | None = None
) -> dict[str, Any]:
    """Return what the page tells about a job file, its input and its output.

    ``checkpoints`` says when they are taken, if it isn't as the job says.
    """
    every = None if job.checkpoints is None or checkpoints is not None else job.checkpoints.every
    if checkpoints is None:
        checkpoints = "none" if every is None else f"every {every:g} s"
    more = {
        "input": ends[0],
        "output": ends[1],
        "bad rows": job.bad_rows.action,
        "checkpoints": checkpoints,
    }
    return described(job.name, job.schema, job.policy, job.anonymizer, more) | {
        "checkpoint_every": every
    }


def described(
    name: str, schema: Schema, policy: Policy, anonymizer: Anonymizer, more: dict[str, str]
) -> dict[str, Any]:
    """Return names, kinds and numbers of a job: no value of a person, no path, no secret."""
    from shoal.report.parts.promise import promises

    columns = [] if schema.subject is None else [[schema.subject, "subject", "never published"]]
    if schema.time is not None:
        columns.append([schema.time, "time", "in seconds"])
    columns += [[quasi.name, "quasi", _kind(quasi.domain)] for quasi in schema.quasi]
    columns += [[each.name, "sensitive", _kind(each.domain)] for each in schema.sensitive]
    columns += [[kept, "keep", "published as it is"] for kept in schema.keep]
    knobs = [
        [f"knob {field.name}", _shown(getattr(anonymizer, field.name))]
        for field in dataclasses.fields(anonymizer)
    ]
    delay = policy.delay
    return {
        "name": name,
        "promises": [[each["name"], each["parameters"]] for each in promises(policy)],
        "columns": columns,
        "how": [["algorithm", anonymizer.name], *knobs, *([k, v] for k, v in more.items())],
        "delay": None if delay is None else {"rows": delay.rows, "seconds": delay.seconds},
        "checkpoint_every": None,
    }


def _kind(domain: object) -> str:
    """Return the kind of a domain, without the values in it."""
    kinds = {
        "Range": "numbers", "Hierarchy": "categories in a hierarchy", "NoneType": "open",
        "Open": "open", "Path": "paths", "Grid": "cells in a grid",
    }  # fmt: skip
    return kinds.get(type(domain).__name__, "values")


def _shown(value: object) -> str:
    return "default" if value is None else str(value)
