"use strict";
(() => {
  // What hides or reorders text becomes a mark, as in the terminal.
  const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ue000-\uf8ff]/g;
  const data = JSON.parse(document.getElementById("data").textContent, (_, v) => typeof v === "string" ? v.replace(hidden, "\ufffd") : v);
  const $ = (id) => document.getElementById(id);
  const make = (tag, text, cls) => {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    if (cls) e.className = cls;
    return e;
  };
  const percent = (f) => f === 0 ? "0%" : f < 0.0005 ? "<0.1%" : f >= 0.9995 ? "100%" : (100 * f).toFixed(1) + "%";
  const root = document.documentElement;
  root.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
  const dark = () => root.classList.contains("dark");

  // The heat of the terminal's flame graph: lightness goes one way.
  const heats = {
    dark: ["#303030", "#00005f", "#5f005f", "#87005f", "#af005f", "#d70000", "#d75f00", "#ff8700", "#ffaf00"],
    light: ["#e4e4e4", "#ffffd7", "#ffffaf", "#ffff87", "#ffd787", "#ffaf5f", "#ff875f", "#ff5f5f", "#d70000"],
  };
  const level = (f) => f > 0 ? Math.max(1, Math.min(8, 9 + Math.floor(Math.log2(Math.min(f, 0.999))))) : 0;
  const ink = (c) => {
    const lin = (i) => { const v = parseInt(c.slice(i, i + 2), 16) / 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    const l = 0.2126 * lin(1) + 0.7152 * lin(3) + 0.0722 * lin(5);
    return (l + 0.05) / 0.05 > 1.05 / (l + 0.05) ? "#000" : "#fff";
  };
  const heat = (e, f) => {
    const c = heats[dark() ? "dark" : "light"][level(f)];
    e.style.background = c;
    e.style.color = ink(c);
  };

  let event = data.events[0];
  let all = false;
  let zoom = 0;

  const why = (name) => {
    const r = data.reasons.find((r) => r.element === name);
    $("why").hidden = !r;
    if (!r) return;
    $("why").querySelector("h2").textContent = "Why " + r.element + " has " + percent(r.share);
    const box = $("why").querySelector("div");
    box.replaceChildren();
    const list = (head, items) => {
      if (!items || items.length === 0) return;
      box.append(make("h3", head));
      const ul = make("ul");
      for (const i of items) ul.append(make("li", typeof i === "string" ? i : percent(i.share) + "  " + i.name));
      box.append(ul);
    };
    list("What it consists of", r.parts);
    list(r.by ? "Who causes it: " + r.by + ", by the nearest function with source" : "Who causes it, by the nearest function with source", r.causes);
    list("What usually helps", r.advice);
    $("why").scrollIntoView({ block: "nearest" });
  };

  const hot = () => {
    const body = $("rows");
    body.replaceChildren();
    if (!event) return;
    const rows = all ? event.rows : event.rows.slice(0, 30);
    const most = Math.max(...event.rows.map((r) => r.share), 1e-9);
    for (const r of rows) {
      const tr = make("tr");
      tr.tabIndex = 0;
      const share = make("td", percent(r.share));
      heat(share, r.share);
      tr.append(share, make("td", r.plus_minus > 0 ? "±" + (100 * r.plus_minus).toFixed(1) : "", "dim"), make("td", r.weight), make("td", percent(r.only)), make("td", percent(r.inclusive)));
      const bar = make("span", undefined, "b");
      for (const f of [r.share, r.only]) {
        const i = make("i");
        i.style.width = 100 * f / most + "%";
        bar.append(i);
      }
      const cell = make("td");
      cell.append(bar);
      const name = make("td", r.element, "name");
      name.append(make("span", r.file ? r.file + ":" + r.line : r.where, "where"));
      tr.append(cell, name);
      const open = () => {
        for (const o of body.children) o.classList.toggle("sel", o === tr);
        why(r.element);
        const i = data.files.findIndex((f) => f.path === r.file);
        if (i >= 0) { $("file").value = i; text(r.line); }
      };
      tr.addEventListener("click", open);
      tr.addEventListener("keydown", (k) => { if (k.key === "Enter") open(); });
      body.append(tr);
    }
    $("more").hidden = event.rows.length <= 30 || all;
  };

  const flame = () => {
    const graph = $("graph");
    graph.replaceChildren();
    $("found").textContent = "";
    if (!event || event.frames.length === 0) return;
    const fs = event.frames;
    if (!event.kids) {
      event.kids = fs.map(() => []);
      fs.forEach((f, i) => { if (f.p >= 0) event.kids[f.p].push(i); });
    }
    let re = null;
    try { if ($("search").value) re = new RegExp($("search").value, /[A-Z]/.test($("search").value) ? "" : "i"); } catch (e) { $("found").textContent = e.message; }
    let depth = 0, hits = 0, share = 0;
    const width = graph.clientWidth || 1000;
    const draw = (i, x, w, d, below) => {
      const f = fs[i], hit = re && re.test(f.n);
      if (hit) { hits++; if (!below) share += f.t; }
      if (w >= 0.6) {
        depth = Math.max(depth, d);
        const e = make("div");
        if (w > 40) e.textContent = f.n + " " + percent(f.t);
        e.title = f.n + "\n" + percent(f.t) + "  " + f.q + ", self " + percent(f.s) + (f.w ? "\n" + f.w : "");
        e.style.left = x + "px"; e.style.width = w + "px"; e.style.top = 18 * d + "px";
        heat(e, re ? 0 : f.s);
        if (hit) { e.style.background = "var(--hit)"; e.style.color = "#000"; }
        e.addEventListener("click", () => { zoom = i; flame(); });
        e.addEventListener("mouseenter", () => { $("frame").textContent = e.title.replaceAll("\n", "  "); });
        graph.append(e);
      }
      let at = x;
      for (const k of event.kids[i]) {
        const kw = f.t > 0 ? w * fs[k].t / f.t : 0;
        draw(k, at, kw, d + 1, below || hit);
        at += kw;
      }
    };
    if (zoom >= fs.length) zoom = 0;
    const above = [];
    for (let i = fs[zoom].p; i >= 0; i = fs[i].p) above.unshift(i);
    above.forEach((i, d) => {
      const e = make("div", fs[i].n + " " + percent(fs[i].t));
      e.style.left = "0"; e.style.width = width + "px"; e.style.top = 18 * d + "px"; e.style.opacity = "0.6";
      heat(e, 0);
      e.addEventListener("click", () => { zoom = i; flame(); });
      graph.append(e);
    });
    draw(zoom, 0, width, above.length, false);
    graph.style.height = 18 * (depth + 1) + 2 + "px";
    if (re) $("found").textContent = hits + (hits === 1 ? " block, " : " blocks, ") + percent(share) + " of the samples";
  };

  let order = [];
  const text = (line) => {
    const box = $("text"), f = data.files[$("file").value || 0];
    box.replaceChildren();
    if (!f) { $("source").hidden = true; return; }
    $("problem").textContent = f.problem;
    order = f.lines.map((l, i) => [l.s || 0, i]).filter((l) => l[0] > 0).sort((a, b) => b[0] - a[0]).map((l) => l[1]);
    f.lines.forEach((l, i) => {
      const e = make("div"), share = make("b", l.s ? percent(l.s) : "");
      if (l.s) heat(share, l.s);
      e.append(share, make("b", l.q || ""), make("u", String(i + 1)), make("span", l.x));
      box.append(e);
    });
    show(line ? near(f, line) : order[0]);
  };
  // The hottest line of the binding that begins at a line: up to the next line that begins one.
  const near = (f, line) => {
    let end = line;
    while (end < f.lines.length && (f.lines[end].x === "" || /^[\s)\]}|-]/.test(f.lines[end].x) || f.lines[end].x.startsWith(f.lines[line - 1].x.split(/\s/)[0]))) end++;
    const own = order.filter((i) => i >= line - 1 && i < end);
    return own.length > 0 ? own[0] : line - 1;
  };
  let shown = 0;
  const show = (i) => {
    if (i === undefined) return;
    shown = i;
    [...$("text").children].forEach((e, j) => e.classList.toggle("sel", j === i));
    const e = $("text").children[i];
    if (e) $("text").scrollTop = e.offsetTop - $("text").offsetTop - $("text").clientHeight / 3;
  };

  const svg = (tag, attributes, text) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const colours = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#9c755f", "#ff9da7", "#86bc86", "#8a8f98"];
  const axis = (s, from, to, w, h) => {
    for (let i = 0; i <= 6; i++) s.append(svg("text", { x: 4 + (w - 60) * i / 6, y: h - 4 }, (from + (to - from) * i / 6).toFixed(2) + " s"));
  };
  const area = (values, base, most, w, h) => {
    const x = (i) => (w * i / values.length).toFixed(1), y = (v) => (h - h * v / most).toFixed(1);
    let d = "M0," + y(base[0]);
    values.forEach((v, i) => { d += "L" + x(i) + "," + y(base[i] + v) + "L" + x(i + 1) + "," + y(base[i] + v); });
    for (let i = values.length - 1; i >= 0; i--) d += "L" + x(i + 1) + "," + y(base[i]) + "L" + x(i) + "," + y(base[i]);
    return d + "Z";
  };
  const key = (names) => {
    const k = make("div", undefined, "key");
    names.forEach(([name, c]) => { const s = make("span"), i = make("i"); i.style.background = c; s.append(i, name); k.append(s); });
    return k;
  };
  // Buckets of which nobody knows what happened are grey, from a height downwards.
  const unknown = (s, not, w, y, h) => {
    (not || []).forEach((n, i) => { if (n) s.append(svg("rect", { x: (w * i / not.length).toFixed(1), y, width: (w / not.length).toFixed(1), height: h, fill: "#888", "fill-opacity": 0.45 })); });
    return (not || []).some((n) => n);
  };
  const time = () => {
    const t = data.time;
    $("time").hidden = !t;
    if (!t) return;
    const zero = t.activity.map(() => 0), s = svg("svg", { viewBox: "0 0 1200 120", role: "img" });
    s.append(svg("title", {}, t.event + " over time"), svg("path", { d: area(t.activity, zero, 1, 1200, 100), fill: colours[0] }));
    const names = [[t.event + ", of the busiest moment", colours[0]]];
    if (t.gc) { s.append(svg("path", { d: area(t.gc, zero, 1, 1200, 100), fill: colours[1], "fill-opacity": 0.75 })); names.push(["part of the time in garbage collection", colours[1]]); }
    if (unknown(s, t.missing, 1200, 0, 100)) names.push(["not in the log: nobody knows", "#888"]);
    if (unknown(s, t.gc_not_watched, 1200, 94, 6)) names.push(["collections not watched (the line below)", "#888"]);
    axis(s, t.from, t.to, 1200, 120);
    $("activity").replaceChildren(s, key(names));
  };
  const heap = () => {
    const h = data.heap;
    $("heap").hidden = !h;
    if (!h) return;
    const base = h.bands[0].bytes.map(() => 0), s = svg("svg", { viewBox: "0 0 1200 280", role: "img" });
    s.append(svg("title", {}, "heap by " + h.what));
    h.bands.forEach((b, n) => {
      const p = svg("path", { d: area(b.bytes, base, h.most * 1.05, 1200, 260), fill: colours[n % colours.length] });
      p.append(svg("title", {}, b.name + (b.peak ? ", at most " + b.peak : "")));
      s.append(p);
      b.bytes.forEach((v, i) => { base[i] += v; });
    });
    const names = h.bands.map((b, n) => [b.name + (b.peak ? " " + b.peak : ""), colours[n % colours.length]]);
    if (unknown(s, h.not_watched, 1200, 254, 6)) names.push(["not watched (the line below): the size is the one before", "#888"]);
    s.append(svg("text", { x: 4, y: 14 }, h.peak));
    axis(s, h.from, h.to, 1200, 280);
    $("bands").replaceChildren(s, key(names));
  };

  const pick = () => {
    event = data.events[$("event").value || 0];
    zoom = 0; all = false;
    $("sentence").textContent = event ? event.sentence : data.said;
    hot(); flame();
  };
  $("log").textContent = data.log;
  $("about").textContent = data.about + ", " + data.seconds.toFixed(2) + " s";
  $("hot").hidden = $("flame").hidden = $("event").parentNode.hidden = !data.events.length;
  data.events.forEach((e, i) => { const o = make("option", e.name + ": " + e.samples + " samples, " + e.total); o.value = i; $("event").append(o); });
  data.files.forEach((f, i) => { const o = make("option", percent(f.share) + "  " + f.path); o.value = i; $("file").append(o); });
  $("account").textContent = data.accounts;
  (data.left || []).forEach((l) => $("left").append(make("li", "not in this page: " + l)));
  $("event").addEventListener("change", pick);
  $("more").addEventListener("click", () => { all = true; hot(); });
  $("search").addEventListener("input", flame);
  $("reset").addEventListener("click", () => { zoom = 0; flame(); });
  $("file").addEventListener("change", () => text());
  $("hottest").addEventListener("click", () => show(order[(order.indexOf(shown) + 1) % order.length]));
  const paint = () => { hot(); flame(); text(); time(); heap(); };
  $("scheme").addEventListener("click", () => { root.classList.toggle("dark"); paint(); });
  addEventListener("resize", flame);
  pick();
  paint();
  document.querySelectorAll("nav a").forEach((a) => { a.hidden = $(a.hash.slice(1)).hidden; });
  root.dataset.ready = "yes";
})();
