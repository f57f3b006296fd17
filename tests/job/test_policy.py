"""Every form of every promise of a job file."""

from __future__ import annotations

import pytest

from shoal.errors import JobError
from shoal.job import Job
from shoal.job.form import PolicyForm
from shoal.job.policy import policy_of
from shoal.spec.policy import (
    BasicLikeness,
    Delay,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EntropyLDiversity,
    EuclideanCloseness,
    JensenShannonCloseness,
    KAnonymity,
    Policy,
    RangeLikeness,
    RecursiveLDiversity,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
    Window,
)


@pytest.mark.parametrize(
    ("key", "form", "criteria"),
    [
        ("l", 3, [DistinctLDiversity(3)]),
        ("l", {"entropy": 2.5}, [EntropyLDiversity(2.5)]),
        ("l", {"recursive": 3}, [RecursiveLDiversity(3, c=1.0)]),
        ("l", {"recursive": 3, "c": 2}, [RecursiveLDiversity(3, c=2)]),
        ("t", 0.2, [TCloseness(0.2)]),
        ("t", 0, [TCloseness(0)]),
        ("t", {"emd": 0.2}, [TCloseness(0.2)]),
        ("t", {"euclid": 0.2}, [EuclideanCloseness(0.2)]),
        ("t", {"variation": 0.2}, [VariationalCloseness(0.2)]),
        ("t", {"job": {"jensen-shannon": 0.2}, "pay": 1},
         [JensenShannonCloseness(0.2, attribute="job"), TCloseness(1, attribute="pay")]),
        ("t", {"variation": {"emd": 0.2}}, [TCloseness(0.2, attribute="variation")]),
        ("t", {"emd": {"variation": 0.2}, "job": 0.3},
         [VariationalCloseness(0.2, attribute="emd"), TCloseness(0.3, attribute="job")]),
        ("t", {"job": 0.2, "pay": 1}, [TCloseness(0.2, attribute="job"),
                                       TCloseness(1, attribute="pay")]),
        ("beta", 2, [EnhancedLikeness(2)]),
        ("beta", 0.5, [EnhancedLikeness(0.5)]),
        ("beta", {"enhanced": 2}, [EnhancedLikeness(2)]),
        ("beta", {"basic": 2}, [BasicLikeness(2)]),
        ("beta", {"semantic": 2}, [SemanticLikeness(2)]),
        ("beta", {"semantic": 2, "level": 3}, [SemanticLikeness(2, level=3)]),
        ("beta", {"range": 2, "epsilon": 5}, [RangeLikeness(2, epsilon=5)]),
        ("beta", {"range": 2, "epsilon": 0.1, "relative": True},
         [RangeLikeness(2, epsilon=0.1, relative=True)]),
        ("beta", {"job": 2, "pay": {"range": 1, "epsilon": 5}},
         [EnhancedLikeness(2, attribute="job"), RangeLikeness(1, epsilon=5, attribute="pay")]),
        ("disclosure", 0.7, [DeltaDisclosure(0.7)]),
        ("disclosure", {"pay": 2}, [DeltaDisclosure(2, attribute="pay")]),
    ],
)  # fmt: skip
def test_forms(key, form, criteria):
    raw = PolicyForm.model_validate({key: form, "window": "all"})
    assert policy_of(raw) == Policy(*criteria, window="all")


@pytest.mark.parametrize(
    ("form", "window"),
    [
        ("all", "all"),
        ({"rows": 20}, Window(rows=20)),
        ({"rows": 20, "advance": 5}, Window(rows=20, advance=5)),
    ],
)
def test_windows(form, window):
    assert policy_of(PolicyForm.model_validate({"t": 1, "window": form})).window == window


