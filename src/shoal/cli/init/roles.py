"""Guess the role of each column from its name, in several languages, and from its values.

The guesses are cautious: columns that may identify a person are left out, those an outsider may
know are generalized, and only columns with a sensitive name are published as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from shoal.cli.init.columns import Column

__all__ = ["Roles", "best_subject", "best_time", "guess", "is_category", "is_postcode"]


class Words:
    """Words that indicate a role: whole words of a name, and stems anywhere in it."""

    def __init__(self, words: str, stems: str = "") -> None:
        self.words = frozenset(words.split())
        self.stems = tuple(stems.split())

    def match(self, name: str) -> bool:
        """Return whether a column's name has one of the words or stems."""
        tokens = split(name)
        return not self.words.isdisjoint(tokens) or self.stem(name)

    def stem(self, name: str) -> bool:
        """Return whether a column's name has one of the stems."""
        squashed = "".join(split(name))
        return any(stem in squashed for stem in self.stems)


WHO = Words(
    "person persons people patient customer client user subject member employee student pupil "
    "citizen resident respondent participant passenger subscriber account card device household "
    "kunde kundin benutzer nutzer mitarbeiter versicherter klient konto karte personne usager "
    "utilisateur cliente paciente usuario persona empleado utente paziente dipendente pessoa "
    "klant gebruiker patiente asiakas kund bruger klijent",
    "patient customer kunden benutzer mitarbeiter versicherten subscriber respondent participant "
    "passenger paciente usuario paziente utilisateur gebruiker",
)
ID = Words("id ids nr no num number nummer numero numer key code hash uid pid uuid guid ref index")
ID_ENDS = ("id", "nr", "num", "number", "nummer", "numero", "key", "hash")
BARE_ID = Words("id pid uid uuid guid").words
FIRST_ID = Words("id numero code").words
ENDING_ID = Words("id ids no nr number nummer key uuid guid hash").words
STRONG_ID = Words(
    "ssn sin nin nino nhs mrn dni nie nif cpf bsn pesel ahv avs svnr cnp curp aadhaar msisdn imsi "
    "imei iccid nir matricule codicefiscale steuerid",
    "msisdn socialsecurity sozialversicherung codicefiscale personnummer securitesociale",
)
GENERIC_NAME = Words("name names nom nombre nome naam navn namn").words
OF_PERSON = Words(
    "first last full family given middle maiden user father mother legal nick sur vor nach"
).words
IDENTIFIER = Words(
    "surname forename firstname lastname fullname email mail phone tel telephone mobile fax "
    "address street iban passport username login nickname ip ipaddress mac url plate vin "
    "prenom apellido apellidos cognome sobrenome achternaam voornaam nachname vorname adresse "
    "strasse telefon handy telefono correo direccion indirizzo endereco adres rue calle signature",
    "firstname lastname fullname surname nachname vorname email telephone telefon passport "
    "username licenseplate kennzeichen creditcard kreditkarte",
)
BIRTH = Words(
    "birth birthday birthdate born dob yob dobyy dobmm geburt naissance nacimiento nascita "
    "nascimento geboorte",
    "birth geburt naissance nacimiento nascita nascimento geboorte",
)
INSTANT = Words(
    "time timestamp ts epoch unixtime arrived arrival zeit zeitstempel tijd tijdstip momento "
    "horodatage received recorded logged",
    "timestamp zeitstempel horodatage",
)
CALENDAR = Words("date datetime created event datum uhrzeit fecha hora heure orario data")
POSTCODE = Words(
    "zip zipcode postcode postal postalcode plz postleitzahl npa cap cep cp codigopostal",
    "zipcode postcode postalcode postleitzahl codepostal codigopostal",
)
CATEGORY = Words(
    "sex gender geschlecht sexe genre sexo sesso geslacht kon race racex ethnicity ethnie marital "
    "marry married familienstand civil etatcivil region state province country nationality "
    "citizenship language religion employment workclass relationship",
    "marital gender geschlecht ethnic nationalit familienstand",
)
QUASI = Words(
    "age alter edad eta idade leeftijd alder lat lon lng latitude longitude city town municipality "
    "village stadt ort gemeinde ville commune ciudad citta cidade stad county district canton "
    "kanton bundesland land departement pays pais paese land lugar location place schooling "
    "bildung ausbildung educacion istruzione escolaridad opleiding degree school occupation job "
    "profession beruf metier profesion professione beroep employer department industry household "
    "children kids height hours year jahr annee origin veteran weight",
    "education occupation profession household birthplace latitude longitude citizen",
)
SENSITIVE = Words(
    "diagnosis diagnoses diagnose diagnostic diagnostico diagnosi disease illness sickness icd "
    "icd10 condition symptom symptoms hiv cancer krankheit maladie enfermedad malattia doenca "
    "ziekte medication drug drugs prescription treatment therapy procedure surgery disability "
    "salary wage wages income earnings gehalt einkommen lohn salaire revenu salario ingreso "
    "ingresos stipendio reddito renda salaris inkomen religion religione confession konfession "
    "faith geloof party politics political vote orientation crime offence offense conviction debt "
    "credit score balance item purchase union pregnancy pregnant smoker alcohol",
    "diagnos disease krankheit maladie enfermedad salary income einkommen religio medicat",
)


