"""Reading and writing Avro and Protobuf beside JSON, without a broker: one row to a message.

    python -m benchmarks.registry

Rows of six columns. JSON and the formats with schemas take turns in one process, so that a busy
machine slows them alike; the figures are medians, and ratios to JSON.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.io.kafka.payloads import Payloads, payloads_for
from shoal.io.kafka.schemas.client import Registered
from shoal.io.kafka.schemas.payloads import RegisteredPayloads
from shoal.io.kafka.schemas.settings import RegistrySettings
from shoal.io.kafka.schemas.values import RegisteredValues
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.values import values_for

COLUMNS = ("person", "age", "sex", "weight", "city", "diagnosis")


class OneSchema:
    """A registry with one schema."""

    is_away = False
    schema_text = Registered("AVRO", "", {})

    def check(self) -> None:
        return

    def close(self) -> None:
        return

    def register(self, subject: str, kind: str, text: str) -> int:
        self.schema_text = Registered(kind, text, {})
        return 1

    def schema(self, number: int) -> Registered:
        return self.schema_text


def rows(n: int, *, published: bool) -> pa.RecordBatch:
    """Rows as they come in, or as they are published: then as texts that are often the same."""
    draw = np.random.default_rng(24)
    age = draw.integers(18, 90, n)
    ages = pa.array([f"[{a // 10 * 10}, {a // 10 * 10 + 10}]" for a in age]).dictionary_encode()
    return pa.record_batch(
        {
            "person": pa.array([f"P{number:06}" for number in draw.integers(0, 10**6, n)]),
            "age": ages if published else pa.array(age),
            "sex": pa.array(["Female", "Male"]).take(pa.array(draw.integers(0, 2, n))),
            "weight": pa.array(draw.normal(70, 10, n)),
            "city": pa.array([f"city {number}" for number in draw.integers(0, 1000, n)]),
            "diagnosis": pa.array([f"diagnosis {number}" for number in draw.integers(0, 50, n)]),
        }
    )


def worlds(batch: pa.RecordBatch) -> dict[str, tuple[Payloads, Callable[[list[bytes]], Any]]]:
    """Return for each format what writes and what reads."""
    schema = pa.schema(
        [(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
         for f in batch.schema]
    )  # fmt: skip
    json = KafkaSettings("h:1", "people", rows=1)
    made: dict[str, tuple[Payloads, Callable[[list[bytes]], Any]]] = {}
    values = values_for(json, COLUMNS)
    made["json"] = (payloads_for(json, schema), lambda found: values.read(found, 0))
    for form in ("avro", "protobuf"):
        settings = KafkaSettings(
            "h:1", "people", form, rows=1, registry=RegistrySettings("http://h")
        )
        registry: Any = OneSchema()
        payloads = RegisteredPayloads(settings, schema, registry)
        payloads.open()
        reader = RegisteredValues(settings, COLUMNS, threading.Event(), registry)
        made[form] = (payloads, functools.partial(reader.read, first_row=0))
    return made


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000, help="rows of a chunk (20000)")
    parser.add_argument("--repeats", type=int, default=9, help="how often each is timed (9)")
    options = parser.parse_args()
    arriving, leaving = (rows(options.rows, published=is_out) for is_out in (False, True))
    took: dict[tuple[str, str], list[float]] = {}
    inputs, outputs = worlds(arriving), worlds(leaving)
    for _ in range(options.repeats):
        for form, (payloads, read) in inputs.items():
            messages = [one.data for one in payloads.cut(arriving, 0)]
            took.setdefault(("read", form), []).append(seconds(lambda: read(messages)))  # noqa: B023
        for form, (payloads, _) in outputs.items():
            took.setdefault(("write", form), []).append(
                seconds(lambda: list(payloads.cut(leaving, 0)))  # noqa: B023
            )
    print("| | format | rows/s | ratio to JSON |\n|---|---|---:|---:|")
    for (what, form), found in sorted(took.items()):
        rate = options.rows / statistics.median(found)
        ratios = [j / t for j, t in zip(took[what, "json"], found, strict=True)]
        print(f"| {what} | {form} | {rate:,.0f} | {statistics.median(ratios):.2f} |")


if __name__ == "__main__":
    main()
