// The script of a page that package page writes. It draws on one canvas what can be seen of the
// graphs, and puts texts of the graph into text nodes only.
(() => {
const T = D.texts;
const canvas = $("view"), stage = $("stage"), panel = $("panel"), tip = $("tip");
const ctx = canvas.getContext("2d", { alpha: false });
const MAX_ROWS = 8, KINDS = ["", "RAW", "WAR", "WAW", "any", "edge"];
const WHY = { RAW: "reads what it wrote", WAR: "writes what it reads", WAW: "overwrites what it wrote", any: "one of the two may touch anything", edge: "an edge of the graph" };
const MEMS = ["weight", "input", "output", "state", "scratch", "argument"];
const ACCESS = ["reads", "writes", "reads and writes", "constant", "threadgroup"];
const ENDS = { B: "a barrier ends it", C: "a commit ends it", S: "the graph is serial: each command waits for the one before", E: "edges order it", "-": "" };
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

// state
let G = null;            // the graph that is shown, prepared
let sel = null;          // {side, i} a command, or {side, epoch}
let hover = null;        // {side, i}, {side, value}, {side, epoch}
let hits = [], hitAt = -1, hitSet = [new Set(), new Set()], query = "";
let heat = false, aligned = true, memory = true, beside = false, theme = "", before = false;
let cams = [{ x: 0, s: 60 }, { x: 0, s: 60 }], flight = null;
let W = 0, H = 0, ratio = 1, dirty = true, frames = 0, C = {};
const prepared = [];

// ---- numbers and texts
const micros = ns => ns >= 1e6 ? (ns / 1e6).toFixed(2) + " ms" : (ns / 1e3).toFixed(ns < 1e4 ? 2 : 1) + " µs";

// ---- preparing a graph: what is linear in it is done once
function prepare(k) {
  if (prepared[k]) return prepared[k];
  const g = D.graphs[k], out = { k, g, sides: [], links: g.links || null, back: null };
  out.sides = g.sides.map((s, at) => {
    const n = s.commands, epochs = s.ends.length;
    const epoch = new Int32Array(n);
    let rows = 1;
    for (let e = 0; e < epochs; e++) {
      const size = s.first[e + 1] - s.first[e];
      epoch.fill(e, s.first[e], s.first[e + 1]);
      rows = Math.max(rows, perColumn(size));
    }
    const p = { at, s, n, epochs, epoch, rows, mems: s.memories.map(m => D.memories[m]), levels: new Map(), picture: null, index: null, total: 0, x0: null, x1: null };
    return p;
  });
  if (out.links) {
    const n = out.sides[0].n, back = Array(n);
    out.links.forEach((js, i) => { for (const j of js) (back[j] || (back[j] = [])).push(i); });
    out.back = back;
  }
  return prepared[k] = out;
}
function perColumn(size) { return Math.ceil(size / Math.ceil(size / MAX_ROWS)); }
// place chooses the columns of both sides.
function place() {
  for (const p of G.sides) {
    const s = p.s;
    if (aligned && s.from) { p.x0 = s.from; p.x1 = s.to; }
    else { p.x0 = s.x; p.x1 = s.x.slice(1); }
    p.total = p.epochs ? p.x1[p.epochs - 1] : 1;
    p.levels.clear(); p.picture = null; p.index = null;
  }
  if (aligned) { const t = Math.max(...G.sides.map(p => p.total)); for (const p of G.sides) p.total = t; }
}
const linked = () => aligned || G.sides.length === 1;
const cam = at => linked() ? cams[0] : cams[at];
function boxOf(p, i) {
  const e = p.epoch[i], first = p.s.first[e], size = p.s.first[e + 1] - first, per = perColumn(size);
  const wide = Math.ceil(size / per), w = (p.x1[e] - p.x0[e]) / wide, k = i - first;
  return { x: p.x0[e] + Math.floor(k / per) * w, w, row: k % per };
}
// epochAt returns the first epoch that ends behind column x.
function epochAt(p, x) {
  let lo = 0, hi = p.epochs;
  while (lo < hi) { const m = (lo + hi) >> 1; if (p.x1[m] > x) hi = m; else lo = m + 1; }
  return lo;
}
const images = (at, i) => !G.links ? [] : at === 1 ? G.links[i] || [] : G.back[i] || [];
const other = at => 1 - at;

// ---- where things are on the canvas
const MINI = 20, TITLE = 26, RULER = 18, GAP = 8, LABEL = 18;
let panes = [];
function arrange() {
  const n = G.sides.length, mini = MINI * n + 12, side = beside && n === 2;
  // Rows are as high on both sides, and bytes too, so that both can be compared by eye.
  const sum = f => side ? Math.max(...G.sides.map(f)) : G.sides.reduce((t, p) => t + f(p), 0);
  const has = p => memory && p.s.scratch > 0 ? 1 : 0, some = sum(has) > 0;
  const room = H - mini - sum(p => TITLE + RULER + 8 + GAP + has(p) * LABEL);
  const rh = Math.max(5, Math.min(some ? 44 : 64, (some ? room * .55 : room) / sum(p => p.rows)));
  const left = Math.max(0, room - rh * sum(p => p.rows)), all = sum(p => has(p) * p.s.scratch) || 1, most = Math.max(...G.sides.map(p => has(p) * p.s.scratch)) || 1;
  const least = Math.min(40, left / n);
  let y = mini;
  panes = G.sides.map((p, at) => {
    const w = side ? (W - 1) / 2 : W, pane = { p, at, x: side ? at * (w + 1) : 0, y, w, rh, mini: { x: 0, y: 6 + at * MINI, w: W, h: MINI - 4 } };
    pane.cy = y + TITLE + RULER;
    pane.ch = rh * p.rows;
    pane.my = pane.cy + pane.ch + 8 + LABEL;
    pane.mh = has(p) ? Math.max(least, (left - (side ? 0 : least * sum(q => has(q) && left * q.s.scratch / all < least ? 1 : 0))) * p.s.scratch / (side ? most : all)) : 0;
    pane.h = side ? H - mini : TITLE + RULER + pane.ch + 8 + GAP + (pane.mh ? LABEL + pane.mh : 0);
    if (!side) y += pane.h;
    return pane;
  });
}
const sx = (pane, x) => { const c = cam(pane.at); return pane.x + (x - c.x) * c.s; };
const colAt = (pane, px) => { const c = cam(pane.at); return c.x + (px - pane.x) / c.s; };
function bound(at) {
  const c = cam(at), p = G.sides[linked() ? 0 : at], w = panes[linked() ? 0 : at].w;
  c.s = Math.max(Math.min(w / p.total, 60), Math.min(360, c.s));
  const over = Math.min(p.total, w / c.s) - 40 / c.s;
  c.x = Math.max(-Math.max(0, w / c.s - over - 0) * .0 - 8 / c.s, Math.min(p.total - over * .6, c.x));
  if (p.total * c.s <= w) c.x = -8 / c.s;
}
function zoom(at, factor, px) {
  const pane = panes[at], c = cam(at), x = colAt(pane, px);
  c.s *= factor;
  const p = G.sides[linked() ? 0 : at];
  c.s = Math.max(Math.min(pane.w / p.total, 60), Math.min(360, c.s));
  c.x = x - (px - pane.x) / c.s;
  bound(at); dirty = true;
}
function fit() {
  flight = null;
  for (const pane of panes) { const c = cam(pane.at); c.s = (pane.w - 16) / pane.p.total; c.x = -8 / c.s; bound(pane.at); }
  dirty = true;
}
function fly(at, x, s) {
  const c = cam(at);
  flight = flight || [];
  if (calm.matches) { c.x = x; c.s = s || c.s; bound(at); dirty = true; return; }
  flight = flight.filter(f => f.c !== c);
  flight.push({ c, at, t: performance.now(), x0: c.x, x1: x, s0: c.s, s1: s || c.s });
  dirty = true;
}
function show(at, i, always) {
  const pane = panes[at], b = boxOf(pane.p, i), c = cam(at);
  const l = (b.x - c.x) * c.s, r = l + b.w * c.s;
  const near = c.s * b.w < 14;
  if (!always && l > 40 && r < pane.w - 40) return;
  const s = near ? Math.max(c.s, 48) : c.s;
  fly(at, b.x + b.w / 2 - pane.w / 2 / s, s);
}

// ---- colours
function colours() {
  const css = getComputedStyle(document.documentElement), v = n => css.getPropertyValue(n).trim();
  C = { bg: v("--bg"), card: v("--card"), ink: v("--ink"), dim: v("--dim"), line: v("--line"), soft: v("--soft"), accent: v("--accent"), select: v("--select"), hit: v("--hit"), sans: v("--sans"),
    fam: [0, 1, 2, 3, 4, 5, 6, 7].map(i => v((heat ? "--h" : "--f") + i)), kind: ["", v("--raw"), v("--war"), v("--waw"), v("--any"), v("--any")] };
  C.tint = C.fam.map(c => mix(c, C.card, heat ? .5 : isDark() ? .30 : .17));
  C.pale = C.fam.map(c => mix(c, C.card, heat ? .8 : isDark() ? .5 : .45));
  C.text = "11px " + C.sans;
}
function mix(a, b, t) {
  const h = s => [1, 3, 5].map(i => parseInt(s.slice(i, i + 2), 16)), x = h(a), y = h(b);
  return "#" + x.map((v, i) => Math.round(v * t + y[i] * (1 - t)).toString(16).padStart(2, "0")).join("");
}
const isDark = () => theme ? theme === "dark" : dark.matches;
function retheme() {
  document.documentElement.classList.toggle("dark", isDark());
  colours();
  for (const g of prepared) if (g) for (const p of g.sides) p.picture = null;
  dirty = true;
}

// ---- drawing
const DASH = [[], [], [6, 4], [2, 3], [1, 4], [8, 3]];
// fam is the colour of a command: by the kind of its work, or by its modelled time.
const fam = (p, i) => heat ? p.heat[i] : p.s.family.charCodeAt(i) - 48;
function warm() {
  if (G.sides[0].heat) return;
  let lo = Infinity, hi = 0;
  for (const p of G.sides) for (const t of p.s.ns) if (t > 0) { lo = Math.min(lo, t); hi = Math.max(hi, t); }
  const span = Math.max(1e-9, Math.log(hi / lo));
  G.coldest = lo; G.hottest = hi;
  for (const p of G.sides) p.heat = Uint8Array.from(p.s.ns, t => t > 0 ? Math.min(7, Math.floor(8 * Math.log(t / lo) / span)) : 0);
}
function toggleHeat() { heat = !heat; press("heat", heat); if (heat) warm(); for (const p of G.sides) p.levels.clear(); retheme(); again(); }
// again fills the panel anew.
function again() { if (query) showHits(); else if (sel && sel.i !== undefined) showCommand(sel.side, sel.i); else if (sel) showEpoch(sel.side, sel.epoch); else overview(); }
// cut shortens a text to a width in pixels. Widths of whole texts are measured once.
const widths = new Map();
function cut(text, width) {
  let w = widths.get(text);
  if (w === undefined) { if (widths.size > 50000) widths.clear(); w = ctx.measureText(text).width; widths.set(text, w); }
  if (w <= width) return text;
  const n = Math.floor(text.length * (width - 8) / w);
  return n < 1 ? "" : text.slice(0, n) + "…";
}
function draw() {
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = C.bg; ctx.fillRect(0, 0, W, H);
  ctx.textBaseline = "middle";
  for (const pane of panes) drawPane(pane);
  if (G.sides.length === 2 && beside) { ctx.fillStyle = C.line; ctx.fillRect(panes[0].w, panes[0].y, 1, panes[0].h); }
  drawLinks();
  drawMini();
}
function clip(x, y, w, h) { ctx.save(); ctx.beginPath(); ctx.rect(x, y, w, h); ctx.clip(); }
function drawPane(pane) {
  const p = pane.p, c = cam(pane.at), x0 = c.x, x1 = c.x + pane.w / c.s;
  // title
  ctx.fillStyle = C.ink; ctx.font = "600 12.5px " + C.sans;
  const name = p.s.name, f = p.s.figures;
  ctx.fillText(name, pane.x + 10, pane.y + 14);
  const at = pane.x + 18 + ctx.measureText(name).width;
  ctx.font = "12px " + C.sans; ctx.fillStyle = C.dim;
  const what = plural(p.n, "command") + " in " + plural(p.epochs, "epoch") + " · " + bytes(p.s.scratch) + " scratch · " + micros(f[6]) + " modelled";
  ctx.fillText(what, at, pane.y + 14);
  if (pane.at === 0) drawLegend(pane, at + 20 + ctx.measureText(what).width);
  clip(pane.x, pane.y + TITLE, pane.w, pane.h - TITLE);
  ctx.fillStyle = C.card; ctx.fillRect(pane.x, pane.cy, pane.w, pane.ch + 8);
  if (pane.mh > 12) ctx.fillRect(pane.x, pane.my, pane.w, pane.mh);
  if (c.s >= 2.5) drawEpochs(pane, x0, x1); else drawFar(pane, x0, x1);
  if (pane.mh > 12) drawMemory(pane, x0, x1);
  drawWaits(pane);
  drawMarks(pane);
  ctx.restore();
}
// drawLegend names the colours at the right end of a title, if there is room.
function drawLegend(pane, from) {
  const names = heat ? [[0, micros(G.coldest)], [7, micros(G.hottest)]] : D.families.map((n, i) => [i, n]).filter(([i]) => used().has(i));
  ctx.font = "11px " + C.sans;
  let x = pane.x + pane.w - 10;
  for (const [, n] of names) x -= ctx.measureText(n).width + 25;
  if (x < from) return;
  for (const [i, n] of names) {
    ctx.fillStyle = C.fam[i]; box(x + 12, pane.y + 10, 9, 9, 3); ctx.fill();
    ctx.fillStyle = C.dim; ctx.fillText(n, x + 25, pane.y + 14.5);
    x += ctx.measureText(n).width + 25;
  }
}
function used() {
  if (G.used) return G.used;
  const u = new Set();
  for (const p of G.sides) for (let i = 0; i < p.n && u.size < 8; i++) u.add(p.s.family.charCodeAt(i) - 48);
  return G.used = u;
}
function drawEpochs(pane, x0, x1) {
  const p = pane.p, s = p.s, c = cam(pane.at), rh = pane.rh;
  const e0 = epochAt(p, x0);
  const every = Math.max(1, Math.ceil(46 / c.s));
  const bottom = pane.cy + pane.ch + 8;
  ctx.font = "10.5px " + C.sans;
  for (let e = e0; e < p.epochs && p.x0[e] < x1; e++) {
    const l = sx(pane, p.x0[e]), w = (p.x1[e] - p.x0[e]) * c.s;
    if (e % 2 && c.s > 5) { ctx.fillStyle = C.soft; ctx.globalAlpha = .55; ctx.fillRect(l, pane.cy, w, bottom - pane.cy); ctx.globalAlpha = 1; }
    if (w > 30 || e % every === 0) {
      const on = hover && hover.epoch === e && hover.side === pane.at || sel && sel.epoch === e && sel.side === pane.at;
      ctx.fillStyle = on ? C.accent : C.dim;
      ctx.fillText(String(e), l + 3, pane.cy - 9);
    }
    if (c.s > 5 && s.ends[e] === "C") { ctx.fillStyle = C.ink; ctx.fillRect(l + w - 1.5, pane.cy - 4, 3, bottom - pane.cy + 4); }
    else if (c.s > 8) { ctx.fillStyle = C.line; ctx.fillRect(l + w - .5, pane.cy, 1, bottom - pane.cy); }
  }
  const full = c.s < 13;
  ctx.font = C.text;
  const dim = query !== "" && hits.length > 0;
  for (let e = e0; e < p.epochs && p.x0[e] < x1; e++) {
    const first = s.first[e], size = s.first[e + 1] - first, per = perColumn(size), wide = Math.ceil(size / per);
    const w = (p.x1[e] - p.x0[e]) * c.s / wide;
    // Of an epoch that is wider than the window, only the columns that can be seen.
    const k0 = Math.max(0, Math.floor((x0 - p.x0[e]) * c.s / w)), k1 = Math.min(wide, Math.ceil((x1 - p.x0[e]) * c.s / w));
    for (let k = k0 * per; k < Math.min(size, k1 * per); k++) {
      const i = first + k, l = sx(pane, p.x0[e]) + Math.floor(k / per) * w, t = pane.cy + 4 + (k % per) * rh, h = rh - 3;
      const m = c.s > 20 ? 3 : c.s > 6 ? 1 : 0, f = fam(p, i);
      if (dim && !hitSet[pane.at].has(i)) ctx.globalAlpha = .28;
      if (full && w < 30) { ctx.fillStyle = C.fam[f]; ctx.fillRect(l + m, t, Math.max(1, w - 2 * m), h); ctx.globalAlpha = 1; continue; }
      box(l + m, t, w - 2 * m, h, 4);
      ctx.fillStyle = C.tint[f]; ctx.fill();
      ctx.fillStyle = C.fam[f];
      ctx.fillRect(l + m, t + 3, 3, h - 6);
      stripe(pane, i, l + m + 6, t + h - 5, w - 2 * m - 12);
      if (w > 26 && rh > 11) {
        const x = l + m + 8, room = w - 2 * m - 12, label = T[s.label[i]];
        // Texts stay in sight while their box is wider than the window.
        const shift = Math.max(0, Math.min(pane.x + 6 - x, room - 40));
        ctx.fillStyle = C.ink;
        ctx.fillText(cut(T[s.op[i]], room - shift), x + shift, rh > 30 ? t + 11 : t + h / 2);
        if (rh > 30 && label) { ctx.fillStyle = C.dim; ctx.fillText(cut(label, room - shift), x + shift, t + 25); }
      }
      ctx.globalAlpha = 1;
    }
  }
}
// stripe shows of what a command was made: a piece for each command, in its colour.
function stripe(pane, i, x, y, w) {
  if (pane.at !== 1 || w < 6 || pane.rh < 26) return;
  const js = images(1, i), n = js.length;
  if (n < 2) return;
  const q = G.sides[0], step = w / n;
  for (let k = 0; k < n; k++) {
    if (step < 1 && k % Math.ceil(1 / step)) continue;
    ctx.fillStyle = C.fam[fam(q, js[k])];
    ctx.fillRect(x + k * step, y, Math.max(1, step - 1), 3);
  }
}
function box(x, y, w, h, r) { ctx.beginPath(); if (w > 2 * r && h > 2 * r) ctx.roundRect(x, y, w, h, r); else ctx.rect(x, y, Math.max(1, w), h); }
// level returns how much of each family is in each bucket of 2^k columns.
function level(p, k) {
  let l = p.levels.get(k);
  if (l) return l;
  const size = 2 ** k, n = Math.ceil(p.total / size) + 1;
  l = new Float32Array(n * 8);
  for (let e = 0; e < p.epochs; e++) {
    const a = p.x0[e], b = p.x1[e], b0 = Math.floor(a / size), b1 = Math.floor((b - 1e-6) / size), cols = b - a;
    const count = new Float32Array(8);
    for (let i = p.s.first[e]; i < p.s.first[e + 1]; i++) count[fam(p, i)]++;
    const wide = Math.ceil((p.s.first[e + 1] - p.s.first[e]) / MAX_ROWS);
    for (let q = b0; q <= b1; q++) {
      const share = (Math.min(b, (q + 1) * size) - Math.max(a, q * size)) / cols * (cols / wide) / size;
      for (let f = 0; f < 8; f++) if (count[f]) l[q * 8 + f] += count[f] * share;
    }
  }
  p.levels.set(k, l);
  return l;
}
function bars(p, x0, x1, px, y, w, h, rows) {
  const per = w / (x1 - x0), k = Math.max(0, Math.ceil(Math.log2(1.5 / per))), size = 2 ** k, l = level(p, k), bw = size * per;
  for (let q = Math.max(0, Math.floor(x0 / size)); q * size < x1 && q * 8 < l.length; q++) {
    let at = y;
    const x = px + (q * size - x0) * per;
    for (let f = 0; f < 8; f++) {
      const v = l[q * 8 + f];
      if (!v) continue;
      const hh = v / rows * h;
      ctx.fillStyle = C.fam[f]; ctx.fillRect(x, at, bw + .3, hh);
      at += hh;
    }
  }
}
function drawFar(pane, x0, x1) {
  const p = pane.p, c = cam(pane.at);
  bars(p, x0, x1, pane.x, pane.cy + 4, pane.w, pane.ch, p.rows);
  const step = Math.pow(10, Math.ceil(Math.log10(70 / c.s)));
  ctx.font = "10.5px " + C.sans; ctx.fillStyle = C.dim;
  let last = -1e9;
  for (let e = epochAt(p, x0); e < p.epochs && p.x0[e] < x1;) {
    const l = sx(pane, p.x0[e]);
    if (l - last > 50) { ctx.fillText(String(e), l + 3, pane.cy - 9); last = l; }
    e = Math.max(e + 1, (Math.floor(e / step) + 1) * step);
  }
  if (query !== "" && hitSet[pane.at].size) {
    ctx.fillStyle = C.accent;
    let seen = -2;
    for (const i of hits.byPlace[pane.at]) {
      const b = boxOf(p, i);
      if (b.x < x0 || b.x > x1) continue;
      const l = Math.round(sx(pane, b.x));
      if (l > seen + 1) { ctx.fillRect(l, pane.cy + pane.ch + 6, 2, 6); seen = l; }
    }
  }
}
// ---- scratch memory: time from left to right, addresses from top to bottom
const BLOCK = 256;
function valueIndex(p) {
  if (p.index) return p.index;
  const v = p.s.values, n = v.length / 3, R = p.s.ranges;
  const x0 = new Float64Array(n), x1 = new Float64Array(n), y0 = new Float64Array(n), y1 = new Float64Array(n), order = new Int32Array(n);
  for (let k = 0; k < n; k++) {
    const r = 3 * v[3 * k + 2], base = p.mems[R[r]][4], a = boxOf(p, v[3 * k]), b = boxOf(p, v[3 * k] + v[3 * k + 1]);
    x0[k] = a.x; x1[k] = Math.max(b.x + b.w, a.x + a.w); y0[k] = base + R[r + 1]; y1[k] = base + R[r + 2]; order[k] = k;
  }
  order.sort((a, b) => x0[a] - x0[b] || a - b);
  const blocks = [];
  for (let b = 0; b < n; b += BLOCK) {
    let lo = Infinity, hi = 0;
    for (let k = b; k < Math.min(n, b + BLOCK); k++) { lo = Math.min(lo, x0[order[k]]); hi = Math.max(hi, x1[order[k]]); }
    blocks.push([lo, hi]);
  }
  return p.index = { n, x0, x1, y0, y1, order, blocks };
}
function eachValue(p, a, b, f) {
  const ix = valueIndex(p);
  for (let k = 0; k < ix.blocks.length; k++) {
    const [lo, hi] = ix.blocks[k];
    if (lo > b) break;
    if (hi < a) continue;
    for (let q = k * BLOCK; q < Math.min(ix.n, (k + 1) * BLOCK); q++) { const v = ix.order[q]; if (ix.x0[v] <= b && ix.x1[v] >= a && f(v) === false) return; }
  }
}
// picture returns the values in a part of the columns, drawn once: number k of the parts of PART
// columns, or all of them coarsely where k is −1.
const PART = 2048;
function picture(p, k) {
  p.picture = p.picture || new Map();
  let cv = p.picture.get(k);
  if (cv) return cv;
  if (p.picture.size > 8) p.picture.delete([...p.picture.keys()].find(q => q >= 0));
  const from = k < 0 ? 0 : k * PART, cols = k < 0 ? p.total : PART;
  cv = document.createElement("canvas");
  cv.width = k < 0 ? Math.max(1, Math.min(4096, Math.ceil(p.total * 2))) : 2 * PART; cv.height = 256;
  const g = cv.getContext("2d"), ix = valueIndex(p), fx = cv.width / cols, fy = cv.height / Math.max(1, p.s.scratch);
  eachValue(p, from, from + cols, v => {
    g.fillStyle = C.pale[fam(p, p.s.values[3 * v])];
    g.fillRect((ix.x0[v] - from) * fx, ix.y0[v] * fy, Math.max(1, (ix.x1[v] - ix.x0[v]) * fx), Math.max(1, (ix.y1[v] - ix.y0[v]) * fy));
  });
  p.picture.set(k, cv);
  return cv;
}
function drawMemory(pane, x0, x1) {
  const p = pane.p, c = cam(pane.at), top = pane.my, h = pane.mh, all = p.s.scratch;
  const y = b => top + b / all * h;
  let count = 0;
  if (c.s >= 2.5) eachValue(p, x0, x1, () => ++count < 3000);
  ctx.save(); ctx.beginPath(); ctx.rect(pane.x, top, pane.w, h); ctx.clip();
  if (c.s < 2.5 || count >= 3000) {
    const few = (x1 - x0) / PART < 5;
    for (let k = few ? Math.max(0, Math.floor(x0 / PART)) : -1; k < 0 || k * PART < Math.min(x1, p.total); k++) {
      const cv = picture(p, k), from = k < 0 ? 0 : k * PART, cols = k < 0 ? p.total : PART, a = Math.max(x0, from), b = Math.min(x1, from + cols), f = cv.width / cols;
      if (b > a) ctx.drawImage(cv, (a - from) * f, 0, (b - a) * f, cv.height, sx(pane, a), top, (b - a) * c.s, h);
      if (k < 0) break;
    }
  } else {
    const ix = valueIndex(p);
    ctx.font = C.text;
    eachValue(p, x0, x1, v => {
      const i = p.s.values[3 * v], l = sx(pane, ix.x0[v]), w = (ix.x1[v] - ix.x0[v]) * c.s, t = y(ix.y0[v]), hh = Math.max(1, y(ix.y1[v]) - t);
      const on = sel && sel.side === pane.at && (sel.i === i) || hover && hover.side === pane.at && hover.value === v;
      ctx.fillStyle = on ? C.fam[fam(p, i)] : C.pale[fam(p, i)];
      ctx.fillRect(l + 1, t, Math.max(1, w - 2), Math.max(1, hh - 1));
      const x = Math.max(l, pane.x) + 6, room = l + w - 6 - x;
      if (hh > 11 && room > 36) { ctx.fillStyle = on ? C.card : C.ink; ctx.fillText(cut("#" + p.s.id[i] + " " + T[p.s.op[i]], room), x, t + Math.min(hh / 2, 10)); }
    });
  }
  ctx.restore();
  ctx.font = "10.5px " + C.sans; ctx.fillStyle = C.dim;
  ctx.fillText("scratch memory: time → · address ↓ · " + bytes(p.s.scratch) + (p.s.known ? "" : " · commands of unknown effects may read more"), pane.x + 10, top - 9);
}
// ---- what belongs to the selected command
function each(from, p, f, depth) { // commands behind a node of the order: −1 and less are joins, which are looked through
  if (from >= 0) return f(from);
  const j = p.s.joins[-1 - from];
  if (!j || depth > 6) return;
  for (let k = 1; k < j.length && k < 65; k++) each(j[k], p, f, (depth || 0) + 1);
}
const sourceOf = (i, w, k) => w[k + 1] & 8 ? -1 - w[k] : i - w[k];
function reasons(p, i) {
  const w = p.s.waits[i], out = [];
  for (let k = 0; k + 2 < w.length; k += 3) out.push({ from: sourceOf(i, w, k), kind: w[k + 1] & 7, range: w[k + 2] });
  out.more = w.length % 3 ? w[w.length - 1] : 0;
  return out;
}
// waiting returns, by command or join, who waits for it; made once.
function waiting(p) {
  if (p.waiting) return p.waiting;
  const by = new Map(), add = (k, v) => { const l = by.get(k); if (!l) by.set(k, [v]); else if (l.length < 64) l.push(v); };
  p.s.waits.forEach((w, i) => { for (let k = 0; k + 2 < w.length; k += 3) add(sourceOf(i, w, k), { to: i, kind: w[k + 1] & 7, range: w[k + 2] }); });
  p.s.joins.forEach((j, at) => { for (let k = 1; k < j.length; k++) add(j[k], { join: -1 - at }); });
  return p.waiting = by;
}
function followers(p, i) {
  const by = waiting(p), out = [], seen = new Set();
  (function walk(node, depth) {
    for (const r of by.get(node) || []) {
      if (out.length >= 64) return;
      if (r.join !== undefined) { if (!seen.has(r.join) && depth < 6) { seen.add(r.join); walk(r.join, depth + 1); } }
      else out.push(r);
    }
  })(i, 0);
  return out;
}
function middle(pane, i) {
  const b = boxOf(pane.p, i), c = cam(pane.at);
  return { l: sx(pane, b.x) + 2, r: sx(pane, b.x + b.w) - 2, y: pane.cy + 4 + b.row * pane.rh + (pane.rh - 3) / 2, t: pane.cy + 4 + b.row * pane.rh, h: pane.rh - 3, w: b.w * c.s };
}
// curve draws an arrow under the boxes, from the command that is waited for to the one that waits.
function curve(pane, a, b, kind, strong) {
  ctx.strokeStyle = ctx.fillStyle = C.kind[kind]; ctx.lineWidth = strong ? 2 : 1.25; ctx.setLineDash(DASH[kind]); ctx.globalAlpha = strong ? 1 : .65;
  const x0 = Math.max(a.l + 4, a.r - 12), x1 = Math.min(b.r - 4, b.l + 12 + kind * 3), y0 = a.t + a.h + 1, y1 = b.t + b.h + 1;
  const dip = Math.max(y0, y1) + Math.min(34, 13 + Math.abs(x1 - x0) * .06) + kind * 2;
  ctx.beginPath(); ctx.moveTo(x0, y0); ctx.bezierCurveTo(x0 + 4, dip, x1 - 4, dip, x1, y1 + 5); ctx.stroke();
  ctx.setLineDash([]);
  ctx.beginPath(); ctx.moveTo(x1, y1); ctx.lineTo(x1 - 4, y1 + 7); ctx.lineTo(x1 + 4, y1 + 7); ctx.fill();
  ctx.globalAlpha = 1;
}
function drawWaits(pane) {
  if (!sel || sel.i === undefined || sel.side !== pane.at) return;
  const p = pane.p, me = middle(pane, sel.i);
  for (const r of followers(p, sel.i)) curve(pane, me, middle(pane, r.to), r.kind, false);
  for (const r of reasons(p, sel.i)) each(r.from, p, j => curve(pane, middle(pane, j), me, r.kind, true));
}
function ring(pane, i, colour, width, dash) {
  const m = middle(pane, i);
  ctx.strokeStyle = colour; ctx.lineWidth = width; ctx.setLineDash(dash || []);
  box(m.l - 1, m.t - 1.5, Math.max(3, m.r - m.l + 2), m.h + 3, 5); ctx.stroke(); ctx.setLineDash([]);
}
function drawMarks(pane) {
  if (query !== "" && cam(pane.at).s >= 2.5) {
    const p = pane.p, x0 = cam(pane.at).x, x1 = x0 + pane.w / cam(pane.at).s;
    for (const i of hits.byPlace ? hits.byPlace[pane.at] : []) { const e = p.epoch[i]; if (p.x1[e] >= x0 && p.x0[e] <= x1) ring(pane, i, C.accent, 1.5); }
  }
  if (hover && hover.i !== undefined) {
    if (hover.side === pane.at) ring(pane, hover.i, C.dim, 1.5);
    else for (const j of images(hover.side, hover.i).slice(0, 256)) ring(pane, j, C.dim, 1.5, [4, 3]);
  }
  if (!sel || sel.i === undefined) return;
  if (sel.side === pane.at) ring(pane, sel.i, C.select, 2.5);
  else for (const j of images(sel.side, sel.i).slice(0, 256)) ring(pane, j, C.select, 2, [5, 3]);
}
// drawLinks joins a command with what it became or was made of.
function drawLinks() {
  if (panes.length < 2) return;
  for (const [at, strong] of [[hover, false], [sel, true]]) {
    if (!at || at.i === undefined) continue;
    // Each command of the recording leads to its share of the box that it became part of.
    const pairs = at.side === 0 ? images(0, at.i).map(j => [at.i, j]) : images(1, at.i).slice(0, 256).map(j => [j, at.i]);
    for (const [j, i] of pairs) {
      const u = middle(panes[0], j), v = middle(panes[1], i), js = images(1, i), k = js.indexOf(j), step = (v.r - v.l) / js.length;
      if (!beside && js.length > 1) { v.r = v.l + (k + 1) * step; v.l += k * step; }
      clip(0, panes[0].y, W, H - panes[0].y);
      ctx.fillStyle = C.select; ctx.globalAlpha = strong ? .10 : .06;
      ctx.beginPath();
      if (beside) {
        const m = panes[1].x;
        ctx.moveTo(u.r, u.t); ctx.bezierCurveTo(m, u.t, m, v.t, v.l, v.t); ctx.lineTo(v.l, v.t + v.h); ctx.bezierCurveTo(m, v.t + v.h, m, u.t + u.h, u.r, u.t + u.h);
      } else {
        const y0 = u.t + u.h, y1 = v.t, m = (y0 + y1) / 2;
        ctx.moveTo(u.l, y0); ctx.bezierCurveTo(u.l, m, v.l, m, v.l, y1); ctx.lineTo(v.r, y1); ctx.bezierCurveTo(v.r, m, u.r, m, u.r, y0);
      }
      ctx.fill(); ctx.globalAlpha = 1;
      ctx.restore();
    }
  }
}
function drawMini() {
  for (const pane of panes) {
    const m = pane.mini, p = pane.p, c = cam(pane.at);
    ctx.fillStyle = C.soft; ctx.fillRect(m.x, m.y, m.w, m.h);
    bars(p, 0, p.total, m.x, m.y + 1, m.w, m.h - 2, p.rows);
    const l = c.x / p.total * m.w, w = pane.w / c.s / p.total * m.w;
    ctx.fillStyle = C.bg; ctx.globalAlpha = .55;
    ctx.fillRect(0, m.y, Math.max(0, l), m.h); ctx.fillRect(l + w, m.y, m.w, m.h); ctx.globalAlpha = 1;
    ctx.strokeStyle = C.ink; ctx.lineWidth = 1.5; ctx.strokeRect(Math.max(1, l), m.y + .5, Math.min(w, m.w - 2), m.h - 1);
    if (sel && sel.i !== undefined) {
      ctx.fillStyle = C.select;
      for (const i of sel.side === pane.at ? [sel.i] : images(sel.side, sel.i).slice(0, 64)) ctx.fillRect(boxOf(p, i).x / p.total * m.w - 1, m.y - 3, 3, m.h + 5);
    }
  }
}

// ---- the loop
function frame(now) {
  requestAnimationFrame(frame);
  if (flight) {
    flight = flight.filter(f => {
      const t = Math.min(1, (now - f.t) / 180), q = t * (2 - t);
      f.c.x = f.x0 + (f.x1 - f.x0) * q; f.c.s = f.s0 * Math.pow(f.s1 / f.s0, q);
      if (f.s0 !== f.s1) { const w = panes[f.at].w; f.c.x = (f.x0 + w / 2 / f.s0) + ((f.x1 + w / 2 / f.s1) - (f.x0 + w / 2 / f.s0)) * q - w / 2 / f.c.s; }
      if (t === 1) { f.c.x = f.x1; f.c.s = f.s1; bound(f.at); }
      return t < 1;
    });
    if (!flight.length) flight = null;
    dirty = true;
  }
  if (!dirty) return;
  dirty = false;
  draw();
  frames++;
}
function resize() {
  W = Math.max(50, stage.clientWidth); H = Math.max(50, stage.clientHeight); ratio = before ? 2 : window.devicePixelRatio || 1;
  canvas.width = Math.round(W * ratio); canvas.height = Math.round(H * ratio);
  arrange(); panes.forEach(p => bound(p.at)); dirty = true;
}

// ---- the panel
const describe = (p, i) => "#" + p.s.id[i] + " " + T[p.s.op[i]];
function dot(p, i) { const d = el("span", "dot"); d.style.background = "var(--" + (heat ? "h" : "f") + fam(p, i) + ")"; return d; }
function chip(at, i, text) {
  const p = G.sides[at], b = el("button", "chip", dot(p, i), el("span", "", text || describe(p, i)));
  b.type = "button"; b.title = describe(p, i);
  b.addEventListener("click", () => select(at, i, true));
  return b;
}
function chips(at, list, most) {
  const d = el("div");
  for (const i of list.slice(0, most || 24)) d.append(chip(at, i));
  if (list.length > (most || 24)) {
    const more = el("button", "link", "and " + group(list.length - (most || 24)) + " more"); more.type = "button";
    more.addEventListener("click", () => { more.remove(); for (const i of list.slice(most || 24, 600)) d.append(chip(at, i)); });
    d.append(more);
  }
  return d;
}
// prose makes a text whose #12 lead to commands.
function prose(text, cls) {
  const out = el("span", cls);
  let last = 0;
  for (const m of text.matchAll(/#(\d{1,10})\b/g)) {
    const to = byID(+m[1]);
    if (!to) continue;
    out.append(text.slice(last, m.index));
    const b = el("button", "link", m[0]); b.type = "button";
    b.addEventListener("click", () => select(to.side, to.i, true));
    out.append(b);
    last = m.index + m[0].length;
  }
  out.append(text.slice(last));
  return out;
}
function byID(id, first) {
  if (!G.ids) G.ids = G.sides.map(p => { const m = new Map(); for (let i = 0; i < p.n; i++) m.set(p.s.id[i], i); return m; });
  const order = first === 1 || (first === undefined && sel && sel.side === 1) ? [1, 0] : [0, 1];
  for (const side of order) if (G.ids[side]) { const i = G.ids[side].get(id); if (i !== undefined) return { side, i }; }
  return null;
}
function section(title, ...children) { panel.append(el("h3", "", title), ...children); }
function memoryName(p, m) { return m < 0 ? "" : "%" + T[p.mems[m][0]]; }
function range(lo, end) { return "[" + group(lo) + " : " + group(end) + "]"; }
function swatch(kind) {
  const b = el("span", "why " + KINDS[kind], KINDS[kind]); b.title = WHY[KINDS[kind]];
  return b;
}
function waitRow(p, at, from, r, self) {
  const who = el("td", "");
  if (from >= 0) who.append(chip(at, from));
  else {
    const j = p.s.joins[-1 - from] || [0], members = [];
    each(from, p, k => members.push(k));
    who.append(el("span", "dim", plural(j[0], "command") + " "), chips(at, members, 6));
  }
  if (r.range >= 0) {
    const [m, lo, end] = p.s.ranges.slice(3 * r.range, 3 * r.range + 3), d = el("div", "mono", memoryName(p, m) + range(lo, end));
    d.append(el("span", "dim", "  " + bytes(end - lo))); who.append(d);
  }
  return el("tr", "", el("td", "k", swatch(r.kind)), who);
}
function changesOf(at, i) {
  if (!G.changes) {
    const by = [new Map(), new Map()];
    (G.g.changes || []).forEach((c, k) => { for (const side of [0, 1]) for (const j of c[2 + side]) { const l = by[side].get(j); if (l) l.push(k); else by[side].set(j, [k]); } });
    G.changes = by;
  }
  return (G.changes[at].get(i) || []).map(k => G.g.changes[k]);
}
function remarksOf(at, i) {
  if (!G.remarks) {
    const by = new Map(), add = (id, k) => { const l = by.get(id); if (!l) by.set(id, [k]); else if (l[l.length - 1] !== k) l.push(k); };
    (G.g.remarks || []).forEach((r, k) => {
      if (r[1] >= 0) add(r[1], k);
      for (const m of T[r[4]].matchAll(/#(\d{1,10})\b/g)) add(+m[1], k);
    });
    G.remarks = by;
  }
  const ids = new Set([G.sides[at].s.id[i]]);
  for (const j of images(at, i)) if (at === 0) ids.add(G.sides[1].s.id[j]);
  const seen = new Set();
  for (const id of ids) for (const k of G.remarks.get(id) || []) seen.add(k);
  return [...seen].sort((a, b) => a - b).map(k => G.g.remarks[k]);
}
function naming(id) { const to = byID(id, 1); return to ? describe(G.sides[to.side], to.i) : "#" + id; }
function naming(id) { const to = byID(id, 1); return to ? describe(G.sides[to.side], to.i) : "#" + id; }
// remark writes what a pass said, with the command that it said it of unless that is id.
function remark(r, id) {
  const d = el("div", "said " + (r[2] ? "done" : "not")), of = r[1] < 0 ? T[r[3]] : r[1] === id ? "" : naming(r[1]);
  d.append(el("b", "", G.g.rows[r[0] + 1].pass + (r[2] ? "" : ": not done") + (of ? " " : ": ")));
  if (of) d.append(prose(of, "dim"), ": ");
  d.append(prose(T[r[4]]));
  return d;
}
function operandRow(p, name, access, v, mems) {
  const what = el("td", "mono"), size = el("td", "n dim");
  let m = -1, lo = 0, len = 0;
  if (typeof v === "number" && v >= 0) { m = v; len = mems[m][2]; }
  else if (Array.isArray(v)) { [m, lo, len] = v.length === 1 ? p.s.ranges.slice(3 * v[0], 3 * v[0] + 3) : v; len -= lo; }
  if (m < 0) { what.append(v === -1 ? "not bound" : T[-1 - v]); if (v === -1) what.className = "dim"; }
  else if (Array.isArray(v) && v.length === 3) what.append(memoryName(p, m) + "[" + T[v[1]] + " : " + T[v[2]] + "]");
  else { what.append(memoryName(p, m) + range(lo, lo + len)); size.append(bytes(len)); }
  if (m >= 0) what.append(el("div", "dim", MEMS[mems[m][1]] + (T[mems[m][3]] ? " " + T[mems[m][3]] : "")));
  const key = el("td", "k", name, el("div", "dim", ACCESS[access]));
  return el("tr", "", key, what, size);
}
function facts(rows) {
  const t = el("table");
  for (const [k, v] of rows) if (v !== "" && v !== null && v !== undefined) { const c = el("td", ""); c.append(v); t.append(el("tr", "", el("td", "k", k), c)); }
  return t;
}
function head(tag, title, dim) {
  panel.replaceChildren();
  const back = el("button", "link", "overview"); back.type = "button"; back.addEventListener("click", clear);
  panel.append(el("div", "top", el("span", "tag", tag), el("span", "space"), back), el("h2", "", ...title.split(/(?<=[+_])/).flatMap(x => [x, el("wbr")])));
  if (dim) panel.append(el("p", "dim", dim));
  panel.scrollTop = 0;
}
function showCommand(at, i) {
  const p = G.sides[at], s = p.s, k = s.kernel[i], e = p.epoch[i], mems = p.mems;
  head(s.name, describe(p, i), T[s.label[i]] && "“" + T[s.label[i]] + "”");
  const kinds = { d: "dispatch", c: "copy", f: "fill", r: "carry to the next replay" };
  const ep = el("button", "link", "epoch " + e); ep.type = "button"; ep.addEventListener("click", () => selectEpoch(at, e));
  const kernel = k >= 0 ? el("span", "mono", T[s.kernels[k][1]]) : null;
  panel.append(facts([["what", kinds[s.kind[i]]], ["kernel", kernel], ["from", k >= 0 && T[s.kernels[k][2]] !== "builtin" ? T[s.kernels[k][2]] : ""], ["grid", T[s.grid[i]]],
    ["in", ep], ["modelled", s.ns[i] ? micros(s.ns[i]) + " alone, " + bytes(s.bytes[i]) + " moved" : ""]]));
  if (G.sides.length === 2) {
    const js = images(at, i);
    if (at === 0) {
      const one = js.length === 1 && images(1, js[0]).length === 1;
      section(js.length === 0 ? "Removed" : one ? "Is still" : "Fused into", js.length ? chips(1, js) : el("p", "", "No command of the optimized graph stands for it."));
      if (js.length && !one) section("Together with", chips(0, [...new Set(js.flatMap(j => images(1, j)))].filter(j => j !== i).slice(0, 600)));
    } else section(js.length > 1 ? "Made of " + js.length : js.length ? "Is" : "New", js.length ? chips(0, js) : el("p", "", "It stands for no command of the recording."));
    if (G.g.proof) section("Proof", proofLine(at, i, js));
  }
  const rs = reasons(p, i);
  const wt = el("table", "waits");
  for (const r of rs) wt.append(waitRow(p, at, r.from, r, i));
  section("Must wait for", rs.length ? wt : el("p", "dim", "nothing in this replay"));
  if (rs.more) panel.append(el("p", "dim", "and " + plural(rs.more, "reason") + " more"));
  const fs = followers(p, i);
  if (fs.length) {
    const ft = el("table", "waits");
    for (const r of fs.slice(0, 12)) ft.append(waitRow(p, at, r.to, r, i));
    section("Waited for by", ft);
    if (fs.length > 12) panel.append(el("p", "dim", "and " + (fs.length >= 64 ? "at least " : "") + plural(fs.length - 12, "command") + " more"));
  }
  const said = remarksOf(at, i), changed = changesOf(at, i);
  if (said.length || changed.length) {
    section("What was done, and what was not");
    for (const r of said.slice(0, 40)) panel.append(remark(r, s.id[i]));
    if (said.length > 40) panel.append(el("p", "dim", "and " + plural(said.length - 40, "remark") + " more"));
    for (const c of changed.slice(0, 40)) { const d = el("div", "said done"); d.append(el("b", "", T[c[0]] + ": "), prose(T[c[1]])); panel.append(d); }
  }
  const ops = el("table", "ops"), args = s.args[i];
  if (k >= 0) { const a = s.kernels[k][3]; args.forEach((v, q) => ops.append(operandRow(p, T[a[2 * q]], a[2 * q + 1], v, mems))); }
  else if (s.kind[i] === "f") { ops.append(operandRow(p, "to", 1, args[0], mems), operandRow(p, "byte", 3, args[1], mems)); }
  else { ops.append(operandRow(p, "to", 1, args[0], mems), operandRow(p, "from", 0, args[1], mems)); }
  if (args.length) section("Operands", ops);
  if (!p.notes) { p.notes = new Map(); for (let q = 0; q < s.notes.length; q += 2) p.notes.set(s.notes[q], s.notes[q + 1]); }
  const ns = p.notes.get(i);
  if (ns) section("What it touches", ...ns.map(n => el("p", "mono", T[n])));
}
const code = (at, i) => { const s = G.sides[at].s; return s.kernel[i] < 0 ? s.kind[i] : T[s.kernels[s.kernel[i]][1]]; };
function proofLine(at, i, js) {
  const pr = G.g.proof, d = el("div", "proof" + (pr.verdict === "proved" ? "" : " no"));
  if (!G.terms) G.terms = new Set(pr.terms);
  const after = at === 1 ? i : js[0], from = after === undefined ? [] : images(1, after);
  let text = "";
  if (pr.verdict !== "proved") text = pr.text;
  else if (after === undefined) text = "The outputs and states are proved equal without it.";
  else if (G.terms.has(after)) text = "Proved by terms: #" + G.sides[1].s.id[after] + " computes " + (pr.rewrites ? "" : "to the bit ") + "what " + some(from) + (from.length === 1 ? " computes" : " compute") + ", from the same values.";
  else if (from.length > 1 || from.length && code(1, after) !== code(0, from[0])) text = "Proved: what others see of #" + G.sides[1].s.id[after] + " are the values of " + some(from) + ".";
  else if (from.length) text = "Proved: #" + G.sides[1].s.id[after] + " has the arguments of " + some(from) + " of the recording, and reads the same values.";
  else text = "Proved: no output or state differs because of it.";
  d.append(prose(text));
  return d;
}
function some(js) { const ids = js.map(j => "#" + G.sides[0].s.id[j]); return ids.length > 12 ? ids.slice(0, 10).join(", ") + " and " + (ids.length - 10) + " more" : ids.length > 1 ? ids.slice(0, -1).join(", ") + " and " + ids[ids.length - 1] : ids[0]; }
function showEpoch(at, e) {
  const p = G.sides[at], s = p.s, a = s.first[e], b = s.first[e + 1];
  head(s.name, "Epoch " + group(e), plural(b - a, "command") + " that may run concurrently" + (ENDS[s.ends[e]] ? "; " + ENDS[s.ends[e]] : ""));
  let moved = 0, longest = 0;
  for (let i = a; i < b; i++) { moved += s.bytes[i]; longest = Math.max(longest, s.ns[i]); }
  panel.append(facts([["moved", bytes(moved)], ["longest", micros(longest) + " alone, modelled"]]));
  const list = []; for (let i = a; i < Math.min(b, a + 600); i++) list.push(i);
  section("Commands", chips(at, list, 40));
  if (e > 0) {
    const t = el("table", "waits"); let n = 0;
    for (let i = a; i < b && n < 16; i++) for (const r of reasons(p, i)) {
      let near = false; each(r.from, p, j => { near = near || p.epoch[j] === e - 1; });
      if (!near || n >= 16) continue;
      n++;
      const row = waitRow(p, at, r.from, r, i); row.lastChild.append(el("div", "dim", "before"), chip(at, i)); t.append(row);
    }
    section("Why it is not one with epoch " + group(e - 1), n ? t : el("p", "dim", "No command of it waits for one of the epoch before."));
  }
}
function tableOfPasses() {
  const t = el("table"), h = el("tr");
  for (const [k, n] of [["pass", ""], ["disp.", "n"], ["barr.", "n"], ["scratch", "n"], ["modelled", "n"]]) h.append(el("th", n, k));
  t.append(el("thead", "", h));
  const body = el("tbody");
  let last = null;
  for (const r of G.g.rows) {
    const f = r.figures, tr = el("tr"), c = (i, f2) => { const d = el("td", "n" + (last && last[i] === f[i] ? " dim" : ""), f2(f[i])); return d; };
    tr.append(el("td", "", r.pass + (r.undone ? " (undone)" : "")), c(0, group), c(1, group), c(5, bytes), c(6, micros));
    if (r.undone) tr.title = r.undone;
    body.append(tr); last = f;
  }
  t.append(body);
  return t;
}
function overview() {
  const g = G.g;
  panel.replaceChildren();
  panel.append(el("h2", "", g.name));
  if (g.sides.length === 2) {
    panel.append(prose(g.differs, "dim"));
    section("Proof");
    const d = el("div", "proof" + (g.proof.verdict === "proved" ? "" : " no"), g.proof.text); panel.append(d);
    for (const a of g.proof.assumptions || []) panel.append(el("p", "dim", "given that " + a));
    for (const a of g.proof.rewrites || []) panel.append(el("p", "dim", "rewrite " + a));
    section("Passes", tableOfPasses());
    if (g.fused && g.fused !== "nothing") {
      const t = el("table");
      for (const x of g.fused.split(", ")) { const m = x.match(/^(\d+) (.*)$/); t.append(m ? el("tr", "", el("td", "n", m[1] + " ×"), el("td", "mono", m[2].replaceAll("+", " + "))) : el("tr", "", el("td", ""), el("td", "mono", x))); }
      section("Fused", t);
    }
    const free = (g.remarks || []).filter(r => r[1] < 0), not = (g.remarks || []).filter(r => r[1] >= 0 && !r[2]);
    if (free.length || not.length) { section("Remarks about the whole, and what was not done"); for (const r of free.concat(not).slice(0, 60)) panel.append(remark(r)); }
    if (g.more) panel.append(el("p", "dim", group(g.more) + " remarks are left out"));
  } else {
    const f = g.sides[0].figures;
    section("Figures", facts([["dispatches", group(f[0])], ["barriers", group(f[1])], ["epochs", group(f[2])], ["depth", group(f[3])], ["depth∞", group(f[4])], ["scratch", bytes(f[5])], ["modelled", micros(f[6])]]));
  }
  section("Colours");
  const l = el("div", "legend"), swatches = heat ? [[0, micros(G.coldest) + " modelled"], [7, micros(G.hottest)]] : D.families.map((n, i) => [i, n]).filter(([i]) => used().has(i));
  for (const [i, name] of swatches) { const d = el("span", "dot"); d.style.background = "var(--" + (heat ? "h" : "f") + i + ")"; l.append(el("span", "", d, name)); }
  panel.append(l);
  section("Arrows of the selected command");
  const a = el("table");
  for (const k of [1, 2, 3, 4]) a.append(el("tr", "", el("td", "k", swatch(k)), el("td", "", WHY[KINDS[k]] + [", solid", ", dashed", ", dotted", ", sparse"][k - 1])));
  panel.append(a);
  section("How to read it");
  panel.append(el("p", "", "A column is an epoch: the commands between two barriers, which may run concurrently. " + (g.sides.length === 2 ? "Aligned, each command of the optimized graph stands under what it was made of. " : "") + "Below it the bytes of scratch memory, from the command that writes them to the last that reads them."),
    el("p", "dim", "Times are modelled for " + D.model + (g.at ? " with " + g.at : "") + ", not measured."));
}
function showHits() {
  panel.replaceChildren();
  const back = el("button", "link", "overview"); back.type = "button"; back.addEventListener("click", () => { setQuery(""); $("find").value = ""; clear(); });
  panel.append(el("div", "top", el("span", "tag", "Search"), el("span", "space"), back), el("h2", "", hits.length ? plural(hits.length, "command") : "Nothing found"));
  const list = el("div", "hits");
  hits.slice(0, 300).forEach((h, k) => {
    const p = G.sides[h.side], b = el("button", "", dot(p, h.i), el("span", "op", describe(p, h.i)), el("span", "dim op", T[p.s.label[h.i]]), el("span", "space"), el("span", "dim", G.sides.length === 2 ? p.s.name : ""));
    b.type = "button"; b.addEventListener("click", () => { hitAt = k; select(h.side, h.i, true); });
    list.append(b);
  });
  panel.append(list);
  if (hits.length > 300) panel.append(el("p", "dim", "and " + group(hits.length - 300) + " more"));
}

// ---- selecting and searching
function select(side, i, go) {
  sel = { side, i };
  showCommand(side, i);
  const p = G.sides[side], e = p.epoch[i];
  $("live").textContent = p.s.name + ", " + describe(p, i) + ", epoch " + e;
  if (go) show(side, i);
  if (!linked()) { const js = images(side, i); if (js.length) show(other(side), js[0]); }
  remember(); dirty = true;
}
function selectEpoch(side, epoch) { sel = { side, epoch }; showEpoch(side, epoch); dirty = true; }
function clear() { sel = null; overview(); remember(); dirty = true; }
function remember() {
  const at = sel && sel.i !== undefined ? "/" + (sel.side ? "after" : "before") + "/" + G.sides[sel.side].s.id[sel.i] : "";
  try { history.replaceState(null, "", "#" + G.k + at); } catch (e) { /* a page within another may not */ }
}
function recall() {
  const m = location.hash.match(/^#(\d+)(?:\/(before|after)\/(\d+))?$/);
  if (!m || +m[1] >= D.graphs.length) return;
  if (+m[1] !== G.k) open(+m[1]);
  if (m[2]) { const to = byID(+m[3], m[2] === "after" ? 1 : 0); if (to) select(to.side, to.i, true); }
}
function setQuery(q) {
  query = q.trim().toLowerCase();
  hits = []; hits.byPlace = [[], []]; hitAt = -1; hitSet = [new Set(), new Set()];
  if (query) {
    const id = query.match(/^#?(\d+)$/), whole = id && query[0] === "#";
    if (!T.lower) T.lower = T.map(t => t.toLowerCase());
    const in_ = new Uint8Array(T.length);
    for (let k = 1; k < T.length; k++) if (T.lower[k].includes(query.replace(/^%/, ""))) in_[k] = 1;
    for (const p of G.sides) {
      const s = p.s, kernels = s.kernels.map(k => in_[k[0]] || in_[k[1]]), mems = p.mems.map(m => in_[m[0]]), bound = mems.some(x => x);
      for (let i = 0; i < p.n; i++) {
        let hit = id && s.id[i] === +id[1];
        if (!hit && !whole) {
          hit = in_[s.op[i]] || in_[s.label[i]] || s.kernel[i] >= 0 && kernels[s.kernel[i]];
          if (!hit && bound) for (const v of s.args[i]) { const m = typeof v === "number" ? v : v.length === 1 ? s.ranges[3 * v[0]] : v[0]; if (m >= 0 && mems[m]) { hit = true; break; } }
        }
        if (hit) { hits.push({ side: p.at, i }); hits.byPlace[p.at].push(i); hitSet[p.at].add(i); }
      }
    }
  }
  $("found").textContent = query ? group(hits.length) : "";
  document.body.dataset.hits = hits.length;
  again();
  dirty = true;
}
function nextHit(by) {
  if (!hits.length) return;
  hitAt = (hitAt + by + hits.length) % hits.length;
  const h = hits[hitAt];
  select(h.side, h.i, true);
  $("found").textContent = group(hitAt + 1) + " / " + group(hits.length);
}

// ---- pointer and keys
function paneAt(x, y) { return panes.find(p => x >= p.x && x < p.x + p.w && y >= p.y && y < p.y + p.h); }
function hit(x, y) {
  const pane = paneAt(x, y);
  if (!pane) return null;
  const p = pane.p, side = pane.at, col = colAt(pane, x), e = epochAt(p, col);
  if (y >= pane.y + TITLE && y < pane.cy) return e < p.epochs && p.x0[e] <= col ? { side, epoch: e } : null;
  if (y >= pane.cy && y < pane.cy + pane.ch + 4) {
    if (e >= p.epochs || p.x0[e] > col) return null;
    const first = p.s.first[e], size = p.s.first[e + 1] - first, per = perColumn(size), wide = Math.ceil(size / per);
    const k = Math.min(wide - 1, Math.floor((col - p.x0[e]) / (p.x1[e] - p.x0[e]) * wide)) * per, row = Math.floor((y - pane.cy - 2) / pane.rh);
    return row >= 0 && row < per && k + row < size ? { side, i: first + k + row } : null;
  }
  if (pane.mh > 12 && y >= pane.my && y < pane.my + pane.mh) {
    const at = (y - pane.my) / pane.mh * p.s.scratch, ix = valueIndex(p);
    let found = null;
    eachValue(p, col, col, v => { if (ix.y0[v] <= at && at < ix.y1[v]) found = v; });
    if (found !== null) return { side, value: found };
  }
  return null;
}
function explain(h, x, y) {
  if (!h) { tip.hidden = true; return; }
  const p = G.sides[h.side];
  tip.replaceChildren();
  if (h.i !== undefined) {
    const k = p.s.kernel[h.i], js = images(h.side, h.i);
    tip.append(el("b", "", describe(p, h.i)));
    if (T[p.s.label[h.i]]) tip.append(el("span", "", T[p.s.label[h.i]]));
    if (k >= 0) tip.append(el("span", "mono", T[p.s.kernels[k][1]]));
    tip.append(el("span", "", micros(p.s.ns[h.i]) + " modelled" + (h.side === 1 && js.length > 1 ? " · made of " + js.length : "") + (h.side === 0 && G.links && !js.length ? " · removed" : "")));
  } else if (h.value !== undefined) {
    const [at, later, r] = p.s.values.slice(3 * h.value, 3 * h.value + 3), [m, lo, end] = p.s.ranges.slice(3 * r, 3 * r + 3);
    tip.append(el("b", "", memoryName(p, m) + range(lo, end)), el("span", "", bytes(end - lo) + ", written by " + describe(p, at)),
      el("span", "", later > 0 ? "last read by " + describe(p, at + later) : "read by no command of this replay"));
  } else tip.append(el("b", "", "Epoch " + group(h.epoch)), el("span", "", plural(p.s.first[h.epoch + 1] - p.s.first[h.epoch], "command")));
  tip.hidden = false;
  const w = tip.offsetWidth, hh = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(W - w - 4, x + 14)) + "px";
  tip.style.top = (y + 20 + hh > H ? Math.max(4, y - hh - 10) : y + 18) + "px";
}
let drag = null;
const same = (a, b) => a === b || a && b && a.side === b.side && a.i === b.i && a.value === b.value && a.epoch === b.epoch;
function local(e) { const r = canvas.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; }
function miniAt(y) { return panes.find(p => y >= p.mini.y - 3 && y < p.mini.y + p.mini.h + 3); }
function toMini(pane, x) { const c = cam(pane.at); flight = null; c.x = x / pane.mini.w * pane.p.total - pane.w / c.s / 2; bound(pane.at); dirty = true; }
canvas.addEventListener("pointerdown", e => {
  if (e.button > 1) return;
  const [x, y] = local(e), mini = miniAt(y);
  canvas.focus({ preventScroll: true });
  canvas.setPointerCapture(e.pointerId);
  flight = null;
  if (mini) { drag = { mini }; toMini(mini, x); return; }
  const pane = paneAt(x, y);
  drag = pane ? { pane, x, y, cx: cam(pane.at).x, moved: false } : null;
});
canvas.addEventListener("pointermove", e => {
  const [x, y] = local(e);
  if (drag && drag.mini) { toMini(drag.mini, x); return; }
  if (drag) {
    if (!drag.moved && Math.abs(x - drag.x) + Math.abs(y - drag.y) < 4) return;
    drag.moved = true; canvas.style.cursor = "grabbing"; tip.hidden = true;
    const c = cam(drag.pane.at);
    c.x = drag.cx - (x - drag.x) / c.s; bound(drag.pane.at); dirty = true;
    return;
  }
  const h = hit(x, y);
  if (!same(h, hover)) { hover = h; dirty = true; }
  canvas.style.cursor = h ? "pointer" : "default";
  explain(h, x, y);
});
canvas.addEventListener("pointerup", e => {
  const d = drag; drag = null; canvas.style.cursor = "default";
  if (!d || d.mini || d.moved) return;
  const h = hit(...local(e));
  if (!h) return clear();
  if (h.i !== undefined) select(h.side, h.i);
  else if (h.value !== undefined) select(h.side, G.sides[h.side].s.values[3 * h.value]);
  else selectEpoch(h.side, h.epoch);
});
canvas.addEventListener("pointerleave", () => { hover = null; tip.hidden = true; dirty = true; });
canvas.addEventListener("dblclick", e => { const [x, y] = local(e), p = paneAt(x, y); if (p) zoom(p.at, 2, x); });
canvas.addEventListener("wheel", e => {
  e.preventDefault();
  const [x, y] = local(e), pane = paneAt(x, y) || panes[0], unit = e.deltaMode === 1 ? 18 : e.deltaMode === 2 ? pane.w : 1;
  flight = null; tip.hidden = true;
  if (e.ctrlKey || e.metaKey || e.altKey) return zoom(pane.at, Math.exp(-e.deltaY * unit * (e.ctrlKey && Math.abs(e.deltaY) < 50 ? .01 : .002)), x);
  const c = cam(pane.at);
  c.x += (Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : e.deltaY) * unit / c.s;
  bound(pane.at); dirty = true;
}, { passive: false });
// Two fingers zoom.
const fingers = new Map();
canvas.addEventListener("touchmove", e => {
  if (e.touches.length !== 2) { fingers.clear(); return; }
  e.preventDefault(); drag = null;
  const [a, b] = e.touches, r = canvas.getBoundingClientRect(), d = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY), x = (a.clientX + b.clientX) / 2 - r.left, y = (a.clientY + b.clientY) / 2 - r.top;
  const pane = paneAt(x, y);
  if (fingers.has("d") && pane) zoom(pane.at, d / fingers.get("d"), x);
  fingers.set("d", d);
}, { passive: false });
canvas.addEventListener("touchend", () => fingers.clear());

function step(dx, dy) {
  if (!sel || sel.i === undefined) { if (G.sides[0].n) { const pane = panes[0]; const e = Math.min(pane.p.epochs - 1, epochAt(pane.p, Math.max(0, cam(0).x))); select(0, pane.p.s.first[e], true); } return; }
  const p = G.sides[sel.side], e = p.epoch[sel.i], k = sel.i - p.s.first[e];
  if (dy) {
    const to = sel.i + dy;
    if (to >= p.s.first[e] && to < p.s.first[e + 1]) return select(sel.side, to, true);
    const js = images(sel.side, sel.i); // over the edge: to the other side
    if (G.sides.length === 2 && js.length && (dy > 0) === (sel.side === 0)) select(other(sel.side), dy > 0 ? js[0] : js[js.length - 1], true);
    return;
  }
  const to = e + dx;
  if (to < 0 || to >= p.epochs) return;
  select(sel.side, Math.min(p.s.first[to] + k, p.s.first[to + 1] - 1), true);
}
const KEYS = [["/", "search"], ["Enter", "in the search: the next hit; Shift for the one before"], ["n  N", "next hit, the one before"], ["← →", "previous and next epoch"], ["↑ ↓", "within an epoch, and across to the other graph"], ["x", "to the counterpart in the other graph"], ["+  −", "zoom; so do Ctrl and the wheel, and a double click"], ["0", "the whole graph"], ["c", "centre the selection"], ["a", "aligned or compact columns"], ["m", "scratch memory on or off"], ["h", "colours by kind of work or by modelled time"], ["s", "above one another or beside"], ["g", "next graph"], ["t", "light or dark"], ["Esc", "nothing selected"]];
function help(on) {
  const k = $("keys");
  k.hidden = !on;
  if (!on || k.firstChild) return;
  const t = el("table");
  for (const [a, b] of KEYS) { const td = el("td", "k"); for (const x of a.split(/\s+/)) td.append(el("kbd", "", x), " "); t.append(el("tr", "", td, el("td", "", b))); }
  k.append(el("div", "", el("h2", "", "Keys"), t));
}
$("keys").addEventListener("click", () => help(false));
document.addEventListener("keydown", e => {
  const typing = e.target === $("find") || e.target === $("graph");
  if (e.key === "Escape") {
    if (!$("keys").hidden) return help(false);
    if (typing) { e.target.blur(); canvas.focus(); }
    if (query) { $("find").value = ""; setQuery(""); } else clear();
    return;
  }
  if (typing) {
    if (e.target === $("find") && e.key === "Enter") { e.preventDefault(); nextHit(e.shiftKey ? -1 : 1); }
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const inPanel = panel.contains(e.target);
  tip.hidden = true;
  const act = {
    "/": () => { $("find").focus(); $("find").select(); }, "?": () => help($("keys").hidden), "+": () => zoomKey(1.5), "=": () => zoomKey(1.5), "-": () => zoomKey(1 / 1.5), "0": fit,
    n: () => nextHit(1), N: () => nextHit(-1), a: toggleAlign, m: toggleMemory, s: toggleStack, h: toggleHeat, t: toggleTheme, g: () => open((G.k + 1) % D.graphs.length),
    c: () => { if (sel && sel.i !== undefined) show(sel.side, sel.i, true); },
    x: () => { if (sel && sel.i !== undefined) { const js = images(sel.side, sel.i); if (js.length) select(other(sel.side), js[0], true); } },
  };
  if (!inPanel) Object.assign(act, { ArrowLeft: () => step(-1, 0), ArrowRight: () => step(1, 0), ArrowUp: () => step(0, -1), ArrowDown: () => step(0, 1) });
  if (act[e.key]) { e.preventDefault(); act[e.key](); }
});
function zoomKey(f) {
  const at = sel ? sel.side : 0, pane = panes[at];
  let x = pane.x + pane.w / 2;
  if (sel && sel.i !== undefined) { const m = middle(pane, sel.i), c = (m.l + m.r) / 2; if (c > pane.x && c < pane.x + pane.w) x = c; }
  flight = null; zoom(at, f, x);
  if (!linked()) { const o = panes[other(at)]; zoom(o.at, f, o.x + o.w / 2); }
}
function press(id, on) { $(id).setAttribute("aria-pressed", String(on)); }
function toggleAlign() {
  if (G.sides.length < 2) return;
  aligned = !aligned; press("align", aligned);
  if (!aligned) cams[1] = { ...cams[0] };
  place(); arrange(); panes.forEach(p => bound(p.at));
  if (sel && sel.i !== undefined) { show(sel.side, sel.i, true); const js = images(sel.side, sel.i); if (js.length && !linked()) show(other(sel.side), js[0], true); }
  dirty = true;
}
function toggleMemory() { memory = !memory; press("memory", memory); arrange(); dirty = true; }
function toggleStack() { beside = !beside; press("stack", beside); arrange(); panes.forEach(p => bound(p.at)); dirty = true; }
function toggleTheme() { theme = isDark() ? "light" : "dark"; retheme(); }

function tile(name, a, b, f) {
  const t = el("div", "tile"), v = el("b");
  t.setAttribute("role", "listitem");
  v.append(f(a));
  if (b !== undefined) { v.append(el("span", "arrow", "→"), el("span", b < a ? "less" : "", f(b))); }
  t.append(v, el("small", "", name + (b !== undefined && a > 0 && b !== a ? "  " + (b < a ? "−" : "+") + Math.abs(Math.round((1 - b / a) * 100)) + " %" : "")));
  return t;
}
function open(k) {
  G = prepare(k); sel = null; hover = null; flight = null;
  $("graph").value = String(k);
  aligned = G.sides.length === 2 && $("align").getAttribute("aria-pressed") !== "false";
  $("align").hidden = $("stack").hidden = G.sides.length < 2;
  if (heat) warm();
  place(); arrange();
  cams = [{ x: 0, s: 60 }, { x: 0, s: 60 }];
  for (const p of panes) { const c = cam(p.at); c.s = Math.max(72, Math.min(220, p.w / p.p.total)); c.x = -8 / c.s; bound(p.at); }
  const a = G.sides[0].s.figures, b = G.sides[1] ? G.sides[1].s.figures : [];
  const tiles = $("tiles");
  tiles.replaceChildren(tile("dispatches", a[0], b[0], group));
  if (G.g.proof) { const ok = G.g.proof.verdict === "proved"; tiles.append(el("div", "tile", el("b", ok ? "proved" : "unproved", (ok ? "✓ " : "") + G.g.proof.verdict), el("small", "", G.g.proof.rewrites ? "but for allowed rewrites" : ok ? "equal to the bit" : ""))); }
  tiles.append(tile("barriers", a[1], b[1], group), tile("scratch", a[5], b[5], bytes), tile("modelled", a[6], b[6], micros));
  const notes = [D.cut, G.g.faults].filter(x => x);
  $("notice").hidden = !notes.length; $("notice").textContent = notes.join("\n");
  $("find").value = ""; setQuery("");
  remember(); resize();
}
// ---- start
if (!D.graphs.length) { $("file").textContent = D.title; $("notice").textContent = "This file has no graph."; $("notice").hidden = false; return; }
document.title = D.title + " – mlxc";
$("file").textContent = D.title; $("file").title = D.title;
D.graphs.forEach((g, k) => { const o = el("option", "", g.name); o.value = String(k); $("graph").append(o); });
if (D.graphs.length < 2) $("graph").hidden = true;
$("graph").addEventListener("change", e => { open(+e.target.value); canvas.focus(); });
let typed = 0;
$("find").addEventListener("input", e => { clearTimeout(typed); const q = e.target.value; typed = setTimeout(() => setQuery(q), 60); });
$("align").addEventListener("click", toggleAlign); $("memory").addEventListener("click", toggleMemory); $("stack").addEventListener("click", toggleStack);
$("in").addEventListener("click", () => zoomKey(1.5)); $("out").addEventListener("click", () => zoomKey(1 / 1.5)); $("fit").addEventListener("click", fit);
$("theme").addEventListener("click", toggleTheme); $("help").addEventListener("click", () => help($("keys").hidden));
press("align", true); press("memory", true); press("heat", false); $("heat").addEventListener("click", toggleHeat); press("stack", false);
dark.addEventListener("change", retheme);
let keep = null;
addEventListener("beforeprint", () => { keep = { theme, cams: cams.map(c => ({ ...c })) }; theme = "light"; before = true; retheme(); resize(); fit(); dirty = false; draw(); });
addEventListener("afterprint", () => { if (!keep) return; theme = keep.theme; cams = keep.cams; keep = null; before = false; retheme(); resize(); });
addEventListener("hashchange", recall);
new ResizeObserver(resize).observe(stage);
const asked = location.hash;
retheme();
open(0);
if (asked) { try { history.replaceState(null, "", asked); } catch (e) { /* as above */ } recall(); }
requestAnimationFrame(frame);
// For consoles and tests: where a command is on the canvas, and what is shown.
window.mlxcPage = Object.freeze({
  where(side, id) { const to = byID(id, side), m = middle(panes[to.side], to.i), r = canvas.getBoundingClientRect(); return { side: to.side, x: r.left + (m.l + m.r) / 2, y: r.top + m.y, left: m.l, right: m.r }; },
  state: () => ({ graph: G.g.name, sides: G.sides.length, selected: sel && sel.i !== undefined ? { side: sel.side, id: G.sides[sel.side].s.id[sel.i] } : null, scale: cams[0].s, x: cams[0].x, hits: hits.length, frames, aligned, memory, beside, dark: isDark() }),
});
document.body.dataset.ready = "true";
})();
