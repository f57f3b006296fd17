"""What is written from the registry is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.generated import COMMAND, GENERATED


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_what_is_generated_is_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == GENERATED[path](text), f"run `{COMMAND}`"
