"""Make people.csv: admissions to a hospital that doesn't exist. The seed is fixed."""

from __future__ import annotations

import csv
import random
from pathlib import Path

ROWS, PATIENTS, SEED = 500, 220, 7

COLUMNS = (
    "patient_id", "admitted_at", "phone", "age", "sex", "postcode", "profession", "diagnosis",
    "ward",
)  # fmt: skip
# The same leaves as in profession.csv.
PROFESSIONS = {
    "Baker": 6, "Butcher": 3, "Carpenter": 6, "Mechanic": 8, "Accountant": 8, "Clerk": 12,
    "Lawyer": 3, "Nurse": 9, "Physician": 3, "Teacher": 9, "Farmer": 4, "Student": 10,
    "Retired": 19,
}  # fmt: skip
DIAGNOSES = {
    "Hypertension": 18, "Diabetes": 12, "Asthma": 10, "Fracture": 15, "Pneumonia": 11,
    "Depression": 9, "Migraine": 8, "Cancer": 7, "Hepatitis": 5, "HIV": 5,
}  # fmt: skip
WARDS = ("Emergency", "Internal", "Surgery")
POSTCODES = ("10115", "10117", "10243", "10245", "20095", "20097", "20144", "80331", "80333")


def one_of(rng: random.Random, weights: dict[str, int]) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]


def patient(rng: random.Random) -> dict[str, object]:
    age = min(97, max(18, round(rng.gauss(50, 18))))
    profession = one_of(rng, PROFESSIONS)
    if age >= 67:
        profession = "Retired"
    elif profession == "Retired" or (profession == "Student" and age > 30):
        profession = "Clerk"
    return {
        "patient_id": f"P{rng.randrange(10**6):06d}",
        "phone": f"+49 30 {rng.randrange(10**7):07d}",
        "age": age,
        "sex": rng.choice(("Female", "Male")),
        "postcode": rng.choice(POSTCODES),
        "profession": profession,
    }


def admissions() -> list[dict[str, object]]:
    rng = random.Random(SEED)
    patients = [patient(rng) for _ in range(PATIENTS)]
    rows: list[dict[str, object]] = []
    minute = 0
    for _ in range(ROWS):
        minute += rng.randrange(1, 7)
        day, rest = divmod(minute, 24 * 60)
        row = dict(rng.choice(patients))
        row["admitted_at"] = f"2026-03-{1 + day:02d} {rest // 60:02d}:{rest % 60:02d}:00"
        row["diagnosis"] = one_of(rng, DIAGNOSES)
        row["ward"] = rng.choice(WARDS)
        rows.append(row)
    # Three rows as they come in real life: a gap, a typing error, an unheard-of profession.
    rows[100]["age"] = ""
    rows[200]["age"] = 430
    rows[300]["profession"] = "Astronaut"
    return rows


def main() -> None:
    with (Path(__file__).parent / "people.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(admissions())


if __name__ == "__main__":
    main()
