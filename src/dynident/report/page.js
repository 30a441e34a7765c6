// What a page can do beside being read: sort its tables, turn the robot, zoom and compare torque.
// Everything below is an addition: without scripts the page shows the same numbers and pictures.
"use strict";

const SVG = (document.querySelector("svg") || {}).namespaceURI;
const all = (selector, within) => [...(within || document).querySelectorAll(selector)];

function made(tag, attributes, ...children) {
  const svg = ["path", "rect", "text", "g", "svg"].includes(tag);
  const node = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function button(text, label, act) {
  const node = made("button", { type: "button", "aria-label": label, title: label }, text);
  node.addEventListener("click", act);
  return node;
}

// --- tables ---------------------------------------------------------------------------------------------------------

// A cell as something to sort by: dots of trust, a number, or text. What is not known comes last.
function sortKey(cell, numeric) {
  const mark = cell.querySelector(".mark b");
  if (mark) return -(mark.textContent.match(/●/g) || []).length;
  const text = cell.textContent.trim();
  if (!numeric) return text.toLowerCase();
  const value = parseFloat(text.replace(/[\s\u00a0\u2009,]/g, "").replace("−", "-"));
  return Number.isNaN(value) ? Infinity : value;
}

function sortBy(table, column, head) {
  const rising = head.getAttribute("aria-sort") !== "ascending";
  all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", rising ? "ascending" : "descending");
  const body = table.tBodies[0];
  const rows = [...body.rows].filter((row) => !row.classList.contains("total"));
  const last = [...body.rows].filter((row) => row.classList.contains("total"));
  const numeric = head.classList.contains("number");
  const keyed = rows.map((row) => [sortKey(row.cells[column], numeric), row]);
  const collator = new Intl.Collator(undefined, { numeric: true });
  keyed.sort(([a], [b]) => {
    if (a === Infinity || b === Infinity) return a === b ? 0 : a === Infinity ? 1 : -1;
    const order = typeof a === "number" && typeof b === "number" ? a - b : collator.compare(a, b);
    return rising ? order : -order;
  });
  body.append(...keyed.map(([, row]) => row), ...last);
}

function makeSortable(table) {
  if (!table.tBodies.length || table.tBodies[0].rows.length < 3) return;
  all("thead th", table).forEach((head, column) => {
    const words = [...head.childNodes];
    const sorter = button("", `Sort by ${head.textContent}`, () => sortBy(table, column, head));
    sorter.className = "sort";
    sorter.append(...words);
    head.append(sorter);
  });
}

// --- the robot ------------------------------------------------------------------------------------------------------

function makeTurnable(figure) {
  const [cx, cy, cz, scale, yaw0, pitch0] = figure.dataset.view.split(",").map(Number);
  const svg = figure.querySelector("svg");
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const parts = all("[data-p]", svg).map((node) => ({
    node,
    p: node.dataset.p.split(" ").map(Number),
    a: node.dataset.a ? node.dataset.a.split(" ").map(Number) : null,
  }));
  let yaw = yaw0, pitch = pitch0, zoom = 1;

  function draw() {
    const y = (yaw * Math.PI) / 180, p = (pitch * Math.PI) / 180, s = scale * zoom;
    const right = [-Math.sin(y), Math.cos(y), 0];
    const up = [-Math.sin(p) * Math.cos(y), -Math.sin(p) * Math.sin(y), Math.cos(p)];
    const dot = (u, v) => u[0] * v[0] + u[1] * v[1] + u[2] * v[2];
    const place = (q) => {
      const d = [q[0] - cx, q[1] - cy, q[2] - cz];
      return [width / 2 + s * dot(d, right), height / 2 - s * dot(d, up)];
    };
    for (const { node, p: at, a } of parts) {
      const [x, z] = place(at);
      if (node.tagName === "path") {
        const [x1, z1] = place(at.slice(3));
        node.setAttribute("d", `M${x.toFixed(1)} ${z.toFixed(1)}L${x1.toFixed(1)} ${z1.toFixed(1)}`);
      } else if (node.tagName === "circle") {
        node.setAttribute("cx", x.toFixed(1));
        node.setAttribute("cy", z.toFixed(1));
      } else if (node.tagName === "text") {
        const [right, down] = node.dataset.beside.split(" ").map(Number);
        node.setAttribute("x", (x + right).toFixed(1));
        node.setAttribute("y", (z + down).toFixed(1));
      } else {
        // The outline of an ellipsoid with half axes A is the ellipse of (P A)(P A)'.
        const columns = [0, 1, 2].map((k) => [a[k], a[3 + k], a[6 + k]]);
        const flat = columns.map((v) => [s * dot(v, right), -s * dot(v, up)]);
        const xx = flat.reduce((t, v) => t + v[0] * v[0], 0);
        const xy = flat.reduce((t, v) => t + v[0] * v[1], 0);
        const yy = flat.reduce((t, v) => t + v[1] * v[1], 0);
        const mean = (xx + yy) / 2, apart = Math.hypot((xx - yy) / 2, xy);
        const turn = (Math.atan2(2 * xy, xx - yy) / 2) * (180 / Math.PI);
        node.setAttribute("rx", Math.sqrt(mean + apart).toFixed(1));
        node.setAttribute("ry", Math.max(1, Math.sqrt(Math.max(0, mean - apart))).toFixed(1));
        node.setAttribute("transform", `translate(${x.toFixed(1)} ${z.toFixed(1)}) rotate(${turn.toFixed(1)})`);
      }
    }
    figure.dataset.turned = `${Math.round(yaw)} ${Math.round(pitch)}`;
  }

  function turn(dyaw, dpitch) {
    yaw = (yaw + dyaw) % 360;
    pitch = Math.max(-90, Math.min(90, pitch + dpitch));
    draw();
  }

  let last = null;
  svg.addEventListener("pointerdown", (event) => {
    last = [event.clientX, event.clientY];
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!last) return;
    turn(-0.5 * (event.clientX - last[0]), 0.5 * (event.clientY - last[1]));
    last = [event.clientX, event.clientY];
  });
  for (const kind of ["pointerup", "pointercancel"]) svg.addEventListener(kind, () => (last = null));
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-10, 0], ArrowRight: [10, 0], ArrowUp: [0, 10], ArrowDown: [0, -10] };
    if (!(event.key in moves)) return;
    event.preventDefault();
    turn(...moves[event.key]);
  });
  const look = (name, y, p) => button(name, `Look ${name}`, () => { yaw = y; pitch = p; zoom = 1; draw(); });
  const bodies = button("bodies", "Show or hide the bodies", () => svg.classList.toggle("bare"));
  const names = button("numbers", "Show or hide the numbers of joints", () => svg.classList.toggle("nameless"));
  const near = (name, factor) => button(name, factor > 1 ? "Closer" : "Farther", () => { zoom *= factor; draw(); });
  figure.append(
    made("p", { class: "tools" }, look("from an angle", yaw0, pitch0), look("front", 0, 0), look("side", -90, 0),
      look("above", -90, 90), near("+", 1.25), near("−", 0.8), bodies, names),
    made("p", { class: "tools soft" }, "Drag to turn, or use the arrow keys."),
  );
}

