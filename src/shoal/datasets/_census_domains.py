"""The attributes of the synthetic census: labels, hierarchies and sampling weights.

The population is that of no real country; names and proportions are plausible.
"""

from __future__ import annotations

from typing import NamedTuple

from shoal.spec.hierarchy import Hierarchy, Nested, Range
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = [
    "BIRTHPLACES",
    "DIAGNOSES",
    "EDUCATION",
    "MARITAL_BY_AGE",
    "MARITAL_STATUS",
    "OCCUPATIONS",
    "POSTCODES_PER_REGION",
    "REGIONS",
    "SEXES",
    "VISITS",
    "postcodes",
    "schema",
]

SEXES = ("Female", "Male")
VISITS = ("appointment", "emergency", "telephone", "home visit")

#: From the lowest to the highest, because the model draws a rank.
EDUCATION: Nested = {
    "Any education": {
        "School": {
            "Compulsory": ["No schooling", "Primary school", "Lower secondary"],
            "Upper secondary": ["Vocational certificate", "High school diploma"],
        },
        "Tertiary": {
            "College": ["Technical diploma", "Associate degree"],
            "University": ["Bachelor's degree", "Master's degree", "Doctorate"],
        },
    }
}

MARITAL_STATUS: Nested = {
    "Any status": {
        "In a couple": ["Married", "Registered partnership", "Cohabiting"],
        "Alone": {"Never married": None, "Formerly married": ["Separated", "Divorced", "Widowed"]},
    }
}

#: One row for each of 18-24, 25-34, 35-49, 50-64, 65-79, 80 and more; columns as above.
MARITAL_BY_AGE = (
    (0.03, 0.01, 0.12, 0.83, 0.005, 0.005, 0.0),
    (0.33, 0.03, 0.22, 0.36, 0.02, 0.04, 0.0),
    (0.57, 0.02, 0.10, 0.15, 0.04, 0.11, 0.01),
    (0.61, 0.01, 0.06, 0.09, 0.03, 0.16, 0.04),
    (0.60, 0.01, 0.03, 0.05, 0.01, 0.12, 0.18),
    (0.36, 0.0, 0.01, 0.05, 0.01, 0.06, 0.51),
)


class Occupation(NamedTuple):
    """How likely an occupation is, and for whom."""

    group: str
    name: str
    share: float
    education: float
    """The rank of education that suits it best."""
    men: float
    """How many men for each woman."""
    hours: float
    pay: float
    """The logarithm of the yearly income at forty hours a week."""


#: Working people first; the model assigns the last four by age before the others.
OCCUPATIONS = (
    Occupation("Professional", "Engineer", 0.06, 7.5, 4.0, 41, 11.2),
    Occupation("Professional", "Physician", 0.02, 9.0, 1.0, 48, 11.9),
    Occupation("Professional", "Teacher", 0.06, 7.5, 0.35, 38, 10.8),
    Occupation("Professional", "Lawyer", 0.01, 8.0, 1.2, 47, 11.7),
    Occupation("Professional", "Software developer", 0.04, 7.0, 3.5, 40, 11.3),
    Occupation("Professional", "Nurse", 0.04, 6.0, 0.12, 36, 10.8),
    Occupation("Clerical and sales", "Manager", 0.07, 6.5, 1.6, 46, 11.4),
    Occupation("Clerical and sales", "Accountant", 0.04, 6.5, 0.8, 40, 11.0),
    Occupation("Clerical and sales", "Office clerk", 0.09, 4.5, 0.3, 36, 10.4),
    Occupation("Clerical and sales", "Shop assistant", 0.09, 3.5, 0.5, 31, 10.0),
    Occupation("Clerical and sales", "Estate agent", 0.01, 4.5, 1.0, 42, 10.9),
    Occupation("Service work", "Cook", 0.04, 2.5, 1.3, 38, 10.0),
    Occupation("Service work", "Waiter", 0.03, 3.0, 0.7, 30, 9.8),
    Occupation("Service work", "Cleaner", 0.05, 1.5, 0.25, 28, 9.8),
    Occupation("Service work", "Police officer", 0.02, 4.5, 3.0, 41, 10.9),
    Occupation("Service work", "Care worker", 0.05, 3.0, 0.15, 33, 10.1),
    Occupation("Manual work", "Electrician", 0.03, 3.3, 15.0, 41, 10.7),
    Occupation("Manual work", "Carpenter", 0.02, 3.0, 15.0, 41, 10.5),
    Occupation("Manual work", "Machine operator", 0.05, 2.5, 3.0, 40, 10.3),
    Occupation("Manual work", "Truck driver", 0.04, 2.3, 12.0, 45, 10.4),
    Occupation("Manual work", "Farm worker", 0.02, 1.5, 2.5, 46, 9.8),
    Occupation("Manual work", "Construction labourer", 0.03, 2.0, 14.0, 41, 10.2),
    Occupation("Not working", "Student", 0.0, 4.5, 1.0, 6, 8.9),
    Occupation("Not working", "Unemployed", 0.0, 3.0, 1.1, 0, 9.5),
    Occupation("Not working", "Homemaker", 0.0, 3.5, 0.1, 0, 8.7),
    Occupation("Not working", "Retired", 0.0, 4.0, 1.0, 0, 10.0),
)

