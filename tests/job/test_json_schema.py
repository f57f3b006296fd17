"""The JSON Schema of job files: it takes what Shoal takes, and finds slips of the pen."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from shoal import algorithms
from shoal.errors import JobError
from shoal.job import Job
from shoal.job.descriptions import KEYS, KNOBS
from shoal.job.form import SECTIONS
from shoal.job.json_schema import job_schema
from tests.world import shoal

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.toml"))
JOB = """
[schema]
subject = "who"
quasi = { age = { range = [0, 100], step = 5 } }
[policy]
k = 5
delay = { rows = 100 }
[algorithm]
name = "tide"
"""

SCHEMA = job_schema()


def is_valid(text: str) -> bool:
    return jsonschema.Draft7Validator(SCHEMA).is_valid(tomllib.loads(text))


def is_job(text: str) -> bool:
    try:
        Job.parse(text)
    except JobError:
        return False
    return True


def test_it_is_a_schema_of_all_sections_and_algorithms() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert list(SCHEMA["properties"]) == list(SECTIONS)
    names = [each["title"] for each in SCHEMA["properties"]["algorithm"]["oneOf"]]
    assert names == list(algorithms.names())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_all_examples_are_valid(path: Path) -> None:
    assert is_valid(path.read_text())


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        ("k = 5", 'k = "5"'),
        ("k = 5", "kk = 5"),
        ("k = 5", 'k = 5\nmissing = "perhaps"'),
        ("k = 5", "k = 5\nwindow = { row = 5 }"),
        ("[schema]", "[schemas]"),
        ('subject = "who"', "subject = { each_row = false }"),
        ("step = 5", "stepp = 5"),
        ("step = 5", 'step = "5"'),
        ('name = "tide"', 'name = "tied"'),
        ('name = "tide"', 'name = "tide"\nclusters = 5'),
        ('name = "tide"', 'name = "castle"\nclusters = "5"'),
        ('name = "tide"', ""),
        ("[algorithm]", '[publish]\norder = "random"\n[algorithm]'),
        ("[algorithm]", '[input]\npaths = "in.csv"\n[algorithm]'),
        ("[algorithm]", "[run]\ncheckpoint = { every = 5 }\n[algorithm]"),
    ],
)
def test_it_finds_what_shoal_refuses(given: str, instead: str) -> None:
    assert given in JOB
    wrong = JOB.replace(given, instead)
    assert is_valid(JOB)
    assert is_job(JOB)
    assert not is_valid(wrong)
    assert not is_job(wrong)


@pytest.mark.parametrize("name", algorithms.names())
def test_defaults_of_knobs_are_of_their_type(name: str) -> None:
    (found,) = (
        each for each in SCHEMA["properties"]["algorithm"]["oneOf"] if each["title"] == name
    )
    knobs = {key: knob for key, knob in found["properties"].items() if key != "name"}
    assert set(knobs) == {field.name for field in dataclasses.fields(algorithms.find(name))}
    for knob in knobs.values():
        if "default" in knob:
            jsonschema.validate(knob["default"], knob)


def test_the_command_prints_it(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    assert shoal(monkeypatch, "schema", "job") == 0
    assert json.loads(capfd.readouterr().out) == SCHEMA


def described(table: dict[str, Any], path: str) -> dict[str, str]:
    """The keys of a table, and of the tables in it, with their descriptions."""
    found = {}
    for key, node in table.get("properties", {}).items():
        found[f"{path}.{key}"] = node.get("description", "")
        for inner in (node, *node.get("anyOf", ())):
            found |= described(inner, f"{path}.{key}")
            if isinstance(columns := inner.get("additionalProperties"), dict):
                found |= described(columns, f"{path}.{key}.*")
    return found


def test_every_key_and_every_knob_has_a_description() -> None:
    sections = {name: table for name, table in SCHEMA["properties"].items() if name != "algorithm"}
    found = {
        key: text for name in sections for key, text in described(sections[name], name).items()
    }
    assert found == KEYS
    knobs = {
        field.name
        for name in algorithms.names()
        for field in dataclasses.fields(algorithms.find(name))
    }
    assert set(KNOBS) == knobs
    assert SCHEMA["properties"]["algorithm"]["oneOf"][0]["properties"]["loss"]["description"]
