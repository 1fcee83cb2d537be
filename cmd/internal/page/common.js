"use strict";
// What the scripts of all pages have in common. Texts of a graph go into text nodes only.
const D = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const group = n => n.toLocaleString("en-US");
const bytes = n => n < 1024 ? Math.round(n) + " B" : n < 1 << 20 ? (n / 1024).toFixed(1) + " KiB" : n < 2 ** 30 ? (n / 2 ** 20).toFixed(1) + " MiB" : (n / 2 ** 30).toFixed(2) + " GiB";
const plural = (n, s) => group(n) + " " + s + (n === 1 ? "" : "s");
function el(tag, cls, ...children) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  for (const c of children) if (c !== null && c !== undefined) e.append(c.nodeType ? c : String(c));
  return e;
}
