"""Stream from Python: rows go in one by one, wait, and leave in groups.

Open it with `marimo edit stream_from_python.py` and move the slider, or run it as a program with
`python stream_from_python.py`. It needs the extra `notebooks`.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium")

with app.setup:
    import random

    import marimo as mo
    import matplotlib.pyplot as plt

    import shoal
    from shoal import Delay, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema


@app.cell
def _():
    mo.md("""
    # Stream from Python

    Riders of a bicycle hire that doesn't exist take a bicycle somewhere in a town. You publish
    their rides while they come in, in groups of at least five riders.
    """)
    return


@app.cell
def _():
    town = {"Town": {"North": ["Harbour", "Hill"], "South": ["Station", "Park", "Stadium"]}}
    schema = Schema(
        subject="rider",
        quasi=[Quasi("age", Range(10, 100, step=1)), Quasi("zone", Hierarchy.from_dict(town))],
    )
    draw = random.Random(5)
    zones = [zone for part in town["Town"].values() for zone in part]
    ages = [min(90, max(14, round(draw.gauss(35, 13)))) for _ in range(150)]
    rides = [
        {"rider": f"r{rider}", "age": ages[rider], "zone": draw.choice(zones)}
        for rider in (draw.randrange(150) for _ in range(400))
    ]
    return rides, schema


@app.cell
def _():
    delay = mo.ui.slider(
        10, 120, value=50, step=10, label="delay: rows that a ride may wait for", show_value=True
    )
    mo.vstack([mo.md("## Push rows, take what leaves"), delay])
    return (delay,)


@app.cell
def _(delay, rides, schema):
    policy = Policy(KAnonymity(5), delay=Delay(rows=delay.value))
    published, n_published, n_held = [], [], []
    with shoal.Stream(schema, policy, seed=1) as stream:
        for ride in rides:
            published += stream.push(ride)
            n_published.append(len(published))
            n_held.append(stream.n_held)
    # The end of the block ends the stream: what was held leaves, under the promise.
    published += stream.rest
    return n_held, n_published, published, stream


@app.cell
def _(published, rides, stream):
    mo.vstack([
        mo.md(f"{len(rides)} rides in, {len(published)} published. The first five that left:"),
        mo.ui.table(published[:5], selection=None),
        stream,
    ])  # fmt: skip
    return


@app.cell
def _(delay, n_held, n_published):
    flow_figure, (_above, _below) = plt.subplots(
        2, sharex=True, figsize=(7, 5), layout="constrained"
    )
    _numbers = range(1, len(n_held) + 1)
    _above.plot(_numbers, _numbers, color="grey", label="in")
    _above.step(_numbers, n_published, where="post", color="tab:blue", label="published")
    _above.set(ylabel="rows", title="Rows leave in bursts: many groups at a time")
    _above.legend()
    _below.step(_numbers, n_held, where="post", color="tab:orange", label="held")
    _below.axhline(delay.value, color="black", linestyle="--", label="delay")
    _below.set(xlabel="rows that have come in", ylabel="rows held", ylim=(0, 1.4 * delay.value))
    _below.legend(loc="upper left", ncols=2)
    flow_figure
    return (flow_figure,)


@app.cell
def _():
    mo.md("""
    The grey line is what came in, the blue one what left. Between them are the **held** rows: they
    wait for others that are similar. `tide`, the default, waits until the first row is due, then
    forms all groups that it can. No row waits for more rows than the delay, so no more than these
    are held, and memory is bounded. `castle` would publish more evenly.

    ## A row that can't be used

    A rider of 210 years, or a zone that the town doesn't have, isn't lost silently. The row is set
    aside with a reason that quotes no value.
    """)
    return


@app.cell
def _(schema):
    checked = shoal.Stream(schema, Policy(KAnonymity(5), delay=Delay(rows=50)))
    checked.push([
        {"rider": "r1", "age": 210, "zone": "Park"},
        {"rider": "r2", "age": 30, "zone": "Moon"},
    ])  # fmt: skip
    reasons = [bad.reason for bad in checked.quarantined]
    mo.md("\n".join(f"- {reason}" for reason in reasons))
    return (reasons,)


@app.cell
def _(rides, schema):
    delays = (10, 20, 40, 80, 120)
    policies = [Policy(KAnonymity(5), delay=Delay(rows=each)) for each in delays]
    names = ("tide", "castle")
    found = shoal.compare(rides, schema, policies, names, cache=False)
    losses = {
        name: [run.figures.loss for run in found.runs if run.cell.label == name] for name in names
    }
    verdicts = {run.figures.audit for run in found.runs}
    return delays, losses, verdicts


@app.cell
def _(delays, losses):
    waiting_figure, _axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    for _marker, (_name, _losses) in zip("os", losses.items(), strict=True):
        _axes.plot(delays, _losses, marker=_marker, label=_name)
    _axes.set(
        xlabel="delay in rows", ylabel="loss: 0 is none, 1 is all", ylim=(0, None),
        title="What waiting is worth, with k = 5",
    )  # fmt: skip
    _axes.legend()
    waiting_figure
    return (waiting_figure,)


@app.cell
def _():
    mo.md("""
    A row that waits longer meets more people who are similar, and loses less. How long your readers
    can wait is for you to know. On these rides `castle` loses less than `tide`; on the data that
    Shoal was measured with it is the other way round. So compare them on your own rows.

    In a web service use `shoal.AsyncStream`, whose deadlines go by the clock:
    `examples/serve_events.py` is a whole one.
    """)
    return


if __name__ == "__main__":
    app.run()
