"""Notice that a topic was deleted and created again: it has the same name, and another id."""

from __future__ import annotations

import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from typing import Any

from shoal.errors import PUBLISHES_AGAIN, CheckpointError
from shoal.io.kafka.client import OPEN_SECONDS, Connection, confluent
from shoal.io.kafka.settings import KafkaSettings

__all__ = ["TopicWatch"]

#: How often, in seconds, to ask for the id of a topic while it is read or written.
WATCH_SECONDS = 5.0
#: How long, in seconds, the broker has for an answer. A client that has got none is replaced.
ANSWER_SECONDS = 10.0


class TopicWatch:
    """Compares the id of a topic with the one that it had; not thread-safe.

    Parameters
    ----------
    settings
        The topic, and where it is.
    connection
        Creates the client that is asked.
    loss
        What is gone with the former topic, for messages.
    """

    def __init__(self, settings: KafkaSettings, connection: Connection, loss: str) -> None:
        self._library = confluent()
        self._settings = settings
        self._connection = connection
        self._loss = loss
        self._admin: Any = None
        self._answer: Future[Any] | None = None
        self._asked = 0.0
        #: The id of the topic; None before `open`, and if the broker has no ids (before Kafka 2.8).
        self.id: str | None = None

    def open(self) -> None:
        """Ask for the id.

        Raises
        ------
        ResourceError
            If the broker doesn't tell.
        """
        self._ask()
        assert self._answer is not None
        try:
            found = self._answer.result(OPEN_SECONDS)
        except self._library.KafkaException as error:
            if error.args[0].code() == self._library.KafkaError._UNSUPPORTED_FEATURE:
                return
            raise self._connection.failure(error.args[0]) from None
        except NotYetError:
            raise self._connection.silence() from None
        finally:
            self._answer = None
        self.id = self._id(found)

    def expect(self, known: str | None) -> None:
        """Compare the id with the one of a checkpoint.

        Checkpoints of former versions have none, and say nothing.

        Raises
        ------
        CheckpointError
            If it is another one.
        """
        if None not in (known, self.id) and known != self.id:
            raise self._other(known)

    def look(self) -> None:
        """Ask now and then, without waiting for an answer, and compare the one that has come.

        Raises
        ------
        CheckpointError
            If the topic has another id now.
        """
        if self.id is None:
            return
        if self._answer is None:
            if time.monotonic() > self._asked + WATCH_SECONDS:
                self._ask()
        elif self._answer.done():
            answer, self._answer = self._answer, None
            if answer.exception() is None:
                self._compare(answer.result())
        elif time.monotonic() > self._asked + 2 * ANSWER_SECONDS:
            self.close()

    def check(self) -> None:
        """Ask, and wait for the answer; without one nothing is known, and nothing is raised.

        Raises
        ------
        CheckpointError
            If the topic has another id now.
        """
        if self.id is None:
            return
        self._ask()
        assert self._answer is not None
        answer, self._answer = self._answer, None
        try:
            self._compare(answer.result(ANSWER_SECONDS))
        except (self._library.KafkaException, NotYetError):
            self.close()

    def close(self) -> None:
        """Let the client go."""
        self._admin = self._answer = None

    def _ask(self) -> None:
        if self._admin is None:
            self._admin = self._connection.admin()
        self._asked = time.monotonic()
        name = self._settings.topic
        topics = self._library.TopicCollection([name])
        asked = self._admin.describe_topics(topics, request_timeout=ANSWER_SECONDS)
        self._answer = asked[name]

    def _id(self, found: Any) -> str | None:
        number = found.topic_id
        is_none = number is None or not (
            number.get_most_significant_bits() or number.get_least_significant_bits()
        )
        return None if is_none else str(number)

    def _compare(self, found: Any) -> None:
        now = self._id(found)
        if now is not None and now != self.id:
            before, self.id = self.id, now
            raise self._other(before)

    def _other(self, before: str | None) -> CheckpointError:
        return CheckpointError(
            f"{self._settings.where}: was deleted and created again under the same name (its id is "
            f"{self.id}, and was {before}). {self._loss} If it is the wrong broker, name the right "
            "one; or start over with an empty checkpoint folder and another job name. "
            f"{PUBLISHES_AGAIN}."
        )
