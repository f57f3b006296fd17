"""The manifest for Kubernetes, judged by its schemas."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shoal.job import Job
from tests.deploy.test_image import of
from tests.docs.test_docs import COMMANDS, options_of

yaml = pytest.importorskip("yaml", reason="needs PyYAML")
MANIFEST = Path(__file__).parents[2] / "deploy" / "kubernetes.yaml"
#: `make servers` installs it beside the interpreter.
KUBECONFORM = shutil.which("kubeconform", path=Path(sys.executable).parent)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all(MANIFEST.read_text())}


@pytest.fixture(scope="module")
def pod(found: dict[str, Any]) -> Any:
    return found["StatefulSet"]["spec"]["template"]["spec"]


#: The oldest version with what the manifest uses; "" is the newest one whose schemas are there.
@pytest.mark.parametrize("version", ["1.29", ""])
def test_it_has_the_fields_that_kubernetes_knows(found: dict[str, Any], version: str) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")
    version = version or validate.latest_version()
    for each in found.values():
        validate.validate(each, version, strict=True)
    # It is strict: what isn't known is refused.
    found["Service"]["spec"]["clusterIp"] = "None"
    with pytest.raises(validate.ValidationError):
        validate.validate(found["Service"], version, strict=True)
    del found["Service"]["spec"]["clusterIp"]


@pytest.mark.nightly
@pytest.mark.skipif(KUBECONFORM is None, reason="needs kubeconform (make servers, with Go)")
def test_kubeconform_finds_nothing(found: dict[str, Any], tmp_path: Path) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")
    version = validate.latest_version()
    schemas = Path(validate.__file__).parent / "kubernetes-json-schema"
    bundle(schemas / f"v{version}-local-strict", [*found.values()], tmp_path)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(MANIFEST.read_text().replace("clusterIP", "clusterIp"))
    for file, n_invalid in ((MANIFEST, 0), (wrong, 1)):
        assert KUBECONFORM is not None
        done = subprocess.run(
            [KUBECONFORM, "-strict", "-summary", "-output", "json", "-kubernetes-version", version,
             "-schema-location", f"{tmp_path}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json", file],
            capture_output=True, text=True,
        )  # fmt: skip
        counts = json.loads(done.stdout)["summary"]
        n_valid = len(found) - n_invalid
        assert counts == {"valid": n_valid, "invalid": n_invalid, "errors": 0, "skipped": 0}
        assert done.returncode == n_invalid


def bundle(schemas: Path, resources: list[Any], folder: Path) -> None:
    """Write the schema of each resource, with the definitions that it refers to by an address."""
    shared = json.loads((schemas / "_definitions.json").read_text())["$defs"]
    for each in resources:
        *group, version = each["apiVersion"].split("/")
        name = "-".join([each["kind"].lower(), *group, version])
        text = (schemas / f"{name}.json").read_text().replace('"/api/_definitions.json#', '"#')
        schema = json.loads(text) | {"$defs": shared}
        del schema["$id"]
        (folder / f"{name}.json").write_text(json.dumps(schema))


def test_there_is_one_process_and_it_alone_has_the_state(found: dict[str, Any]) -> None:
    spec = found["StatefulSet"]["spec"]
    assert spec["replicas"] == 1
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
    labels = spec["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"] == spec["selector"]["matchLabels"] == labels


def test_what_is_mounted_is_there(found: dict[str, Any], pod: Any) -> None:
    (container,) = pod["containers"]
    there = {each["name"] for each in pod["volumes"]}
    there |= {
        each["metadata"]["name"] for each in found["StatefulSet"]["spec"]["volumeClaimTemplates"]
    }
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert set(mounted) == there
    assert [mounted["state"]] == of("VOLUME")
    assert pod["volumes"][0]["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]


def test_it_may_do_little(pod: Any) -> None:
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    user, _, group = of("USER")[0].partition(":")
    assert pod["securityContext"]["runAsUser"] == int(user)
    assert pod["securityContext"]["runAsGroup"] == int(group)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False


def test_probes_ask_as_the_image_does(pod: Any) -> None:
    (container,) = pod["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        command = container[probe]["exec"]["command"]
        assert command[:3] == ["python", "-I", "/opt/shoal/health.py"]
    # A broker that is away restarts nothing.
    assert container["livenessProbe"]["exec"]["command"][3:] == ["--hangs", "300"]


def test_the_command_is_one_of_shoals(pod: Any) -> None:
    (container,) = pod["containers"]
    words = [word.partition("=")[0] for word in container["args"] if word.startswith("-")]
    assert len(words) == 5
    assert set(words) <= options_of(COMMANDS.commands["run"])


def test_its_job_is_a_job(found: dict[str, Any], tmp_path: Path) -> None:
    job = Job.parse(found["ConfigMap"]["data"]["job.toml"], folder=tmp_path)
    assert job.checkpoints is not None
    assert str(job.checkpoints.folder).startswith(of("VOLUME")[0])
