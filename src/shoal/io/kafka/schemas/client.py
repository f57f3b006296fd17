"""Ask a schema registry for schemas, and register the one of the output."""

from __future__ import annotations

import functools
import logging
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from shoal.errors import JobError, Problem, ResourceError, install_hint
from shoal.events import sentence
from shoal.io.kafka.schemas.settings import RegistrySettings

__all__ = ["AwayError", "Registered", "Registry"]

LOG = logging.getLogger("shoal.kafka.registry")
T = TypeVar("T")

#: The time, in seconds, that a registry has to answer when a job starts.
OPEN_SECONDS = 15.0
#: The timeout, in seconds, of one request, and the pause before the next.
ASK_SECONDS, PAUSE_SECONDS = 5.0, 1.0
#: The maximum number of schemas that a schema may refer to, with those that they refer to.
MOST_REFERENCES = 200


class AwayError(ResourceError):
    """No registry answers, and nobody waits any longer."""


@dataclass(frozen=True)
class Registered:
    """A schema of a registry.

    Parameters
    ----------
    kind
        ``AVRO``, ``PROTOBUF`` or ``JSON``.
    text
        The schema.
    references
        The schemas that it refers to, by the names under which it does, each after those that it
        refers to itself.
    """

    kind: str
    text: str
    references: dict[str, str]


