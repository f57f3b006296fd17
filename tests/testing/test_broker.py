import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shoal.errors import ResourceError
from shoal.testing import _broker_jars, broker
from shoal.testing.broker import Broker, NoBrokerError, create_topics, find_broker, main

SOURCES = str(Path(broker.__file__).parents[2])


@pytest.fixture(scope="module")
def own_broker():
    """A broker that may be killed."""
    try:
        with Broker() as own_broker:
            yield own_broker
    except NoBrokerError as error:
        pytest.skip(str(error))


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Nobody may have asked yet how it ended.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until(true):
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_topics_outlive_a_crash(own_broker):
    assert create_topics(own_broker.client, ["a", "b:3"]) == ["a", "b"]
    address, pid = own_broker.address, own_broker.pid
    own_broker.start()
    assert own_broker.pid == pid
    own_broker.kill()
    assert own_broker.pid is None
    assert not is_running(pid)
    own_broker.start()
    assert own_broker.address == address
    assert create_topics(own_broker.client, ["a", "b", "c"]) == ["c"]
    topics = broker._admin(own_broker.client).list_topics(timeout=60).topics
    assert len(topics["b"].partitions) == 3


def test_a_broker_can_stand_still(own_broker):
    admin = broker._admin(own_broker.client)
    admin.list_topics(timeout=60)
    own_broker.pause()
    with pytest.raises(Exception, match=r"_TIMED_OUT|_TRANSPORT"):
        admin.list_topics(timeout=0.3)
    own_broker.resume()
    assert admin.list_topics(timeout=60).brokers


def test_an_impossible_name_is_reported(own_broker):
    with pytest.raises(ResourceError, match="can't be created"):
        create_topics(own_broker.client, ["no topic!"])


def test_topics_are_created_at_a_broker_that_runs(own_broker, capsys):
    assert main(["--at", own_broker.address, "--topics", "people,public:2"]) == 0
    assert capsys.readouterr().out == "Created topic people.\nCreated topic public.\n"
    assert main(["--at", own_broker.address, "--topics", "people"]) == 0
    assert capsys.readouterr().out == ""


def test_nothing_is_left_at_the_end(own_broker):
    with Broker() as another:
        pid, folder = another.pid, another._folder
        assert folder.stat().st_mode & 0o777 == 0o700
        assert another.address != own_broker.address
        # Also one that stands still is ended.
        another.pause()
    assert not is_running(pid)
    assert not folder.exists()
    another.stop()
    another.kill()


def test_a_broker_for_a_person(own_broker, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "shoal.testing.broker",
        "--port", str(port), "--folder", str(tmp_path / "kafka"), "--topics", "people",
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": SOURCES}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout.readline() == "Created topic people.\n"
        assert process.stdout.readline() == f"Kafka is ready at 127.0.0.1:{port}. Ctrl-C ends it.\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(600) == 0
    assert (tmp_path / "kafka" / "data" / "meta.properties").exists()


def test_words_that_need_others_are_refused(monkeypatch, capsys):
    monkeypatch.delenv("KAFKA_PASSWORD", raising=False)
    for words, said in [
        (["--mutual"], "--mutual needs --tls"),
        (["--user", "me"], "--user needs a password in the environment variable KAFKA_PASSWORD"),
    ]:
        with pytest.raises(SystemExit, match="2"):
            main(words)
        assert said in capsys.readouterr().err


def test_no_broker_outlives_the_process_that_started_it(own_broker):
    script = (
        "import os, signal; from shoal.testing.broker import Broker\n"
        "broker = Broker(); broker.start(); print(broker.pid, flush=True)\n"
        "os.killpg(0, signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": SOURCES},
        timeout=600,
        start_new_session=True,
    )
    assert done.returncode == -signal.SIGKILL
    wait_until(lambda: not is_running(int(done.stdout)))


# -- where there is none --------------------------------------------------------------------------


def test_another_broker_can_be_named(monkeypatch):
    monkeypatch.setenv("SHOAL_TEST_KAFKA", "elsewhere:9092")
    with find_broker() as address:
        assert address == "elsewhere:9092"


def test_a_broker_is_started_where_none_is_named(own_broker, monkeypatch):
    monkeypatch.delenv("SHOAL_TEST_KAFKA", raising=False)
    with find_broker() as address:
        assert create_topics({"bootstrap.servers": address}, ["a"]) == ["a"]