JOB = """\
[schema]
subject = "person"
[schema.quasi]
age = { range = [0, 120], step = 1 }
[schema.sensitive]
job = { values = ["baker", "farmer"] }
pay = { range = [1, 100] }
[policy]
k = 5
l = 2
t = { job = 0.2, pay = 0.3 }
beta = { pay = { range = 2, epsilon = 0.1, relative = true } }
disclosure = 0.7
window = { rows = 40, advance = 5 }
delay = { rows = 25 }
[algorithm]
name = "castle"
"""
CRITERIA = (
    KAnonymity(5),
    DistinctLDiversity(2),
    TCloseness(0.2, attribute="job"),
    TCloseness(0.3, attribute="pay"),
    RangeLikeness(2, epsilon=0.1, relative=True, attribute="pay"),
    DeltaDisclosure(0.7),
)


def test_a_job_with_everything():
    job = Job.parse(JOB)
    window = Window(rows=40, advance=5)
    assert job.policy == Policy(*CRITERIA, delay=Delay(rows=25), window=window)


def test_a_whole_table_needs_no_delay():
    lines = JOB.replace("{ rows = 40, advance = 5 }", '"all"').replace("castle", "sabre-ak")
    kept = [x for x in lines.splitlines() if not x.startswith(("beta", "disclosure", "delay"))]
    assert Job.parse("\n".join(kept)).policy == Policy(*CRITERIA[:4], window="all")


@pytest.mark.parametrize(
    ("promise", "key", "said"),
    [
        ("t = { wage = 0.2 }", "policy.t.wage", "isn't a sensitive attribute"),
        ("beta = { enhancd = 1 }", "policy.beta.enhancd",
         "Did you mean 'enhanced'? Sensitive: job, pay"),
        ("t = { hamming = 0.2 }", "policy.t.hamming",
         "Did you mean 'variation'? It is the form for hamming. Sensitive: job, pay"),
        ("beta = { illness = 1 }", "policy.beta.illness", "schema. Sensitive: job, pay"),
        ("beta = { semantic = 1 }", "policy.beta", "needs a hierarchy of pay"),
        ("beta = { range = 1, epsilon = 1 }", "policy.beta", "needs job to be a number"),
    ],
)  # fmt: skip
def test_a_promise_must_fit_the_schema(promise, key, said):
    lines = JOB.splitlines()
    kept = [line for line in lines if not line.startswith(("t =", "beta =", "disclosure ="))]
    text = "\n".join(kept).replace("l = 2", promise)
    with pytest.raises(JobError) as raised:
        Job.parse(text)
    (problem,) = raised.value.problems
    assert problem.key == key
    assert said in str(problem)


def _with_a_column_variation(promise):
    lines = JOB.replace("job = {", "variation = {").splitlines()
    kept = [line for line in lines if not line.startswith(("t =", "beta =", "disclosure ="))]
    return "\n".join(kept).replace("l = 2", promise)


def test_a_number_behind_a_name_of_both_is_refused():
    with pytest.raises(JobError) as raised:
        Job.parse(_with_a_column_variation("t = { variation = 0.2 }"))
    (problem,) = raised.value.problems
    assert problem.key == "policy.t.variation"
    assert "is both a form of t and a sensitive attribute" in str(problem)
    assert "Write { variation = { emd = 0.2 } } for the attribute" in str(problem)


@pytest.mark.parametrize(
    ("promise", "criterion"),
    [
        ("t = { variation = { emd = 0.2 } }", TCloseness(0.2, attribute="variation")),
        ("t = { variation = { variation = 0.2 } }",
         VariationalCloseness(0.2, attribute="variation")),
        ("beta = { variation = 2 }", EnhancedLikeness(2, attribute="variation")),
    ],
)  # fmt: skip
def test_a_column_with_the_name_of_a_form_can_be_named(promise, criterion):
    """A table behind the name is a column's; and only t has a form of this name."""
    assert Job.parse(_with_a_column_variation(promise)).policy.criteria[-1] == criterion


def test_another_window_is_another_job():
    one, two = (Job.parse(JOB.replace("advance = 5", f"advance = {n}")) for n in (5, 10))
    assert one.digests["policy"] != two.digests["policy"]
