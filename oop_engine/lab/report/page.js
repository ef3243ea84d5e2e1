/* The page without this is whole: tables and drawings are there.  This adds sorting, curves to point at, and the play. */
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (tag, props = {}, ...inner) => {
    const made = Object.assign(document.createElement(tag), props);
    made.append(...inner);
    return made;
  };
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const digits = value => String(Number(value.toPrecision(3)));
  const number = value => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    for (const [least, word] of [[1e9, " G"], [1e6, " M"], [1e4, " k"]])
      if (size >= least) return digits(value / least * (word === " k" ? 10 : 1)) + word;
    return size >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : digits(value);
  };
  const bytes = value => value < 1000 ? value + " B" : value < 1e6 ? digits(value / 1e3) + " kB" : digits(value / 1e6) + " MB";
  const span = s => {
    const sign = s < 0 ? "-" : "", size = Math.abs(s);
    for (const [unit, word, part, rest] of [[86400, " d ", 3600, " h"], [3600, " h ", 60, " min"], [60, " min ", 1, " s"]])
      if (size >= unit) return sign + Math.floor(size / unit) + word + Math.floor(size % unit / part) + rest;
    return sign + (size >= 1 || !size ? digits(size) + " s" : digits(size * 1000) + " ms");
  };

  /* Tables: a click on a heading sorts; figures by what they are, words as words. */
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const sort = $("button", { type: "button", title: head.title || "Sort by this" }, ...head.childNodes);
      head.append(sort);
      sort.onclick = () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const of = row => row.cells[at].dataset.v ?? row.cells[at].textContent;
        const rows = [...body.rows].sort((a, b) => {
          const x = of(a), y = of(b), both = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
          return (down ? -1 : 1) * (both ? x - y : x < y ? -1 : x > y ? 1 : 0);
        });
        body.append(...rows);
      };
    });
  }

  /* Curves: in place of each drawing one that can be pointed at, zoomed (drag; double click: all), and whose lines can be hidden. */
  const charts = [];
  const draw = () => {
    for (const made of charts.splice(0)) made.destroy();
    const ink = css("--faint"), grid = css("--grid");
    for (const box of document.querySelectorAll("[data-chart]")) {
      const all = data.charts[box.dataset.chart];
      if (!all) continue;
      let live = box.querySelector(".live");
      if (!live) box.append(live = $("div", { className: "live" }));
      live.replaceChildren();
      box.classList.add("alive");
      const holders = all.map(() => $("div", { className: "chart" }));
      live.append(...holders);
      for (const [at, chart] of all.entries()) {
        const holder = holders[at];
        const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid } };
        const log = chart.log && chart.series.every(s => s.y.every(v => v === null || v > 0));
        const words = chart.words, room = words ? 24 + 7.2 * Math.max(...words.map(word => word.length)) : 34; /* words stand upright */
        charts.push(new uPlot({
          title: chart.title, width: holder.clientWidth, height: 206 + room,
          scales: { x: { time: false, distr: words ? 2 : 1 }, y: { distr: log ? 3 : 1, range: log ? undefined : (u, lo, hi) => [Math.min(0, lo), hi > 0 ? hi * 1.06 : 1] } },
          cursor: { focus: { prox: 24 }, drag: { x: true, y: false } }, focus: { alpha: 0.35 },
          legend: { live: true },
          axes: [
            { ...axis, label: chart.xlabel, labelSize: 22, size: room, rotate: words ? -90 : 0, space: words ? 14 : 50, values: words ? (u, at) => at.map(i => words[i] ?? "") : (u, at) => at.map(number) },
            { ...axis, size: 58, values: (u, at) => at.map(v => chart.share ? Math.round(v * 100) + "%" : v === null ? "" : number(v)) }],
          series: [{ label: chart.xshort || "x", value: (u, v) => words ? words[v] ?? "–" : number(v) },
            ...chart.series.map(s => ({
              label: s.label, class: s.thin ? "thin" : undefined, stroke: css("--" + s.order), width: s.thin ? 0.5 : s.order === "in" ? 2.6 : 1.6, dash: s.dash, spanGaps: true,
              paths: s.step ? uPlot.paths.stepped({ align: 1 }) : undefined, points: { show: !!s.points, size: 6 },
              value: (u, v) => chart.share ? v === null ? "–" : (v * 100).toFixed(0) + "%" : chart.bytes && v !== null ? bytes(Math.round(v)) : number(v),
            }))],
          hooks: { setSeries: [(u, i, options) => { /* a band goes with its line */
            if (i && options.show !== undefined && chart.series[i - 1].band) for (const j of chart.series[i - 1].band) if (u.series[j + 1].show !== options.show) u.setSeries(j + 1, { show: options.show });
          }] },
          bands: chart.series.flatMap((s, i) => s.upper === undefined ? [] : [{ series: [s.upper + 1, i + 1], fill: css("--" + s.order) + "2e" }]),
        }, [chart.x, ...chart.series.map(s => s.y)], holder));
      }
    }
  };
  let wait = 0;
  addEventListener("resize", () => { clearTimeout(wait); wait = setTimeout(() => { draw(); play && play.show(); }, 150); });
  dark.addEventListener("change", () => { draw(); play && play.show(); });

  /* The play: what had happened by the moment of the slider. */
  const make = (root, of) => {
    const canvas = $("canvas", { className: "stage", role: "img", ariaLabel: "Tuples, bounds and answers up to the moment of the slider" });
    const slider = $("input", { type: "range", min: 0, max: 1000, value: 1000, ariaLabel: "moment" });
    const button = $("button", { type: "button", className: "go", textContent: "▶ play" });
    const clock = $("output"), plans = $("div", { className: "now" }), tip = $("div", { className: "tip", hidden: true });
    root.append($("div", { className: "controls" }, button, slider, clock), plans, $("div", { className: "wrap" }, canvas, tip));
    const length = Math.max(of.last - of.first, 1), hidden = new Set();
    if (of.plans.length > 2) of.plans.forEach((p, i) => of.shown.includes(i) || hidden.add(i));
    const until = (xs, now) => { let lo = 0, hi = xs.length; while (lo < hi) { const m = (lo + hi) >> 1; xs[m] <= now ? lo = m + 1 : hi = m; } return lo; };
    const ys = [...of.dots.y, ...of.plans.flatMap(p => [...p.late.y, ...p.answers.y])].sort((a, b) => a - b);
    const edge = q => ys.length ? ys[Math.min(ys.length - 1, Math.floor(q * ys.length))] : 0;
    const pad = Math.max((edge(.995) - edge(.005)) * .06, 1), low = edge(.005) - pad, high = edge(.995) + pad;
    const when = v => of.instants ? new Date((of.first + v) * of.scale * 1000).toISOString().slice(0, 16).replace("T", " ")
      : of.time ? span((of.first + v - of.base) * of.scale) : number(of.first + v - of.base) + " " + of.unit;
    const lines = of.plans.map((p, i) => {
      const box = $("input", { type: "checkbox", checked: !hidden.has(i) });
      const what = $("span", { className: "what" }), line = $("label", { className: p.order }, box, $("b", { textContent: p.label }), what);
      box.onchange = () => { box.checked ? hidden.delete(i) : hidden.add(i); show(); };
      plans.append(line);
      return what;
    });
    const show = () => {
      const now = slider.value / 1000 * length;
      const ratio = devicePixelRatio || 1, wide = canvas.parentNode.clientWidth, tall = Math.max(260, Math.min(460, wide * .45)), keep = 84;
      canvas.width = wide * ratio; canvas.height = (tall + keep) * ratio; canvas.style.height = tall + keep + "px";
      const c = canvas.getContext("2d"); c.scale(ratio, ratio); c.clearRect(0, 0, wide, tall + keep);
      const left = 84, right = wide - 10, top = 8, bottom = tall - 26;
      const X = v => left + v / length * (right - left), Y = v => bottom - (v - low) / (high - low) * (bottom - top);
      c.font = "11.5px system-ui, sans-serif"; c.fillStyle = css("--faint"); c.strokeStyle = css("--grid"); c.lineWidth = 1;
      const slide = of.slide && (high - low) / of.slide <= 60 ? of.slide : 0;
      if (slide) for (let w = Math.ceil((low + of.first - of.origin) / slide) * slide + of.origin - of.first, n = 0; w < high; w += slide, n++) {
        if (Math.round((w + of.first - of.origin) / slide) % 2) { c.fillStyle = css("--soft"); c.fillRect(left, Y(w), right - left, Y(w - slide) - Y(w)); }
      }
      c.fillStyle = css("--faint"); c.textAlign = "right"; c.textBaseline = "middle";
      for (let i = 0; i <= 4; i++) { const v = low + (high - low) * i / 4; const t = when(v); c.fillText(of.instants ? t.slice(5) : t, left - 6, Math.max(top + 6, Y(v))); }
      c.textBaseline = "top";
      for (let i = 0; i <= 4; i++) { c.textAlign = i === 0 ? "left" : i === 4 ? "right" : "center"; const t = when(length * i / 4); if (wide > 560 || i % 2 === 0) c.fillText(of.instants ? t.slice(5) : t, X(length * i / 4), bottom + 6); }
      c.save(); c.beginPath(); c.rect(left, top, right - left, bottom - top); c.clip();
      c.strokeStyle = css("--mute"); c.setLineDash([2, 4]); c.beginPath(); c.moveTo(X(0), Y(0)); c.lineTo(X(length), Y(length)); c.stroke(); c.setLineDash([]);
      c.fillStyle = css("--ink"); c.globalAlpha = .5;
      for (let i = 0, n = until(of.dots.x, now); i < n; i++) c.fillRect(X(of.dots.x[i]) - 1.1, Y(of.dots.y[i]) - 1.1, 2.2, 2.2);
      c.globalAlpha = 1;
      of.plans.forEach((p, i) => {
        if (hidden.has(i)) return;
        const paint = css("--" + p.order); c.strokeStyle = c.fillStyle = paint;
        const dash = p.dash.map(d => d * 1.6);
        const stairs = (line, width, pattern) => {
          const n = until(line.x, now); if (!n) return;
          c.lineWidth = width; c.setLineDash(pattern); c.beginPath(); c.moveTo(X(line.x[0]), Y(line.y[0]));
          for (let k = 1; k < n; k++) { c.lineTo(X(line.x[k]), Y(line.y[k - 1])); c.lineTo(X(line.x[k]), Y(line.y[k])); }
          c.lineTo(X(now), Y(line.y[n - 1])); c.stroke(); c.setLineDash([]);
        };
        stairs(p.linear, p.order === "in" ? 3 : 1.7, dash);
        stairs(p.middle, 1.2, [2, 2]);
        const few = p.answers.x.length < 300; c.globalAlpha = few ? .9 : .45;
        for (let k = 0, n = until(p.answers.x, now); k < n; k++) {
          const age = (now - p.answers.x[k]) / length, r = age < .012 ? 5 : few ? 3 : 1.8;
          c.beginPath(); c.arc(X(p.answers.x[k]), Y(p.answers.y[k]), r, 0, 7); age < .012 ? c.fill() : c.stroke();
        }
        c.globalAlpha = 1; c.strokeStyle = css("--bad"); c.lineWidth = 1.6;
        for (let k = 0, n = until(p.late.x, now); k < n; k++) {
          const x = X(p.late.x[k]), y = Y(p.late.y[k]); c.beginPath(); c.moveTo(x - 4, y - 4); c.lineTo(x + 4, y + 4); c.moveTo(x + 4, y - 4); c.lineTo(x - 4, y + 4); c.stroke();
        }
      });
      c.restore();
      const most = Math.max(1, ...of.plans.flatMap((p, i) => hidden.has(i) ? [] : p.kept.bytes));
      const base = tall + keep - 4, K = v => base - v / most * (keep - 22);
      c.fillStyle = css("--faint"); c.textAlign = "right"; c.textBaseline = "middle"; c.fillText(bytes(most), left - 6, K(most)); c.fillText("kept  0", left - 6, base - 4);
      c.strokeStyle = css("--line"); c.lineWidth = 1; c.beginPath(); c.moveTo(left, base); c.lineTo(right, base); c.stroke();
      of.plans.forEach((p, i) => {
        const at = until(p.kept.x, now) - 1, answers = until(p.answers.x, now), late = until(p.late.x, now) && Math.round(until(p.late.x, now) * p.late.of / p.late.x.length);
        const sum = p.answers.n.slice(0, answers).reduce((a, b) => a + b, 0), bound = until(p.linear.x, now) - 1;
        lines[i].textContent = (at < 0 ? "nothing kept" : [bytes(p.kept.bytes[at]), number(p.kept.tuples[at]) + " tuples", number(p.kept.partials[at]) + " partials"].join(" · "))
          + " · " + number(sum) + " answers" + (late ? " · " + number(late) + " late" : "") + (bound < 0 ? "" : " · bound " + when(p.linear.y[bound]));
        if (hidden.has(i)) return;
        c.strokeStyle = css("--" + p.order); c.lineWidth = p.order === "in" ? 2.6 : 1.5; c.setLineDash(p.dash.map(d => d * 1.6));
        const n = until(p.kept.x, now); if (!n) return;
        c.beginPath(); c.moveTo(X(p.kept.x[0]), K(p.kept.bytes[0]));
        for (let k = 1; k < n; k++) { c.lineTo(X(p.kept.x[k]), K(p.kept.bytes[k - 1])); c.lineTo(X(p.kept.x[k]), K(p.kept.bytes[k])); }
        c.lineTo(X(now), K(p.kept.bytes[n - 1])); c.stroke(); c.setLineDash([]);
      });
      c.strokeStyle = css("--ink"); c.lineWidth = 1; c.beginPath(); c.moveTo(X(now), top); c.lineTo(X(now), base); c.stroke();
      clock.textContent = when(now);
      canvas.onmousemove = e => {
        const r = canvas.getBoundingClientRect(), x = (e.clientX - r.left - left) / (right - left) * length, y = low + (bottom - (e.clientY - r.top)) / (bottom - top) * (high - low);
        tip.hidden = x < 0 || x > length || y < low || y > high;
        tip.textContent = "came " + when(x) + " · is from " + when(y);
        tip.style.left = Math.min(e.clientX - r.left + 12, wide - 210) + "px"; tip.style.top = e.clientY - r.top + 14 + "px";
      };
      canvas.onmouseleave = () => { tip.hidden = true; };
    };
    let frame = 0, last = 0;
    const stop = () => { cancelAnimationFrame(frame); frame = 0; button.textContent = "▶ play"; };
    const step = t => {
      slider.value = Math.min(1000, +slider.value + (last ? (t - last) / 14 : 0)); last = t; show();
      +slider.value < 1000 ? frame = requestAnimationFrame(step) : stop();
    };
    slider.step = "any";
    slider.oninput = () => { stop(); show(); };
    button.onclick = () => {
      if (frame) { stop(); return; }
      if (+slider.value >= 1000) slider.value = 0;
      button.textContent = "❚❚ stop"; last = 0; frame = requestAnimationFrame(step);
    };
    root.classList.add("alive");
    return { show };
  };
  const root = document.getElementById("play");
  const play = root && data.play ? make(root.querySelector(".live"), data.play) : null;
  if (root && play) root.classList.add("alive");
  draw();
  if (play) play.show();
})();