#: The country of birth: where, and the share of those born abroad. The first is the home country.
BIRTHPLACES = {
    "Oceania": {"Australia": 0.0, "New Zealand": 0.11, "Fiji": 0.02, "Samoa": 0.01},
    "Northern Europe": {"England": 0.16, "Scotland": 0.03, "Ireland": 0.02},
    "Southern Europe": {"Italy": 0.04, "Greece": 0.025, "Croatia": 0.01},
    "Central Europe": {"Germany": 0.025, "Netherlands": 0.015, "Poland": 0.01},
    "Eastern Asia": {"China": 0.11, "Hong Kong": 0.02, "South Korea": 0.02, "Japan": 0.01},
    "Southeastern Asia": {
        "Philippines": 0.05,
        "Vietnam": 0.045,
        "Malaysia": 0.03,
        "Indonesia": 0.015,
    },
    "Southern Asia": {"India": 0.12, "Sri Lanka": 0.025, "Nepal": 0.02, "Pakistan": 0.015},
    "Western Asia": {"Iran": 0.012, "Iraq": 0.011, "Lebanon": 0.014},
    "Africa": {"South Africa": 0.03, "Egypt": 0.008, "Kenya": 0.005},
}

CONTINENTS = {
    "Europe": ("Northern Europe", "Southern Europe", "Central Europe"),
    "Asia": ("Eastern Asia", "Southeastern Asia", "Southern Asia", "Western Asia"),
}

#: The first digit of the postcode, and the share of people who live there.
REGIONS = {2: 0.32, 3: 0.26, 4: 0.20, 5: 0.08, 6: 0.11, 7: 0.03}
POSTCODES_PER_REGION = 60


class Diagnosis(NamedTuple):
    """How likely a diagnosis is, and for whom."""

    chapter: str
    block: str
    name: str
    share: float
    age: float
    """The logarithm of how much likelier it is, for each decade above 45."""
    men: float
    """How many men for each woman."""


