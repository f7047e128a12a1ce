// The page: its state, its requests to the server, and its keys and clicks.
// Everything specific to a problem comes from /api/problems.
import {Points, parse, save} from "./points.js";
import {curve, DIVISIONS, Panel} from "./panels.js";

const $ = id => document.getElementById(id);
const LIVE = "live", SECOND = 1000;
const points = new Points();
const panels = Object.keys(DIVISIONS).map(division => new Panel(division, $("panels")));
let problems = [], problem = null, step = 0, timer = null, seed = 1, asked = 0, held = null;
let drawing = Promise.resolve();  // so that solving waits for points still being fetched
let seen = null, changed = false, follow = false;  // training: its last network, whether points have just changed, whether it is shown

const steps = () => Math.max(0, ...panels.map(panel => panel.stages.length));
const names = () => problem.axes || ["x", "y"];
const fields = () => Object.fromEntries(problem.fields.map(one => {
  const input = $(`field-${one.name}`);
  return [one.name, Number(input.type === "checkbox" ? input.checked : input.value)];
}));

function setField(name, value) {
  const input = $(`field-${name}`);
  if (input.type === "checkbox") input.checked = Boolean(Number(value));
  else input.value = value;
}

function say(text, wrong = false) {
  $("status").textContent = text;
  $("status").classList.toggle("wrong", wrong);
}

// Rendering.

function paint() {
  for (const panel of panels) panel.paint(points, panel.stage(step, steps()), problem.axes, held);
  $("slider").max = Math.max(0, steps() - 1);
  $("slider").value = step;
  $("slider").disabled = $("play").disabled = steps() < 2;
  $("back").disabled = !steps() || step === 0;
  $("next").disabled = !steps() || step === steps() - 1;
  $("undo").disabled = !points.past.length;
  $("play").textContent = timer ? "pause" : "play";
  $("list").hidden = !problem.axes;
  $("caption").textContent = caption();
  if (problem.axes) table(panels[0].stage(step, steps()));
}

function caption() {
  const panel = panels.find(one => one.stages.length === steps()), stage = panel && panel.stage(step, steps());
  if (!stage) return "Click to add a point, drag to move one, Shift-click to delete one; then solve.";
  const sizes = {};
  for (const part of stage.parts) if (part >= 0) sizes[part] = (sizes[part] || 0) + 1;
  const each = Object.values(sizes), least = Math.min(...each), most = Math.max(...each);
  const range = least === most ? `${most}` : `${least} to ${most}`;
  const count = problem.axes ? `${stage.title}.` : each.length === 1 ? `All ${most} ${problem.items} together.`
    : `${each.length} parts of ${range} ${problem.items}.`;
  const lead = {cut: "Divide", merge: "Conquer", answer: "Answer"}[stage.kind];
  return `Step ${step + 1} of ${steps()}. ${lead}: ${count} ${problem[stage.kind]}`;
}

function row(kind, texts) {
  const made = document.createElement("tr");
  made.append(...texts.map(text => Object.assign(document.createElement(kind), {textContent: text})));
  return made;
}

function table(stage) {
  const looks = {"-1": "left", 0: "before", 1: "now"}, all = points.all;
  const order = all.map((_, i) => i).sort((i, j) => all[j][1] / all[j][0] - all[i][1] / all[i][0]);
  $("list").querySelector("thead").replaceChildren(row("th", ["number", ...problem.axes]));
  $("list").querySelector("tbody").replaceChildren(...order.map(i => {
    const made = row("td", [i, all[i][0].toFixed(3), all[i][1].toFixed(3)]);
    if (stage) made.className = looks[stage.parts[i]];
    return made;
  }));
}

function forget(text = "") {
  pause();
  step = 0; asked += 1;
  for (const panel of panels) panel.forget();
  say(text || `${points.all.length} ${problem.items}`);
  paint();
}

function go(to) { step = Math.max(0, Math.min(steps() - 1, to)); paint(); }
function pause() { clearInterval(timer); timer = null; }

function play() {
  if (timer) pause();
  else {
    if (step >= steps() - 1) step = 0;
    timer = setInterval(() => { if (step >= steps() - 1) pause(); else step += 1; paint(); }, .9 * SECOND);
  }
  paint();
}

// Requests to the server.

async function ask(url, method = "GET", content = undefined) {
  const body = content === undefined ? undefined : JSON.stringify(content);
  const headers = body === undefined ? {} : {"Content-Type": "application/json"};
  const reply = await fetch(url, {method, headers, body}).catch(() => { throw new Error("the server does not answer."); });
  const found = await reply.json().catch(() => ({detail: "the server gave no answer."}));
  if (!reply.ok) throw new Error(String(found.detail));
  return found;
}

function drawSome() { return drawing = drawn(); }

