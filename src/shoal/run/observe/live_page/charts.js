// Charts of the live page, as inline SVG: lines over time, and bars of buckets.

const NS = "http://www.w3.org/2000/svg";
const LEFT = 58, RIGHT = 12, TOP = 12, LABEL = 28, BOTTOM = 28, HEIGHT = 190, ROW = 26;
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const exact = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });

export const number = (value, places) => value === null || value === undefined ? "unknown"
  : places === undefined ? exact.format(value)
    : value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
export const clock = seconds => new Date(seconds * 1000).toLocaleTimeString("en-GB");

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// The next of 1, 2, 5, 10, … from a number up.
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map(n => n * power).find(n => n >= value * 0.999);
}

// A figure with a caption, a picture, and a line that tells what the cursor is at.
export function figure(title, about, keys = []) {
  const svg = drawn("svg", { role: "img", "aria-label": title, tabindex: "0" });
  const note = element("span", {}, about);
  const legend = element("span");
  keys.forEach((key, i) => legend.append(element("span", { class: `key s${i + 1}` }, key)));
  const caption = element("figcaption", {}, title, note, ...(keys.length > 1 ? [legend] : []));
  const readout = element("output");
  return { root: element("figure", {}, caption, svg, readout), svg, readout, note, title };
}

// One unit of a picture is one pixel, so that its words are as large on a phone as on a desk.
function widen({ svg }, height) {
  const width = Math.max(Math.round(svg.getBoundingClientRect().width), 240);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  return width;
}

// Draw series over time. A null is a gap: nothing is known, or the run was down. Lines go on over one
// where `over` has a value: then the run wasn't down.
export function drawLines(chart, times, series, { from, to, unit = "", places, limit, over }) {
  const { svg } = chart, width = widen(chart, HEIGHT);
  const known = series.flatMap(({ values }) => values).filter(value => value !== null);
  if (!known.length) {
    svg.append(drawn("text", { x: width / 2, y: HEIGHT / 2, "text-anchor": "middle", class: "soft" },
      "Nothing to show yet"));
    svg.setAttribute("aria-label", `${chart.title}: nothing to show yet`);
    chart.readout.textContent = "";
    chart.points = [];
    return;
  }
  // Above a limit there is room for what it says.
  const begin = limit ? LABEL : TOP, top = ceiling(Math.max(...known, limit?.value ?? 0));
  const x = at => LEFT + (width - LEFT - RIGHT) * (at - from) / Math.max(to - from, 1);
  const y = value => HEIGHT - BOTTOM - (HEIGHT - begin - BOTTOM) * Math.min(value / top, 1);
  for (const part of [0, 0.5, 1]) {
    const value = top * part;
    svg.append(drawn("line", { x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value), class: "grid" }));
    svg.append(drawn("text", { x: LEFT - 8, y: y(value) + 5, "text-anchor": "end", class: "soft" },
      compact.format(value)));
  }
  for (const [at, anchor] of [[from, "start"], [to, "end"]])
    svg.append(drawn("text", { x: x(at), y: HEIGHT - 7, "text-anchor": anchor, class: "soft" }, clock(at)));
  series.forEach(({ values }, i) => {
    const group = drawn("g", { class: `s${i + 1}` });
    let path = "", goesOn = false;
    values.forEach((value, j) => {
      const begins = !goesOn;
      goesOn = value !== null || (goesOn && (over?.[j] ?? null) !== null);
      if (value === null) return;
      const alone = begins && (j + 1 >= values.length || values[j + 1] === null);
      if (alone) group.append(drawn("circle", { cx: x(times[j]), cy: y(value), r: 3, class: "mark" }));
      path += `${begins ? "M" : "L"}${x(times[j]).toFixed(1)} ${y(value).toFixed(1)}`;
    });
    group.prepend(drawn("path", { d: path || "M0 0", class: "line" }));
    svg.append(group);
  });
  if (limit) {
    const at = y(limit.value);
    svg.append(drawn("line", { x1: LEFT, x2: width - RIGHT, y1: at, y2: at, class: "limit" }));
    svg.append(drawn("text", { x: width - RIGHT, y: at - 6, "text-anchor": "end", class: "name" }, limit.text));
  }
  const latest = series.map(({ name, values }) => {
    const own = values.filter(value => value !== null);
    return own.length ? `${name} ${number(own.at(-1), places)}${unit} now, from `
      + `${number(Math.min(...own), places)} to ${number(Math.max(...own), places)}` : `${name} unknown`;
  });
  svg.setAttribute("aria-label", `${chart.title}. ${latest.join("; ")}. ${limit ? `${limit.text}. ` : ""}Arrow keys read single instants.`);
  chart.points = times.map((at, j) => ({ x: x(at), text: `${clock(at)}: `
    + series.map(({ name, values }) => `${name} ${number(values[j], places)}${values[j] === null ? "" : unit}`)
      .join(", ") }));
  if (chart.at !== undefined) point(chart, Math.min(chart.at, times.length - 1));
  if (!chart.listens) listen(chart);
}

