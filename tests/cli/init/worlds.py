"""Made-up files with traps, as a newcomer would bring them: events, a payroll, a clinic, an app.

Each has several rows for most people, ids as numbers and as text, outliers, bands, codes and
markers of missing values.
"""

from __future__ import annotations

import datetime
import hashlib
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

Row = dict[str, object]


@dataclass(frozen=True)
class World:
    """A made-up file: how it is written, who its people are, and what identifies them."""

    file: str
    rows: Callable[[int], list[Row]]
    subject: str
    identifying: frozenset[str]
    time: str | None = None
    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."

    def write(self, folder: Path, seed: int = 1) -> tuple[Path, pa.Table]:
        """Write the file; return its path, and its rows as text."""
        rows = self.rows(seed)
        path = folder / self.file
        lines = [self.delimiter.join(map(self._text, row.values())) for row in rows]
        text = "\n".join([self.delimiter.join(rows[0]), *lines, ""])
        path.write_bytes(text.encode(self.encoding))
        return path, self.table(seed)

    def table(self, seed: int) -> pa.Table:
        """Return the rows as text."""
        rows = self.rows(seed)
        return pa.table({name: [str(row[name]) for row in rows] for name in rows[0]})

    def _text(self, value: object) -> str:
        text = str(value)
        if isinstance(value, float):
            text = text.replace(".", self.decimal)
        return f'"{text}"' if self.delimiter in text else text


def telecom(seed: int) -> list[Row]:
    """Events of subscribers: a German export with semicolons, in Latin-1."""
    draw = random.Random(seed)
    people = []
    for _ in range(150):
        area = draw.choice(["01067", "10115", "20095", "50667", "80331", "04109", "70173"])
        people.append(
            {
                "imsi": f"26201{draw.randrange(10**10):010d}",
                "rufnr": f"+49 15{draw.randrange(10)} {draw.randrange(10**7):07d}",
                "geraet": uuid.UUID(int=draw.getrandbits(128)).hex[:16],
                "altersgruppe": draw.choice(["18-25", "26-35", "36-50", "51-64", "65+"]),
                "geschlecht": draw.choice(["männlich", "weiblich", "weiblich", "?"]),
                "plz": area,
                "tarif": draw.choice([1, 2, 5, 7, 7, 7, 9]),
                "vertrag_seit": f"{draw.randrange(1, 28):02d}.{draw.randrange(1, 13):02d}."
                f"{draw.randrange(2009, 2025)}",
            }
        )
    now = datetime.datetime(2025, 3, 1, 6, 0)
    rows: list[Row] = []
    for i in range(1200):
        now += datetime.timedelta(seconds=draw.randrange(90))
        person = draw.choice(people)
        rows.append(
            {
                "ereignis": str(uuid.UUID(int=draw.getrandbits(128))),
                "zeitpunkt": f"{now:%Y-%m-%d %H:%M:%S}",
                **person,
                "zelle": draw.choice([4711, 4712, 4713, 4720, 4721, 5101, 5102, 5999]),
                "dauer_s": 999999 if i == 400 else int(draw.expovariate(1 / 120)),
                "volumen_mb": round(draw.lognormvariate(1, 1), 2),
                "anzahl_sms": min(int(draw.expovariate(0.7)), 9),
                "bemerkung": draw.choice(["", "", "", "Kunde rief wegen der Rechnung an"]),
            }
        )
    return rows


