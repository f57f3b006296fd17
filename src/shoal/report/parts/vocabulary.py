"""Part 7: where the evidence is for the questions of those who must sign."""

from __future__ import annotations

from typing import Any

from shoal.report.page import Section, note, table
from shoal.report.release import Release

__all__ = ["measure", "show"]

TITLE = "7. Evidence by standard and law"
_NO_VERDICT = (
    "This page is evidence for an assessment by people who know the recipient, the purpose and the "
    "law. It is no assessment by itself: it gives no overall score, and doesn't say whether data "
    "are personal or not."
)

#: Source, term, its question, the evidence for groups, the evidence under z.
_TERMS = (
    (
        "Opinion 05/2014 of the Article 29 Working Party (WP216)", "singling out",
        "Can records of one individual be isolated?",
        "k of part 2; highest risk, sizes of groups and unique people in part 3; attacks in part 4",
        "z of part 2 is about single values; rows can be singled out (part 6)",
    ),
    (
        "WP216", "linkability",
        "Can records of one individual or group be linked, here or across data sets?",
        "prosecutor, journalist and marketer in part 3; attacks in part 4. Not over time: part 6",
        "rotation of pseudonyms in part 1; what isn't covered in part 6",
    ),
    (
        "WP216", "inference",
        "Can a value be deduced with significant probability from others?",
        "l, t, beta and disclosure of part 2, where they are promised; attacks in part 4",
        "not promised; part 6",
    ),
    (
        "ISO/IEC 20889", "technique",
        "Which de-identification techniques are used?",
        "generalization of quasi-identifiers; suppression of records; dropping of columns that the "
        "job doesn't name (parts 1 and 5)",
        "generalization and local suppression of values; pseudonymization where part 1 says so",
    ),
    (
        "ISO/IEC 20889", "formal privacy measurement model",
        "Which model bounds the risk?",
        "K-anonymity model and its extensions, with parameters (part 2)",
        "z-anonymity, a bound for each value in a window (part 2)",
    ),
    (
        "ISO/IEC 27559", "context assessment",
        "Who receives the data, and which threats are considered?",
        "the assumed attacker in part 6; the publisher adds recipient and controls",
        "the assumed attacker in part 6; the publisher adds recipient and controls",
    ),
    (
        "ISO/IEC 27559", "data assessment",
        "What are the attributes, and who can be distinguished by them?",
        "columns in part 1; unique people and each attribute's share of the risk in part 3",
        "columns in part 1; hidden shares in part 5",
    ),
    (
        "ISO/IEC 27559", "identifiability assessment and mitigation",
        "How likely is it to identify somebody, and what was done against it?",
        "risk in part 3, attacks in part 4, loss and suppression in part 5",
        "z of part 2, hidden shares in part 5",
    ),
    (
        "HIPAA, 45 CFR 164.514(b)(1), expert determination", "very small risk",
        "Is the risk very small that an anticipated recipient identifies an individual, alone or "
        "with other reasonably available information?",
        "highest and average risk with denominators in part 3; attacks in part 4. The expert names "
        "the recipient and the threshold, and documents the analysis",
        "figures of part 5; the risk of rows isn't bounded (part 6)",
    ),
    (
        "HIPAA, guidance on expert determination",
        "replicability, availability, distinguishability",
        "Do values recur, can others access them, do they distinguish people?",
        "roles of columns in part 1 (what is held to be known), each attribute's share in part 3",
        "roles of columns in part 1 (what is held to be known)",
    ),
)  # fmt: skip


def measure(release: Release) -> dict[str, Any]:
    """Return terms, their questions, and where the evidence is."""
    per_value = release.policy.per_value
    return {
        "note": _NO_VERDICT,
        "terms": [
            {
                "source": source,
                "term": term,
                "question": question,
                "evidence": under_z if per_value else groups,
            }
            for source, term, question, groups, under_z in _TERMS
        ],
    }


def show(figures: dict[str, Any]) -> Section:
    """Return the part as a section."""
    rows = [
        [each["term"], each["source"], each["question"], each["evidence"]]
        for each in figures["terms"]
    ]
    heads = ["term", "source", "question", "evidence"]
    return Section(TITLE, [note(figures["note"]), table("Where the evidence is", heads, rows)])