async function drawn() {
  try {
    const query = new URLSearchParams({task: problem.name, n: $("n").value, seed: seed++, ...fields()});
    const found = await ask(`/api/sample?${query}`);
    for (const field of problem.fields) if (field.name in found) setField(field.name, found[field.name]);
    replace(found.points);
  } catch (error) { say(error.message, true); }
}

async function solve() {
  await drawing;
  forget("solving ...");
  const mine = asked;
  $("solve").disabled = true;
  const wrong = await Promise.all(panels.map(panel => answer(panel, mine)));
  $("solve").disabled = false;
  if (mine !== asked) return;
  say(wrong[0] || verdict(), Boolean(wrong[0]));
  go(steps() - 1);
}

async function answer(panel, mine) {
  panel.figure.classList.toggle("waiting", !panel.stages.length);
  try {
    const network = $("network").value || null;
    const content = {task: problem.name, points: points.all, fields: fields(), division: panel.division, network};
    const found = await ask("/api/solve", "POST", content);
    if (mine !== asked) return "";  // the points have changed since
    panel.stages = found.stages;
    panel.number = found.value;
    panel.say(`${problem.value} ${found.value === null ? "∞" : Number(found.value.toPrecision(5))}`, found.quality);
  } catch (error) {
    if (mine === asked) panel.say("", error.message, true);
    return error.message;
  } finally { panel.figure.classList.remove("waiting"); }
  return "";
}

function verdict() {
  const values = panels.filter(panel => panel.stages.length).map(panel => panel.number);
  const alike = values.every(value => Math.abs(value - values[0]) <= 1e-6 * Math.abs(values[0]));
  if (values.length < 2) return `${problem.value} ${Number(values[0].toPrecision(5))}`;
  return alike ? `the same ${problem.value} for every division` : `the division changes the ${problem.value}`;
}

// Training.

async function train() {
  const running = $("train").dataset.state === "running";
  try {
    const found = await (running ? ask("/api/training", "DELETE") : ask("/api/training", "POST", {task: problem.name}));
    seen = null;
    follow = !running;
    show(found);
    if (!running) watch();
  } catch (error) { $("trained").textContent = error.message; $("trained").className = "wrong"; }
}

async function watch() {
  const found = await ask("/api/training").catch(() => null);
  if (!found) return;
  show(found);
  if (found.task === problem.name && found.version && found.version !== seen && follow && !changed) {
    seen = found.version;
    choose(LIVE);
    const mine = asked, isFirst = !panels[0].stages.length || $("network").dataset.seen !== LIVE;
    await answer(panels[0], mine);
    $("network").dataset.seen = LIVE;
    if (mine === asked) {
      if (panels.slice(1).every(panel => panel.stages.length)) say(verdict());
      go(isFirst ? deepest() : step);
    }
  }
  if (found.state === "running") setTimeout(watch, .7 * SECOND);
}

function show(found) {
  $("train").dataset.state = found.state;
  $("train").textContent = found.state === "running" ? "stop" : "train";
  $("trained").className = found.state === "failed" ? "wrong" : "";
  if (found.state === "none") return;
  const last = found.scores.at(-1), at = last ? `step ${last.step}${last.stage && ` of ${last.stage}`}, score ${Number(last.score.toPrecision(4))}` : "starting ...";
  $("trained").textContent = found.state === "running" ? `${found.task}: ${at}, ${Math.round(found.seconds)} s`
    : `${found.task}: ${found.said || "done"}${last ? `; ${at}` : ""}`;
  curve($("curve"), found.scores);
}

/** The step with the most parts, which shows a division best. */
function deepest() {
  const counts = panels[0].stages.map(stage => new Set(stage.parts).size);
  return counts.indexOf(Math.max(...counts));
}

function choose(network) {
  const box = $("network");
  if (network === LIVE && ![...box.options].some(one => one.value === LIVE)) box.append(new Option("the one in training", LIVE));
  box.value = network;
}

// Editing points.

function replace(all) {
  points.change(all);
  points.fit(!problem.axes);
  held = null;
  forget();
}

function edited() { changed = true; setTimeout(() => { changed = false; }, SECOND); forget(); }

