"""The walk with a broker, Prometheus and Grafana, as far as it can be judged without an engine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from shoal.job import Job
from tests.deploy.test_image import of
from tests.docs.test_docs import COMMANDS, options_of

yaml = pytest.importorskip("yaml", reason="needs PyYAML")
ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "compose.yaml"


@pytest.fixture(scope="module")
def services() -> Any:
    return yaml.safe_load(COMPOSE.read_text())["services"]


def _has_compose() -> bool:
    docker = shutil.which("docker")
    return docker is not None and not subprocess.call(
        [docker, "compose", "version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.mark.skipif(not _has_compose(), reason="needs docker compose")
def test_compose_finds_no_fault_with_it() -> None:
    subprocess.run(["docker", "compose", "-f", COMPOSE, "config", "-q"], check=True, timeout=60)


def test_what_is_mounted_is_there(services: Any) -> None:
    mounted = [each.split(":") for one in services.values() for each in one.get("volumes", ())]
    files = [source for source, *_ in mounted if source.startswith("./")]
    assert len(files) >= 8
    assert [file for file in files if not (ROOT / file).exists()] == []
    assert ["state", *of("VOLUME")] in mounted


def test_a_read_only_service_has_its_secrets_from_files(services: Any) -> None:
    """Others are copied into the container, which Docker Compose refuses for these."""
    secrets = yaml.safe_load(COMPOSE.read_text())["secrets"]
    confined = [one for one in services.values() if one.get("read_only")]
    assert confined
    for one in confined:
        assert all(set(secrets[name]) == {"file"} for name in one["secrets"])


def test_nothing_is_open_to_others(services: Any) -> None:
    ports = [port for one in services.values() for port in one.get("ports", ())]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_the_run_is_found_where_prometheus_and_the_probe_look(services: Any) -> None:
    shoal = services["shoal"]
    options = dict(word.split("=") for word in shoal["command"][2:])
    assert set(options) <= options_of(COMMANDS.commands["run"])
    port = options["--page"].rpartition(":")[2]
    assert options["--metrics"] == options["--page"]
    assert shoal["environment"]["SHOAL_HEALTH_URL"] == f"http://127.0.0.1:{port}/health"
    token = shoal["environment"]["SHOAL_HEALTH_TOKEN"]
    assert options["--page-token"] == f"file:{token}"
    scraped = yaml.safe_load((ROOT / "deploy" / "walk" / "prometheus.yml").read_text())
    (job,) = scraped["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"{shoal['hostname']}:{port}"]}]
    assert job["authorization"] == {"credentials_file": token}
    assert token == f"/run/secrets/{services['prometheus']['secrets'][0]}"


def test_topics_and_brokers_are_those_of_the_job(services: Any) -> None:
    job = Job.load(ROOT / "deploy" / "walk" / "job.toml")
    text = (ROOT / "deploy" / "walk" / "job.toml").read_text()
    assert services["topics"]["command"] == ["--create", "people", "public"]
    assert services["people"]["command"][0] == "people"
    assert 'topic = "people"' in text
    assert 'topic = "public"' in text
    listens = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    address = listens.removeprefix("PLAINTEXT://")
    assert text.count(f'kafka = "{address}"') == 2
    assert services["people"]["entrypoint"][-1] == address
    assert job.checkpoints is not None


def test_grafana_is_told_of_the_dashboard_and_of_prometheus(services: Any) -> None:
    walk = ROOT / "deploy" / "walk"
    (source,) = yaml.safe_load((walk / "grafana-datasource.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((walk / "grafana-dashboards.yml").read_text())["providers"]
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{provider['options']['path']}/dashboard.json"
    assert any(home in each for each in services["grafana"]["volumes"])
