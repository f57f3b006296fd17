// The live page of a run: it polls the figures, which change once an interval, and draws them.

import { clock, drawBars, drawLines, element, figure, number, table } from "./charts.js";

const GOOD = new Set(["running"]), BAD = new Set(["failed", "broker away", "unhealthy", "no answer"]);
const ENDING = new Set(["draining", "stopping"]);
const part = id => document.getElementById(id);
const CHARTS = {
  rows: figure("Rows a second", "what comes in, and what is published", ["in", "out"]),
  held: figure("Held rows", "rows that wait for their group"),
  loss: figure("Loss", "of the rows published since the instant before; 0 is none, 1 is all"),
  left: figure("Rows left out per second", "and rows that left too late",
    ["suppressed", "quarantined", "late"]),
  lag: figure("Lag", "unread rows of the source, in offsets or bytes"),
  z: figure("z in force", "the promised z, or a larger one"),
};
const BARS = {
  groups: figure("People in a group, at its release", ""),
  delay: figure("How long rows were held", ""),
};
let range = "recent", lastAnswer = null, lastState = null, lastFound = null, timer, jobText = "", eventText = "";
let blocked = { seconds: Infinity, grew: -Infinity };

for (const { root } of Object.values(CHARTS)) part("charts").append(root);
for (const { root } of Object.values(BARS)) part("bars").append(root);
CHARTS.z.root.hidden = CHARTS.lag.root.hidden = true;

for (const button of document.querySelectorAll("[data-range]"))
  button.addEventListener("click", () => {
    range = button.dataset.range;
    for (const each of document.querySelectorAll("[data-range]"))
      each.setAttribute("aria-pressed", String(each === button));
    poll();
  });
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
addEventListener("resize", () => { if (lastFound !== null) redraw(lastFound); });

