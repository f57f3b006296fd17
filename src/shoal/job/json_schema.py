"""A JSON Schema of the job file, for editors: its keys, their types and their choices."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, get_args, get_type_hints

import pydantic

from shoal import algorithms
from shoal.algorithms.registry import DEFAULT
from shoal.arrow.release import Publish
from shoal.engine.base import Anonymizer
from shoal.job.descriptions import KEYS, KNOBS
from shoal.job.form import (
    REQUIRED,
    SECTIONS,
    AuditForm,
    BadRowsForm,
    Form,
    PolicyForm,
    PrivateForm,
    PublishForm,
    RunForm,
    SchemaForm,
    SparkForm,
    endpoint_form,
)
from shoal.spec.policy import Missing

__all__ = ["job_schema"]


def job_schema() -> dict[str, Any]:
    """Return the JSON Schema of a job file.

    It knows what a key may be by itself. Whether values fit together, `shoal check` tells.

    >>> schema = job_schema()
    >>> schema["required"]
    ['schema', 'policy', 'algorithm']
    >>> schema["properties"]["publish"]["properties"]["order"]["enum"]
    ['released', 'arrival', 'shuffled']
    """
    forms: dict[str, type[Form]] = {
        "schema": SchemaForm, "policy": PolicyForm, "publish": PublishForm,
        "input": endpoint_form("input"), "output": endpoint_form("output"), "run": RunForm,
        "bad_rows": BadRowsForm, "private": PrivateForm, "audit": AuditForm, "spark": SparkForm,
    }  # fmt: skip
    tables: dict[str, Any] = {"algorithm": _algorithms()}
    definitions: dict[str, Any] = {}
    for name, form in forms.items():
        table = _plain(form.model_json_schema())
        definitions |= table.pop("$defs", {})
        tables[name] = table
    hints = get_type_hints(Publish)
    for key in ("numeric", "order", "suppressed"):
        tables["publish"]["properties"][key] = {"enum": list(get_args(hints[key]))}
        tables["publish"]["properties"][key]["default"] = PublishForm.model_fields[key].default
    tables["policy"]["properties"]["missing"] = {
        "enum": list(get_args(Missing)), "default": PolicyForm.model_fields["missing"].default
    }  # fmt: skip
    for name in forms:
        tables[name] = _described(tables[name], name, definitions)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A job of Shoal",
        "type": "object",
        "properties": {name: tables[name] for name in SECTIONS},
        "required": [*REQUIRED, "algorithm"],
        "additionalProperties": False,
    }


def _described(node: Any, path: str, definitions: dict[str, Any]) -> Any:
    """Return a schema with a description of each key, and its definitions in place.

    One definition has other words in other places: a step of a quasi attribute is published.
    """
    if isinstance(node, list):
        return [_described(each, path, definitions) for each in node]
    if not isinstance(node, dict):
        return node
    if reference := node.get("$ref"):
        node = {**definitions[reference.rpartition("/")[2]], **node}
        del node["$ref"]
    found = {key: value for key, value in node.items() if key != "description"}
    if path in KEYS:
        found["description"] = KEYS[path]
    for key in ("anyOf", "items"):
        if key in found:
            found[key] = _described(found[key], path, definitions)
            _undescribe(found[key])
    if isinstance(found.get("additionalProperties"), dict):
        found["additionalProperties"] = _described(
            found["additionalProperties"], f"{path}.*", definitions
        )
    if "properties" in found:
        found["properties"] = {
            key: _described(value, f"{path}.{key}", definitions)
            for key, value in found["properties"].items()
        }
    return found


def _undescribe(node: Any) -> None:
    """Remove a description that the key itself has already."""
    for each in node if isinstance(node, list) else [node]:
        each.pop("description", None)


def _algorithms() -> dict[str, Any]:
    """Return what an algorithm takes: its name decides about its knobs."""
    names = list(algorithms.names())
    return {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"enum": names, "examples": [DEFAULT]}},
        "oneOf": [_knobs(algorithms.find(name)) for name in names],
    }


def _knobs(anonymizer: type[Anonymizer]) -> dict[str, Any]:
    hints = get_type_hints(anonymizer)
    knobs = {
        field.name: _plain(
            pydantic.TypeAdapter(hints[field.name]).json_schema()
            | {"default": field.default}
            | ({"description": KNOBS[field.name]} if field.name in KNOBS else {})
        )
        for field in dataclasses.fields(anonymizer)
    }
    summary, _, _ = (inspect.getdoc(anonymizer) or "").partition("\n\n")
    return {
        "title": anonymizer.name,
        "description": " ".join(summary.split()),
        "properties": {"name": {"const": anonymizer.name}, **knobs},
        "additionalProperties": False,
    }


def _plain(node: Any, *, is_table_of_keys: bool = False) -> Any:
    """Return a schema without names of classes and without null, which TOML doesn't have."""
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    found = {
        key: _plain(value, is_table_of_keys=key in ("properties", "$defs"))
        for key, value in node.items()
        if is_table_of_keys or not (key == "title" or (key == "default" and value is None))
    }
    choices = [each for each in found.pop("anyOf", []) if each != {"type": "null"}]
    if {"type": "number"} in choices:
        choices = [each for each in choices if each != {"type": "integer"}]
    if len(choices) == 1:
        return {**choices[0], **found}
    return {**found, "anyOf": choices} if choices else found
