"use strict";
// Samples come as events; all of them have the same form (`/state`), and only text is put into the page.

const $ = id => document.getElementById(id);
const token = location.hash.slice(1);
const POINTS = 600;
const COLORS = ["#2563eb", "#d97706", "#0d9488", "#c026d3", "#65a30d", "#dc2626", "#7c3aed", "#0891b2"];
let sample = null, picture = null, points = [], plots = null, chosen = null;

const count = value => value.toLocaleString("en");
const rate = value => value >= 100 ? count(Math.round(value)) : value.toFixed(value >= 10 || value === 0 ? 0 : 1);
function bytes(value) {
  const size = ["B", "kB", "MB", "GB"];
  let at = 0;
  while (value >= 1000 && at < 3) { value /= 1000; at++; }
  return `${at && value < 100 ? value.toFixed(1) : Math.round(value)} ${size[at]}`;
}
function lasting(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 0) return `−${lasting(-seconds)}`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
  if (minutes < 120) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${count(days)} d ${hours % 24} h`;
}
function shortened(bound) {
  const today = new Date(sample.at * 1000).toISOString().slice(0, 10);
  return bound && bound.startsWith(today) ? bound.slice(11) : bound;
}
function made(tag, text, kind) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}
function table(place, heads, rows, none) {
  const head = made("tr"), body = rows.map(cells => {
    const row = made("tr");
    row.append(...cells.map(cell => Array.isArray(cell) ? made("td", cell[0], cell[1]) : made("td", cell)));
    return row;
  });
  head.append(...heads.map(text => made("th", text)));
  if (!rows.length) { const row = made("tr"), cell = made("td", none, "none"); cell.colSpan = heads.length; row.append(cell); body.push(row); }
  place.replaceChildren(head, ...body);
}

function showFigures() {
  const late = sample.nodes.reduce((sum, node) => sum + (node.counts?.late ?? 0), 0);
  const dead = sample.sources.reduce((sum, source) => sum + source.unreadable, 0);
  const checkpoints = sample.checkpoints, age = checkpoints.age_s === null ? "none yet" : `${lasting(checkpoints.age_s)} ago`;
  const behind = sample.nodes.reduce((sum, node) => sum + (node.counts?.behind ?? 0), 0);
  const figures = [["tuples/s", rate(sample.rate)], ["late", count(late)], ["behind a bound", count(behind)], ["unreadable", count(dead)],
    [checkpoints.durable ? "checkpoint" : "commit", age], ["up", lasting(sample.up_s)]];
  $("figures").replaceChildren(...figures.map(([name, value]) => {
    const pair = made("div");
    pair.append(made("dt", name), made("dd", value, /late|behind|unread/.test(name) && value !== "0" ? "bad" : ""));
    return pair;
  }));
  $("name").textContent = document.title = sample.graph;
  const away = sample.sinks.find(sink => sink.away);
  $("status").textContent = sample.paused ? "paused" : away ? `waits for the server of sink ${away.name}` : "running";
  $("status").className = `pill ${sample.paused || away ? "paused" : "runs"}`;
  $("pause").textContent = sample.paused ? "Resume" : "Pause";
  for (const id of ["pause", "checkpoint"]) {
    $(id).disabled = !token;
    $(id).title = token ? "" : "open the link that the service has shown: it has the token";
  }
}
function showWhy() {
  const lines = sample.why.map(reason => {
    const line = made("li", reason.text);
    line.addEventListener("click", () => choose(reason.node));
    return line;
  });
  if (!lines.length) lines.push(made("li", "Nothing is held back: no operator keeps anything that waits for punctuation.", "none"));
  $("why").replaceChildren(...lines);
}
function showGraph() {
  const across = $("graph").clientWidth >= 760;
  if (!picture || picture.across !== across) picture = drawn($("graph"), sample, choose);
  const shown = sample.why.filter(reason => !chosen || reason.node === chosen || reason.holder === chosen);
  const holders = new Set(shown.map(reason => reason.holder)), ways = new Set(shown.flatMap(reason => reason.way));
  const sources = Object.fromEntries(sample.sources.map(source => [source.name, source]));
  for (const edge of sample.edges) {
    const {line, bound, age} = picture.edges[edge.name], holds = ways.has(edge.name) ? "holds" : "";
    line.setAttribute("class", holds);
    bound.setAttribute("class", `label ${holds}`);
    bound.textContent = edge.bound === null ? (edge.tuples ? `${count(edge.tuples)} tuples` : "") : shortened(edge.bound);
    const stands = edge.still_s >= 1 ? [`for ${lasting(edge.still_s)}`] : [], lags = edge.clock_s > 0 ? [`lag ${lasting(edge.clock_s)}`] : [];
    age.textContent = edge.below === null ? "" : [...stands, ...lags].join(", ");
  }
  for (const node of sample.nodes) {
    const {group, last} = picture.nodes[node.name], source = sources[node.name];
    const kind = holders.has(node.name) ? "holds" : source?.ended ? "ended" : node.why ? "waits" : "";
    group.setAttribute("class", `node ${kind} ${chosen === node.name ? "chosen" : ""}`);
    last.textContent = source ? (source.ended ? "ended" : source.silent_s >= 3 ? `silent for ${lasting(source.silent_s)}` : `${rate(source.rate)} tuples/s`)
      : node.state ? (node.state.nbytes ? `${bytes(node.state.nbytes)}${node.state.partials ? `, ${count(node.state.partials)} partials` : ""}` : "keeps nothing")
      : `${count(sample.edges.filter(edge => edge.to === node.name).reduce((sum, edge) => sum + edge.tuples, 0))} rows`;
  }
}
function showDetail() {
  const node = sample.nodes.find(found => found.name === chosen), place = $("detail");
  place.hidden = !node;
  if (!node) return;
  const lines = [], source = sample.sources.find(found => found.name === chosen);
  const holding = sample.why.filter(reason => reason.holder === chosen);
  if (node.why) lines.push(made("p", node.why));
  else if (holding.length) lines.push(...holding.map(reason => made("p", reason.text)));
  else lines.push(made("p", `'${node.name}' holds nothing back, and waits for nothing.`));
  const behind = sample.edges.filter(edge => edge.from === chosen && edge.bound !== null);
  if (node.why && behind.length) lines.push(made("p", `Its next results are from ${behind[0].bound} on.`));
  if (node.describe) lines.push(made("p", node.describe, "soft"));
  if (node.state) lines.push(made("p", `${count(node.state.tuples)} tuples, ${count(node.state.partials)} partial aggregates, ${count(node.state.groups)} groups, ` +
    `${bytes(node.state.nbytes)}; busy ${(100 * node.busy).toFixed(1)} %` + Object.entries(node.counts).map(([name, value]) => `; ${name}: ${count(value)}`).join(""), "soft"));
  if (source) for (const [reason, rows] of Object.entries(source.reasons)) lines.push(made("p", `${count(rows)} rows not read: ${reason}`, "soft"));
  place.replaceChildren(...lines);
}
function showWindows() {
  const during = span => span ? `${shortened(span[0])} to ${shortened(span[1])}` : "", place = $("windows");
  const open = sample.nodes.flatMap(node => (node.windows ?? []).map(window => [node, window]));
  table(place, ["operator", "windows", "open", "oldest", "newest", "groups", "partial aggregates", "waits for"], open.map(([node, window]) => [
    node.name, window.window, window.number === null ? "" : count(window.number), during(window.oldest), during(window.newest),
    count(node.state.groups), count(node.state.partials), [node.holder ?? "", "holds"]]), "No window is open.");
  open.forEach(([node], at) => {
    const row = place.rows[at + 1];
    row.dataset.node = node.name;
    row.className = chosen === node.name ? "chosen" : "";
    row.addEventListener("click", () => choose(node.name));
  });
  const node = open.find(([found]) => found.name === chosen)?.[0];
  $("window-why").hidden = !node?.why;
  $("window-why").textContent = node?.why ?? "";
}
function unknown(columns) {
  const names = Object.keys(columns).sort((a, b) => columns[b] - columns[a]);
  return names.slice(0, 3).map(name => `${name} (${count(columns[name])})`).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
}
function showTables() {
  const holders = new Set(sample.why.map(reason => reason.holder));
  table($("sources"), ["source", "bound", "behind the first", "lag (clock)", "tuples/s", "tuples", "unreadable", "unknown columns", "silent"], sample.sources.map(source => [
    [source.name, holders.has(source.name) ? "holds" : ""], source.bound ?? "none yet", source.behind ?? "", lasting(source.clock_s), rate(source.rate), count(source.tuples),
    source.unreadable ? [count(source.unreadable), "bad"] : "0", unknown(source.unknown),
    source.ended ? "ended" : [lasting(source.silent_s), source.silent_s >= 3 && holders.has(source.name) ? "bad" : ""]]), "");
  const groups = sample.nodes.flatMap(node => (node.groups ?? []).map(group => [group.group, group.bound ?? "none yet", node.name]));
  table($("groups"), ["group", "results from", "operator"], groups, "All groups have the bound of their whole stream.");
  table($("checkpoints"), ["number", "age", "stood still", "took", "bytes"], sample.checkpoints.last.slice(0, 8).map(kept => [
    count(kept.epoch), lasting(sample.at - kept.at), lasting(kept.still_s), lasting(kept.took_s), bytes(kept.bytes)]), "None yet.");
}

function series(kind) { return kind === "lag" ? sample.sources.map(source => source.name) : sample.nodes.filter(node => node.state).map(node => node.name); }
function plotData(kind) { return [points.map(point => point.at), ...series(kind).map(name => points.map(point => point[kind][name] ?? null))]; }
function plot(kind, format) {
  const place = $(kind), ink = getComputedStyle(document.body).getPropertyValue("--soft"), grid = {stroke: getComputedStyle(document.body).getPropertyValue("--line"), width: 1};
  const axis = {stroke: ink, grid, ticks: grid};
  return new uPlot({
    width: place.clientWidth, height: 190, cursor: {y: false}, scales: {y: {range: (u, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 1, 1e-3) * 1.05]}},
    axes: [axis, {...axis, size: 70, values: (u, ticks) => ticks.map(format)}],
    series: [{value: (u, at) => at === null ? "" : new Date(at * 1000).toLocaleTimeString()}, ...series(kind).map((name, at) => ({
      label: name, stroke: COLORS[at % COLORS.length], width: 1.6, points: {show: false}, value: (u, value) => value === null || value === undefined ? "" : format(value)}))],
  }, plotData(kind), place);
}
function showPlots() {
  $("lag-title").textContent = sample.sources[0]?.lag_of === "clock" ? "Lag by source: behind the clock" : "Lag by source: behind the first";
  if (plots) { plots.lag.setData(plotData("lag")); plots.state.setData(plotData("state")); return; }
  plots = {lag: plot("lag", lasting), state: plot("state", bytes)};
}
function again() { // of another size, or in other colors
  if (!sample) return;
  for (const made of Object.values(plots ?? {})) made.destroy();
  plots = picture = null;
  showPlots();
  showGraph();
}

function show(found) {
  for (const each of [found, ...found.points, ...found.checkpoints.last]) each.at = Date.parse(each.at) / 1000;
  points = points.concat(found.points.filter(point => !points.length || point.at > points.at(-1).at)).slice(-POINTS);
  sample = found;
  for (const part of [showFigures, showWhy, showGraph, showDetail, showWindows, showTables, showPlots]) part();
}
function choose(name) { chosen = chosen === name ? null : name; showGraph(); showDetail(); showWindows(); }
async function post(path) {
  const answer = await fetch(path, {method: "POST", headers: {Authorization: `Bearer ${token}`}});
  if (!answer.ok) alert(await answer.text());
}
function lost() { $("status").textContent = "not reached"; $("status").className = "pill lost"; }

async function begin() {
  const events = new EventSource("/events");
  events.onopen = async () => {
    const found = await (await fetch("/state")).json();
    if (sample && sample.graph + sample.nodes.length !== found.graph + found.nodes.length) location.reload();
    show(found);
  };
  events.onmessage = event => { if (sample) show(JSON.parse(event.data)); };
  events.onerror = lost;
  $("pause").addEventListener("click", () => post(sample.paused ? "/resume" : "/pause"));
  $("checkpoint").addEventListener("click", () => post("/checkpoint"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; again(); } });
}
begin();
