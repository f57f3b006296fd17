"""What source and sink share: creating clients, looking up a topic, and handling their errors.

librdkafka reconnects automatically. Added here are one log message when no broker answers, one when
a broker is back, and an immediate error where waiting can't help.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from shoal.errors import JobError, Problem, ResourceError, ShoalError, install_hint
from shoal.events import sentence
from shoal.io.kafka.refusals import is_refusal, reason_of, without_timing
from shoal.io.kafka.settings import KafkaSettings

__all__ = ["OPEN_SECONDS", "Connection", "confluent"]

LOG = logging.getLogger("shoal.kafka")
#: The client repeats its log lines every second, so they are hidden unless a handler is added.
CLIENT_LOG = logging.getLogger("shoal.kafka.client")
CLIENT_LOG.addHandler(logging.NullHandler())
CLIENT_LOG.propagate = False

#: The time, in seconds, that a broker has to answer when a job starts.
OPEN_SECONDS = 15.0
#: The timeout, in seconds, of one request, so that stopping doesn't take long.
ASK_SECONDS = 1.0
#: Reconnect soon after a broker is back.
RECONNECTING = {"reconnect.backoff.max.ms": 1000}
#: From this version on, librdkafka drops all brokers when none answers, and may then wait for one
#: that it has dropped.
FORGETS = 0x020B00FF
#: How long, in seconds, a topic may be unknown: a new one takes a moment to reach all brokers.
UNKNOWN_SECONDS = 2.0


def confluent() -> Any:
    """Return the client library.

    Raises
    ------
    JobError
        If it isn't installed.
    """
    try:
        import confluent_kafka
    except ImportError:
        raise JobError(
            Problem(
                "kafka",
                "needs confluent-kafka, which isn't installed",
                None,
                install_hint("kafka"),
            )
        ) from None
    return confluent_kafka


class _ClientLog:
    """Passes the log lines of a client on, and notes what the client reports nowhere else."""

    def __init__(self) -> None:
        #: Whether a broker closed a new connection at the first request.
        self.is_closed_at_once = False

    def log(self, level: int, text: str, *words: object) -> None:
        """Take a line."""
        CLIENT_LOG.log(level, text, *words)
        if any("APIVERSION_QUERY" in str(word) for word in words):
            self.is_closed_at_once = True


class Connection:
    """Creates clients of a broker, and notices whether it answers.

    Parameters
    ----------
    settings
        The settings of the job. Secrets are looked up here, and nowhere else.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._library = confluent()
        self._settings = settings
        self._resolved = settings.resolved()
        self._refused: str | None = None
        #: What the client said last about a connection that failed.
        self._said: str | None = None
        self._log = _ClientLog()
        #: Whether no broker answered last.
        self.away = False

    @property
    def steady(self) -> dict[str, str]:
        """Settings with which a producer keeps its brokers while they don't answer."""
        forgets = self._library.libversion()[1] >= FORGETS
        return {"metadata.recovery.strategy": "none"} if forgets else {}

    def consumer(self, **own: Any) -> Any:
        """Create a consumer; dots in the names of settings are written as underscores."""
        return self._client(self._library.Consumer, own)

    def producer(self, **own: Any) -> Any:
        """Create a producer."""
        return self._client(self._library.Producer, own)

    def admin(self) -> Any:
        """Create a client that asks about topics; whether it is connected isn't reported."""
        from confluent_kafka.admin import AdminClient

        # Its callbacks come from a thread of its own.
        return self._client(AdminClient, dict(self.steady), error_cb=lambda _: None)

    def _client(self, kind: Any, own: dict[str, Any], **more: Any) -> Any:
        given = {name.replace("_", "."): value for name, value in own.items()}
        mine = {"error_cb": self._on_error, "logger": self._log, **more}
        try:
            return kind({**RECONNECTING, **self._resolved.values, **given, **mine})
        except (self._library.KafkaException, ValueError, TypeError) as error:
            raise self._wrong_setting(error) from None

    def _wrong_setting(self, error: Exception) -> JobError:
        text = error.args[0].str() if hasattr(error.args[0], "str") else str(error)
        named = [name for name in self._settings.settings if f'"{name}"' in text or name in text]
        key = f"settings.{max(named, key=len)}" if named else "settings"
        problem = Problem(
            key, "is rejected by the client", self._resolved.hide(text.strip().rstrip("."))
        )
        if "key values mismatch" in text:
            fix = "Name the key that belongs to ssl.certificate.location"
            problem = Problem(key, "isn't the key of the certificate", None, fix)
        elif key.startswith("settings.ssl.key") and "PEM" in text:
            fix = "Is it a private key in PEM, and is ssl.key.password its password?"
            problem = Problem(key, "can't be opened", None, fix)
        return JobError(problem, where=self._settings.where)

    def _on_error(self, error: Any) -> None:
        code, kinds = error.code(), self._library.KafkaError
        if code in (kinds._AUTHENTICATION, kinds._SSL) or is_refusal(error.str()):
            self._refused = error.str()
        elif code != kinds._ALL_BROKERS_DOWN:
            self._said = error.str()
        elif self._refused is None:
            self.lost()

    def lost(self) -> None:
        """Note that no broker answers."""
        if not self.away:
            self.away = True
            text = f"{self._settings.where}: no broker answers; waiting for it to come back"
            sentence(LOG, logging.WARNING, "broker away", text)

    def answered(self) -> None:
        """Note that a broker has answered."""
        if self.away:
            self.away = False
            text = f"{self._settings.where}: the broker is back"
            sentence(LOG, logging.WARNING, "broker back", text)

    def check(self) -> None:
        """Raise `ResourceError` if the broker refuses the connection: waiting doesn't help."""
        if self._refused is not None:
            why = self._resolved.hide(reason_of(self._refused, self._resolved.values))
            raise ResourceError(f"{self._settings.where}: no connection to the broker: {why}")

    def silence(self) -> ResourceError:
        """Return the error for a broker that doesn't answer when a job starts."""
        where = self._settings.where
        if self._log.is_closed_at_once:
            asked = self._settings.settings.get("security.protocol", "PLAINTEXT")
            return ResourceError(
                f"{where}: no connection to the broker: it closes each one at once. Does it expect "
                f"another security.protocol than {asked}? See [input.settings] and "
                "[output.settings] of the job."
            )
        why = f" ({self._resolved.hide(without_timing(self._said))})" if self._said else ""
        return ResourceError(
            f"{where}: no broker answers{why}. Is it running, and is the address right?"
        )

    def failure(self, error: Any) -> ShoalError:
        """Return the exception for a `KafkaError`."""
        kinds = self._library.KafkaError
        where, topic = self._settings.where, self._settings.topic
        if error.code() in (kinds.UNKNOWN_TOPIC_OR_PART, kinds._UNKNOWN_TOPIC):
            return ResourceError(
                f"{where}: there is no such topic. Check the name, or create it, e.g. with "
                f"kafka-topics.sh --create --topic {topic} --bootstrap-server "
                f"{self._settings.servers}, or python -m shoal.testing.broker --at "
                f"{self._settings.servers} --topics {topic}."
            )
        if error.code() in (
            kinds.TOPIC_AUTHORIZATION_FAILED,
            kinds.GROUP_AUTHORIZATION_FAILED,
            kinds.CLUSTER_AUTHORIZATION_FAILED,
            kinds.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ):
            said = self._resolved.hide(error.str())
            return ResourceError(
                f"{where}: isn't allowed: {said}. Check the user's permissions (ACL)."
            )
        if error.code() == kinds.MSG_SIZE_TOO_LARGE:
            return ResourceError(
                f"{where}: accepts no message as long as one of this job, and has none of its "
                "rows. Raise max.message.bytes of the topic, or set message.max.bytes in "
                "[output.settings] to no more than that; then start the job again."
            )
        return ResourceError(f"{where}: {self._resolved.hide(error.str())}.")

    def partitions(self, client: Any, seconds: float = OPEN_SECONDS) -> list[int]:
        """Return the partitions of the topic.

        Raises
        ------
        ResourceError
            If there is no such topic, or no broker answers.
        """
        unknown = self._library.KafkaError.UNKNOWN_TOPIC_OR_PART
        start = time.monotonic()
        while True:
            client.poll(0)
            self.check()
            waited = time.monotonic() - start
            try:
                answer = client.list_topics(self._settings.topic, timeout=ASK_SECONDS)
            except self._library.KafkaException:
                if waited < seconds:
                    continue
                raise self.silence() from None
            self.answered()
            topic = answer.topics[self._settings.topic]
            if topic.error is None:
                return sorted(topic.partitions)
            if topic.error.code() != unknown or waited >= min(seconds, UNKNOWN_SECONDS):
                raise self.failure(topic.error)
            time.sleep(0.05)
