"""Words that say in a column's name what its values mean, in several languages."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["Words", "split", "words"]


class Words:
    """Words that indicate a meaning: whole words of a name, and stems anywhere in it."""

    def __init__(self, words: str, stems: str = "") -> None:
        self.words = frozenset(words.split())
        self.stems = tuple(stems.split())

    def match(self, name: str) -> bool:
        """Return whether a column's name has one of the words or stems."""
        found = words(name)
        # A number behind a word doesn't change it: "zip3", "diag1".
        found |= {word.rstrip("0123456789") for word in found}
        return not self.words.isdisjoint(found) or self.stem(name)

    def stem(self, name: str) -> bool:
        """Return whether a column's name has one of the stems."""
        squashed = "".join(split(name))
        return any(stem in squashed for stem in self.stems)


def split(name: str) -> list[str]:
    """Split a column's name into lower-case words without accents.

    >>> split("DateOfBirth"), split("código_postal"), split("ZIP code 5")
    (['date', 'of', 'birth'], ['codigo', 'postal'], ['zip', 'code', '5'])
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain)
    return re.findall(r"[^\W_]+", parts.lower())


def words(name: str) -> frozenset[str]:
    """Return the words of a column's name."""
    return frozenset(split(name))


# -- who ----------------------------------------------------------------------------------------

WHO = Words(
    "person persons people patient customer client user subject member employee student pupil "
    "citizen resident respondent participant passenger subscriber pers cust emp pat beneficiary "
    "kunde kundin benutzer nutzer mitarbeiter versicherter klient personne usager teilnehmer "
    "utilisateur cliente paciente usuario persona empleado utente paziente dipendente pessoa "
    "klant gebruiker patiente asiakas kund bruger klijent",
    "patient customer kunden benutzer mitarbeiter versicherten subscriber respondent participant "
    "passenger paciente usuario paziente utilisateur gebruiker teilnehmer persid personid",
)
#: What belongs to one person, or to a few.
OWNED = Words(
    "account card device phone handset konto karte geraet cookie msisdn imsi imei iccid sim",
    "deviceid accountid cardid",
)
ID = Words(
    "id ids nr no nbr num number nummer numero numer key code hash uid pid uuid guid ref index"
)
ID_ENDS = ("id", "nr", "nbr", "num", "number", "nummer", "numero", "key", "hash", "uuid", "guid")
BARE_ID = Words("id pid uid uuid guid").words
FIRST_ID = Words("id numero code").words
ENDING_ID = Words("id ids no nr nbr number nummer key uuid guid hash ref").words
#: Words that end as ids do.
NO_ID = Words("paid unpaid prepaid covid valid invalid void hybrid fluid solid acid grid").words
STRONG_ID = Words(
    "ssn sin nin nino nhs mrn dni nie nif cpf bsn pesel ahv avs svnr cnp curp aadhaar msisdn imsi "
    "imei iccid nir matricule codicefiscale steuerid",
    "msisdn socialsecurity sozialversicherung codicefiscale personnummer securitesociale "
    "personalnummer personalnr",
)
#: Ids of something that happens to a person, so that one person has several.
EVENT = Words(
    "encounter visit stay case fall admission episode invoice order event transaction session call "
    "row record line ticket booking claim trip receipt bestellung rechnung besuch aufenthalt "
    "facture pedido ordine cdr message msg",
    "encounter transaction invoice",
)
#: Ids of several people.
SHARED = Words(
    "household family hh haushalt familie foyer hogar famiglia duid school class company employer "
    "hospital clinic shop store branch department team group doctor physician provider nurse "
    "teacher agent operator cashier seller arzt cell tower",
    "household haushalt",
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
    "username licenseplate kennzeichen creditcard kreditkarte ipaddress",
)

# -- when and where -----------------------------------------------------------------------------

