"""The steps of docs/iceberg.md: the commands of the page, and the real program."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.test_docs import section
from tests.docs.test_http_walk import shell
from tests.docs.test_kafka_walk import ROOT

pytest.importorskip("pyiceberg")
EXAMPLE = ROOT / "examples" / "file_to_iceberg"


def _reader() -> ModuleType:
    """The script of the example."""
    spec = importlib.util.spec_from_file_location("read_iceberg", EXAMPLE / "read.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["read_iceberg"] = module
    spec.loader.exec_module(module)
    return module


open_table, in_order = _reader().open_table, _reader().in_order


@pytest.mark.nightly
def test_from_nothing_to_an_audited_table(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    walk = section(ROOT / "docs" / "iceberg.md", "A walk")
    run, read, judge = re.findall(r"^```sh\n(.*?)^```$", walk, re.M | re.S)
    shell(tmp_path, run)
    assert "profession" in shell(tmp_path, read)
    assert shell(tmp_path, judge).startswith("kept: 12 of 12")
    # All rows came in one commit, when the run ended.
    table = open_table(str(tmp_path / "examples/file_to_iceberg/lake"), "public.admissions")
    assert len(table.snapshots()) == 1
