"""Find out how a CSV file is written, from its first bytes."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from shoal.io.text.dialect import UTF8, Dialect
from shoal.io.text.encoding import decode

__all__ = [
    "DELIMITERS",
    "LOOK_BYTES",
    "NULLS",
    "is_known_null",
    "likely_dialect",
    "likely_encoding",
    "rows_of",
]

#: The delimiters that are looked for, the most usual ones first.
DELIMITERS = (",", ";", "\t", "|", ":", "^", "~")
QUOTES = ('"', "'")
#: How many bytes are looked at.
LOOK_BYTES = 1 << 18
#: Texts that nobody uses for anything but a missing value, in several languages.
NULLS = (
    *("?", "NULL", "\\N", "N/A", "#N/A", "NaN", "nan", "<NA>"),
    *("k.A.", "k. A.", "k.A", "keine Angabe", "keine Angaben", "o.A.", "o. A."),
    *("n.d.", "n/d", "s/d", "sin dato", "sin datos", "non renseigné", "brak danych", "нет данных"),
)
#: Texts that may be a category, a country or a name, unless everything else in a column is numbers
#: or dates; there in any case of their letters.
NULLS_OF_NUMBERS = frozenset(
    {"na", "null", "none", "-", "--", ".", "n/a", "nil", "missing", "unknown", "unbekannt", "brak"}
    | {"inconnu", "inconnue", "desconocido", "desconhecido", "sconosciuto", "onbekend", "okänd"}
    | {text.lower() for text in NULLS}
)
#: Unknown texts are taken for missing values beside at least this many numbers or dates, if they
#: are short, repeat, and fill a small share of every column that has them.
LEAST_PLAIN, MOST_GUESSES, MOST_LETTERS, MOST_SHARE = 20, 2, 20, 0.2

_MARKS = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: Bytes that have no meaning in Windows' western encoding, but have one (rarely used) in Latin-1.
_NOT_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+")
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}(,?[T ]\d{1,2}:\d{2}.{0,14})?")


def likely_encoding(data: bytes) -> str:
    r"""Return the encoding in which the beginning of a text is most likely written.

    >>> likely_encoding("größe;alter\n".encode("latin-1")), likely_encoding("é".encode())
    ('cp1252', 'utf-8')
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    n_even, n_odd = data[::2].count(0), data[1::2].count(0)
    # ASCII characters are half of nearly every table, and have a zero byte each in UTF-16.
    if max(n_even, n_odd) > len(data) // 8 and min(n_even, n_odd) * 8 < max(n_even, n_odd):
        return "utf-16-le" if n_odd > n_even else "utf-16-be"
    try:
        # The last character may be cut off.
        codecs.getincrementaldecoder(UTF8)().decode(data)
    except UnicodeDecodeError:
        return "latin-1" if _NOT_CP1252.search(data) else "cp1252"
    return UTF8


def likely_dialect(data: bytes, delimiter: str = ",") -> Dialect:
    r"""Return the dialect in which the beginning of a CSV file is most likely written.

    Parameters
    ----------
    data
        The first bytes; the last row may be cut off.
    delimiter
        What to return where there is only one column.

    >>> likely_dialect(b"name;weight\nAnna;61,5\nBert;?\nCem;80,0\n")
    Dialect(delimiter=';', quote='"', encoding='utf-8', decimal=',', null=('?',), numbers=())
    """
    encoding = likely_encoding(data)
    text = decode(data, encoding).decode(errors="replace").removeprefix("\ufeff")
    if len(data) >= LOOK_BYTES:
        text = text[: text.rfind("\n") + 1]
    structure = _likely_structure(text, delimiter)
    rows = [row for row in _rows(text, structure) if row]
    columns = list(zip(*_even(rows)[1:], strict=True))
    decimal = "," if structure.delimiter != "," and any(map(_has_commas, columns)) else "."
    return Dialect(
        structure.delimiter, structure.quote, encoding, decimal, tuple(_likely_nulls(columns))
    )