BIRTH = Words(
    "birth birthday birthdate born dob yob dobyy dobmm geburt naissance nacimiento nascita "
    "nascimento geboorte geb",
    "birth geburt naissance nacimiento nascita nascimento geboorte",
)
INSTANT = Words(
    "time timestamp ts epoch unixtime arrived arrival zeit zeitstempel tijd tijdstip momento "
    "horodatage received recorded logged start started begin beginn",
    "timestamp zeitstempel horodatage",
)
CALENDAR = Words("date datetime created event datum uhrzeit fecha hora heure orario data day tag")
POSTCODE = Words(
    "zip zipcode postcode postal postalcode plz postleitzahl npa cap cep cp codigopostal",
    "zipcode postcode postalcode postleitzahl codepostal codigopostal",
)
PLACE = Words(
    "lat lon lng latitude longitude city town municipality village stadt ort gemeinde ville "
    "commune ciudad citta cidade stad county district canton kanton bundesland land departement "
    "pays pais paese lugar location place region state province country area wohnort residence",
    "birthplace latitude longitude wohnort",
)

# -- what ---------------------------------------------------------------------------------------

CATEGORY = Words(
    "sex gender geschlecht sexe genre sexo sesso geslacht kon race racex ethnicity ethnie marital "
    "marry married familienstand civil etatcivil region state province country nationality "
    "citizenship language religion employment workclass relationship",
    "marital gender geschlecht ethnic nationalit familienstand",
)
#: What doesn't change, or hardly, from one row of a person to the next.
STABLE = Words(
    "dob yob birthday birthdate born sex gender geschlecht sexe sexo sesso geslacht race racex "
    "ethnicity ethnie",
    "birth geburt naissance nacimiento nascita geboorte gender geschlecht ethnic",
)
#: What nearly everybody may know of a neighbour or a colleague.
WELL_KNOWN = Words(
    "age alter edad eta idade leeftijd alder sex gender geschlecht sexe genre sexo sesso geslacht "
    "kon race racex ethnicity ethnie marital marry married familienstand nationality citizenship "
    "occupation job profession beruf metier profesion professione beroep education educyear",
    "marital gender geschlecht ethnic nationalit familienstand occupation education profession "
    "altersgruppe agegroup ageband agerange",
)
QUASI = Words(
    "age alter edad eta idade leeftijd alder schooling "
    "bildung ausbildung educacion istruzione escolaridad opleiding degree school occupation job "
    "profession beruf metier profesion professione beroep employer department industry household "
    "children kids height hours year jahr annee origin veteran weight abteilung grade tenure",
    "education occupation profession household citizen",
)
SENSITIVE = Words(
    "diagnosis diagnoses diagnose diagnostic diagnostico diagnosi diag dx disease illness sickness "
    "icd icd9 icd10 condition symptom symptoms hiv cancer krankheit maladie enfermedad malattia "
    "doenca ziekte medication drug drugs prescription treatment therapy procedure surgery "
    "disability salary wage wages income earnings gehalt einkommen lohn salaire revenu salario "
    "ingreso ingresos stipendio reddito renda salaris inkomen religion religione confession "
    "konfession faith geloof party politics political vote orientation crime offence offense "
    "conviction debt credit score balance item purchase union pregnancy pregnant smoker alcohol "
    "sick krank glucose a1c brutto netto bonus",
    "diagnos disease krankheit maladie enfermedad salary income einkommen religio medicat gehalt "
    "a1cresult",
)
#: Numbers that are measured or paid, so that many different ones are no ids.
AMOUNT = Words(
    "salary wage wages income earnings gehalt einkommen lohn salaire revenu salario amount price "
    "cost total sum fee revenue balance debt betrag preis kosten summe montant importe valor "
    "duration seconds minutes hours bytes volume usage weight height length distance speed "
    "pressure temperature lat lon lng latitude longitude gain loss rate score brutto netto bonus "
    "pay quantity area size fnlwgt elevation altitude",
    "salary income einkommen gehalt amount latitude longitude bytes",
)
COUNT = Words(
    "count counts quantity qty anzahl nombre cantidad quantita visits calls children kids days "
    "nights months times minutes hours age tenure educyear",
    "numberof anzahl",
)
#: Words that make a count of what follows: "num_medications", "number of visits".
FIRST_COUNT = Words("num number n no nb count anzahl nombre total").words
CODE = Words(
    "code codes type typ kind class status category categorie kategorie cd art grp flag mode "
    "stage level reason source disposition plan tariff tarif",
    "status category kategorie",
)
NOTE = Words("note notes comment comments remark remarks text description bemerkung kommentar memo")
