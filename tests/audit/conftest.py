from __future__ import annotations

import pytest

from .world import World
from .world import world as make_world


@pytest.fixture
def world() -> World:
    return make_world()
