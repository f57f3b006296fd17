"""The hierarchies of UCI Adult's attributes, with the leaves spelled as in the file.

Leaves and levels (leaves and root included) are those of the thesis' Table 5.4 for its ten quasi
attributes, with one exception: the complete rows hold 41 countries, and the table says 40. All
41 are here, also the one with a single person (``Holand-Netherlands``), so that no row is refused.
"""

from __future__ import annotations

from shoal.spec.hierarchy import Domain, Hierarchy, Nested, Range

__all__ = ["COLUMNS", "NUMBERS", "TABLE_5_4", "domains"]

#: The columns in the order of the file.
COLUMNS = (
    "age",
    "workclass",
    "final_weight",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "salary_class",
)

NUMBERS = frozenset(
    {"age", "final_weight", "education_num", "capital_gain", "capital_loss", "hours_per_week"}
)

#: The quasi attributes of the thesis, in the order of its table.
TABLE_5_4 = (
    "age",
    "final_weight",
    "education_num",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "education",
    "marital_status",
    "occupation",
    "native_country",
)

EDUCATION: Nested = {
    "Any education": {
        "School": {
            "Without diploma": {
                "Elementary": ["Preschool", "1st-4th", "5th-6th", "7th-8th"],
                "Some high school": ["9th", "10th", "11th", "12th"],
            },
            "HS-grad": None,
        },
        "College": {
            "Undergraduate": {
                "Without bachelor's degree": ["Some-college", "Assoc-voc", "Assoc-acdm"],
                "Bachelors": None,
            },
            "Graduate": {
                "Master's or professional degree": ["Masters", "Prof-school"],
                "Doctorate": None,
            },
        },
    }
}

MARITAL_STATUS: Nested = {
    "Any status": {
        "Married": {
            "Spouse present": ["Married-civ-spouse", "Married-AF-spouse"],
            "Married-spouse-absent": None,
        },
        "Not married": {
            "Formerly married": ["Divorced", "Separated", "Widowed"],
            "Never-married": None,
        },
    }
}

OCCUPATION: Nested = {
    "Any occupation": {
        "Office": ["Adm-clerical", "Exec-managerial", "Prof-specialty", "Sales", "Tech-support"],
        "Manual": [
            "Craft-repair",
            "Farming-fishing",
            "Handlers-cleaners",
            "Machine-op-inspct",
            "Transport-moving",
        ],
        "Service": ["Armed-Forces", "Other-service", "Priv-house-serv", "Protective-serv"],
    }
}

NATIVE_COUNTRY: Nested = {
    "Any country": {
        "America": {
            "Northern America": {
                "United States and territories": [
                    "United-States",
                    "Puerto-Rico",
                    "Outlying-US(Guam-USVI-etc)",
                ],
                "Canada": None,
            },
            "Latin America": {
                "Central America": [
                    "El-Salvador",
                    "Guatemala",
                    "Honduras",
                    "Mexico",
                    "Nicaragua",
                ],
                "Caribbean": [
                    "Cuba",
                    "Dominican-Republic",
                    "Haiti",
                    "Jamaica",
                    "Trinadad&Tobago",
                ],
                "South America": ["Columbia", "Ecuador", "Peru"],
            },
        },
        "Europe": {
            "Northwestern Europe": {
                "British Isles": ["England", "Ireland", "Scotland"],
                "Western Europe": ["France", "Germany", "Holand-Netherlands"],
            },
            "Southeastern Europe": {
                "Southern Europe": ["Greece", "Italy", "Portugal"],
                "Eastern Europe": ["Hungary", "Poland", "Yugoslavia"],
            },
        },
        "Asia": {
            "Eastern Asia": {
                "Greater China": ["China", "Hong", "Taiwan"],
                "Japan and Korea": ["Japan", "South"],
            },
            "Southern Asia": {
                "Southeastern Asia": ["Cambodia", "Laos", "Philippines", "Thailand", "Vietnam"],
                "Southwestern Asia": ["India", "Iran"],
            },
        },
    }
}

WORKCLASS: Nested = {
    "Any class": {
        "Government": ["Federal-gov", "Local-gov", "State-gov"],
        "Self-employed": ["Self-emp-inc", "Self-emp-not-inc"],
        "Private": None,
        "Unpaid": ["Never-worked", "Without-pay"],
    }
}

RELATIONSHIP: Nested = {
    "Any relationship": {
        "Spouse": ["Husband", "Wife"],
        "Relative": ["Other-relative", "Own-child"],
        "No family": ["Not-in-family", "Unmarried"],
    }
}

RACES = ("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White")


def domains(*, complete: bool) -> dict[str, Domain]:
    """Return the domain of each column, for the complete rows or for all.

    Ranges are those of Table 5.4; one incomplete row has a final weight below that range, so for
    all rows it begins at 12,285.
    """
    return {
        "age": Range(17, 90, step=1),
        "workclass": Hierarchy.from_dict(WORKCLASS),
        "final_weight": Range(13492 if complete else 12285, 1490400, step=1),
        "education": Hierarchy.from_dict(EDUCATION),
        "education_num": Range(1, 16, step=1),
        "marital_status": Hierarchy.from_dict(MARITAL_STATUS),
        "occupation": Hierarchy.from_dict(OCCUPATION),
        "relationship": Hierarchy.from_dict(RELATIONSHIP),
        "race": Hierarchy.flat(RACES),
        "sex": Hierarchy.flat(["Female", "Male"]),
        "capital_gain": Range(0, 99999, step=1),
        "capital_loss": Range(0, 4356, step=1),
        "hours_per_week": Range(1, 99, step=1),
        "native_country": Hierarchy.from_dict(NATIVE_COUNTRY),
        "salary_class": Hierarchy.flat(["<=50K", ">50K"]),
    }