def payroll(seed: int) -> list[Row]:
    """A year of pay slips, with a key for each employee whose name says nothing."""
    draw = random.Random(seed)
    first = ["Ann", "Bob", "Cem", "Dörte", "Eve", "Finn", "Gül", "Hugo", "Ida", "Jan", "Kim", "Lea"]
    last = ["Ng", "Okafor", "Schmidt", "Silva", "Sato", "Novak", "Rossi", "Haddad", "Berg", "Roy"]
    staff = []
    for i in range(110):
        given, family = draw.choice(first), draw.choice(last)
        staff.append(
            {
                "ref": f"E-{draw.randrange(100, 10**5):05d}",
                "employee_name": f"{given} {family} {i}",
                "mail": f"{given.lower()}.{family.lower()}{i}@example.org",
                "bank": f"DE{draw.randrange(10**20):020d}",
                "dob": f"{draw.randrange(1958, 2004)}-{draw.randrange(1, 13):02d}-"
                f"{draw.randrange(1, 28):02d}",
                "gender": draw.choice(["F", "M", "M", "X"]),
                "department": draw.choice(["Sales", "IT", "HR", "Plant", "Legal"]),
                "city": draw.choice(["Lyon", "Köln", "Łódź", "Porto", "Graz", "Gent"]),
                "cost_center": draw.choice([1010, 1020, 2040, 3300, 4100]),
                "tax_class": draw.choice([1, 1, 1, 3, 4, 6]),
                "weekly_hours": draw.choice(["0-10", "10-20", "20-30", "30-40", "40+"]),
                "gross": round(draw.lognormvariate(8.2, 0.4), 2),
            }
        )
    staff[7]["gross"] = 985000.0
    rows: list[Row] = []
    for month in range(1, 13):
        for person in draw.sample(staff, len(staff) - 3):
            rows.append(
                {
                    "slip": 70_000 + len(rows),
                    "paid_on": f"2025-{month:02d}-27",
                    **person,
                    "sick_days": min(int(draw.expovariate(0.8)), 20),
                    "overtime": draw.choice([0, 0, 0, 2, 4, 5, 8, 10]),
                    "union_member": draw.choice(["yes", "no", "no", "n/a"]),
                }
            )
    return rows


def clinic(seed: int) -> list[Row]:
    """Stays of returning patients, in 50 columns."""
    draw = random.Random(seed)
    drugs = [
        "metformin", "repaglinide", "nateglinide", "glimepiride", "glipizide", "glyburide",
        "pioglitazone", "rosiglitazone", "acarbose", "miglitol", "insulin", "tolazamide",
        "examide", "sitagliptin", "metoprolol", "lisinopril", "warfarin", "aspirin",
    ]  # fmt: skip
    codes = [f"{c}{n:02d}.{d}" for c in "EIJKMNRZ" for n in (10, 11, 25, 44, 50) for d in (0, 1, 9)]
    weights = [1 / (rank + 1) for rank in range(len(codes))]
    people = [
        {
            "patient_nbr": draw.randrange(135, 189_502_619),
            "ins_key": hashlib.sha256(f"{seed} {i}".encode()).hexdigest()[:20],
            "household": draw.randrange(1000, 1240),
            "race": draw.choice(["Caucasian"] * 6 + ["AfricanAmerican"] * 2 + ["Asian", "?"]),
            "gender": draw.choice(["Female", "Male"]),
            "decade": draw.randrange(1, 10),
            "zip3": draw.choice(["100", "104", "112", "303", "606"]),
        }
        for i in range(420)
    ]
    now = datetime.datetime(2024, 1, 1)
    rows: list[Row] = []
    for i in range(1000):
        now += datetime.timedelta(minutes=draw.randrange(200))
        person = dict(draw.choice(people))
        decade = int(str(person.pop("decade")))
        stay = max(1, min(14, int(draw.expovariate(0.25))))
        row: Row = {
            "encounter_id": 12_000_000 + 37 * i + draw.randrange(37),
            **person,
            "age": f"[{10 * decade}-{10 * decade + 10})",
            "age_years": 450 if i in (17, 801) else 10 * decade + draw.randrange(10),
            "weight": draw.choice(["?"] * 8 + ["[50-75)", "[75-100)", "[100-125)"]),
            "admitted_at": f"{now:%Y-%m-%d %H:%M:%S}",
            "discharged": f"{now + datetime.timedelta(days=stay):%m/%d/%Y %H:%M}",
            "admission_type_id": draw.choice([1, 1, 1, 2, 3, 5, 6, 8]),
            "discharge_disposition_id": draw.choice([1] * 9 + [3, 6, 6, 11, 18, 22, 25]),
            "admission_source_id": draw.choice([7, 7, 7, 1, 1, 17, 4, 20]),
            "time_in_hospital": stay,
            "payer_code": draw.choice(["?", "?", "MC", "HM", "SP", "BC"]),
            "attending": f"D{draw.randrange(100, 180)}",
            "medical_specialty": draw.choice(["?", "InternalMedicine", "Cardiology", "Surgery"]),
            "num_lab_procedures": max(1, int(draw.gauss(43, 18))),
            "num_procedures": min(int(draw.expovariate(0.7)), 6),
            "num_medications": max(1, int(draw.gauss(16, 7))),
            "number_outpatient": min(int(draw.expovariate(2)), 12),
            "number_emergency": min(int(draw.expovariate(3)), 9),
            "diag_1": draw.choices(codes, weights)[0],
            "diag_2": draw.choices(codes, weights)[0],
            "number_diagnoses": draw.choice([5, 6, 7, 8, 9, 9, 9]),
            "max_glu_serum": draw.choice(["None"] * 9 + ["Norm", ">200"]),
            "A1Cresult": draw.choice(["None"] * 5 + [">7", ">8", "Norm"]),
            "note": " ".join(draw.choices(["seen", "by", "ward", "again", "stable", "x-ray"], k=7)),
        }
        for drug in drugs:
            row[drug] = draw.choice(["No"] * 12 + ["Steady", "Steady", "Up", "Down"])
        row["change"] = draw.choice(["Ch", "No"])
        row["diabetesMed"] = draw.choice(["Yes", "Yes", "No"])
        row["readmitted"] = draw.choice(["NO", "NO", ">30", "<30"])
        row["citoglipton"] = "No"
        row["bmi"] = round(draw.gauss(27, 5), 1)
        rows.append(row)
    return rows


