// The points: undoable changes, and reading and writing files.

export class Points {
  constructor() { this.all = []; this.past = []; this.view = {x: 0, y: 0, w: 1, h: 1}; }

  /** Replaces the points; undo restores the previous ones. */
  change(points) {
    this.past.push(this.all);
    if (this.past.length > 100) this.past.shift();
    this.all = points;
  }

  undo() { if (this.past.length) this.all = this.past.pop(); }
  add(point) { this.change([...this.all, point]); }
  remove(i) { this.change(this.all.filter((_, j) => j !== i)); }
  move(i, point) { this.all = this.all.map((old, j) => j === i ? point : old); }  // `grab` comes first
  grab() { this.change([...this.all]); }

  /** Shows all points: the unit square if they lie in it, else their bounding box. */
  fit(square) {
    const inside = this.all.every(point => point.every(v => v >= 0 && v <= 1));
    this.view = {x: 0, y: 0, w: 1, h: 1};
    if (inside) return;
    const [low, high] = [Math.min, Math.max].map(of => [0, 1].map(c => this.all.reduce((m, p) => of(m, p[c]), p0(this.all, c))));
    let [w, h] = [high[0] - low[0] || 1, high[1] - low[1] || 1];
    if (square) w = h = Math.max(w, h);
    this.view = {x: low[0] - .05 * w, y: low[1] - .05 * h, w: 1.1 * w, h: 1.1 * h};
  }

  toPlane([a, b]) { const v = this.view; return [1000 * (a - v.x) / v.w, 1000 * (1 - (b - v.y) / v.h)]; }
  fromPlane(a, b) { const v = this.view; return [v.x + v.w * a, v.y + v.h * (1 - b)]; }

  csv(names) { return [names.join(","), ...this.all.map(point => point.join(","))].join("\n") + "\n"; }
}

const p0 = (points, c) => points[0][c];

/** The points in a text: JSON, or lines with numbers in columns of these names (else the last two). */
export function parse(text, names) {
  const found = text.trim().startsWith("[") || text.trim().startsWith("{") ? fromJson(text, names) : fromLines(text, names);
  if (!found.length) throw new Error("the file must have lines of two numbers each.");
  if (!found.every(point => point.length === 2 && point.every(v => typeof v === "number" && isFinite(v))))
    throw new Error("the file must have two finite numbers per point.");
  return found;
}

function fromJson(text, names) {
  let content = JSON.parse(text);
  if (!Array.isArray(content)) content = content.points || content.items || Object.values(content).find(Array.isArray) || [];
  return content.map(one => Array.isArray(one) ? one.slice(-2) : names.map(name => Number(one[name])));
}

function fromLines(text, names) {
  const rows = text.split(/\r?\n/).map(line => line.trim().split(/[\s,;]+/)).filter(row => row.length > 1);
  const header = rows.find(row => names.every(name => row.map(cell => cell.toLowerCase()).includes(name)));
  const at = header && names.map(name => header.findIndex(cell => cell.toLowerCase() === name));
  return rows.map(row => (at ? at.map(i => row[i]) : row.slice(-2)).map(Number))
    .filter(point => point.every(v => isFinite(v)));
}

export function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