def test_no_java(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoBrokerError, match=r"no java in .*JAVA_HOME.*Java 17"):
        Broker()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([]) == 4
    assert "there is no java in the path" in capsys.readouterr().err


def test_no_maven(monkeypatch, tmp_path):
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoBrokerError, match="no mvn"):
        _broker_jars.kafka_jars()


def fake_maven(monkeypatch, tmp_path, script):
    (tmp_path / "bin").mkdir()
    maven = tmp_path / "bin" / "mvn"
    maven.write_text(f"#!/bin/sh\n{script}\n")
    maven.chmod(0o755)
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def test_no_network(monkeypatch, tmp_path):
    fake_maven(monkeypatch, tmp_path, "echo '[ERROR] Unknown host'; exit 1")
    with pytest.raises(NoBrokerError, match="can't be fetched: Unknown host"):
        _broker_jars.kafka_jars()


def test_maven_that_hangs(monkeypatch, tmp_path):
    fake_maven(monkeypatch, tmp_path, "exec sleep 60")
    monkeypatch.setattr(_broker_jars, "FETCH_SECONDS", 0.2)
    with pytest.raises(NoBrokerError, match="weren't fetched within"):
        _broker_jars.kafka_jars()


def test_jars_are_fetched_once_by_two_at_the_same_time(monkeypatch, tmp_path):
    fetch = (
        'for word in "$@"; do case "$word" in -DoutputDirectory=*) to="${word#*=}";; esac; done\n'
        f'sleep 0.5; mkdir "$to"; touch "$to/kafka_x.jar"; echo once >> {tmp_path}/fetched'
    )
    fake_maven(monkeypatch, tmp_path, fetch)
    script = "from shoal.testing._broker_jars import kafka_jars; print(kafka_jars())"
    environment = os.environ | {"PYTHONPATH": SOURCES}
    command = [sys.executable, "-c", script]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    said = {process.communicate(timeout=600)[0].strip() for process in both}
    assert said == {str(tmp_path / "cache" / "shoal" / f"kafka-{_broker_jars.VERSION}")}
    assert (tmp_path / "fetched").read_text() == "once\n"
    assert _broker_jars.kafka_jars().is_dir()


def test_a_cache_that_cant_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(NoBrokerError, match="can't be kept in"):
        _broker_jars.kafka_jars()


def fake_java(monkeypatch, tmp_path, script):
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(broker, "kafka_jars", lambda: tmp_path)


def test_java_that_is_too_old(monkeypatch, tmp_path):
    fake_java(monkeypatch, tmp_path, "echo UnsupportedClassVersionError >&2; exit 1")
    with pytest.raises(NoBrokerError, match="UnsupportedClassVersionError"), Broker():
        pass


def test_a_broker_that_ends_while_starting(monkeypatch, tmp_path):
    fake_java(
        monkeypatch, tmp_path, 'case "$*" in *StorageTool*) exit 0;; esac; echo no room; exit 1'
    )
    with pytest.raises(NoBrokerError, match="ended while starting: no room"), Broker():
        pass


def test_a_broker_that_never_answers(monkeypatch, tmp_path):
    fake_java(monkeypatch, tmp_path, 'case "$*" in *StorageTool*) exit 0;; esac; exec sleep 60')
    monkeypatch.setattr(Broker, "START_SECONDS", 0.2)
    with pytest.raises(NoBrokerError, match="none answers"), Broker():
        pass


def test_a_broker_that_doesnt_end_is_killed(monkeypatch, tmp_path):
    fake_java(monkeypatch, tmp_path, "trap '' TERM; while :; do sleep 0.1; done")
    monkeypatch.setattr(Broker, "STOP_SECONDS", 0.2)
    monkeypatch.setattr(Broker, "_format", lambda *_: None)
    monkeypatch.setattr(Broker, "_wait_until_ready", lambda _: None)
    with Broker() as stubborn:
        pid = stubborn.pid
    assert not is_running(pid)


def test_without_the_client(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka.admin", None)
    with pytest.raises(NoBrokerError, match="confluent-kafka isn't installed"):
        create_topics({"bootstrap.servers": "x"}, ["a"])