// --- torque ---------------------------------------------------------------------------------------------------------

function numbers(text, kind) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new kind(bytes.buffer);
}

// Round numbers between two others: steps of 1, 2 or 5 times a power of ten.
function ticks(low, high, most) {
  let step = 10 ** Math.floor(Math.log10((high - low) / most));
  step *= [1, 2, 5, 10, 20].find((factor) => (high - low) / (factor * step) <= most);
  const found = [];
  for (let i = Math.ceil(low / step); i <= Math.floor(high / step); i++) found.push(i * step);
  return [found, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))];
}

// Zero and the largest round number that lies clearly below another, on both sides.
function around(most) {
  const power = 10 ** Math.floor(Math.log10(0.9 * most));
  const edge = power * Math.max(...[1, 2, 3, 4, 5, 6, 8].filter((factor) => factor * power <= 0.9 * most));
  return [[-edge, 0, edge], Math.max(0, -Math.floor(Math.log10(power) + 1e-9))];
}

class Plot {
  // The plot of one joint: `frames` are [top, height] of torque and residual in the view box.
  constructor(svg, log, joint) {
    Object.assign(this, { svg, log, joint });
    const [width, left, right, ...frames] = svg.dataset.frame.split(" ").map(Number);
    Object.assign(this, { width, left, right, frames: [frames.slice(0, 2), frames.slice(2)] });
    this.select();
  }

  get values() {
    const own = this.log.joints[this.joint];
    if (!own.measured) {
      const read = (text) => Float32Array.from(numbers(text, Int16Array), (x) => own.middle + own.step * x);
      own.measured = read(own.m);
      own.predicted = read(own.p);
    }
    return own;
  }

  time(event) {
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.width;
    const share = (x - this.left) / (this.width - this.left - this.right);
    const [t0, t1] = this.log.window;
    return t0 + Math.max(0, Math.min(1, share)) * (t1 - t0);
  }

