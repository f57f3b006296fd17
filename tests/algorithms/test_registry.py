"""Whatever is in the folder is found: by its name, by its class, and without importing it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shoal import algorithms
from shoal.algorithms import find, names
from shoal.engine import Anonymizer
from shoal.errors import ParameterError

FOLDER = Path(algorithms.__file__).parent


def test_every_name_leads_to_its_class() -> None:
    assert "castle" in names()
    assert list(names()) == sorted(names())
    for name in names():
        anonymizer = find(name)
        assert issubclass(anonymizer, Anonymizer)
        assert anonymizer.name == name
        assert anonymizer.__doc__
        assert anonymizer.reference
        assert anonymizer.enforces


def test_every_class_is_a_public_name() -> None:
    for name in names():
        anonymizer = find(name)
        assert getattr(algorithms, anonymizer.__name__) is anonymizer
        assert anonymizer.__name__ in dir(algorithms)


def test_every_file_has_an_anonymizer() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "registry"}
    assert {find(name).__module__.rpartition(".")[2] for name in names()} == files


def test_asking_for_names_imports_no_algorithm() -> None:
    code = (
        "import sys; from shoal.algorithms import names; assert 'castle' in names(); "
        "print([n for n in ('numba', 'numpy', 'shoal.algorithms.castle') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_unknown_class_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Castel'"):
        _ = algorithms.Castel  # type: ignore[attr-defined]


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ParameterError, match=r"got 'castel'. Did you mean 'castle'?"):
        find("castel")