def app(seed: int) -> list[Row]:
    """Positions of an app: ids of devices, addresses, coordinates, epoch seconds out of order."""
    draw = random.Random(seed)
    people = [
        {
            "device": str(uuid.UUID(int=draw.getrandbits(128))),
            "account_no": 500_000 + draw.randrange(10**5),
            "ip": ".".join(str(draw.randrange(1, 255)) for _ in range(4)),
            "yob": draw.randrange(1950, 2010),
            "lang": draw.choice(["de", "en", "en", "fr", "pl"]),
            "home": (52.5 + draw.gauss(0, 0.05), 13.4 + draw.gauss(0, 0.08)),
        }
        for _ in range(120)
    ]
    rows: list[Row] = []
    for i in range(900):
        person = dict(draw.choice(people))
        lat, lon = person.pop("home")
        rows.append(
            {
                "ts": 1_740_000_000 + 60 * i + draw.randrange(120),
                **person,
                "lat": round(lat + draw.gauss(0, 0.01), 5),
                "lon": round(lon + draw.gauss(0, 0.01), 5),
                "speed": -1 if draw.random() < 0.03 else round(draw.expovariate(0.1), 1),
                "battery": draw.randrange(5, 101),
                "screen": draw.choice(["map", "list", "search", "profile"]),
                "condition": draw.choice(["none", "none", "asthma", "diabetes", "gout", "flu"]),
            }
        )
    return rows


WORLDS = {
    "telecom": World(
        "ereignisse.csv",
        telecom,
        subject="imsi",
        identifying=frozenset({"ereignis", "imsi", "rufnr", "geraet", "bemerkung"}),
        time="zeitpunkt",
        delimiter=";",
        encoding="latin-1",
        decimal=",",
    ),
    "payroll": World(
        "payroll.csv",
        payroll,
        subject="ref",
        identifying=frozenset({"slip", "ref", "employee_name", "mail", "bank", "gross"}),
        time="paid_on",
    ),
    "clinic": World(
        "stays.csv",
        clinic,
        subject="patient_nbr",
        identifying=frozenset({"encounter_id", "patient_nbr", "ins_key", "household", "note"}),
        time="admitted_at",
    ),
    "app": World(
        "positions.csv",
        app,
        subject="account_no",
        identifying=frozenset({"device", "account_no", "ip"}),
        time="ts",
    ),
}
