"""The server over real sockets on loopback; its time is a clock that is set by hand."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from shoal.errors import BrokenPromiseError, JobError, ParameterError, ResourceError
from shoal.metrics import Summary
from shoal.run.observe import Figures, Health, MetricsServer, PageServer
from shoal.run.observe import listener as module
from shoal.run.observe import server as server_module
from shoal.testing.clocks import ManualClock
from tests.run.observe.figures import some_figures


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1003.0)


@pytest.fixture
def server(clock: ManualClock) -> Iterator[MetricsServer]:
    with MetricsServer("127.0.0.1:0", interval=10.0, clock=clock) as server:
        yield server


def ask(
    server: MetricsServer, path: str, method: str = "GET", host: str | None = None
) -> tuple[int, str, str]:
    return ask_at(server.address, path, method, host)


def ask_at(
    address: str, path: str, method: str = "GET", host: str | None = None
) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request(method, path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


def rows_in(server: MetricsServer) -> float | None:
    for line in ask(server, "/metrics")[2].splitlines():
        if line.startswith("shoal_rows_in_total "):
            return float(line.split()[1])
    return None


# -- once an interval ------------------------------------------------------------------------------


def test_a_snapshot_is_seen_when_its_interval_is_over(server, clock):
    server.offer(some_figures(10))
    assert rows_in(server) is None  # the first one no earlier than others
    clock.set(1009.99)
    assert rows_in(server) is None
    clock.set(1010.0)
    assert rows_in(server) == 15
    server.offer(some_figures(20))
    server.offer(some_figures(30))
    clock.set(1019.0)
    assert rows_in(server) == 15
    clock.set(1020.0)
    assert rows_in(server) == 35  # the last one of the interval
    clock.set(1500.0)
    assert rows_in(server) == 35


def test_what_is_seen_does_not_depend_on_who_looks_or_offers_when(server, clock):
    """The instants of change are fixed: neither offers nor requests bring one forward."""
    server.offer(some_figures(10))
    clock.set(1014.0)
    server.offer(some_figures(20))
    assert rows_in(server) == 15
    clock.set(1020.0)
    server.offer(some_figures(30))
    clock.set(1031.0)
    server.offer(some_figures(40))
    clock.set(1039.0)
    assert rows_in(server) == 35


@pytest.mark.parametrize("interval", [0, -1, float("nan"), float("inf")])
def test_an_interval_is_a_time(interval):
    with pytest.raises(ParameterError, match="above 0"):
        MetricsServer("127.0.0.1:0", interval=interval)


# -- what is answered ------------------------------------------------------------------------------


def test_metrics_are_in_the_text_format(server, clock):
    server.offer(some_figures())
    clock.advance(10)
    status, kind, text = ask(server, "/metrics?x=1")
    assert status == 200
    assert kind.startswith("text/plain; version=")
    assert "# TYPE shoal_rows_in_total counter" in text
    assert "# TYPE shoal_group_subjects histogram" in text


def test_health_is_of_the_moment(server, clock):
    status, kind, text = ask(server, "/health")
    assert (status, kind, json.loads(text)["status"]) == (503, "application/json", "starting")
    server.health(Health(checkpoint_age=4.0, checkpoint_every=10.0))
    status, _, text = ask(server, "/health")
    assert status == 200
    assert json.loads(text) == {
        "status": "ok", "reasons": [], "loop_age_seconds": 0, "checkpoint_age_seconds": 4,
    }  # fmt: skip
    assert "shoal_checkpoint_age_seconds 4.0" in ask(server, "/metrics")[2]
    clock.advance(31)
    status, _, text = ask(server, "/health")
    assert (status, len(json.loads(text)["reasons"])) == (503, 2)
    assert "shoal_up 0.0" in ask(server, "/metrics")[2]


def test_a_failed_run(server):
    server.health(Health())
    server.fail(KeyError("CANARY"))
    status, _, text = ask(server, "/health")
    assert (status, json.loads(text)["reasons"]) == (503, ["the run has failed with KeyError"])


# -- a broken promise ------------------------------------------------------------------------------


def closing(server: MetricsServer | PageServer) -> threading.Thread:
    """Close a server beside the test."""
    thread = threading.Thread(target=server.close)
    thread.start()
    return thread


@pytest.mark.parametrize("on_page", [False, True])
def test_a_collector_reads_a_broken_promise_before_the_server_is_gone(on_page):
    address = "127.0.0.1:0"
    with (
        PageServer(address, job={}, with_metrics=True) if on_page else MetricsServer(address)
    ) as server:
        where = (
            server.url[len("http://") : -1] if isinstance(server, PageServer) else server.address
        )
        assert "shoal_promise_broken 0.0" in ask_at(where, "/metrics")[2]
        server.fail(BrokenPromiseError("a group"))
        thread = closing(server)
        # Health and the page are no collector.
        assert ask_at(where, "/health")[0] == 503
        thread.join(0.3)
        assert thread.is_alive()
        assert "shoal_promise_broken 1.0" in ask_at(where, "/metrics")[2]
        thread.join(10)
        assert not thread.is_alive()


def test_nobody_else_is_waited_for(monkeypatch):
    for error, is_read in ((BrokenPromiseError("a group"), False), (ResourceError("gone"), True)):
        with MetricsServer("127.0.0.1:0") as server:
            if is_read:
                ask(server, "/metrics")
            server.fail(error)
            thread = closing(server)
            thread.join(10)
            assert not thread.is_alive()
    # Nor a collector that has gone away.
    monkeypatch.setattr(server_module, "COLLECTOR_SECONDS", 0.1)
    with MetricsServer("127.0.0.1:0") as server:
        ask(server, "/metrics")
        server.fail(BrokenPromiseError("a group"))
        thread = closing(server)
        thread.join(10)
        assert not thread.is_alive()


# -- what else is asked ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/metrics/", "/../etc/passwd", "/healthy", "metrics"])
def test_there_is_nothing_else(path, server):
    assert ask(server, path)[0] == 404


def test_nothing_can_be_sent(server):
    assert ask(server, "/metrics", "POST")[0] == 405


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9464", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("LOCALHOST", 200),
        ("evil.example", 403), ("evil.example:9464", 403), ("10.0.0.1", 403), ("", 403),
    ],
)  # fmt: skip
def test_a_browser_is_not_led_here_by_a_name(host, status, server):
    server.health(Health())
    assert ask(server, "/health", host=host)[0] == status


def test_requests_are_not_talked_about(server, capfd):
    ask(server, "/metrics")
    ask(server, "/nothing")
    with socket.create_connection(split(server.address)) as client:
        client.sendall(b"GARBAGE\r\n\r\n")
        client.recv(100)
    assert capfd.readouterr() == ("", "")


def test_a_bug_is_logged_without_its_message(server, caplog, monkeypatch):
    monkeypatch.setattr(server._health, "verdict", lambda: 1 / 0)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(server, "/health")
    (record,) = caplog.records
    assert (record.msg, record.raised.error) == ("metrics request failed", "ZeroDivisionError")
    assert record.exc_info is None


# -- where -----------------------------------------------------------------------------------------


def split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


@pytest.mark.parametrize(
    "address",
    ["", "9464", "127.0.0.1", ":9464", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536",
     "127.0.0.1:-1", "127.0.0.1:1_0", "::1:9464", "127.0.0.1:٣", "localhost:999999"],
)  # fmt: skip
def test_what_is_no_address_is_refused(address):
    said = r"--metrics: must be a host and a port from 0 to 65535.*9464"
    with pytest.raises(ParameterError, match=said):
        MetricsServer(address)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "[::]", "10.1.2.3", "example.org", "[2001:db8::1]", "localhost.evil.org"]
)
def test_another_host_is_refused(host):
    with pytest.raises(ParameterError, match="must be on loopback"):
        MetricsServer(f"{host}:0")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2", "[::1]"])
def test_every_way_to_say_loopback(host):
    if host == "[::1]" and not has_ipv6():
        pytest.skip("this machine has no IPv6 on loopback")
    with MetricsServer(f"{host}:0") as server:
        assert server.address.startswith("127.0.0.1:" if host == "localhost" else host)
        server.health(Health())
        assert ask(server, "/health")[0] == 200


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_a_port_that_is_taken(server):
    with pytest.raises(ResourceError, match=r"can't listen there: address already in use\. Choose"):
        MetricsServer(server.address)


def test_without_prometheus_client(monkeypatch):
    monkeypatch.delitem(sys.modules, "shoal.run.observe.exposition", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(JobError, match=r"--metrics: needs prometheus_client.*\.\[metrics\]"):
        MetricsServer("127.0.0.1:0")


def test_another_missing_module_is_not_blamed_on_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "shoal.run.observe.exposition", None)
    with pytest.raises(ModuleNotFoundError, match="exposition"):
        MetricsServer("127.0.0.1:0")


def test_it_costs_nothing_unless_it_is_asked_for():
    code = (
        "import sys, shoal.run.observe, shoal.cli.app\n"
        "assert 'prometheus_client' not in sys.modules\n"
        "import shoal.cli.run.command\n"
        "assert 'prometheus_client' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


# -- clients ---------------------------------------------------------------------------------------


def test_slow_clients_do_not_keep_others_waiting(server):
    server.health(Health())
    with contextlib.ExitStack() as stack:
        for _ in range(module.CLIENTS - 1):
            client = stack.enter_context(socket.create_connection(split(server.address)))
            client.sendall(b"GET /met")
        assert ask(server, "/health")[0] == 200


def test_clients_that_take_too_long_are_hung_up_on(monkeypatch):
    monkeypatch.setattr(module, "CLIENT_SECONDS", 0.05)
    with (
        MetricsServer("127.0.0.1:0") as server,
        socket.create_connection(split(server.address), timeout=600) as client,
    ):
        client.sendall(b"GET /met")
        assert client.recv(100) == b""


def test_too_many_clients_are_refused(monkeypatch):
    monkeypatch.setattr(module, "CLIENTS", 0)
    with (
        MetricsServer("127.0.0.1:0") as server,
        socket.create_connection(split(server.address), timeout=600) as client,
    ):
        assert client.recv(100) == b""


def test_many_at_once_during_the_run(server, clock):
    summary = Summary()
    found: list[int] = []

    def look() -> None:
        found.extend(ask(server, "/metrics")[0] for _ in range(10))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(200):
        summary.n_in = i
        server.offer(Figures.of(summary, algorithm="castle", k=10))
        server.health(Health(n_written=i))
        clock.advance(1)
    for thread in threads:
        thread.join()
    assert found == [200] * 40
    assert rows_in(server) == 196  # offered at 1199, seen from 1200 on


def test_closing_lets_go_of_everything(clock):
    server = MetricsServer("127.0.0.1:0", clock=clock)
    where = split(server.address)
    client = socket.create_connection(where, timeout=600)
    client.sendall(b"GET /met")
    ask(server, "/health")  # the first client has been accepted by now
    server.close()
    assert client.recv(100) == b""
    client.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(where, timeout=600)
    server.close()
    server.offer(some_figures())  # a run that hasn't heard of it goes on
    assert not [t for t in threading.enumerate() if t.name == "shoal-metrics"]
    MetricsServer(f"127.0.0.1:{where[1]}").close()
