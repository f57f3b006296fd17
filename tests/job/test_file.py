"""The job file: every key, every form, and all problems at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shoal.algorithms.castle import Castle
from shoal.arrow.release import Publish
from shoal.errors import JobError
from shoal.job import Job
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import (
    Delay,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    Policy,
    RecursiveLDiversity,
)

BASE = """\
[schema]
subject = "person"
[schema.quasi]
age = { range = [0, 120], step = 1 }
[schema.sensitive]
illness = {}
[policy]
k = 3
delay = { rows = 20 }
[algorithm]
name = "castle"
"""


def changed(old: str, new: str, tail: str = "") -> str:
    assert old in BASE
    return BASE.replace(old, new) + tail


def problems_of(text: str) -> dict[str, str]:
    with pytest.raises(JobError) as raised:
        Job.parse(text)
    return {problem.key: str(problem) for problem in raised.value.problems}


AGE = "age = { range = [0, 120], step = 1 }"

# A job, the keys of its problems, and a part of what is said.
WRONG = [
    ("", {"schema", "policy", "algorithm.name"}, "Add a section [schema]"),
    (changed("k = 3", "k = 0"), {"policy.k"}, "at least 1; got 0"),
    (changed("k = 3", "k = '3'"), {"policy.k"}, "got '3'"),
    (changed("k = 3", "k = true"), {"policy.k"}, "must be a whole number"),
    (changed("k = 3", "kk = 3"), {"policy.kk"}, "Did you mean 'k'?"),
    (changed("k = 3", ""), {"policy"}, "promises nothing"),
    (changed("rows = 20", "rows = 0"), {"policy.delay.rows"}, "at least 1"),
    (changed("rows = 20", "row = 20"), {"policy.delay.row"}, "Did you mean 'rows'?"),
    (changed("rows = 20", "seconds = inf"), {"policy.delay.seconds"}, "finite"),
    (changed("{ rows = 20 }", "{}"), {"policy.delay"}, "needs rows, seconds or both"),
    (changed("{ rows = 20 }", "20"), {"policy.delay"}, "must be a table; got 20"),
    (changed("delay = { rows = 20 }", ""), {"algorithm"}, "Set policy.delay"),
    (changed("k = 3", "l = 0"), {"policy.l"}, "at least 1"),
    (changed("k = 3", "l = {}"), {"policy.l"}, "without distinct"),
    (changed("k = 3", "l = { distinct = 2, entropy = 2 }"), {"policy.l"}, "must be one of"),
    (changed("k = 3", "l = { entropy = 'x' }"), {"policy.l"}, "number"),
    (changed("k = 3", "l = { recursive = 2, c = 0 }"), {"policy.l.c"}, "above 0"),
    (changed("k = 3", "l = { pain = 2 }"), {"policy.l.pain"}, "Sensitive: illness"),
    (changed("k = 3", "l = { illness = { x = 2 } }"), {"policy.l.illness"},
     "without distinct, entropy or recursive. For example l = { illness = 3 }"),
    (changed("k = 3", "l = { illness = { entrpy = 2 } }"), {"policy.l.illness"}, "'entropy'?"),
    (changed("k = 3", "l = { entrpy = 2 }"), {"policy.l.entrpy"},
     "isn't a sensitive attribute of the schema. Did you mean 'entropy'? Sensitive: illness"),
    (changed("k = 3", "l = { illness = 0 }"), {"policy.l.illness"}, "at least 1; got 0"),
    (changed("k = 3", "l = { distinct = 3, c = 2 }"), {"policy.l.c"}, "combined with distinct"),
    (changed("k = 3", "t = '0.2'"), {"policy.t"}, "or a table; got '0.2'. For example t = 0.2"),
    (changed("k = 3", "t = true"), {"policy.t"}, "number"),
    (changed("k = 3", "t = -0.1\nwindow = { rows = 9 }"), {"policy.t"}, "of at least 0; got -0.1"),
    (changed("k = 3", "t = nan\nwindow = { rows = 9 }"), {"policy.t"}, "finite"),
    (changed("k = 3", "t = {}"), {"policy.t"}, "For example t = 0.2"),
    (changed("k = 3", "t = { illness = '1', b = {} }"), {"policy.t.illness", "policy.t.b"},
     "is a table without emd, euclid, variation or jensen-shannon. For example t = { b = 0.2 }"),
    (changed("k = 3", "t = 0.2"), {"policy.window"}, "is missing: t-closeness is measured against"),
    (changed("k = 3", "beta = 0"), {"policy.beta"}, "above 0"),
    (changed("k = 3", "beta = []"), {"policy.beta"}, "For example beta = 2"),
    (changed("k = 3", "beta = { basic = 2, range = 2 }"), {"policy.beta"},
     "must be one of { basic = 2 }, { enhanced = 2 }, { semantic = 2, level = 1 } and { range"),
    (changed("k = 3", "beta = { range = 2 }"), {"policy.beta.epsilon"}, "{ range = 2, epsilon = "),
    (changed("k = 3", "beta = { illness = { range = 2, epsilo = 5 } }"),
     {"policy.beta.illness.epsilon", "policy.beta.illness.epsilo"}, "Did you mean 'epsilon'?"),
    (changed("k = 3", "beta = { range = 0, epsilon = -1, relative = 1 }"),
     {"policy.beta", "policy.beta.relative"}, "must be true or false; got 1"),
    (changed("k = 3", "beta = { range = 1, epsilon = -1 }"), {"policy.beta.epsilon"}, "at least 0"),
    (changed("k = 3", "beta = { semantic = 1, level = 0 }"), {"policy.beta.level"}, "at least 1"),
    (changed("k = 3", "beta = { enhanced = 1, level = 1 }"), {"policy.beta.level"}, "enhanced"),
    (changed("k = 3", "disclosure = 0"), {"policy.disclosure"}, "above 0"),
    (changed("k = 3", "disclosure = 'x'"), {"policy.disclosure"}, "For example disclosure = 0.7"),
    (changed("k = 3", "disclosur = 1"), {"policy.disclosur"}, "Did you mean 'disclosure'?"),
    (changed("k = 3", "k = 3\nwindow = { rows = 9 }"), {"policy.window"}, "isn't used"),
    (changed("k = 3", "k = 3\nwindow = 'all'"), {"policy.delay"}, "published at once"),
    (changed("k = 3", "k = 3\nwindow = 'al'"), {"policy.window"}, 'or window = "all"'),
    (changed("k = 3", "k = 3\nwindow = 9"), {"policy.window"}, "must be a table; got 9"),
    (changed("k = 3", "t = 1\nwindow = {}"), {"policy.window.rows"}, "For example rows = "),
    (changed("k = 3", "t = 1\nwindow = { row = 9 }"), {"policy.window.row"},
     "Did you mean 'rows'?"),
    (changed("k = 3", "t = 1\nwindow = { rows = '9' }"), {"policy.window.rows"}, "whole number"),
    (changed("k = 3", "t = 1\nwindow = { rows = 0 }"), {"policy.window.rows"}, "at least 1"),
    (changed("k = 3", "t = 1\nwindow = { rows = 9, advance = 2 }"), {"policy.window.rows"},
     "must be a multiple of the advance"),
    (changed("k = 3", "kk = 3\nt = -1\nbeta = -1\ndisclosure = -1\nwindow = { rows = 0 }"),
     {"policy.kk", "policy.t", "policy.beta", "policy.disclosure", "policy.window.rows"}, ""),
    (changed("k = 3", "t = 'x'\nwindow = { rows = 9, advance = 2 }"),
     {"policy.t", "policy.window.rows"}, ""),
    (changed("k = 3\ndelay = { rows = 20 }", "delay = { row = 20 }"),
     {"policy.delay.row", "policy"}, "promises nothing"),
    (changed("k = 3\ndelay = { rows = 20 }", "t = 0.2\nwindow = { row = 9 }\ndelay.rows = 0"),
     {"policy.window.row", "policy.delay.rows"}, ""),
    (changed("k = 3", "k = 3\nmissing = 'mabye'"), {"policy.missing"},
     "must be one of quarantine, extended, maybe; got 'mabye'. Did you mean 'maybe'?"),
    (changed("k = 3", "k = 3\nmissing = true"), {"policy.missing"}, "must be text"),
    (changed("k = 3", "k = 0\nmissing = 'any'"), {"policy.k", "policy.missing"}, "extended"),
    (changed('"castle"', '"castel"'), {"algorithm.name"}, "Did you mean 'castle'?"),
    (changed('"castle"', "3"), {"algorithm.name"}, "one of: "),
    (changed('"castle"', '"castle"\ncluster = 3'), {"algorithm.cluster"}, "'clusters'"),
    (changed('"castle"', '"castle"\nclusters = 0'), {"algorithm.clusters"}, "at least 1"),
    (changed('"castle"', '"castle"\nreuse = "bset"'), {"algorithm.reuse"}, "random, best"),
    (changed('"castle"', '"castle"\nloss = "gml"'), {"algorithm.loss"}, "Did you mean 'glm'?"),
    (BASE + "[publish]\nnumeric = 'ranges'\norder = 'arival'\nsuppressed = 'x'\n",
     {"publish.numeric", "publish.order", "publish.suppressed"}, "Did you mean 'arrival'?"),
    (BASE + "[publish]\nnumeric = 3\n", {"publish.numeric"}, "must be text"),
    (BASE + "[publish]\nnumerc = 'range'\n", {"publish.numerc"}, "Did you mean 'numeric'?"),
    (BASE + "[run]\nseed = 'x'\n", {"run.seed"}, "must be a whole number"),
    (BASE + f"[run]\nseed = {10**40}\n", {"run.seed"}, "less than"),
    (BASE + "[run]\nsed = 1\n", {"run.sed"}, "Did you mean 'seed'?"),
    (BASE + "[bad_rows]\naction = 'drop'\n", {"bad_rows.action"}, "'quarantine' or 'stop'"),
    (BASE + "[bad_rows]\nfile = 'bad.txt'\n", {"bad_rows.file"}, "no known format"),
    (BASE + "[polcy]\nk = 3\n", {"polcy"}, "Did you mean 'policy'?"),
    ("schema = 3\n[policy]\nk = 2\ndelay.rows = 3\n[algorithm]\nname = 'castle'",
     {"schema"}, "must be a section. Write [schema]"),
    ("publish = [1]\n" + BASE, {"publish"}, "must be a section"),
    (changed('subject = "person"', ""), {"schema.subject"}, "{ each_row = true }"),
    (changed('subject = "person"', "subject = 3"),
     {"schema.subject"}, "Name the column that identifies people"),
    (changed('subject = "person"', 'subjct = "p"'), {"schema.subject", "schema.subjct"},
     "Did you mean 'subject'?"),
    (changed(AGE, ""), {"schema.quasi"}, "names no attribute"),
    (changed(AGE, "age = 3"), {"schema.quasi.age"}, "must be a table"),
    (changed(AGE, "age = {}"), {"schema.quasi.age"}, "only z-anonymity publishes them"),
    (changed(AGE, "person = { range = [0, 1] }"), {"schema.quasi.person"}, "subject and quasi"),
    (changed(AGE, "illness = { range = [0, 1] }"), {"schema.sensitive.illness"}, "quasi"),
    (changed("illness = {}", "illness = { weight = 3 }"), {"schema.sensitive.illness.weight"}, ""),
    (BASE + "[schema.keep]\ncolumns = ['person']\n", {"schema.keep.person"}, "never published"),
    (BASE + "[schema.keep]\ncolumns = 'ward'\n", {"schema.keep.columns"}, "list"),
    (BASE + "[schema.keep]\ncolumn = ['x']\n", {"schema.keep.column"}, "'columns'"),
    (BASE + "[schema.keep]\ncolumns = ['age_min']\n[publish]\nnumeric = 'bounds'\n",
     {"schema.age_min"}, "published bound"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "keys", "said"), WRONG)
def test_a_wrong_job_names_its_keys_and_how_to_fix_them(text, keys, said):
    found = problems_of(text)
    assert set(found) == keys
    assert said in "\n".join(found.values())
    for sentence in found.values():
        assert "_" not in re.sub(r"[a-z]+_[a-z]+", "", sentence), "a name of ours leaks"


def test_all_problems_are_reported_at_once():
    found = problems_of("""
        [schema]
        subject = "person"
        [schema.quasi]
        a = { range = [0, 120, 3] }
        b = { range = [5, 1] }
        c = { hierarchy = "no.csv" }
        d = { values = [] }
        e = { mask = ["ab", "c"] }
        f = { rnge = [0, 1] }
        g = { range = [0, 9], step = 0 }
        h = { values = ["a", "b"], step = 1 }
        [policy]
        k = 0
        l = -1
        delay = { rows = 0 }
        [algorithm]
        name = "castle"
        cluster = 3
        loss = "x"
        [publish]
        order = "x"
        [run]
        sed = 3
        [bad_rows]
        action = "drop"
    """)
    quasi = {
        "a.range", "b", "c", "d.values", "e.mask", "f.rnge", "g.step", "h.step",
    }  # fmt: skip
    assert set(found) == {f"schema.quasi.{key}" for key in quasi} | {
        "policy.k", "policy.l", "policy.delay.rows", "algorithm.cluster", "algorithm.loss",
        "publish.order", "run.sed", "bad_rows.action",
    }  # fmt: skip


# -- what a right job gives ------------------------------------------------------------------------


def test_every_key(tmp_path):
    (tmp_path / "job.csv").write_text("a;x;*\nb;x;*\nc;y;*\n")
    path = tmp_path / "job.toml"
    path.write_text("""
        [schema]
        subject = "person"
        time = "at"
        [schema.quasi]
        age = { range = [0, 120], step = 5, weight = 0.5 }
        job = { hierarchy = "job.csv" }
        sex = { values = ["f", "m"] }
        zip = { mask = ["10", "11", "20"] }
        code = { mask = 2 }
        [schema.sensitive]
        illness = {}
        pay = { range = [0, 10] }
        [schema.keep]
        columns = ["ward"]
        [policy]
        k = 5
        l = { illness = 2, pay = { entropy = 1.5 } }
        delay = { rows = 100, seconds = 2.5 }
        missing = "extended"
        [algorithm]
        name = "castle"
        clusters = 7
        recent = 8
        kept = 9
        reuse = "best"
        loss = "lm"
        [publish]
        numeric = "bounds"
        order = "arrival"
        suppressed = "root"
        [run]
        seed = 3
        [bad_rows]
        action = "stop"
        file = "bad.csv"
    """)
    job = Job.load(path)
    assert job.schema.subject == "person"
    assert job.schema.time == "at"
    assert job.schema.keep == ("ward",)
    domains = {quasi.name: quasi.domain for quasi in job.schema.quasi}
    assert domains["age"] == Range(0, 120, step=5)
    assert domains["sex"] == Hierarchy.flat(["f", "m"])
    assert [len(domains[name]) for name in ("job", "zip", "code")] == [3, 3, 100]
    assert job.schema.quasi[0].weight == 0.5
    assert job.policy == Policy(
        KAnonymity(5),
        DistinctLDiversity(2, "illness"),
        EntropyLDiversity(1.5, "pay"),
        delay=Delay(rows=100, seconds=2.5),
        missing="extended",
    )
    assert job.anonymizer == Castle(clusters=7, recent=8, kept=9, reuse="best", loss="lm")
    assert job.publish == Publish("bounds", "arrival", "root")
    assert (job.bad_rows.action, job.bad_rows.file) == ("stop", tmp_path / "bad.csv")
    assert job.seed == 3
    assert len(job.warnings) == 5
    assert all(
        any(key in warning for warning in job.warnings)
        for key in ("run.seed", "publish.order", "algorithm.kept", "algorithm.reuse", "schema.keep")
    )


@pytest.mark.parametrize(
    ("form", "criteria"),
    [
        ("3", [DistinctLDiversity(3)]),
        ("{ distinct = 3 }", [DistinctLDiversity(3)]),
        ("{ entropy = 2.5 }", [EntropyLDiversity(2.5)]),
        ("{ recursive = 3, c = 2 }", [RecursiveLDiversity(3, c=2)]),
        ("{ recursive = 3 }", [RecursiveLDiversity(3)]),
        ("{ illness = 3 }", [DistinctLDiversity(3, "illness")]),
        ("{ illness = { recursive = 3, c = 2 } }", [RecursiveLDiversity(3, "illness", c=2)]),
    ],
)
def test_forms_of_l(form, criteria):
    job = Job.parse(changed("k = 3", f"l = {form}"))
    assert list(job.policy.criteria) == criteria


def test_what_is_not_said_is_safe():
    job = Job.parse(BASE)
    assert job.publish == Publish("range", "released", "drop")
    assert job.policy.missing == "quarantine"
    assert (job.bad_rows.action, job.bad_rows.file) == ("quarantine", Path("job.quarantine.jsonl"))
    assert job.seed is None
    assert job.pipeline.seed is None
    assert job.warnings == ()


@pytest.mark.parametrize(
    ("missing", "warned"), [("quarantine", False), ("extended", False), ("maybe", True)]
)
def test_what_missing_means_and_that_maybe_is_warned_about(missing, warned):
    job = Job.parse(changed("k = 3", f"k = 3\nmissing = '{missing}'"))
    assert job.policy.missing == missing
    assert any("policy.missing" in warning for warning in job.warnings) == warned


@pytest.mark.parametrize(("name", "warned"), [("castle", True), ("idea", False), ("fads", False)])
def test_who_doesnt_mind_gaps_is_warned_about(name, warned):
    text = changed("k = 3", "k = 3\nmissing = 'maybe'")
    job = Job.parse(re.sub("name = .castle.*", f'name = "{name}"', text))
    assert any("lack nearly everything" in warning for warning in job.warnings) == warned


def test_each_row_is_warned_about():
    job = Job.parse(changed('subject = "person"', "subject = { each_row = true }"))
    assert job.schema.subject is None
    assert "schema.subject" in job.warnings[0]


@pytest.mark.parametrize("seed", [0, -5, 2**63 - 1])
def test_different_seeds_stay_different(seed):
    seeds = {Job.parse(BASE + f"[run]\nseed = {n}\n").pipeline.seed for n in (seed, 1, 2)}
    assert len(seeds) == 3


# -- files -----------------------------------------------------------------------------------------


def test_files_that_are_no_jobs(tmp_path):
    path = tmp_path / "job.toml"
    with pytest.raises(JobError, match=r"doesn't exist.*`shoal init DATA -o job.toml` drafts one"):
        Job.load(path)
    with pytest.raises(JobError, match="can't be read: it is a folder, not a file"):
        Job.load(tmp_path)
    path.write_bytes(b"k = '\xff'")
    with pytest.raises(JobError, match="isn't UTF-8 text"):
        Job.load(path)
    path.write_text("k = ")
    with pytest.raises(JobError, match="isn't TOML") as raised:
        Job.load(path)
    assert str(path) in str(raised.value)
    path.write_text("name = tide")
    with pytest.raises(JobError, match=r"line 1, column 8\)\. Texts need quotation marks"):
        Job.load(path)
    for name in ("Patient ID", "größe"):
        path.write_text(f"{name} = 1", encoding="utf-8")
        with pytest.raises(JobError, match="special letters need quotation marks"):
            Job.load(path)


@pytest.mark.parametrize("content", [b"age;sex\n31;w\n", b"PAR1\xff"], ids=["text", "bytes"])
def test_a_data_file_in_the_place_of_the_job(content, tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    with pytest.raises(JobError, match="This is a data file: give the job file as the first"):
        Job.load(path)


def test_a_dot_in_the_name_of_a_column_needs_quotation_marks(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(
        BASE.replace("[policy]", "[schema.quasi.Geb]\nJahr.range = [1900, 2020]\n[policy]")
    )
    with pytest.raises(
        JobError, match=r"schema\.quasi\.Geb\.Jahr: is unknown\. If the dot belongs"
    ):
        Job.load(path)


def test_a_byte_order_mark_does_no_harm(tmp_path):
    path = tmp_path / "job.toml"
    path.write_bytes(b"\xef\xbb\xbf" + BASE.encode())
    assert Job.load(path).policy.k == 3


def test_problems_name_the_file(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(changed("k = 3", "k = 0", "[run]\nsed = 1\n"))
    with pytest.raises(JobError) as raised:
        Job.load(path)
    assert str(raised.value).startswith(f"2 problems in {path}:\n  - policy.k: ")
