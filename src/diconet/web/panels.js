// One panel per division: a picture of the points and of the current step.

export const DIVISIONS = {learned: "learned division", random: "random division", none: "no division"};
const COLOURS = 8;

function make(plane, name, attributes, style = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.assign(made.style, style);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  plane.append(made);
  return made;
}

const colour = part => part < 0 ? "var(--p-none)" : `var(--p${part % COLOURS})`;

function dot(plane, part, [cx, cy], r, i) {
  const turn = Math.floor(Math.max(part, 0) / COLOURS) % 4;
  const look = {class: "part", "data-i": i}, style = {fill: colour(part)};
  if (turn === 1) return make(plane, "rect", {...look, x: cx - r, y: cy - r, width: 2 * r, height: 2 * r}, style);
  if (turn === 2) return make(plane, "path", {...look, d: `M${cx} ${cy - 1.3 * r}l${1.2 * r} ${2.2 * r}h${-2.4 * r}z`}, style);
  if (turn === 3) return make(plane, "path", {...look, d: `M${cx} ${cy - 1.4 * r}l${1.4 * r} ${1.4 * r}l${-1.4 * r} ${1.4 * r}l${-1.4 * r} ${-1.4 * r}z`}, style);
  return make(plane, "circle", {...look, cx, cy, r}, style);
}

export class Panel {
  constructor(division, into) {
    this.division = division;
    this.figure = document.createElement("figure");
    this.figure.id = `panel-${division}`;
    this.figure.innerHTML = `<figcaption><b></b><span class="value"></span> <span class="quality"></span></figcaption>
      <svg viewBox="0 0 1000 1000" tabindex="0" role="application"></svg>`;
    [this.title, this.value, this.quality] = this.figure.querySelectorAll("b, span");
    this.plane = this.figure.querySelector("svg");
    this.title.textContent = DIVISIONS[division];
    this.forget();
    into.append(this.figure);
  }

  forget() { this.stages = []; this.say("", ""); this.figure.classList.remove("waiting"); }

  say(value, quality, wrong = false) {
    this.value.textContent = value;
    this.quality.textContent = quality;
    this.quality.classList.toggle("wrong", wrong);
  }

  /** The step at a fraction of the sequence: panels with fewer steps wait at their ends. */
  stage(step, steps) {
    if (!this.stages.length) return null;
    return this.stages[Math.round((this.stages.length - 1) * (steps > 1 ? step / (steps - 1) : 1))];
  }

  paint(points, stage, axes, held) {
    const plane = this.plane, all = points.all;
    plane.replaceChildren();
    plane.setAttribute("aria-label", `${DIVISIONS[this.division]}: ${all.length} points, ${this.value.textContent} ${this.quality.textContent}`);
    if (axes) for (const [text, [x, y, anchor]] of [[`${axes[0]} →`, [985, 985, "end"]], [`${axes[1]} ↑`, [15, 35, "start"]]])
      make(plane, "text", {x, y, "text-anchor": anchor, class: "axis"}).textContent = text;
    if (stage) for (const {part, items} of stage.cycles) {
      const line = items.map(i => points.toPlane(all[i]).join(",")).join(" ");
      const stroke = stage.cycles.length === 1 ? "var(--ink)" : colour(part);
      make(plane, "polygon", {points: line, class: "line"}, {stroke});
    }
    const r = Math.max(4, Math.min(11, 130 / Math.sqrt(all.length + 1)));
    all.forEach((point, i) => dot(plane, stage ? stage.parts[i] : (axes ? -1 : 0), points.toPlane(point), r, i));
    if (stage) for (const mark of stage.marks) {
      const [x, y] = points.toPlane(mark);
      make(plane, "path", {d: `M${x - 14} ${y}h28M${x} ${y - 14}v28`, class: "mark"});
    }
    if (held !== null && all[held]) {
      const [cx, cy] = points.toPlane(all[held]);
      make(plane, "circle", {cx, cy, r: r + 8, class: "ring"});
    }
  }
}

/** A line chart of the scores, stage after stage. */
export function curve(plane, scores) {
  plane.replaceChildren();
  if (scores.length < 2) return;
  const values = scores.map(one => one.score).sort((a, b) => a - b);
  const low = values[Math.floor(values.length * .03)], high = values[values.length - 1];
  const x = i => 50 + 540 * i / (scores.length - 1);
  const y = v => 145 - 130 * (Math.max(v, low) - low) / (high - low || 1);
  let path = "";
  scores.forEach((one, i) => { path += `${i && scores[i - 1].stage === one.stage ? "L" : "M"}${x(i).toFixed(1)} ${y(one.score).toFixed(1)}`; });
  make(plane, "path", {d: path});
  for (const [v, at] of [[high, 20], [low, 148]])
    make(plane, "text", {x: 44, y: at, "text-anchor": "end", class: "tick"}).textContent = Number(v.toPrecision(3));
}
