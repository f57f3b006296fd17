"""Where a schema registry is, and who asks it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from shoal.errors import JobError, Problem, did_you_mean
from shoal.io.secret_settings import in_clear, is_reference, look_up

__all__ = ["FILES", "FORMATS", "SETTINGS", "RegistrySettings", "wrong_paths"]

#: The formats whose schemas are in a registry.
FORMATS = ("avro", "protobuf")
#: The settings that are paths of files.
FILES = ("ca", "cert", "key")
#: All settings of the connection.
SETTINGS = ("username", "password", "token", *FILES)
_SECRETS = ("password", "token")
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


@dataclass(frozen=True)
class RegistrySettings:
    """A schema registry.

    Parameters
    ----------
    url
        Where it answers; several with commas between them.
    settings
        Of the connection: user, password or token, and TLS. No secret is among them: each is
        ``env:NAME``, the name of an environment variable, or ``file:PATH``.

    Raises
    ------
    JobError
        With all problems.

    >>> RegistrySettings("http://localhost:8081", {"username": "ann", "password": "hunter2"})
    Traceback (most recent call last):
    ...
    shoal.errors.JobError: registry_settings.password: is a secret in plain text. \
Write "env:NAME" or "file:PATH", and keep the secret there.
    """

    url: str
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))
        if problems := [*self._wrong_urls(), *self._wrong_settings()]:
            raise JobError(problems)

    @property
    def where(self) -> str:
        """The registry, for messages."""
        return f"schema registry {self.url}"

    def resolved(self) -> dict[str, Any]:
        """Return the settings as the client names them, with every secret looked up.

        Raises
        ------
        JobError
            If an environment variable isn't set.
        ResourceError
            If the file of a secret can't be read.
        """
        given = {
            name: look_up(f"registry_settings.{name}", str(value))
            if name not in FILES and is_reference(value)
            else value
            for name, value in self.settings.items()
        }
        names = {
            "ca": "ssl.ca.location",
            "cert": "ssl.certificate.location",
            "key": "ssl.key.location",
        }
        found = {client: given[name] for name, client in names.items() if name in given}
        if "username" in given:
            found["basic.auth.user.info"] = f"{given['username']}:{given['password']}"
        if "token" in given:
            found["bearer.auth.credentials.source"] = "STATIC_TOKEN"
            found["bearer.auth.token"] = given["token"]
            # The client asks for these of Confluent's cloud; other registries ignore them.
            found["bearer.auth.logical.cluster"] = found["bearer.auth.identity.pool.id"] = ""
        return found

    def _wrong_urls(self) -> list[Problem]:
        for url in self.url.split(","):
            try:
                parts = urlsplit(url.strip())
                is_right = parts.scheme in ("http", "https") and bool(parts.hostname)
                has_user = "@" in parts.netloc
            except ValueError:
                is_right, has_user = False, "@" in url
            if has_user:
                # Not shown: it may have a password in it.
                fix = "Write username and password in registry_settings"
                return [Problem("registry", "has a user in its address", None, fix)]
            if not is_right:
                fix = "Write http://host:port or https://host"
                return [Problem("registry", "isn't an address of a registry", repr(url), fix)]
        return []

    def _wrong_settings(self) -> list[Problem]:
        given, problems = self.settings, []
        for name, value in given.items():
            key = f"registry_settings.{name}"
            if name not in SETTINGS:
                near = did_you_mean(name, SETTINGS)
                problems.append(Problem(key, "isn't a known setting", None, near))
            elif name in _SECRETS and not is_reference(value):
                problems.append(in_clear(key))
            elif not isinstance(value, str):
                problems.append(Problem(key, "must be a text"))
        if ("username" in given) != ("password" in given):
            lacks = "password" if "username" in given else "username"
            what = "is missing: a user and a password go together"
            problems.append(Problem(f"registry_settings.{lacks}", what))
        if "token" in given and "username" in given:
            problems.append(Problem("registry_settings.token", "is given, and so is a user"))
        if "key" in given and "cert" not in given:
            what = "is the key of registry_settings.cert, which is missing"
            problems.append(Problem("registry_settings.key", what))
        if any(name in given for name in FILES) and "https://" not in self.url:
            what = "has certificates in registry_settings, and isn't encrypted"
            problems.append(Problem("registry", what, repr(self.url), "Write https://…"))
        return problems


def wrong_paths(fields: Mapping[str, str]) -> list[Problem]:
    """Return the problems of the paths of columns.

    >>> [problem.key for problem in wrong_paths({"zip": "address.zip", "x": "a[0]"})]
    ['fields.x']
    """
    fix = "Write names of fields with dots between them: address.zip"
    return [
        Problem(f"fields.{name}", "isn't a path", repr(path), fix)
        for name, path in fields.items()
        if not _PATH.fullmatch(path)
    ]
