"""Whatever is in the folder is found by its name."""

from __future__ import annotations

import pytest

import shoal
from shoal.algorithms import find, names
from shoal.errors import ParameterError


def test_every_name_leads_to_its_class() -> None:
    assert "castle" in names()
    assert list(names()) == sorted(names())
    for name in names():
        anonymizer = find(name)
        assert anonymizer.name == name
        assert anonymizer.__doc__
        assert anonymizer.reference
        assert anonymizer.enforces


def test_every_class_is_a_public_name() -> None:
    for name in names():
        anonymizer = find(name)
        assert getattr(shoal, anonymizer.__name__) is anonymizer


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ParameterError, match=r"got 'castel'. Did you mean 'castle'?"):
        find("castel")
