"""Make visits.csv: patients who don't exist, and a wave of flu. The seed is fixed."""

from __future__ import annotations

import csv
import random
from pathlib import Path

ROWS, PEOPLE, SEED = 1500, 700, 5

COLUMNS = ("patient_id", "age", "sex", "district", "diagnosis")
USUAL = {
    "Cold": 20, "Flu": 6, "Pneumonia": 5, "Gastritis": 12, "Ulcer": 4, "Sprain": 14, "Fracture": 9,
    "Depression": 8, "Anxiety": 7,
}  # fmt: skip
#: In the middle third of the rows the flu is this many times as frequent.
WAVE = 8
#: What mostly comes with age.
OLD = {"Pneumonia": 4, "Ulcer": 3, "Fracture": 2}


def weights(age: int, position: int) -> dict[str, float]:
    of = {name: float(weight) for name, weight in USUAL.items()}
    if ROWS / 3 <= position < 2 * ROWS / 3:
        of["Flu"] *= WAVE
    for name, times in OLD.items():
        of[name] *= times if age >= 60 else 1
    return of


def visits() -> list[tuple[object, ...]]:
    rng = random.Random(SEED)
    people = [
        (f"P{number:04d}", rng.randint(18, 89), rng.choice(("Female", "Male")), rng.randint(10, 99))
        for number in range(PEOPLE)
    ]
    rows: list[tuple[object, ...]] = []
    for position in range(ROWS):
        person = rng.choice(people)
        likely = weights(person[1], position)
        rows.append((*person, rng.choices(list(likely), list(likely.values()))[0]))
    return rows


def main() -> None:
    with (Path(__file__).parent / "visits.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(visits())


if __name__ == "__main__":
    main()