class Registry:
    """A schema registry. While it doesn't answer, calls wait; at the start not for long.

    Parameters
    ----------
    settings
        Where it is. Secrets are looked up here, and nowhere else.
    stopped
        Set to end a call that waits.
    client
        The client of the registry; by default one of ``confluent-kafka``.
    """

    def __init__(
        self, settings: RegistrySettings, stopped: threading.Event, client: Any = None
    ) -> None:
        self._library = _library()
        self._settings = settings
        self._stopped = stopped
        self._has_answered = False
        #: Whether no registry answered last.
        self.is_away = False
        self._client = client or self._connected()

    def _connected(self) -> Any:
        given = {"url": self._settings.url, "timeout": ASK_SECONDS, "max.retries": 0}
        try:
            return self._library.SchemaRegistryClient(given | self._settings.resolved())
        except (OSError, ValueError) as error:
            if isinstance(error, ssl.SSLError | OSError):
                what = (
                    "the certificates can't be used. Check that the files of registry_settings.ca, "
                    "cert and key are there, in PEM format, and that the key isn't encrypted"
                )
                raise ResourceError(f"{self._settings.where}: {what}.") from None
            what = "are rejected by the client"
            raise JobError(Problem("registry_settings", what), where=self._settings.where) from None

    @property
    def where(self) -> str:
        """The registry, for messages."""
        return self._settings.where

    def check(self) -> None:
        """Raise `ResourceError` if no registry answers, or it refuses."""
        self._ask(lambda: self._client.get_subjects(limit=1))

    def close(self) -> None:
        """Close the connections. Closing twice does no harm."""
        self._client.close()

    def schema(self, number: int) -> Registered | None:
        """Return the schema with an id; None if there is none.

        Raises
        ------
        ResourceError
            If the registry refuses, or has lost a schema that this one refers to.
        AwayError
            If no registry answers, at the start or until this is stopped.
        """
        found = self._ask(lambda: self._client.get_schema(number))
        return None if found is None else self._registered(found, f"schema {number}")

    def latest(self, subject: str) -> Registered | None:
        """Return the newest schema of a subject; None if there is none."""
        found = self._ask(lambda: self._client.get_latest_version(subject))
        return None if found is None else self._registered(found.schema, f"subject {subject}")

    def subjects(self) -> list[str]:
        """Return the names of the subjects."""
        return list(self._ask(self._client.get_subjects) or [])

    def register(self, subject: str, kind: str, text: str) -> int:
        """Register a schema, if the registry has it not yet; return its id.

        Raises
        ------
        ResourceError
            If it isn't compatible with those that the subject has.
        """
        schema = self._library.Schema(text, kind)
        known = self._ask(lambda: self._client.lookup_schema(subject, schema))
        if known is not None:
            return int(known.schema_id)
        fits = self._ask(lambda: self._client.test_compatibility(subject, schema))
        number = None
        # Where there is no such subject yet, there is nothing to be compatible with.
        if fits is not False:
            number = self._ask(lambda: self._client.register_schema(subject, schema))
        if number is None:
            raise ResourceError(
                f"{self._settings.where}: the columns of the output aren't compatible with the "
                f"schema that subject {subject} has, by the rule that the registry has for it. "
                "Publish to another topic or subject (output.subject), or change the rule if "
                "the readers can take the new columns. No row was published."
            )
        return int(number)

    def _registered(self, schema: Any, who: str) -> Registered:
        references: dict[str, str] = {}
        self._resolve(schema.references or [], references, who)
        return Registered(schema.schema_type or "AVRO", schema.schema_str, references)

    def _resolve(self, wanted: Any, found: dict[str, str], who: str) -> None:
        for one in wanted:
            if one.name in found:
                continue
            if len(found) >= MOST_REFERENCES:
                raise ResourceError(
                    f"{self._settings.where}: {who} refers to more than {MOST_REFERENCES} others."
                )
            ask = functools.partial(
                self._client.get_version, one.subject, one.version, deleted=True
            )
            version = self._ask(ask)
            if version is None:
                raise ResourceError(
                    f"{self._settings.where}: {who} refers to version {one.version} of subject "
                    f"{one.subject}, which isn't there. Register it again."
                )
            found[one.name] = ""
            self._resolve(version.schema.references or [], found, who)
            # Again, so that it comes after what it refers to.
            del found[one.name]
            found[one.name] = version.schema.schema_str

    def _ask(self, call: Callable[[], T]) -> T | None:
        """Make a call; None if what it asks for isn't there, or isn't compatible."""
        end = time.monotonic() + OPEN_SECONDS
        while True:
            try:
                answer = call()
            except self._library.SchemaRegistryError as error:
                status = int(error.http_status_code)
                if status in (404, 409):
                    self._answered()
                    return None
                if status in (401, 403):
                    raise self._refusal(status) from None
                if status < 500 and status != 429:
                    # What the registry says may quote a schema, which has names only.
                    text = f"{self._settings.where}: answers {status}: {error.error_message}"
                    raise ResourceError(text) from None
                why = f"it answers {status}"
            except (TypeError, AttributeError):
                # No answer of a registry, but a client that isn't the one that is expected.
                raise
            except Exception as error:
                if _is_untrusted(error):
                    raise ResourceError(
                        f"{self._settings.where}: its certificate can't be verified, or it doesn't "
                        "accept the one of the job. Check ca, cert and key of registry_settings."
                    ) from None
                why = _reason(error)
            else:
                self._answered()
                return answer
            self._wait(why, end)

    def _answered(self) -> None:
        self._has_answered = True
        if self.is_away:
            self.is_away = False
            text = f"{self._settings.where}: the registry is back"
            sentence(LOG, logging.WARNING, "registry back", text)

    def _wait(self, why: str, end: float) -> None:
        if self._stopped.is_set() or (not self._has_answered and time.monotonic() > end):
            raise AwayError(
                f"{self._settings.where}: no registry answers ({why}). Is it running, and is the "
                "address right?"
            )
        if not self.is_away and self._has_answered:
            text = f"{self._settings.where}: no registry answers; waiting for it to come back"
            sentence(LOG, logging.WARNING, "registry away", text)
        self.is_away = True
        self._stopped.wait(PAUSE_SECONDS)

    def _refusal(self, status: int) -> ResourceError:
        if status == 401:
            what = "it doesn't accept the user or the password. Check registry_settings"
        else:
            what = "it doesn't allow this. Check the permissions of the user"
        return ResourceError(f"{self._settings.where}: {what}.")


def _library() -> Any:
    try:
        import confluent_kafka.schema_registry
    except ImportError:
        what = "needs the client of a schema registry, which isn't installed"
        fix = install_hint("registry")
        raise JobError(Problem("registry", what, None, fix)) from None
    return confluent_kafka.schema_registry


def _is_untrusted(error: BaseException | None) -> bool:
    """Return whether TLS failed: waiting doesn't help."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _reason(error: BaseException) -> str:
    """Return why a request failed, without its address, which is said already."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OSError) and found.strerror:
            return str(found.strerror)
        found = found.__cause__ or found.__context__
    return type(error).__name__
