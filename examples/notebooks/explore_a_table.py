"""Explore a table: who is unique, what a box is, and what a larger k costs.

Open it with `marimo edit explore_a_table.py` and move the slider, or run it as a program with
`python explore_a_table.py`. It needs the extra `notebooks`.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium")

with app.setup:
    import random

    import marimo as mo
    import matplotlib.pyplot as plt
    import pyarrow as pa
    from matplotlib.patches import Rectangle

    import shoal
    from shoal import KAnonymity, Policy, Quasi, Range, Schema, Sensitive
    from shoal.metrics import uniqueness


@app.cell
def _():
    mo.md("""
    # Explore a table

    400 people who don't exist, with their age, their income and an illness. An outsider may know
    the age and the income of a person, and must not learn the illness.
    """)
    return


@app.cell
def _():
    draw = random.Random(3)

    def person(number):
        """Draw somebody: incomes rise with age until 50, and spread."""
        age = min(90, max(18, round(draw.gauss(46, 17))))
        income = max(8, draw.gauss(20 + 0.9 * (min(age, 50) - 18), 9))
        illness = draw.choice(["none", "none", "asthma", "diabetes", "flu"])
        return {"name": f"p{number}", "age": age, "income": round(income), "illness": illness}

    people = pa.Table.from_pylist([person(number) for number in range(400)])
    return (people,)


@app.cell
def _(people):
    alone = uniqueness(people, ["age", "income"], subject="name")
    mo.md(f"""
    ## Who is unique?

    With age and income alone, **{alone.share:.0%}** of these people are unique: an outsider who
    knows both finds their row. {alone.n_below(10)} of {alone.n_subjects} share their values with
    fewer than ten people.
    """)
    return (alone,)


@app.cell
def _():
    schema = Schema(
        subject="name",
        quasi=[Quasi("age", Range(15, 95, step=1)), Quasi("income", Range(0, 100, step=1))],
        sensitive=[Sensitive("illness")],
    )
    return (schema,)


@app.cell
def _():
    k = mo.ui.slider(2, 40, value=10, label="k: people in a group, at least", show_value=True)
    mo.vstack([mo.md("## What is a box?"), k])
    return (k,)


@app.cell
def _(k, people, schema):
    policy = Policy(KAnonymity(k.value), window="all")
    # A fixed seed is for examples only: who knows it can undo the shuffling.
    result = shoal.anonymize(people, schema, policy, numeric="bounds", seed=1, trace=True)
    return policy, result


@app.cell
def _(k, people, result):
    boxes = {
        tuple(row[name] for name in ("age_min", "age_max", "income_min", "income_max"))
        for row in result.frame.to_pylist()
    }
    boxes_figure, _axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for _left, _right, _low, _high in sorted(boxes):
        _axes.add_patch(
            Rectangle(
                (_left - 0.5, _low - 0.5), _right - _left + 1, _high - _low + 1,
                facecolor="tab:blue", edgecolor="tab:blue", alpha=0.25,
            )
        )  # fmt: skip
    _axes.plot(people["age"], people["income"], "k.", markersize=3)
    _axes.set(
        xlabel="age in years", ylabel="income in thousands",
        title=f"{len(boxes)} boxes with at least {k.value} of {len(people)} people each",
    )  # fmt: skip
    boxes_figure
    return boxes, boxes_figure


@app.cell
def _():
    mo.md("""
    A dot is a person. A rectangle is a **box**: all of its people are published with its bounds
    instead of their values, so that nobody can tell them apart. Where people are dense, boxes are
    small. Move the slider: a larger k makes them larger.
    """)
    return


@app.cell
def _(people, policy, result, schema):
    report = shoal.audit(schema, policy, result, original=people, numeric="bounds")
    mo.md(f"""
    ## Is it kept?

    The audit, which shares no code with the algorithm, says: **{report.verdict}**.
    {report["k-anonymity"].detail}.
    """)
    return (report,)


@app.cell
def _(people, result):
    ages_figure, _axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    _bins = range(15, 100, 5)
    _axes.hist(people["age"].to_pylist(), _bins, color="lightgrey", label="original")
    # A reader can only assume that the people of a box are evenly spread over it.
    _ages, _weights = [], []
    for _row in result.frame.to_pylist():
        _span = range(_row["age_min"], _row["age_max"] + 1)
        _ages += _span
        _weights += [1 / len(_span)] * len(_span)
    _axes.hist(
        _ages, _bins, weights=_weights, histtype="step", color="tab:blue", linewidth=2,
        label="published, spread over the boxes",
    )  # fmt: skip
    _axes.set(xlabel="age in years", ylabel="people", title="What readers see of the ages")
    _axes.legend()
    ages_figure
    return (ages_figure,)


@app.cell
def _(people, schema):
    algorithms, ks = ("tide-table", "mondrian"), (2, 5, 10, 20, 40)
    policies = [Policy(KAnonymity(each), window="all") for each in ks]
    found = shoal.compare(people, schema, policies, algorithms, cache=False)
    losses = {
        name: [run.figures.loss for run in found.runs if run.cell.label == name]
        for name in algorithms
    }
    return ks, losses


@app.cell
def _(ks, losses):
    losses_figure, _axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    for _marker, (_name, _losses) in zip("os", losses.items(), strict=True):
        _axes.plot(ks, _losses, marker=_marker, label=_name)
    _axes.set(
        xlabel="k",
        ylabel="loss: 0 is none, 1 is all",
        title="What a larger k costs",
        ylim=(0, None),
    )
    _axes.legend()
    losses_figure
    return (losses_figure,)


@app.cell
def _():
    mo.md("""
    Both algorithms keep the same promise on the same people; they lose differently. Take your own
    table instead of the made-up one, say what its columns are, and see what k you can afford.
    Before you publish anything, read
    [Threats](https://shoal.example/docs/threats.md).
    """)
    return


if __name__ == "__main__":
    app.run()
