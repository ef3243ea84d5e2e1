"use strict";
// The graph as SVG: sources first, each node behind all that lead to it; wide from left to right, narrow downwards.

const NODE = {width: 176, height: 62};
const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function ranks(nodes, edges) {
  const found = Object.fromEntries(nodes.map(node => [node.name, 0]));
  for (let round = 0; round < nodes.length; round++) {
    let changed = false;
    for (const edge of edges) {
      if (found[edge.to] <= found[edge.from]) { found[edge.to] = found[edge.from] + 1; changed = true; }
    }
    if (!changed) break;
  }
  return found;
}

// Where each node is; within a rank by the middle of those that lead to it, so that few edges cross.
function placed(nodes, edges, across) {
  const rank = ranks(nodes, edges), rows = [];
  for (const node of nodes) (rows[rank[node.name]] ??= []).push(node.name);
  const gap = across ? {main: 132, side: 26} : {main: 66, side: 22};
  const size = across ? [NODE.width, NODE.height] : [NODE.height, NODE.width];
  const most = Math.max(...rows.map(row => row.length)) * (size[1] + gap.side) - gap.side;
  const places = {}, middle = name => {
    const from = edges.filter(edge => edge.to === name).map(edge => places[edge.from][1]);
    return from.length ? from.reduce((a, b) => a + b) / from.length : 0;
  };
  rows.forEach((row, at) => {
    if (at) row.sort((a, b) => middle(a) - middle(b));
    const used = row.length * (size[1] + gap.side) - gap.side;
    row.forEach((name, number) => {
      places[name] = [at * (size[0] + gap.main), (most - used) / 2 + number * (size[1] + gap.side)];
    });
  });
  const swap = ([main, side]) => across ? [main, side] : [side, main];
  const extent = swap([rows.length * (size[0] + gap.main) - gap.main, most]);
  return {places: Object.fromEntries(Object.entries(places).map(([name, at]) => [name, swap(at)])), extent};
}

function way(from, to, across) {
  const [x1, y1] = across ? [from[0] + NODE.width, from[1] + NODE.height / 2] : [from[0] + NODE.width / 2, from[1] + NODE.height];
  const [x2, y2] = across ? [to[0], to[1] + NODE.height / 2] : [to[0] + NODE.width / 2, to[1]];
  const [mx, my] = [(x1 + x2) / 2, (y1 + y2) / 2];
  const path = across ? `M${x1},${y1} C${mx},${y1} ${mx},${y2} ${x2},${y2}` : `M${x1},${y1} C${x1},${my} ${x2},${my} ${x2},${y2}`;
  const tip = across ? `M${x2},${y2} l-7,-4 v8 z` : `M${x2},${y2} l-4,-7 h8 z`;
  // The label is nearer to the beginning, where edges are still apart: a third on the way along the curve.
  const t = across ? 0.36 : 0.3, curve = (a, b) => ((1 - t) ** 3 + 3 * t * (1 - t) ** 2) * a + (3 * t * t * (1 - t) + t ** 3) * b;
  const label = across ? [x1 + (x2 - x1) * (t + 0.06), curve(y1, y2)] : [curve(x1, x2), y1 + (y2 - y1) * 0.36];
  return {path, tip, label};
}

// Draw once; `update` then changes texts and classes alone.
function drawn(place, sample, chosen) {
  const across = place.clientWidth >= 760;
  const {places, extent} = placed(sample.nodes, sample.edges, across);
  const [width, height] = [extent[0] + 8, extent[1] + 8];
  const picture = svg("svg", {viewBox: `-4 -4 ${width} ${height}`, role: "group"});
  Object.assign(picture.style, {width: "100%", maxWidth: `${width}px`, minWidth: `${width * 0.6}px`});
  const edges = {}, nodes = {};
  for (const edge of sample.edges) {
    const {path, tip, label: [x, y]} = way(places[edge.from], places[edge.to], across);
    const line = svg("path", {d: path});
    picture.append(line, svg("path", {d: tip, class: "tip"}));
    edges[edge.name] = {line, bound: svg("text", {class: "label", x, y: y - 5}), age: svg("text", {class: "label soft", x, y: y + 13})};
  }
  for (const {bound, age} of Object.values(edges)) picture.append(bound, age);
  for (const node of sample.nodes) {
    const [x, y] = places[node.name];
    const group = svg("g", {class: "node", transform: `translate(${x},${y})`, tabindex: 0, role: "button", "data-node": node.name});
    const cut = text => text.length > 23 ? `${text.slice(0, 22)}…` : text;
    const last = svg("text", {class: "soft", x: 10, y: 53});
    group.append(svg("rect", {width: NODE.width, height: NODE.height, rx: 8}), svg("title", {}, node.name),
      svg("text", {class: "name", x: 10, y: 20}, cut(node.name)), svg("text", {class: "soft", x: 10, y: 37}, cut(node.class)), last);
    group.addEventListener("click", () => chosen(node.name));
    group.addEventListener("keydown", event => { if (event.key === "Enter") chosen(node.name); });
    picture.append(group);
    nodes[node.name] = {group, last};
  }
  place.replaceChildren(picture);
  return {nodes, edges, across};
}
