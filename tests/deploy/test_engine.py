"""The image of the Containerfile, built and run by a container engine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crashes.world import wait_until
from tests.deploy.engine import BASE, IMAGE, STATE, Engine, find_engine
from tests.world import people, write, write_job

pytestmark = pytest.mark.nightly
ENGINE, MISSING = find_engine()

#: A run of JOB, and then its seconds of processor.
MEASURED = """\
import resource, subprocess
subprocess.run(["shoal", "run", "JOB", "--quiet"], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""
#: As docs/operate.md says, and without any network: nothing is fetched.
CONFINED = ["--read-only", "--cap-drop=all", "--network=none"]


@pytest.fixture(scope="module")
def engine() -> Engine:
    if ENGINE is None:
        pytest.skip(MISSING)
    return Engine(ENGINE)


@pytest.fixture(scope="module")
def image(engine: Engine) -> Iterator[str]:
    """The image: the one that is named, or a new one."""
    if (named := os.environ.get(IMAGE)) is not None:
        yield named
        return
    if not engine.has(BASE):
        pytest.skip(f"needs {BASE}: from a registry, or by deploy/base.sh")
    engine.build("shoal-test")
    yield "shoal-test"
    engine("rmi", "--force", "shoal-test")


def write_readable_job(folder: Path, name: str = "") -> list[str]:
    """Write a job for the image; give the options that mount it, which its user can read."""
    files = (
        f'file = "{STATE}/quarantine.jsonl"\n[input]\npath = "/etc/shoal/in.csv"\n'
        f'[output]\npath = "{STATE}/out{name}.csv"\n'
    )
    run = f'seed = 7\ncheckpoint = {{ folder = "{STATE}/state{name}", every = 1000 }}'
    path = write_job(folder, run=run, bad_rows=files)
    write(people(2000), folder / "in.csv")
    path.rename(folder / f"job{name}.toml")
    for each in (folder, *folder.iterdir()):
        each.chmod(0o755 if each.is_dir() else 0o644)
    return ["--volume", f"{folder}:/etc/shoal:ro"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="shoal-engine-") as name:
        yield Path(name)


@pytest.fixture
def volume(engine: Engine) -> Iterator[str]:
    with engine.volume() as name:
        yield name


def python(engine: Engine, image: str, volume: str, *words: object) -> str:
    """Run Python in the image, on a volume with state."""
    given = ["--rm", *CONFINED, "--volume", f"{volume}:{STATE}", "--entrypoint", "python"]
    return engine("run", *given, *words[:-1], image, "-c", words[-1]).stdout


def output(engine: Engine, image: str, volume: str) -> str:
    """Return what was published until now."""
    code = f"import pathlib; p = pathlib.Path('{STATE}/out.csv')\n"
    return python(engine, image, volume, code + "print(p.read_text() if p.exists() else '')")


def test_it_is_small_and_has_a_user_and_a_health_check(engine: Engine, image: str) -> None:
    found = engine.inspect("image", image)
    assert found["Size"] <= 700e6
    settings = found["Config"]
    assert settings["User"] == "10001:10001"
    assert settings["Volumes"] == {STATE: {}}
    assert settings["StopSignal"] == "SIGTERM"
    # Podman writes it only to images of Docker's format.
    health = found.get("Healthcheck") or settings.get("Healthcheck") or {}
    assert health.get("Test") == ["CMD", "python", "-I", "/opt/shoal/health.py"]


def test_its_user_can_write_to_the_state_and_nowhere_else(
    engine: Engine, image: str, volume: str
) -> None:
    places = ["/", "/opt", "/opt/shoal", "/opt/shoal-kernels", "/etc", STATE]
    code = f"import os; print(os.getuid(), [p for p in {places} if os.access(p, os.W_OK)])"
    assert python(engine, image, volume, code) == f"10001 ['{STATE}']\n"


def test_a_first_start_compiles_next_to_nothing(
    engine: Engine, image: str, folder: Path, volume: str
) -> None:
    seconds = []
    for name in ("", "2"):
        mounted = write_readable_job(folder, name)
        code = MEASURED.replace("JOB", f"/etc/shoal/job{name}.toml")
        seconds.append(float(python(engine, image, volume, *mounted, code).split()[-1]))
    print("seconds of processor of the first start and of the second:", seconds)
    code = f"import pathlib; print(len([*pathlib.Path('{STATE}/cache').rglob('*.nbc')]))"
    assert int(python(engine, image, volume, code)) <= 3
    # A start that compiles takes more than ten times as long as one that doesn't.
    assert seconds[0] < 3 * seconds[1]


def is_healthy(engine: Engine, name: str) -> bool:
    """Tell whether the engine finds a container healthy, asking now if it can be asked."""
    if engine.name == "podman":  # Where there is no systemd, it doesn't ask by itself.
        engine("healthcheck", "run", name, check=False)
    return bool(engine.inspect("container", name)["State"]["Health"]["Status"] == "healthy")


def test_a_run_is_healthy_is_killed_is_stopped_and_publishes_every_row_once(
    engine: Engine, image: str, folder: Path, volume: str
) -> None:
    words = [*CONFINED, *write_readable_job(folder), "--volume"]
    run = [image, "run", "/etc/shoal/job.toml", "--log=json"]
    followed = [*run, "--metrics=127.0.0.1:9464", "--follow"]
    with engine.started(*words, f"{volume}:{STATE}", *followed) as name:
        wait_until(lambda: is_healthy(engine, name), 120)
        wait_until(lambda: len(output(engine, image, volume)) > 10_000, 120)
        engine("kill", name)
        assert engine("wait", name).stdout.strip() == "137"
    # The second run finds what the first one left, and ends in good order.
    with engine.started(*words, f"{volume}:{STATE}", *followed) as name:
        wait_until(lambda: is_healthy(engine, name), 120)
        engine("stop", "--time=120", name)
        assert engine("wait", name).stdout.strip() == "0"
        assert "the next run resumes" in engine("logs", name).stderr
    engine("run", "--rm", *words, f"{volume}:{STATE}", *run)
    with engine.volume() as other:
        engine("run", "--rm", *words, f"{other}:{STATE}", *run)
        assert output(engine, image, volume) == output(engine, image, other)