def split(name: str) -> list[str]:
    """Split a column's name into lower-case words without accents.

    >>> split("DateOfBirth"), split("código_postal"), split("ZIP code 5")
    (['date', 'of', 'birth'], ['codigo', 'postal'], ['zip', 'code', '5'])
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain)
    return re.findall(r"[^\W_]+", parts.lower())


def is_postcode(column: Column) -> bool:
    """Return whether a column holds postcodes, by its name."""
    return POSTCODE.match(column.name)


def is_category(column: Column) -> bool:
    """Return whether numbers in this column are labels and not amounts, by its name."""
    return CATEGORY.match(column.name)


@dataclass(slots=True)
class Roles:
    """A guess for every column. A column in no list is left out of the job."""

    subject: Column | None = None
    time: Column | None = None
    candidates: list[Column] = field(default_factory=list)
    """Columns that may be the subject, although their name doesn't say so."""
    quasi: list[Column] = field(default_factory=list)
    unknown: list[Column] = field(default_factory=list)
    """The quasi attributes whose name says nothing."""
    sensitive: list[Column] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that aren't published, and why."""


def guess(columns: Sequence[Column]) -> Roles:
    """Guess the role of each column."""
    roles = Roles(subject=best_subject(columns))
    roles.time = best_time([column for column in columns if column is not roles.subject])
    for column in columns:
        if column is not roles.subject and column is not roles.time:
            _place(column, roles)
    return roles


def _place(column: Column, roles: Roles) -> None:
    """Assign a role to a column that is neither subject nor time."""
    reason = _reason_to_leave_out(column)
    if reason is not None:
        roles.left_out[column.name] = reason
    elif SENSITIVE.match(column.name) and column.kind != "date":
        roles.sensitive.append(column)
    elif _known_quasi(column.name):
        roles.quasi.append(column)
    elif _is_serial(column):
        roles.candidates.append(column)
        roles.left_out[column.name] = "it looks like a serial number or an identifier"
    elif column.nearly_unique and column.kind == "text":
        roles.left_out[column.name] = "nearly every row has a different value, like an identifier"
    else:
        roles.quasi.append(column)
        roles.unknown.append(column)


def _reason_to_leave_out(column: Column) -> str | None:
    if column.kind == "other":
        return "values of this type can't be generalized"
    if column.n_distinct == 0:
        return "it has no value in the sample"
    if _is_identifier(column.name) or _subject_score(column) > 0:
        return "by its name it identifies people directly"
    if column.kind == "time":
        return "exact times identify people; give a date or a number to generalize"
    if column.n_distinct == 1:
        return "it has only one value in the sample"
    if any(len(value.splitlines()) > 1 for value in column.values):
        return "it has values with line breaks"
    return None


def _known_quasi(name: str) -> bool:
    return any(words.match(name) for words in (BIRTH, POSTCODE, CATEGORY, QUASI))


def _is_identifier(name: str) -> bool:
    tokens = split(name)
    if IDENTIFIER.match(name):
        return True
    if GENERIC_NAME.isdisjoint(tokens):
        return False
    return len(tokens) == 1 or not (OF_PERSON | WHO.words).isdisjoint(tokens)


def _is_serial(column: Column) -> bool:
    """Return whether a column without a known role looks like a serial number."""
    tokens = split(column.name)
    if column.few or not tokens or column.kind not in ("number", "text"):
        return False
    if tokens[-1] in ENDING_ID:
        return True
    whole = column.kind == "number" and column.whole
    return whole and (column.nearly_unique or tokens[-1].endswith("id"))


def _subject_score(column: Column) -> int:
    """Return how surely the name of a column means the subject; 0: not at all."""
    tokens = split(column.name)
    if not tokens or column.kind not in ("number", "text"):
        return 0
    if STRONG_ID.match(column.name):
        return 4
    who = not WHO.words.isdisjoint(tokens)
    # "Customer number" identifies people, "number of customers" is a count.
    if who and (not ID.words.isdisjoint(tokens[1:]) or tokens[0] in FIRST_ID):
        return 3
    if (who or WHO.stem(column.name)) and tokens[-1].endswith(ID_ENDS):
        return 3
    if WHO.words.issuperset(tokens):
        return 2
    return 1 if BARE_ID.issuperset(tokens) else 0


def best_subject(columns: Sequence[Column]) -> Column | None:
    """Return the column of the subject by its name, if there is one."""

    def score(column: Column) -> int:
        named = _subject_score(column)
        # "User type" has few values; a bare "id" may be a number within a household.
        many = column.n_distinct > column.n_rows / 10
        return named if many or (named > 1 and not column.few) else 0

    best = max(columns, key=score, default=None)
    return best if best is not None and score(best) > 0 else None


def best_time(columns: Sequence[Column]) -> Column | None:
    """Return the column of the arrival time: a time or seconds that never decrease."""

    def score(column: Column) -> int:
        if BIRTH.match(column.name) or not column.rising or column.n_distinct < 2:
            return 0
        by_name = INSTANT.match(column.name)
        if column.kind == "time":
            return 3 if by_name else 2 if CALENDAR.match(column.name) else 1
        return 3 if column.kind == "number" and by_name and not column.few else 0

    best = max(columns, key=score, default=None)
    return best if best is not None and score(best) > 0 else None
