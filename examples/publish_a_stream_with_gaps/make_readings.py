"""Make readings.csv: watches that don't exist, of three makes. The seed is fixed."""

from __future__ import annotations

import csv
import random
from pathlib import Path

ROWS, PEOPLE, SEED = 600, 300, 11

COLUMNS = ("person_id", "age", "sex", "weight", "pulse", "finding")
FINDINGS = {"none": 70, "fast": 14, "slow": 9, "irregular": 7}
# What the watch of each make can't tell.
LACKS = {"A": (), "B": ("weight",), "C": ("pulse",)}
MAKES = {"A": 60, "B": 25, "C": 15}
LOST = 0.01


def one_of(rng: random.Random, weights: dict[str, int]) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]


def within(value: float, least: int, most: int) -> int:
    return min(most, max(least, round(value)))


def person(rng: random.Random, number: int) -> dict[str, object]:
    sex = rng.choice(("Female", "Male"))
    return {
        "person_id": f"W{number:04d}",
        "age": within(rng.gauss(44, 15), 16, 89),
        "sex": sex,
        "weight": within(rng.gauss(68 if sex == "Female" else 82, 12), 41, 139),
        "make": one_of(rng, MAKES),
    }


def readings() -> list[dict[str, object]]:
    rng = random.Random(SEED)
    people = [person(rng, number) for number in range(PEOPLE)]
    rows = []
    for _ in range(ROWS):
        row = dict(rng.choice(people))
        row["pulse"] = within(rng.gauss(72, 11), 41, 119)
        row["finding"] = one_of(rng, FINDINGS)
        for column in LACKS[str(row.pop("make"))]:
            row[column] = ""
        # And now and then a value gets lost on its way.
        if rng.random() < LOST:
            row[rng.choice(("age", "weight", "pulse"))] = ""
        rows.append(row)
    return rows


def main() -> None:
    with (Path(__file__).parent / "readings.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(readings())


if __name__ == "__main__":
    main()
