"""The properties of a catalog: which of them are secrets, and what a local catalog needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.errors import Problem
from shoal.io.secret_settings import in_clear, is_reference, look_up

__all__ = ["check_settings", "local_catalog", "names_place", "resolved"]

_SECRET = re.compile(
    r"password|passphrase|secret|credential|token$|account-key|sas-token|access-key$"
    r"|connection-string|authorization",
    re.I,
)
#: An address with a password in it.
_WITH_PASSWORD = re.compile(r"[^/]*//[^/@]*:[^/@]+@")


def names_place(value: object) -> bool:
    """Return whether a value names the place of a secret; an address is none.

    >>> names_place("file:secret"), names_place("file:///srv/lake")
    (True, False)
    """
    return is_reference(value) and not str(value).startswith("file://")


def check_settings(settings: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of secrets that stand in clear.

    >>> [str(each) for each in check_settings({"s3.secret-access-key": "hunter2"})]
    ['settings.s3.secret-access-key: is a secret in plain text. Write "env:NAME" or \
"file:PATH", and keep the secret there.']
    >>> check_settings({"uri": "env:CATALOG", "s3.endpoint": "http://127.0.0.1:9000"})
    []
    """
    return [
        in_clear(f"settings.{name}")
        for name, value in settings.items()
        if not names_place(value)
        and (_SECRET.search(name) or (isinstance(value, str) and _WITH_PASSWORD.match(value)))
    ]


def resolved(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties as the client takes them, with every secret looked up."""
    found = {}
    for name, value in settings.items():
        if names_place(value):
            found[name] = look_up(f"output.settings.{name}", value)
        else:
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def local_catalog(folder: str) -> dict[str, str]:
    """Return the properties of a catalog in a local folder, whose files are synced to the disk."""
    there = Path(folder).absolute()
    return {
        "type": "sql",
        "uri": f"sqlite:///{there / 'catalog.db'}",
        "warehouse": there.as_uri(),
        "py-io-impl": "shoal.io.iceberg.synced_files.SyncedFileIO",
    }