function point(chart, at) {
  chart.svg.querySelector(".cursor")?.remove();
  const found = chart.points[at];
  if (found === undefined) return;
  chart.at = at;
  chart.svg.append(drawn("line", { x1: found.x, x2: found.x, y1: TOP, y2: HEIGHT - BOTTOM, class: "cursor" }));
  if (chart.readout.textContent !== found.text) chart.readout.textContent = found.text;
}

function leave(chart) {
  chart.svg.querySelector(".cursor")?.remove();
  chart.at = undefined;
  chart.readout.textContent = "";
}

// The pointer and the arrow keys read single instants.
function listen(chart) {
  chart.listens = true;
  const { svg } = chart;
  svg.addEventListener("pointermove", ({ clientX }) => {
    const frame = svg.getBoundingClientRect(), x = clientX - frame.left;
    const near = chart.points.map((each, i) => [Math.abs(each.x - x), i]).sort((a, b) => a[0] - b[0]);
    if (near.length) point(chart, near[0][1]);
  });
  svg.addEventListener("pointerleave", () => leave(chart));
  svg.addEventListener("blur", () => leave(chart));
  svg.addEventListener("keydown", event => {
    const last = chart.points.length - 1, at = chart.at ?? last + (event.key === "ArrowLeft" ? 1 : 0);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") leave(chart);
    if (to === undefined) return;
    event.preventDefault();
    point(chart, Math.max(0, Math.min(last, to)));
  });
}

// Draw the share of each bucket as a bar; `limit` is { after, text }: a line below that many bars.
export function drawBars(chart, bars, limit) {
  const { svg } = chart, all = bars.reduce((sum, { count }) => sum + count, 0);
  if (!all) {
    drawLines(chart, [], [], { from: 0, to: 1 });
    return;
  }
  const width = widen(chart, TOP * 2 + ROW * (bars.length + 1)), label = 132, room = width - label - 76;
  const most = Math.max(...bars.map(({ count }) => count));
  const shift = i => TOP + ROW * (i + (i >= limit.after ? 1 : 0));
  bars.forEach(({ name, count, kind }, i) => {
    const wide = Math.max(count ? 2 : 0, room * count / most), y = shift(i);
    svg.append(drawn("text", { x: label - 8, y: y + 17, "text-anchor": "end" }, name));
    const group = drawn("g", { class: "s1" });
    group.append(drawn("rect", { x: label, y: y + 3, width: wide, height: ROW - 8, class: kind }));
    svg.append(group);
    const share = 100 * count / all;
    svg.append(drawn("text", { x: label + wide + 6, y: y + 17, class: "soft" },
      `${share > 0 && share < 0.1 ? "< 0.1" : share.toFixed(1)} %`));
  });
  const y = TOP + ROW * limit.after + ROW / 2 - 1;
  svg.append(drawn("line", { x1: label, x2: width - RIGHT, y1: y + 9, y2: y + 9, class: "limit" }));
  svg.append(drawn("text", { x: width - RIGHT, y: y + 3, "text-anchor": "end" }, limit.text));
  const words = bars.filter(({ count }) => count).map(({ name, count }) =>
    `${name}: ${(100 * count / all).toFixed(1)} %`);
  svg.setAttribute("aria-label", `${chart.title}. ${words.join("; ")}. ${limit.text}.`);
}

export function table(caption, heads, rows) {
  const made = element("table", {}, element("caption", {}, caption));
  if (!rows.length) return element("p", {}, `${caption}: none so far.`);
  const head = element("tr");
  heads.forEach((each, i) => head.append(element("th",
    { scope: "col", ...(typeof rows[0][i] === "number" ? { class: "number" } : {}) }, each)));
  const body = element("tbody");
  for (const [first, ...others] of rows) {
    const line = element("tr", {}, element("th", { scope: "row" }, String(first)));
    for (const other of others) {
      const isNumber = typeof other === "number";
      line.append(element("td", isNumber ? { class: "number" } : {}, isNumber ? number(other) : String(other)));
    }
    body.append(line);
  }
  made.append(element("thead", {}, head), body);
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made);
}
