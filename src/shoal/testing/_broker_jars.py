"""Find Java for servers of tests, and fetch their jars from Maven Central."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from shoal.errors import ResourceError

__all__ = [
    "NoBrokerError",
    "connect_jars",
    "iceberg_rest_jar",
    "java",
    "kafka_jars",
    "mariadb_jars",
    "registry_app",
    "s3_jar",
]

#: Which Kafka, as Maven names it.
VERSION = "4.1.0"
#: Which Apicurio Registry.
REGISTRY_VERSION = "3.0.9"
#: Which Debezium, and which of Apicurio's converters for Avro.
DEBEZIUM_VERSION, CONVERTER_VERSION = "3.6.1.Final", "2.6.13.Final"
#: Which Debezium for MariaDB: Maven Central has no newer one.
MARIADB_VERSION = "3.5.0.Final"
#: Which REST catalog of Iceberg, and which S3Proxy.
ICEBERG_VERSION, S3_VERSION = "1.10.0", "4.1.0"
#: How long, in seconds, fetching may take.
FETCH_SECONDS = 600
#: How a message begins.
NO_JARS = "no Kafka broker: its jars"


def _pom(*artifacts: str) -> str:
    """Return a project that needs artifacts, each given as group:name:version."""
    parts = [artifact.split(":") for artifact in artifacts]
    needs = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version></dependency>\n"
        for group, name, version in parts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0">\n<modelVersion>4.0.0</modelVersion>\n'
        "<groupId>shoal</groupId><artifactId>broker</artifactId><version>1</version>\n"
        f"<dependencies>\n{needs}</dependencies>\n</project>\n"
    )


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
    """Return the folder with the broker's jars; fetch them first if it doesn't exist."""

    return _with_needs(
        f"kafka-{VERSION}", "kafka_*.jar", f"org.apache.kafka:kafka_2.13:{VERSION}",
        "org.slf4j:slf4j-simple:1.7.36",
    )  # fmt: skip


def connect_jars() -> Path:
    """Return the folder with the jars of Kafka Connect and Debezium; fetch them if it's missing."""
    return _with_needs(
        f"debezium-{DEBEZIUM_VERSION}", "debezium-connector-postgres-*.jar",
        f"io.debezium:debezium-embedded:{DEBEZIUM_VERSION}",
        f"io.debezium:debezium-connector-postgres:{DEBEZIUM_VERSION}",
        f"io.debezium:debezium-connector-mysql:{DEBEZIUM_VERSION}",
        f"io.apicurio:apicurio-registry-utils-converter:{CONVERTER_VERSION}",
        "org.slf4j:slf4j-simple:1.7.36",
    )  # fmt: skip


def mariadb_jars() -> Path:
    """Return the folder of `connect_jars` for MariaDB, which has a connector of its own."""
    return _with_needs(
        f"debezium-mariadb-{MARIADB_VERSION}", "debezium-connector-mariadb-*.jar",
        f"io.debezium:debezium-embedded:{MARIADB_VERSION}",
        f"io.debezium:debezium-connector-mariadb:{MARIADB_VERSION}",
        f"io.apicurio:apicurio-registry-utils-converter:{CONVERTER_VERSION}",
        "org.slf4j:slf4j-simple:1.7.36",
    )  # fmt: skip


def _with_needs(name: str, pattern: str, *artifacts: str) -> Path:
    """Return a folder with the jars of artifacts and of all that they need."""

    def fetch(folder: Path, jars: Path) -> None:
        pom = folder / "pom.xml"
        pom.write_text(_pom(*artifacts))
        _maven(
            "--file", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}",
            "-DincludeScope=runtime",
        )  # fmt: skip

    return _cached(name, fetch, pattern)


def registry_app() -> Path:
    """Return the jar of a schema registry; fetch it and what it needs if it doesn't exist."""

    def fetch(folder: Path, jars: Path) -> None:
        artifact = f"io.apicurio:apicurio-registry-app:{REGISTRY_VERSION}:tar.gz:all"
        _maven("dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")
        for archive in folder.glob("*.tar.gz"):
            with tarfile.open(archive) as packed:
                packed.extractall(jars, filter="data")
            archive.unlink()

    pattern = "apicurio-registry-app-*-runner.jar"
    return next(_cached(f"apicurio-{REGISTRY_VERSION}", fetch, pattern).glob(pattern))


def iceberg_rest_jar() -> Path:
    """Return the jar of Iceberg's REST catalog (212 MB); fetch it if it doesn't exist."""
    name = f"iceberg-open-api-{ICEBERG_VERSION}"
    return _one_jar(name, f"org.apache.iceberg:iceberg-open-api:{ICEBERG_VERSION}:jar")


def s3_jar() -> Path:
    """Return the jar of S3Proxy, with all that it needs; fetch it if it doesn't exist."""
    artifact = f"org.gaul:s3proxy:{S3_VERSION}:jar:jar-with-dependencies"
    return _one_jar(f"s3proxy-{S3_VERSION}", artifact)


def _one_jar(name: str, artifact: str) -> Path:
    """Return a jar that needs no other."""

    def fetch(folder: Path, jars: Path) -> None:
        _maven("dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={jars}")

    return next(_cached(name, fetch, "*.jar").glob("*.jar"))


def _cached(name: str, fetch: Callable[[Path, Path], None], pattern: str) -> Path:
    """Return a folder with jars; fetch them first if it doesn't exist.

    ``fetch`` is called with a temporary folder, and the folder in it for the jars. Two processes
    that find it missing at the same time fetch once: the second waits.
    """
    base = os.environ.get("SHOAL_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    parent = Path(base).expanduser() / "shoal"
    folder = parent / name
    if folder.is_dir():
        return folder
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (parent / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=parent) as temporary:
                    jars = Path(temporary) / "jars"
                    fetch(Path(temporary), jars)
                    if not any(jars.glob(pattern)):
                        raise NoBrokerError(f"{NO_JARS} can't be fetched: Maven didn't say why")
                    jars.rename(folder)
    except OSError as error:
        raise NoBrokerError(f"{NO_JARS} can't be kept in {parent}: {error.strerror}") from None
    return folder


def _maven(*words: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise NoBrokerError(
            "no Kafka broker: there is no mvn (Maven) in the path to fetch its jars with"
        )
    command: Sequence[str] = [maven, "--batch-mode", "--quiet", *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        what = f"weren't fetched within {FETCH_SECONDS} seconds"
        raise NoBrokerError(f"{NO_JARS} {what}") from None
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")]
        why = said[0].removeprefix("[ERROR]").strip() if said else "Maven didn't say why"
        raise NoBrokerError(f"{NO_JARS} can't be fetched: {why}")
