// The script of a page that package profile writes. Texts of the graph go into text nodes only.
(() => {
const canvas = $("view"), stage = $("stage"), panel = $("panel"), tip = $("tip");
const ctx = canvas.getContext("2d", { alpha: false });
const dark = matchMedia("(prefers-color-scheme: dark)");
let G = null, at = 0, sel = null, hover = -1, theme = "", frames = 0, dirty = true, cam = { x: 0, s: 1 }, W = 0, H = 0, C = {}, plot = null;
let order = { by: "microseconds", down: true };

// ---- numbers and texts
const max = (list, of, min) => list.reduce((m, x) => Math.max(m, of(x)), min); // some browsers take no 100,000 arguments
const num = (v, n = 3) => !isFinite(v) ? "–" : Number.isInteger(v) ? group(v) : v >= 100 ? group(Math.round(v)) : v >= 10 ? v.toFixed(1) : v.toPrecision(n);
const us = v => v >= 1e6 ? (v / 1e6).toFixed(2) + " s" : v >= 1e3 ? (v / 1e3).toFixed(2) + " ms" : v.toFixed(v < 10 ? 2 : 1) + " µs";
const percent = v => v > 1.5 ? "> 100 %" : (100 * v).toFixed(v < .0995 ? 1 : 0) + " %";
function svg(tag, attributes, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  for (const c of children) e.append(c.nodeType ? c : String(c));
  return e;
}
const dot = f => { const s = svg("svg", { width: 9, height: 9, class: "dot" }); s.append(svg("rect", { width: 9, height: 9, rx: 3, fill: C["f" + f] })); return s; };
function colours() {
  const s = getComputedStyle(document.documentElement);
  for (const k of ["bg", "card", "ink", "dim", "line", "soft", "accent", "select", "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"]) C[k] = s.getPropertyValue("--" + k).trim();
}

// ---- a graph
function show(k) {
  at = k; G = D.graphs[k]; sel = null; hover = -1;
  G.measured = G.by === "commands";
  if (!G.ready) {
    G.ready = true;
    G.epochs.forEach((e, i) => {
      let top = -1;
      for (const c of e.commands) if (top < 0 || weight(c) > weight(top)) top = c;
      e.family = top < 0 ? 7 : G.kernels[G.command[top].kernel].family;
      e.i = i;
    });
    G.kernels.forEach((x, i) => { x.i = i; });
  }
  G.total = max(G.epochs, e => Math.max(G.measured ? e.end : 0, e.modelled_end), Math.max(1e-9, G.modelled_microseconds));
  tiles(); kernels(); roofline(); gaps(); series(); legend(); overview(); fit();
  stage.hidden = !G.commands;
  $("about").textContent = (!G.commands ? "This graph has no commands." : G.measured
    ? "The mean of " + plural(G.replays, "replay") + " of " + plural(G.commands, "command") + ". Above: as measured. Below: as modelled for " + model() + ". In the holes no command runs."
    : "Commands have no times of their own here: only the model's epochs are drawn, for " + model() + ".");
  $("graph").value = k;
}
const model = () => D.model.fitted ? "a model that was fitted to these replays" : D.model.name;
const weight = c => G.measured ? G.command[c].us : G.command[c].modelled;
function tiles() {
  const box = $("tiles");
  box.replaceChildren();
  const tile = (value, text) => { const t = el("div", "tile", el("b", "", value), el("small", "", text)); t.setAttribute("role", "listitem"); box.append(t); };
  tile(us(G.mean_microseconds), "a replay, the mean");
  tile(us(G.median_microseconds), "the median");
  if (G.measured) { tile(us(G.busy_microseconds), "busy"); tile(us(G.idle_microseconds), "idle"); }
  tile(us(G.modelled_microseconds), "modelled");
  tile(bytes(G.bytes), "moved");
  tile(plural(G.commands, "command"), G.by === "ablation" ? "times by ablation" : "on " + D.device);
}
function legend() {
  const used = new Set(G.kernels.map(k => k.family));
  $("legend").replaceChildren(...D.families.map((f, i) => used.has(i) ? el("span", "", dot(i), f) : null).filter(Boolean));
}

// ---- the table of kernels
const COLUMNS = [
  ["name", "kernel", k => k.kernel], ["bars", "measured, modelled", k => k.microseconds], ["dispatches", "dispatches", k => num(k.dispatches, 4)],
  ["microseconds", "µs a replay", k => num(k.microseconds) + (G.by === "ablation" ? " ± " + num(k.spread_microseconds || 0) : "")], ["share", "share", k => percent(k.share)],
  ["modelled_microseconds", "modelled µs", k => num(k.modelled_microseconds)], ["gbs", "GB/s", k => k.microseconds ? num(k.gbs) : "–"], ["gops", "Gop/s", k => k.microseconds ? num(k.gops) : "–"],
  ["roofline", "of roofline", k => k.bound ? percent(k.roofline) + " of " + k.bound : "–"],
];
function kernels() {
  const head = el("tr"), body = el("tbody"), most = max(G.kernels, k => Math.max(k.microseconds, k.modelled_microseconds), 1e-9);
  for (const [key, text] of COLUMNS) {
    const th = el("th", key === "name" || key === "bars" ? "" : "n"), sort = key === "name" ? "kernel" : key;
    if (key === "bars") th.append(text);
    else {
      const b = el("button", "", text);
      b.type = "button"; b.title = "Sort by this";
      b.onclick = () => { order = { by: sort, down: order.by === sort ? !order.down : sort !== "kernel" }; kernels(); };
      th.append(b);
      if (order.by === sort) th.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    }
    head.append(th);
  }
  const sorted = [...G.kernels].sort((a, b) => (order.down ? -1 : 1) * (order.by === "kernel" ? (a.kernel < b.kernel ? -1 : 1) : a[order.by] - b[order.by]));
  for (const k of sorted) {
    const tr = el("tr");
    tr.dataset.kernel = k.i;
    tr.setAttribute("aria-selected", sel && sel.kernel === k.i);
    for (const [key, , value] of COLUMNS) {
      if (key === "name") tr.append(el("td", "name mono", dot(k.family), " " + k.kernel));
      else if (key === "bars") {
        const w = v => (100 * v / most).toFixed(2) + "%";
        tr.append(el("td", "bars", svg("svg", { "aria-hidden": "true" }, svg("rect", { x: 0, y: 1, width: w(k.microseconds), height: 9, rx: 1.5, fill: C["f" + k.family] }), svg("rect", { x: 0, y: 12, width: w(k.modelled_microseconds), height: 4, rx: 1.5, fill: C.dim }))));
      } else tr.append(el("td", "n", value(k)));
    }
    tr.tabIndex = 0;
    tr.onclick = () => select({ kernel: k.i });
    tr.onkeydown = e => { if (e.key === "Enter") select({ kernel: k.i }); };
    body.append(tr);
  }
  $("kernels").replaceChildren(el("thead", "", head), body);
}

// ---- the roofline: attained arithmetic over operations by byte, both in powers of ten
function roofline() {
  const list = G.kernels.filter(k => k.microseconds > 0 && k.bytes > 0 && k.operations > 0), B = D.ceilings.bandwidth / 1e9, A = D.ceilings.rate / 1e9;
  $("roofline").replaceChildren();
  if (!list.length || !(B > 0) || !(A > 0)) { $("roofnote").textContent = "No kernel here has a time, bytes and operations that are known."; return; }
  $("roofnote").textContent = (D.model.fitted ? "The ceilings are the highest that a kernel of this run attained" : "The ceilings are those of " + D.model.name) + ": " + num(B) + " GB/s and " + num(A) + " Gop/s. A circle is a kernel, as large as its share of the time.";
  const log = Math.log10, X = list.map(k => log(k.operations / k.bytes)), Y = list.map(k => log(k.gops)), knee = log(A / B);
  const x0 = Math.floor(-max(X, x => -x, .5 - knee) * 2) / 2 - .25, x1 = Math.ceil(max(X, x => x, knee + .5) * 2) / 2 + .25, y1 = max(Y, y => y, log(A)) + .3, y0 = -max(Y, y => -y, 2 - y1) - .3;
  const w = 960, h = 320, L = 62, R = 16, T = 12, Bt = 40, px = x => L + (x - x0) / (x1 - x0) * (w - L - R), py = y => T + (y1 - y) / (y1 - y0) * (h - T - Bt);
  const s = svg("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "Roofline of the kernels" });
  for (let d = Math.ceil(x0); d <= x1; d++) s.append(svg("line", { x1: px(d), x2: px(d), y1: T, y2: h - Bt, stroke: C.line }), svg("text", { x: px(d), y: h - Bt + 16, "text-anchor": "middle", "font-size": 11, fill: C.dim }, power(d)));
  for (let d = Math.ceil(y0); d <= y1; d++) s.append(svg("line", { x1: L, x2: w - R, y1: py(d), y2: py(d), stroke: C.line }), svg("text", { x: L - 8, y: py(d) + 4, "text-anchor": "end", "font-size": 11, fill: C.dim }, power(d)));
  s.append(svg("text", { x: (L + w - R) / 2, y: h - 8, "text-anchor": "middle", "font-size": 11, fill: C.dim }, "operations a byte"), svg("text", { x: 14, y: h / 2 - 10, "text-anchor": "middle", "font-size": 11, fill: C.dim, transform: `rotate(-90 14 ${h / 2 - 10})` }, "Gop/s"));
  const low = Math.max(x0, y0 - log(B)); // where the bandwidth's line enters the picture
  s.append(svg("polyline", { points: `${px(low)},${py(low + log(B))} ${px(knee)},${py(log(A))} ${px(x1)},${py(log(A))}`, fill: "none", stroke: C.ink, "stroke-width": 1.6 }));
  s.append(svg("text", { x: px(x1) - 6, y: py(log(A)) - 6, "text-anchor": "end", "font-size": 11, fill: C.ink }, num(A) + " Gop/s"));
  const mid = (low + knee) / 2;
  s.append(svg("text", { x: px(mid) - 8, y: py(mid + log(B)) - 6, "text-anchor": "end", "font-size": 11, fill: C.ink }, num(B) + " GB/s"));
  list.map((k, i) => [k, i]).sort((a, b) => b[0].share - a[0].share).forEach(([k, i]) => {
    const c = svg("circle", { cx: px(X[i]), cy: py(Y[i]), r: 4 + 14 * Math.sqrt(k.share), fill: C["f" + k.family], "fill-opacity": .75, stroke: sel && sel.kernel === k.i ? C.select : C.card, "stroke-width": sel && sel.kernel === k.i ? 2.5 : 1 });
    c.append(svg("title", {}, k.kernel + ": " + num(k.gops) + " Gop/s, " + num(k.gbs) + " GB/s"));
    c.dataset.kernel = k.i;
    c.addEventListener("click", () => select({ kernel: k.i }));
    s.append(c);
  });
  $("roofline").append(s);
}
const power = d => d >= 0 && d < 4 ? String(10 ** d) : d < 0 && d > -4 ? (10 ** d).toFixed(-d) : "10^" + d;

// ---- gaps
function gaps() {
  const list = G.measured ? G.epochs.filter(e => e.gap > 0).sort((a, b) => b.gap - a.gap) : [], total = list.reduce((t, e) => t + e.gap, 0);
  const rows = list.slice(0, 12).map(e => {
    const before = e.i > 0 ? name(G.epochs[e.i - 1].commands.at(-1)) : "the beginning of the replay";
    const tr = el("tr", "", el("td", "n", us(e.gap)), el("td", "n", percent(e.gap / Math.max(1e-9, G.idle_microseconds))), el("td", "mono", before), el("td", "mono", name(e.commands[0])));
    tr.onclick = () => { select({ epoch: e.i }); reveal(e.i); };
    return tr;
  });
  $("gaps").replaceChildren(...(rows.length ? [el("thead", "", el("tr", "", el("th", "n", "idle"), el("th", "n", "of all"), el("th", "", "after"), el("th", "", "before"))), el("tbody", "", ...rows)] : []));
  $("nogaps").textContent = !G.measured ? "Where commands have no times, it is not known when none of them runs."
    : list.length > 12 ? "and " + group(list.length - 12) + " more; all before a command: " + us(total) + " a replay" : list.length ? "All before a command: " + us(total) + " a replay; the rest is behind the last." : "There are none.";
}
const name = c => c === undefined ? "" : G.command[c].name;

// ---- replays one after the other
function series() {
  if (plot) { plot.destroy(); plot = null; }
  const box = $("chart"), s = G.series;
  box.replaceChildren();
  if (s.us.length < 3) { $("nochart").textContent = "There are too few replays to draw: " + plural(s.us.length, "replay") + "."; return; }
  $("nochart").textContent = s.left ? "Every " + s.every + "th replay is drawn." : "";
  const width = Math.max(300, $("timeline").clientWidth - 22), axis = { stroke: C.dim, grid: { stroke: C.line, width: 1 }, ticks: { stroke: C.line, width: 1 }, font: "11px system-ui, sans-serif" };
  plot = new uPlot({
    width, height: 220, cursor: { drag: { x: true, y: false } },
    scales: { x: { time: false }, y: { range: (u, lo, hi) => [0, hi * 1.08 || 1] } },
    axes: [{ ...axis, label: "replay", labelFont: "11px system-ui, sans-serif", labelSize: 20, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }, { ...axis, size: 66, values: (u, v) => v.map(x => us(x)) }],
    series: [
      { label: "replay", value: (u, v, k, i) => i == null ? "–" : s.number[i] + (s.params[i] ? "  (" + s.params[i] + ")" : "") },
      { label: "measured", stroke: C.accent, width: 1.5, value: (u, v) => v == null ? "–" : us(v), points: { show: s.us.length < 60 } },
      { label: "modelled", stroke: C.dim, width: 1.2, dash: [5, 4], value: (u, v) => v == null ? "–" : us(v), points: { show: false } },
    ],
  }, [s.number, s.us, s.modelled], box);
}

// ---- the timeline
const ROW = 62, TOP = 26, LABELS = 84;
const sx = x => LABELS + (x - cam.x) * cam.s;
function fit() { cam.s = (W - LABELS - 14) / G.total; cam.x = 0; dirty = true; }
function bound() {
  const least = (W - LABELS - 14) / G.total;
  cam.s = Math.min(Math.max(cam.s, least), 4000);
  cam.x = Math.max(0, Math.min(cam.x, Math.max(0, G.total - (W - LABELS - 14) / cam.s)));
  dirty = true;
}
function zoom(f, px) { const x = cam.x + (px - LABELS) / cam.s; cam.s *= f; const least = (W - LABELS - 14) / G.total; cam.s = Math.min(Math.max(cam.s, least), 4000); cam.x = x - (px - LABELS) / cam.s; bound(); }
function reveal(i) {
  const e = G.epochs[i], b = G.measured ? e.begin : e.modelled_begin, end = G.measured ? e.end : e.modelled_end;
  if (sx(b) < LABELS || sx(end) > W) { cam.x = (b + end) / 2 - (W - LABELS) / 2 / cam.s; bound(); }
}
function resize() {
  const r = window.devicePixelRatio || 1, box = stage.getBoundingClientRect();
  const whole = W && Math.abs(cam.s - (W - LABELS - 14) / G.total) < 1e-9;
  W = box.width; H = box.height;
  canvas.width = Math.round(W * r); canvas.height = Math.round(H * r);
  ctx.setTransform(r, 0, 0, r, 0, 0);
  if (whole || !cam.s) fit(); else bound();
}
const rows = () => G.measured ? [["measured", e => e.begin, e => e.end, TOP + 8], ["modelled", e => e.modelled_begin, e => e.modelled_end, TOP + 18 + ROW]] : [["modelled", e => e.modelled_begin, e => e.modelled_end, TOP + 8]];
function draw() {
  requestAnimationFrame(draw);
  paint();
}
function paint() {
  if (!dirty || !G) return;
  dirty = false; frames++;
  ctx.fillStyle = C.card; ctx.fillRect(0, 0, W, H);
  ctx.font = "11px system-ui, sans-serif"; ctx.textBaseline = "middle";
  // The ruler has a line every 1, 2 or 5 times a power of ten.
  const rough = 90 / cam.s, p = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map(m => m * p).find(v => v >= rough) || rough;
  for (let x = Math.ceil(cam.x / step) * step; sx(x) < W; x += step) {
    ctx.fillStyle = C.line; ctx.fillRect(Math.round(sx(x)), TOP - 4, 1, H);
    ctx.fillStyle = C.dim; ctx.fillText(step >= 1000 ? (x / 1000).toFixed(step < 1e4 && step % 1000 ? 1 : 0) + " ms" : +x.toFixed(3) + " µs", sx(x) + 4, TOP / 2);
  }
  ctx.save(); ctx.beginPath(); ctx.rect(LABELS, 0, W, H); ctx.clip();
  for (const [, from, to, y] of rows()) {
    let drawn = -1; // the last column of pixels in which a bar begins
    for (const e of G.epochs) {
      const a = sx(from(e)), z = sx(to(e));
      if (z < LABELS || a > W || !to(e)) continue; // without a time: what hands on to the next replay
      if (!sel && hover !== e.i && z - a < 1 && Math.floor(a) === drawn) continue; // of very many epochs few are seen
      drawn = Math.floor(a);
      const w = Math.max(1, z - a - (z - a > 4 ? 1 : 0));
      ctx.globalAlpha = sel && sel.kernel !== undefined && !e.commands.some(c => G.command[c].kernel === sel.kernel) ? .22 : 1;
      ctx.fillStyle = C["f" + e.family]; ctx.fillRect(a, y, w, ROW - 12);
      ctx.globalAlpha = 1;
      if (w > 40) { ctx.save(); ctx.beginPath(); ctx.rect(a, y, w - 4, ROW); ctx.clip(); ctx.fillStyle = theme === "dark" ? "#10151b" : "#fff"; ctx.fillText(label(e), a + 5, y + 16); ctx.fillText(us(to(e) - from(e)), a + 5, y + 34); ctx.restore(); }
      if (sel && sel.epoch === e.i || hover === e.i) { ctx.strokeStyle = C.select; ctx.lineWidth = sel && sel.epoch === e.i ? 2.5 : 1; ctx.strokeRect(a, y - 1, Math.max(2, w), ROW - 10); }
    }
  }
  ctx.restore();
  for (const [text, , , y] of rows()) { ctx.fillStyle = C.ink; ctx.fillText(text, 12, y + ROW / 2 - 6); }
}
const label = e => { let top = e.commands[0]; for (const c of e.commands) if (weight(c) > weight(top)) top = c; return name(top) + (e.commands.length > 1 ? " +" + (e.commands.length - 1) : ""); };
function hit(x, y) {
  for (const [, from, to, top] of rows()) {
    if (y < top - 2 || y > top + ROW - 8) continue;
    let best = -1, far = 5;
    for (const e of G.epochs) { const a = sx(from(e)), z = sx(to(e)), d = x < a ? a - x : x > z ? x - z : 0; if (d < far) { far = d; best = e.i; } }
    if (x >= LABELS) return best;
  }
  return -1;
}

// ---- details
function select(s) {
  sel = s; dirty = true;
  if (s && s.kernel !== undefined) ofKernel(G.kernels[s.kernel]); else if (s && s.epoch !== undefined) ofEpoch(G.epochs[s.epoch]); else overview();
  for (const tr of document.querySelectorAll("#kernels tbody tr")) tr.setAttribute("aria-selected", !!s && s.kernel === +tr.dataset.kernel);
  roofline();
  $("live").textContent = panel.querySelector("h2") ? panel.querySelector("h2").textContent : "";
}
function table(...rows) { return el("table", "", el("tbody", "", ...rows.filter(Boolean).map(([a, b]) => el("tr", "", el("td", "k", a), el("td", "", b))))); }
function overview() {
  const out = [el("div", "top", el("span", "tag", G.by === "commands" ? "times by commands" : G.by === "ablation" ? "times by ablation" : "whole replays only")), el("h2", "", G.graph),
    table(["device", D.device + (D.about && D.about !== D.device ? ", " + D.about : "")], ["replays", group(G.replays) + (G.replays_left_out ? ", and " + group(G.replays_left_out) + " that are not kept" : "")],
      ["mean", us(G.mean_microseconds)], ["median", us(G.median_microseconds)], ["min, max", us(G.min_microseconds) + ", " + us(G.max_microseconds)],
      G.unprofiled_median_microseconds ? ["without times of commands", us(G.unprofiled_median_microseconds)] : null,
      G.measured ? ["busy", us(G.busy_microseconds)] : null, G.measured ? ["idle", us(G.idle_microseconds)] : null,
      ["encoding, on the host", us(G.encode_microseconds)], ["sum of kernels", us(G.kernels_microseconds)], ["modelled", us(G.modelled_microseconds)], ["model", model()], ["bytes moved", bytes(G.bytes)],
      G.commands_without_time ? ["without a time", num(G.commands_without_time, 4) + " commands a replay, which count as idle"] : null)];
  if (D.notes && D.notes.length) { out.push(el("h3", "", "How it was measured")); for (const n of D.notes) out.push(el("p", "said", n)); }
  panel.replaceChildren(...out);
}
function commandRow(c) {
  const x = G.command[c], b = el("button", "link", x.name);
  b.type = "button"; b.onclick = () => { select({ kernel: x.kernel }); };
  return el("tr", "", el("td", "", dot(G.kernels[x.kernel].family), " ", b, x.label ? el("div", "dim", x.label) : null), el("td", "n", G.measured ? us(x.us) : "–"), el("td", "n dim", us(x.modelled)));
}
function ofEpoch(e) {
  const list = [...e.commands].sort((a, b) => weight(b) - weight(a));
  panel.replaceChildren(el("div", "top", el("span", "tag", "epoch " + e.i)), el("h2", "", plural(e.commands.length, "command")),
    table(G.measured ? ["measured", us(e.end - e.begin) + ", from " + us(e.begin)] : null, G.measured ? ["idle before it", us(e.gap)] : null, ["modelled", us(e.modelled_end - e.modelled_begin)]),
    el("h3", "", "Commands, measured and modelled"), el("table", "", el("tbody", "", ...list.slice(0, 200).map(commandRow))), list.length > 200 ? el("p", "dim", "and " + group(list.length - 200) + " more") : "");
}
function ofKernel(k) {
  const list = G.command.map((c, i) => i).filter(i => G.command[i].kernel === k.i).sort((a, b) => weight(b) - weight(a));
  panel.replaceChildren(el("div", "top", el("span", "tag", D.families[k.family])), el("h2", "mono", k.kernel),
    table(["dispatches a replay", num(k.dispatches, 4)], ["a replay", us(k.microseconds) + ", " + percent(k.share)], G.by === "ablation" ? ["may be off by", us(k.spread_microseconds || 0)] : null, ["modelled", us(k.modelled_microseconds)],
      ["bytes", bytes(k.bytes) + (k.microseconds ? ", " + num(k.gbs) + " GB/s" : "")], ["operations", group(Math.round(k.operations)) + (k.microseconds ? ", " + num(k.gops) + " Gop/s" : "")], k.bound ? ["of the roofline", percent(k.roofline) + ", whose ceiling here is " + k.bound] : null),
    el("h3", "", "Its commands, measured and modelled"), el("table", "", el("tbody", "", ...list.slice(0, 200).map(commandRow))), list.length > 200 ? el("p", "dim", "and " + group(list.length - 200) + " more") : "");
}

// ---- the mouse, keys, the address
canvas.addEventListener("wheel", e => { e.preventDefault(); const r = canvas.getBoundingClientRect(); if (e.ctrlKey || e.metaKey || Math.abs(e.deltaY) > Math.abs(e.deltaX)) zoom(Math.exp(-e.deltaY / 240), e.clientX - r.left); else { cam.x += e.deltaX / cam.s; bound(); } }, { passive: false });
let drag = null;
canvas.addEventListener("pointerdown", e => { drag = { x: e.clientX, cam: cam.x, moved: false }; canvas.setPointerCapture(e.pointerId); });
canvas.addEventListener("pointermove", e => {
  const r = canvas.getBoundingClientRect();
  if (drag) { if (Math.abs(e.clientX - drag.x) > 3) drag.moved = true; if (drag.moved) { cam.x = drag.cam - (e.clientX - drag.x) / cam.s; bound(); } return; }
  const h = hit(e.clientX - r.left, e.clientY - r.top);
  if (h !== hover) { hover = h; dirty = true; }
  if (h < 0) { tip.hidden = true; return; }
  const x = G.epochs[h];
  tip.replaceChildren(el("b", "", label(x)), el("span", "", (G.measured ? us(x.end - x.begin) + ", " : "") + "modelled " + us(x.modelled_end - x.modelled_begin)), x.gap > 0 ? el("span", "", "idle before it: " + us(x.gap)) : "");
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(e.clientX - r.left + 14, W - 300)) + "px"; tip.style.top = Math.min(e.clientY - r.top + 14, H - 70) + "px";
});
canvas.addEventListener("pointerup", e => { const r = canvas.getBoundingClientRect(), was = drag; drag = null; if (was && !was.moved) { const h = hit(e.clientX - r.left, e.clientY - r.top); select(h < 0 ? null : { epoch: h }); } });
canvas.addEventListener("pointerleave", () => { hover = -1; tip.hidden = true; dirty = true; });
function move(by) {
  if (!G.epochs.length) return;
  const i = sel && sel.epoch !== undefined ? sel.epoch + by : by > 0 ? 0 : G.epochs.length - 1;
  const to = Math.max(0, Math.min(G.epochs.length - 1, i));
  select({ epoch: to }); reveal(to);
}
const KEYS = [["← →", "from epoch to epoch"], ["+ − 0, the wheel", "zoom; the whole replay"], ["dragging", "move"], ["g", "the next graph"], ["t", "light or dark"], ["?", "these keys"], ["Esc", "nothing selected"]];
function help(open) {
  const k = $("keys");
  k.hidden = !open;
  if (open) k.replaceChildren(el("div", "", el("h2", "", "Keys"), el("table", "", el("tbody", "", ...KEYS.map(([a, b]) => el("tr", "", el("td", "k", el("kbd", "", a)), el("td", "", b)))))));
}
function setTheme(t) {
  theme = t;
  document.documentElement.classList.toggle("dark", t === "dark");
  colours();
  if (G) { const keep = sel; kernels(); roofline(); series(); legend(); select(keep); }
  dirty = true;
}
const commands = {
  ArrowRight: () => move(1), ArrowLeft: () => move(-1), "+": () => zoom(1.5, W / 2), "=": () => zoom(1.5, W / 2), "-": () => zoom(1 / 1.5, W / 2), 0: fit,
  g: () => D.graphs.length > 1 && show((at + 1) % D.graphs.length), t: () => setTheme(theme === "dark" ? "light" : "dark"), "?": () => help($("keys").hidden), Escape: () => $("keys").hidden ? select(null) : help(false),
};
// Paper is light, whatever the screen is.
let before = "";
addEventListener("beforeprint", () => { before = theme; if (theme === "dark") { setTheme("light"); paint(); } });
addEventListener("afterprint", () => { if (before === "dark") setTheme("dark"); });
document.addEventListener("keydown", e => { if (e.ctrlKey || e.metaKey || e.altKey || e.target.tagName === "SELECT") return; const f = commands[e.key]; if (f) { e.preventDefault(); f(); } });
$("keys").onclick = () => help(false);
for (const [id, key] of [["out", "-"], ["in", "+"], ["fit", "0"], ["theme", "t"], ["help", "?"]]) $(id).onclick = () => commands[key]();
$("graph").onchange = e => show(+e.target.value);

$("file").textContent = D.title; $("file").title = D.title;
for (const [i, g] of D.graphs.entries()) { const o = el("option", "", g.graph); o.value = i; $("graph").append(o); }
if (D.graphs.length < 2) document.querySelector(".pick").hidden = true;
if (D.cut) { $("notice").textContent = D.cut; $("notice").hidden = false; }
window.mlxcPage = { state: () => ({ graph: G ? G.graph : "", frames, dark: theme === "dark", epochs: G ? G.epochs.length : 0, selected: sel, scale: cam.s, chart: plot ? plot.width : 0 }), where: i => { const e = G.epochs[i], r = canvas.getBoundingClientRect(); return { x: r.left + (sx(G.measured ? e.begin : e.modelled_begin) + sx(G.measured ? e.end : e.modelled_end)) / 2, y: r.top + TOP + 8 + ROW / 2 }; } };
theme = dark.matches ? "dark" : "light";
document.documentElement.classList.toggle("dark", theme === "dark");
colours();
if (D.graphs.length) {
  G = D.graphs[0];
  const box = stage.getBoundingClientRect();
  W = box.width; H = box.height;
  show(0);
  resize();
  fit();
  new ResizeObserver(() => { resize(); if (plot) plot.setSize({ width: Math.max(300, $("timeline").clientWidth - 22), height: 220 }); }).observe(stage);
} else { $("run").replaceChildren(el("p", "", "Nothing was measured.")); frames = 1; }
requestAnimationFrame(draw);
document.body.dataset.ready = "true";
})();