  // A stretch is picked by dragging across the plot.
  select() {
    let from = null, mark = null;
    const whole = this.frames[1][0] + this.frames[1][1] - this.frames[0][0];
    const x = (t) => this.left + ((t - this.log.window[0]) / (this.log.window[1] - this.log.window[0])) *
      (this.width - this.left - this.right);
    this.svg.addEventListener("pointerdown", (event) => {
      from = this.time(event);
      mark = made("rect", { class: "picked", y: this.frames[0][0], height: whole, x: x(from), width: 0 });
      this.svg.append(mark);
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!mark) return;
      const to = this.time(event);
      mark.setAttribute("x", x(Math.min(from, to)));
      mark.setAttribute("width", Math.abs(x(to) - x(from)));
    });
    const end = (event) => {
      if (!mark) return;
      mark.remove();
      mark = null;
      const to = this.time(event);
      const [t0, t1] = this.log.window;
      if (event.type === "pointerup" && Math.abs(to - from) > 0.01 * (t1 - t0)) {
        this.log.show(Math.min(from, to), Math.max(from, to));
      }
    };
    this.svg.addEventListener("pointerup", end);
    this.svg.addEventListener("pointercancel", end);
    this.svg.addEventListener("dblclick", () => this.log.show(...this.log.whole));
  }

  draw() {
    const [t0, t1] = this.log.window, time = this.log.t, own = this.values;
    let first = time.findIndex((t) => t >= t0), last = time.length;
    while (last > first && time[last - 1] > t1) last--;
    first = Math.max(0, first - 1);
    last = Math.min(time.length, last + 1);
    const residual = own.measured.map((x, i) => x - own.predicted[i]);
    let low = Infinity, high = -Infinity, most = 1e-9;
    for (let i = first; i < last; i++) {
      low = Math.min(low, own.measured[i], own.predicted[i] - own.half);
      high = Math.max(high, own.measured[i], own.predicted[i] + own.half);
      most = Math.max(most, Math.abs(residual[i]));
    }
    const room = 0.06 * Math.max(high - low, 1e-9);
    const scales = [[low - room, high + room], [-1.06 * most, 1.06 * most]];
    const across = (t) => this.left + ((t - t0) / (t1 - t0)) * (this.width - this.left - this.right);
    const down = (f, v) => this.frames[f][0] + ((scales[f][1] - v) / (scales[f][1] - scales[f][0])) * this.frames[f][1];
    const line = (f, of) => {
      let d = "", x = null;
      for (let i = first; i < last; i++) {
        const gap = x !== null && time[i] - time[i - 1] > 3 * this.log.usual;
        x = across(time[i]);
        d += `${d && !gap ? "L" : "M"}${x.toFixed(1)} ${down(f, of(i)).toFixed(1)}`;
      }
      return d || "M0 0";
    };
    const grid = made("g", {});
    const edge = this.width - this.right;
    const words = (text, x, y, kind) => made("text", { x, y, class: kind }, text);
    scales.forEach(([a, b], f) => {
      const [marks, digits] = f ? around(most) : ticks(a, b, 5);
      for (const v of marks) {
        grid.append(made("path", { d: `M${this.left} ${down(f, v)}H${edge}`, class: Math.abs(v) < 1e-12 ? "zero" : "grid" }));
        grid.append(words(v.toFixed(digits), this.left - 10, down(f, v) + 8, "end"));
      }
    });
    const [marks, digits] = ticks(t0, t1, 6);
    const [top, height] = this.frames[1];
    marks.forEach((t, i) => {
      const x = across(t);
      for (const [y, tall] of this.frames) grid.append(made("path", { d: `M${x} ${y}v${tall}`, class: "grid" }));
      const text = t.toFixed(digits) + (i === marks.length - 1 ? " s" : "");
      grid.append(words(text, Math.min(x, edge - 24), top + height + 32, "mid"));
    });
    const band = `${line(0, (i) => own.predicted[i] + own.half)}`;
    let under = "";
    for (let i = last - 1; i >= first; i--) {
      under += `L${across(time[i]).toFixed(1)} ${down(0, own.predicted[i] - own.half).toFixed(1)}`;
    }
    const clip = made("svg", { x: this.left, y: 0, width: edge - this.left, height: top + height,
      viewBox: `${this.left} 0 ${edge - this.left} ${top + height}`, class: "inner" });
    const gapless = !time.some((t, i) => i > first && i < last && t - time[i - 1] > 3 * this.log.usual);
    if (gapless && own.half > 0) clip.append(made("path", { d: `${band}${under}Z`, class: "band" }));
    clip.append(
      made("path", { d: line(0, (i) => own.measured[i]), class: "measured" }),
      made("path", { d: line(0, (i) => own.predicted[i]), class: "predicted" }),
      made("path", { d: line(1, (i) => residual[i]), class: "residual" }),
    );
    [...this.svg.children].forEach((child) => { if (!["title", "desc"].includes(child.tagName)) child.remove(); });
    this.svg.append(grid, clip);
  }
}