DIAGNOSES = (
    Diagnosis("Circulatory", "Heart", "Hypertension", 0.12, 0.35, 1.0),
    Diagnosis("Circulatory", "Heart", "Coronary disease", 0.03, 0.6, 1.8),
    Diagnosis("Circulatory", "Heart", "Atrial fibrillation", 0.02, 0.7, 1.2),
    Diagnosis("Circulatory", "Vessels", "Stroke", 0.01, 0.7, 1.1),
    Diagnosis("Circulatory", "Vessels", "Varicose veins", 0.03, 0.3, 0.4),
    Diagnosis("Respiratory", "Upper airways", "Common cold", 0.16, -0.15, 0.9),
    Diagnosis("Respiratory", "Upper airways", "Sinusitis", 0.06, -0.1, 0.8),
    Diagnosis("Respiratory", "Lower airways", "Asthma", 0.05, -0.15, 0.8),
    Diagnosis("Respiratory", "Lower airways", "Bronchitis", 0.05, 0.1, 1.0),
    Diagnosis("Respiratory", "Lower airways", "Pneumonia", 0.02, 0.3, 1.1),
    Diagnosis("Mental", "Mood", "Depression", 0.06, -0.05, 0.55),
    Diagnosis("Mental", "Mood", "Bipolar disorder", 0.01, -0.1, 0.9),
    Diagnosis("Mental", "Anxiety", "Panic disorder", 0.02, -0.2, 0.5),
    Diagnosis("Mental", "Anxiety", "Generalized anxiety", 0.04, -0.1, 0.5),
    Diagnosis("Musculoskeletal", "Back", "Low back pain", 0.1, 0.05, 1.0),
    Diagnosis("Musculoskeletal", "Back", "Slipped disc", 0.02, 0.1, 1.3),
    Diagnosis("Musculoskeletal", "Joints", "Arthritis", 0.05, 0.5, 0.6),
    Diagnosis("Musculoskeletal", "Joints", "Gout", 0.015, 0.3, 3.0),
    Diagnosis("Metabolic", "Diabetes", "Diabetes type 1", 0.008, -0.05, 1.1),
    Diagnosis("Metabolic", "Diabetes", "Diabetes type 2", 0.05, 0.4, 1.2),
    Diagnosis("Metabolic", "Thyroid", "Hypothyroidism", 0.02, 0.2, 0.2),
    Diagnosis("Metabolic", "Thyroid", "Hyperthyroidism", 0.008, 0.05, 0.25),
    Diagnosis("Infection", "Gut", "Gastroenteritis", 0.05, -0.2, 1.0),
    Diagnosis("Infection", "Gut", "Hepatitis", 0.006, 0.0, 1.4),
    Diagnosis("Infection", "Skin", "Shingles", 0.01, 0.4, 0.8),
    Diagnosis("Infection", "Skin", "Eczema", 0.03, -0.15, 0.9),
)


def postcodes() -> list[str]:
    """Return all postcodes, by region, and within a region from the poorest to the richest."""
    return [
        f"{region}{quarter:03d}"
        for region in REGIONS
        for quarter in range(0, 10 * POSTCODES_PER_REGION, 10)
    ]


def schema() -> Schema:
    """Return the roles and domains of the census stream."""
    return Schema(
        subject="person_id",
        time="arrived_at",
        quasi=[
            Quasi("age", Range(18, 99, step=1)),
            Quasi("sex", Hierarchy.flat(SEXES)),
            Quasi("education", Hierarchy.from_dict(EDUCATION)),
            Quasi("marital_status", Hierarchy.from_dict(MARITAL_STATUS)),
            Quasi("occupation", _occupations()),
            Quasi("income", Range(0, 500_000, step=500)),
            Quasi("hours_per_week", Range(0, 80, step=1)),
            Quasi("postcode", Hierarchy.masked(postcodes())),
            Quasi("country_of_birth", _birthplaces()),
            Quasi("household_size", Range(1, 9, step=1)),
        ],
        sensitive=[Sensitive("diagnosis", _diagnoses())],
        keep=["visit"],
    )


def _occupations() -> Hierarchy:
    above: dict[str, tuple[str, ...]] = {"Not working": ()}
    return Hierarchy.from_rows(
        (job.name, job.group, *above.get(job.group, ("Working",)), "Any occupation")
        for job in OCCUPATIONS
    )


def _birthplaces() -> Hierarchy:
    continent = {region: (name,) for name, regions in CONTINENTS.items() for region in regions}
    return Hierarchy.from_rows(
        (country, region, *continent.get(region, ()), "Any country")
        for region, countries in BIRTHPLACES.items()
        for country in countries
    )


def _diagnoses() -> Hierarchy:
    return Hierarchy.from_rows(
        (found.name, found.block, found.chapter, "Any diagnosis") for found in DIAGNOSES
    )