function place(event, plane) {
  const box = plane.getBoundingClientRect();
  return points.fromPlane((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height).map(v => Number(v.toPrecision(6)));
}

for (const {plane} of panels) {
  let moving = null;
  plane.onpointerdown = event => {
    plane.focus();
    const hit = event.target.dataset.i;
    if (hit === undefined) { points.add(place(event, plane)); held = points.all.length - 1; edited(); return; }
    if (event.shiftKey || event.button === 2) { points.remove(Number(hit)); held = null; edited(); return; }
    held = moving = Number(hit);
    points.grab();
    plane.setPointerCapture(event.pointerId);
  };
  plane.onpointermove = event => { if (moving !== null) { points.move(moving, place(event, plane)); edited(); } };
  plane.onpointerup = plane.onpointercancel = () => { moving = null; paint(); };
  plane.oncontextmenu = event => event.preventDefault();
  plane.onkeydown = event => edit(event);
  plane.onblur = () => { if (held !== null && moving === null) { held = null; paint(); } };
}

/** Keys of a focused panel; unused keys go to the page. */
function edit(event) {
  if (event.ctrlKey || event.metaKey) return;
  const count = points.all.length, {view} = points, far = event.shiftKey ? .05 : .01;
  const moves = {ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, far], ArrowDown: [0, -far]};
  if (event.key === "a") { points.add([view.x + view.w / 2, view.y + view.h / 2]); held = points.all.length - 1; edited(); }
  else if ((event.key === "n" || event.key === "p") && count) {
    held = held === null ? 0 : (held + (event.key === "n" ? 1 : count - 1)) % count;
    say(`point ${held}: ${points.all[held].map(v => Number(v.toFixed(3))).join(", ")}`);
    paint();
  }
  else if (held === null) return;
  else if (event.key === "Delete" || event.key === "Backspace") { points.remove(held); held = null; edited(); }
  else if (event.key === "Escape") { held = null; paint(); }
  else if (event.key in moves) {
    const [dx, dy] = moves[event.key], [x, y] = points.all[held];
    points.grab();
    points.move(held, [x + dx * view.w, y + dy * view.h]);
    edited();
  }
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function undo() { points.undo(); points.fit(!problem.axes); held = null; edited(); }

document.onkeydown = event => {
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !event.target.matches("input[type=number]")) { event.preventDefault(); undo(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, summary")) return;
  if (event.key === " " && event.target.matches("button, .button")) return;
  const keys = {ArrowRight: () => go(step + 1), ArrowLeft: () => go(step - 1), " ": () => steps() > 1 && play(),
                s: solve, d: drawSome, t: train};
  if (!(event.key in keys) || (event.key.startsWith("Arrow") && !steps())) return;
  event.preventDefault();
  keys[event.key]();
};

// Buttons.

$("task").onchange = () => {
  problem = problems.find(one => one.name === $("task").value) || problems[0];
  $("task").value = problem.name;
  $("summary").textContent = problem.summary;
  $("what").textContent = problem.items;
  for (const panel of panels) panel.title.textContent = DIVISIONS[panel.division] + (panel.division === "none" ? `: ${problem.without}` : "");
  $("network").replaceChildren(...problem.networks.map((name, i) => new Option(i ? name : `${name} (default)`, name)));
  if (!problem.networks.length) $("network").append(new Option("of its default run", ""));
  $("fields").replaceChildren(...problem.fields.map(field => {
    const label = document.createElement("label"), input = document.createElement("input");
    const isSwitch = field.whole && field.least === 0 && field.most === 1;
    if (isSwitch) Object.assign(input, {id: `field-${field.name}`, type: "checkbox", checked: Boolean(field.value)});
    else Object.assign(input, {id: `field-${field.name}`, type: "number", min: field.least, max: field.most,
                               step: field.whole ? 1 : "any", value: field.value});
    input.onchange = () => forget();
    label.append(`${field.label} `, input);
    return label;
  }));
  forget();
};
$("network").onchange = () => { follow = $("network").value === LIVE; $("network").dataset.seen = ""; forget(); };
$("draw").onclick = drawSome;
$("clear").onclick = () => replace([]);
$("undo").onclick = undo;
$("solve").onclick = solve;
$("back").onclick = () => go(step - 1);
$("next").onclick = () => go(step + 1);
$("slider").oninput = () => go(Number($("slider").value));
$("play").onclick = play;
$("train").onclick = train;
$("download").onclick = () => save(`${problem.name}.csv`, points.csv(names()));
$("upload").onchange = async () => {
  const [file] = $("upload").files;
  $("upload").value = "";
  try { if (file) replace(parse(await file.text(), names())); }
  catch (error) { say(`${file.name}: ${error.message}`, true); }
};
$("theme").onclick = () => theme(!document.documentElement.classList.contains("dark"));

function theme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  $("theme").textContent = dark ? "light" : "dark";
  $("theme").setAttribute("aria-pressed", dark);
}

// A link may name a task: ?task=tsp&n=200 draws and solves it; step=3 shows that step.
async function begin() {
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  theme(prefers.matches);
  prefers.onchange = () => theme(prefers.matches);
  problems = await ask("/api/problems");
  $("task").replaceChildren(...problems.map(one => new Option(one.name)));
  const wish = new URLSearchParams(location.search);
  for (const name of ["task", "n"]) if (wish.has(name)) $(name).value = wish.get(name);
  $("task").onchange();
  for (const field of problem.fields) if (wish.has(field.name)) setField(field.name, wish.get(field.name));
  await drawSome();
  points.past = [];
  paint();
  watch();
  if (!wish.has("task")) return;
  await solve();
  if (wish.has("step")) go(wish.get("step") - 1);
}
begin().catch(error => say(error.message, true));