class TorqueLog {
  // All joints of one log: they show the same stretch of time.
  constructor(data, figures) {
    Object.assign(this, data);
    this.t = Float64Array.from(numbers(data.t, Float32Array), (t) => data.start + t);
    this.whole = [this.t[0], this.t[this.t.length - 1]];
    this.window = [...this.whole];
    const steps = [...this.t].slice(1).map((t, i) => t - this.t[i]).sort((a, b) => a - b);
    this.usual = steps[Math.floor(steps.length / 2)] || 1;
    this.plots = figures.map((figure, joint) => new Plot(figure.querySelector("svg"), this, joint));
    this.said = made("span", { class: "soft", "aria-live": "polite" });
    const tools = made("p", { class: "tools" },
      button("−", "Zoom out", () => this.scaled(2)), button("+", "Zoom in", () => this.scaled(0.5)),
      button("◀", "Earlier", () => this.moved(-0.25)), button("▶", "Later", () => this.moved(0.25)),
      button("whole", "Show the whole log", () => this.show(...this.whole)), this.said);
    figures[0].parentElement.before(tools);
    this.tell();
  }

  show(from, to) {
    const least = 8 * this.usual;
    const middle = (from + to) / 2, half = Math.max(least, to - from) / 2;
    this.window = [Math.max(this.whole[0], middle - half), Math.min(this.whole[1], middle + half)];
    this.plots.forEach((plot) => plot.draw());
    this.tell();
  }

  scaled(factor) {
    const [a, b] = this.window, middle = (a + b) / 2, half = (factor * (b - a)) / 2;
    this.show(middle - half, middle + half);
  }

  moved(share) {
    const [a, b] = this.window, way = share * (b - a);
    const step = Math.max(this.whole[0] - a, Math.min(this.whole[1] - b, way));
    this.show(a + step, b + step);
  }

  tell() {
    const [a, b] = this.window, whole = b - a > 0.999 * (this.whole[1] - this.whole[0]);
    this.said.textContent = whole ? "drag across a plot to zoom; all joints follow" : `${a.toFixed(2)} to ${b.toFixed(2)} s`;
  }
}

// One joint large, or all beside each other.
function makeJointChoice(section, names) {
  const pick = made("select", { "aria-label": "Joint to show" }, made("option", { value: "" }, "all joints"),
    ...names.map((name, i) => made("option", { value: i }, name)));
  pick.addEventListener("change", () => {
    all(".panels", section).forEach((panel) => panel.classList.toggle("single", pick.value !== ""));
    all("figure[data-joint]", section).forEach((figure) => {
      figure.hidden = pick.value !== "" && figure.dataset.joint !== pick.value;
    });
  });
  section.querySelector(".legend").before(made("p", { class: "tools" }, made("label", {}, "Joint ", pick)));
}

// --- sections -------------------------------------------------------------------------------------------------------

// A link opens the section that it leads to; the link of the section in sight is marked.
function makeNavigation(nav) {
  const links = all("a", nav).filter((link) => document.getElementById(link.hash.slice(1)));
  const foldOf = (link) => document.getElementById(link.hash.slice(1)).querySelector(":scope > details");
  const unfold = (link) => { const fold = link && foldOf(link); if (fold) fold.open = true; };
  links.forEach((link) => link.addEventListener("click", () => unfold(link)));
  unfold(links.find((link) => link.hash === location.hash));
  const folds = links.map(foldOf).filter(Boolean);
  const toggle = button(folds.some((fold) => !fold.open) ? "open all" : "fold all", "Open or fold all sections", () => {
    const open = folds.some((fold) => !fold.open);
    folds.forEach((fold) => (fold.open = open));
    toggle.textContent = open ? "fold all" : "open all";
  });
  nav.append(toggle);
  const mark = () => {
    const seen = links.filter((link) => document.getElementById(link.hash.slice(1)).getBoundingClientRect().top < 120);
    links.forEach((link) => link.removeAttribute("aria-current"));
    (seen[seen.length - 1] || links[0]).setAttribute("aria-current", "true");
  };
  if (links.length) addEventListener("scroll", mark, { passive: true });
}

function start() {
  all("table").forEach(makeSortable);
  all("figure.robot").forEach(makeTurnable);
  all("nav").forEach(makeNavigation);
  const data = document.getElementById("traces");
  const section = document.getElementById("torque");
  if (!data || !section) return;
  const { joints, logs } = JSON.parse(data.textContent);
  logs.forEach((log, place) => {
    const figures = all(`figure[data-log="${place}"]`, section);
    if (figures.length) new TorqueLog(log, figures);
  });
  makeJointChoice(section, joints);
}

start();