async function poll() {
  clearTimeout(timer);
  let pause = 5;
  try {
    // Not relative to the document, whose address may hold the token.
    const answer = await fetch(new URL(`/${range}.json`, location.origin), {
      cache: "no-store", redirect: "error", signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(answer.status === 401 ? "The token is missing or wrong: load the page again."
      : `The run answers with ${answer.status}.`);
    const found = await answer.json();
    lastAnswer = found.now;
    pause = Math.max(1, found.interval / 2);
    show(found);
    trouble("");
  } catch (error) {
    const words = error instanceof Error && /^The /.test(error.message) ? error.message : null;
    missing(words);
  }
  timer = setTimeout(poll, pause * 1000);
}

function trouble(text) {
  const box = part("trouble");
  if (box.textContent !== text) box.textContent = text;
  box.hidden = !text;
}

function missing(words) {
  const since = lastAnswer === null ? "so far" : `since ${clock(lastAnswer)}`;
  if (ENDING.has(lastState)) {
    state("stopped");
    trouble(`The run has stopped: there is no answer ${since}. The figures below are the last known ones.`);
    return;
  }
  if (lastState !== "stopped") state("no answer");
  trouble(words ?? `There is no answer ${since}: the run has ended, or can't be reached. `
    + `The page tries again every few seconds.${lastAnswer === null ? "" : " The figures below are the last known ones."}`);
}

function state(name) {
  lastState = name;
  const badge = part("state");
  if (badge.textContent !== name) badge.textContent = name;
  badge.className = `state ${GOOD.has(name) ? "good" : BAD.has(name) ? "bad" : "open"}`;
  document.title = `${name} · ${part("name").textContent} · Shoal`;
}

function show(found) {
  part("name").textContent = found.job.name ?? "a run";
  state(found.state.name);
  part("updated").textContent = `as of ${clock(found.now)}; figures change every ${number(found.interval)} s`;
  const reasons = part("reasons");
  reasons.replaceChildren(...found.state.reasons.map(each => element("li", {}, each)));
  reasons.hidden = !found.state.reasons.length;
  const { figures } = found, empty = part("empty");
  empty.hidden = figures !== null;
  part("promise").hidden = part("left-out").hidden = figures === null;
  if (figures === null) empty.textContent = found.state.name === "compiling"
    ? "The kernels are being compiled, once for this machine. The first figures come afterwards."
    : `No figures yet. The first come when an interval of ${number(found.interval)} seconds is over, like all others.`;
  else {
    tiles(found, figures);
    leftOut(figures);
  }
  lastFound = found;
  redraw(found);
  events(found.events);
  describe(found.job);
}

function redraw(found) {
  if (found.figures !== null) promises(found, found.figures);
  lines(found);
}

function tiles(found, figures) {
  const { series, job, state: { checkpoint_age: age } } = found, decided = figures.n_published + figures.n_suppressed;
  const last = name => series[name].at(-1) ?? null, rate = name => last(name) === null ? "–" : number(last(name), 0);
  const share = (n, all) => all ? `${(100 * n / all).toFixed(2)} %` : "–";
  const due = job.checkpoint_every;
  const shown = [
    ["Rows in", rate("in"), `per second; ${number(figures.n_in)} in total`],
    ["Published", rate("out"), `per second; ${number(figures.n_published)} in total`],
    ["Held", number(figures.n_held), "rows wait"],
    ["Late", number(figures.n_late), "rows left after the promised delay", figures.n_late > 0],
    ["Loss", figures.loss === null ? "–" : number(figures.loss, 3), "mean of all published rows"],
    ["Suppressed", share(figures.n_suppressed, decided), `of the decided; ${number(figures.n_suppressed)} rows`],
    ["Quarantined", share(figures.n_quarantined, figures.n_in), `of those in; ${number(figures.n_quarantined)} rows`],
  ];
  if (figures.lag !== null) shown.push(["Lag", number(figures.lag), "wait unread"]);
  if (age !== null) shown.push(["Checkpoint", `${number(age)} s`, `old; due every ${number(due)} s`, due && age > 3 * due]);
  if (figures.batch_age !== null) shown.push(["Last batch",
    figures.batch_age ? ago(figures.batch_age) : `< ${number(found.interval)} s`, "since it began; it is committed"]);
  if (figures.checkpoint_bytes !== null) shown.push(["Checkpoint size", bytes(figures.checkpoint_bytes),
    // On Spark a checkpoint is a part of a batch.
    figures.checkpoint_seconds === null ? "written by the run before"
      : `${figures.batch_age === null ? "written in" : "of a batch that took"} ${number(figures.checkpoint_seconds, 2)} s`]);
  if (figures.journal_entries !== null) shown.push(["Journal", number(figures.journal_entries),
    "entries that a restart would replay"]);
  // It is bad while it grows from one interval to the next.
  const seconds = figures.blocked_seconds ?? 0;
  blocked = { seconds, grew: seconds > blocked.seconds ? found.now : blocked.grew };
  const grows = found.now - blocked.grew < 1.5 * found.interval;
  if (seconds) shown.push(["Blocked", `${number(seconds)} s`,
    grows ? "waited for the output, and waits" : "waited for the output", grows]);
  if (figures.n_audited !== null) shown.push(["Audited", number(figures.n_audited), "groups of this run, before they left"]);
  if (figures.z !== null) shown.push(["z", number(figures.z), "in force"]);
  if (figures.k_anonymous !== null) shown.push(["Look alike", `${(100 * figures.k_anonymous).toFixed(0)} %`,
    "of the people look like others"]);
  if (figures.n_alone) shown.push(["Alone", number(figures.n_alone), "reused rows left with too few people", true]);
  part("tiles").replaceChildren(...shown.map(([name, value, more, isBad]) => element("div", isBad ? { class: "bad" } : {},
    element("dt", {}, name), element("dd", {}, value, element("small", {}, more)))));
}

const ago = seconds => seconds < 120 ? `${number(seconds)} s` : seconds < 7200 ? `${number(Math.floor(seconds / 60))} min`
  : `${number(Math.floor(seconds / 3600))} h`;
const bytes = n => n < 1e6 ? `${number(Math.round(n / 1e3))} kB` : `${number(Math.round(n / 1e5) / 10)} MB`;

function lines({ series, range: { seconds, step }, now, job, figures }) {
  // The delay counts the rows of a shard.
  const shards = figures?.shards.length || 1, bound = job.delay?.rows ? shards * job.delay.rows : null;
  const times = series.t, to = times.at(-1) ?? now;
  const frame = { from: Math.max(to - seconds, (times[0] ?? now) - step), to };
  const draw = (chart, names, more = {}) => drawLines(chart, times,
    names.map(([name, key]) => ({ name, values: series[key] })), { ...frame, ...more });
  draw(CHARTS.rows, [["in", "in"], ["out", "out"]]);
  draw(CHARTS.held, [["held", "held"]], bound ? { limit: { value: bound, text: `at most ${number(bound)} rows${shards > 1 ? ` in ${shards} shards` : ""}` } } : {});
  draw(CHARTS.loss, [["loss", "loss"]], { places: 3, over: series.held });
  draw(CHARTS.left, [["suppressed", "suppressed"], ["quarantined", "quarantined"], ["late", "late"]]);
  for (const key of ["lag", "z"]) {
    const known = series[key].some(value => value !== null);
    CHARTS[key].root.hidden = !known;
    if (known) draw(CHARTS[key], [[key, key]]);
  }
}

function promises({ job }, figures) {
  part("since").textContent = figures.since === null ? "All rows since the job began."
    : `Rows since ${clock(figures.since)}.`;
  const perValue = figures.z !== null;
  BARS.groups.root.hidden = perValue;
  if (!perValue) {
    BARS.groups.note.textContent = "in steps of two; no group may be smaller than k";
    drawBars(BARS.groups, trimmed(figures.groups, figures.k, 0), { after: 0, text: `k = ${number(figures.k)}` });
  }
  const unit = figures.delay_unit, bound = job.delay?.[unit] ?? null;
  BARS.delay.note.textContent = `published rows, in ${unit}, in steps of about three`;
  const isKept = bound !== null && figures.n_late === 0;
  const bars = trimmed(isKept ? cutAt(figures.delay, bound) : figures.delay, 0, bound);
  const inside = bars.filter(({ to }) => bound === null || (to !== null && to <= bound)).length;
  drawBars(BARS.delay, bars, { after: inside,
    text: bound === null ? `no bound in ${unit}` : `promised: ${number(bound)} ${unit}` });
}

// No row was late: so those in the step that holds the bound, or beyond it by rounding, are within.
function cutAt(buckets, bound) {
  const holds = buckets.findIndex(([to]) => to === null || to >= bound);
  return [...buckets.slice(0, holds), [bound, buckets.slice(holds).reduce((sum, [, count]) => sum + count, 0)]];
}

// Buckets as bars, without the empty ones at both ends. Those beyond a bound are over it; of one on
// both sides of it nobody knows.
function trimmed(buckets, least, bound) {
  const bars = buckets.map(([to, count], i) => {
    const from = i ? buckets[i - 1][0] : least;
    const kind = !bound || (to !== null && to <= bound) ? "fill" : from >= bound ? "over" : "open";
    return { to, count, kind, name: to === null ? `more than ${number(from)}` : `${number(from)} – ${number(to)}` };
  });
  const used = bars.map(({ count }, i) => count ? i : -1).filter(i => i >= 0);
  const holds = bound ? bars.findIndex(({ to }) => to === null || to >= bound) : used[0] ?? 0;
  return bars.slice(Math.min(used[0] ?? 0, holds), Math.max(used.at(-1) ?? 0, holds) + 1);
}

function leftOut(figures) {
  part("reasons-tables").replaceChildren(
    table("Suppressed rows, by what they waited for", ["reason", "rows"], figures.suppressed_for),
    table("Quarantined rows, by reason", ["reason", "rows"], figures.quarantined_for));
  const { shards, shards_lately: lately } = figures, all = lately.reduce((sum, n) => sum + n, 0);
  part("shards").hidden = !shards.length;
  if (!shards.length) return;
  // A total hides what has changed since.
  part("shards-note").textContent = `Shares are of the rows ${figures.since === null ? "in so far" : `in since ${clock(figures.since)}`}.`
    + (all ? ` The fullest shard got ${number(Math.max(...lately) * lately.length / all, 1)} times as many as the average one.` : "");
  part("shards-table").replaceChildren(table("Rows of each shard", ["shard", "in", "share in %", "held", "published", "suppressed"],
    shards.map(([n_in, published, suppressed, held], i) =>
      [`shard ${i}`, n_in, all ? Math.round(1000 * lately[i] / all) / 10 : "–", held, published, suppressed])));
}

function events(found) {
  const text = JSON.stringify(found);
  if (text === eventText) return;
  eventText = text;
  const lines = found.map(({ time, level, event, text: said, ...fields }) => {
    const more = Object.entries(fields).map(([key, value]) =>
      `${key.replaceAll("_", " ")} ${typeof value === "number" ? number(value) : value ?? "unknown"}`);
    const name = element("span", { class: level }, level === "info" || level === event ? event : `${level}: ${event}`);
    return element("li", {}, element("time", { datetime: new Date(time * 1000).toISOString() }, clock(time)),
      name, ...(said ? [` – ${said}`] : []), ...(more.length ? [` (${more.join(", ")})`] : []));
  });
  part("event-list").replaceChildren(...(lines.length ? lines : [element("li", {}, "Nothing has happened yet.")]));
}

function describe(job) {
  const text = JSON.stringify(job);
  if (text === jobText) return;
  jobText = text;
  part("job-tables").replaceChildren(
    table("The promise", ["criterion", "parameters"], job.promises ?? []),
    table("The columns", ["column", "role", "domain"], job.columns ?? []),
    table("How", ["what", "value"], job.how ?? []));
}

poll();
