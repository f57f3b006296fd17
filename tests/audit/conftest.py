from __future__ import annotations

import pytest

from tests.audit.world import World
from tests.audit.world import world as make_world


@pytest.fixture
def world() -> World:
    return make_world()