def rows_of(text: str, dialect: Dialect) -> Iterator[list[str]]:
    """Yield the fields of each row of a text; raise `csv.Error` where it has none."""
    return csv.reader(
        io.StringIO(text, newline=""),
        delimiter=dialect.delimiter or ",",
        quotechar=dialect.quote or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
    )


def _rows(text: str, dialect: Dialect) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        # One by one: what comes before an error counts.
        for row in rows_of(text, dialect):
            rows.append(row)  # noqa: PERF402
    except csv.Error:
        pass
    return rows


def _even(rows: Sequence[list[str]]) -> list[list[str]]:
    """Return the rows that have as many fields as the first one."""
    return [row for row in rows if len(row) == len(rows[0])] if rows else []


def _likely_structure(text: str, otherwise: str) -> Dialect:
    """Return the delimiter and quote that give the most rows of one width of at least 2."""
    best, best_score = Dialect(otherwise), (0.0, 0)
    for quote in QUOTES:
        if quote != '"' and quote not in text:
            continue
        for delimiter in DELIMITERS:
            if delimiter not in text:
                continue
            dialect = Dialect(delimiter, quote)
            rows = [row for row in _rows(text, dialect) if row]
            widths = Counter(map(len, rows))
            if not rows or len(rows[0]) < 2:
                continue
            share = widths[len(rows[0])] / len(rows)
            # A quote that is opened in the middle of a text makes rows long, and so fewer.
            score = (round(share * len(rows) / (text.count("\n") + 1), 3), len(rows[0]))
            if score > best_score:
                best, best_score = dialect, score
    return best


def _has_commas(column: Sequence[str]) -> bool:
    """Return whether a column has numbers with a decimal comma, and nothing that speaks against."""
    texts = [text.strip() for text in column]
    n_commas = sum(_COMMA_NUMBER.fullmatch(text) is not None for text in texts)
    n_numbers = sum(_NUMBER.fullmatch(text) is not None and "." not in text for text in texts)
    n_others = sum(text != "" and not is_known_null(text) for text in texts) - n_numbers
    return n_commas > 0 and n_others * 20 <= n_numbers


def is_known_null(text: str) -> bool:
    """Return whether a text is known to stand for missing values, at least beside numbers.

    >>> is_known_null("k.A."), is_known_null("Unbekannt"), is_known_null("Berlin")
    (True, True, False)
    """
    return text.lower() in NULLS_OF_NUMBERS


def _likely_nulls(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the texts that stand for a missing value, the most frequent one first."""
    counted = [Counter(map(str.strip, column)) for column in columns]
    likely = {text for counts in counted for text in NULLS if text in counts}
    for counts in counted:
        likely |= _beside_plain(counts)
    found: Counter[str] = Counter()
    for text in likely:
        if is_known_null(text) or not any(_is_frequent(text, counts) for counts in counted):
            found[text] = sum(counts[text] for counts in counted)
    return (text for text, _ in sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _beside_plain(counts: Counter[str]) -> set[str]:
    """Return the texts for missing values in a column of numbers or of dates; else none."""
    n_plain = max(
        sum(n for text, n in counts.items() if form.fullmatch(text)) for form in (_NUMBER, _DATE)
    )
    texts = {text for text in counts if not (_NUMBER.fullmatch(text) or _DATE.fullmatch(text))}
    known = {text for text in texts if is_known_null(text)}
    guesses = texts - known - {""}
    n_others = sum(counts.values()) - sum(counts[text] for text in texts)
    if not 0 < n_plain == n_others:
        return set()
    if guesses and (n_plain < LEAST_PLAIN or len(guesses) > MOST_GUESSES):
        return set()
    return known | guesses if all(_may_be_null(text, counts) for text in guesses) else set()


def _may_be_null(text: str, counts: Counter[str]) -> bool:
    """Return whether an unknown text beside numbers or dates looks like a marker.

    One with digits, such as ``90+``, is rather a value.
    """
    is_short = len(text) <= MOST_LETTERS and not any(letter.isdigit() for letter in text)
    return is_short and counts[text] > 1 and not _is_frequent(text, counts)


def _is_frequent(text: str, counts: Counter[str]) -> bool:
    return counts[text] > MOST_SHARE * sum(counts.values())
