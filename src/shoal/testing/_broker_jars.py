"""Find Java for the broker, and fetch its jars."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from shoal.errors import ResourceError

__all__ = ["NoBrokerError", "java", "kafka_jars"]

#: Which Kafka, as Maven names it.
VERSION = "4.1.0"
#: How long, in seconds, fetching may take.
FETCH_SECONDS = 600
POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>shoal</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""


class NoBrokerError(ResourceError):
    """No broker can be started here; the message says why, for a skipped test."""


def java() -> str:
    """Return the Java to run the broker with: that of ``JAVA_HOME``, or of the path."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None)
    if found is None:
        where = f"in {home}/bin (JAVA_HOME)" if home else "in the path"
        raise NoBrokerError(f"no Kafka broker: there is no java {where}; it needs Java 17 or later")
    return found


def kafka_jars() -> Path:
    """Return the folder with the broker's jars; fetch them first if it doesn't exist.

    Two processes that find it missing at the same time fetch once: the second waits.
    """
    base = os.environ.get("SHOAL_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    parent = Path(base).expanduser() / "shoal"
    folder = parent / f"kafka-{VERSION}"
    if folder.is_dir():
        return folder
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (parent / f"kafka-{VERSION}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _fetch(parent, folder)
    except OSError as error:
        raise NoBrokerError(
            f"no Kafka broker: its jars can't be kept in {parent}: {error.strerror}"
        ) from None
    return folder


def _fetch(parent: Path, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise NoBrokerError(
            "no Kafka broker: there is no mvn (Maven) in the path to fetch its jars with"
        )
    with tempfile.TemporaryDirectory(prefix=f"kafka-{VERSION}-", dir=parent) as folder_of_new:
        pom = Path(folder_of_new) / "pom.xml"
        pom.write_text(POM)
        jars = Path(folder_of_new) / "jars"
        command = [
            maven, "--batch-mode", "--quiet", "--file", str(pom), "dependency:copy-dependencies",
            f"-DoutputDirectory={jars}", "-DincludeScope=runtime",
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise NoBrokerError(
                f"no Kafka broker: its jars weren't fetched within {FETCH_SECONDS} seconds"
            ) from None
        if done.returncode or not any(jars.glob("kafka_*.jar")):
            said = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")]
            why = said[0].removeprefix("[ERROR]").strip() if said else "Maven didn't say why"
            raise NoBrokerError(f"no Kafka broker: its jars can't be fetched: {why}")
        jars.rename(folder)
