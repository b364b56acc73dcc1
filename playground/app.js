// SPDX-License-Identifier: Apache-2.0
// The page: its state, what changes it, and what it shows. Everything shown follows from the state
// and the requests, so that a link can hold the page, and a step back is the same page earlier.
import { ADAPT_BOUNDS, ADAPT_SETS, CAPACITY_BOUNDS, adapt_text, adapt_yaml, draw_adapt, first_adapt, open_adapt, run_adapt } from "./adapt.js";
import { ALGORITHMS, NAMES, attack, bound_window, settings_of, window_text, yaml_name, yaml_of } from "./algorithms.js";
import { QUESTIONS, choose, is_asked } from "./chooser.js";
import { Lanes, NEVER, open_core } from "./lanes.js";
import { VIEWS, read_link, write_link } from "./link.js";
import { CanvasPen } from "./pen.js";
import { draw_picture, picture_text } from "./pictures.js";
import { read_log } from "./reader.js";
import { MOST, PATTERNS } from "./requests.js";
import { exact_text, time_text } from "./time.js";
import { Scale, draw_timeline } from "./timeline.js";

const S = 1_000_000_000n;
const WINDOWS = [6n * S, 30n * S, 60n * S, 600n * S, 3600n * S, 86400n * S];
const SEGMENTS = [2n, 3n, 4n, 5n, 6n, 10n, 12n, 15n, 20n, 30n, 60n];
// How long a window takes on the screen, in ms.
const SPEEDS = [["1 s", 1000n], ["3 s", 3000n], ["6 s", 6000n], ["20 s", 20000n], ["1 min", 60000n], ["5 min", 300000n]];
const SEEK_STEPS = 1000n;
const hold_ms = { first: 350, next: 90 }; // until a held button sends its second request, and others
const LATEST_SHOWN = 6;
const LINK_WAIT_MS = 300;

const find = (id) => document.getElementById(id);

const first_state = () => ({
  view: "play", name: "token_bucket", compared: ["sliding_log", "fixed_window", "two_counters", "segments", "strict", "token_bucket"],
  p: { n: 5n, w: 60n * S, b: 5n, s: 6n, r: 2n, l: 15n * S, c: 1n },
  pattern: "own", speed: 2, origin: 0n, now: 0n, count: 0, playing: false,
  answers: QUESTIONS.map(() => 0), adapt: first_adapt(),
});
const state = first_state();
let lanes, adapt_core, log_clients = null, frame_at = null, wanted = false, link_timer = null, pens = new Map();

// --- Small helpers ------------------------------------------------------------------------------

function element(tag, text, properties = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(properties))
    if (name in made && !name.includes("-")) made[name] = value;
    else made.setAttribute(name, value);
  return made;
}

const grouped = (number) => `${number}`.replace(/\B(?=(\d{3})+$)/g, ",");

const set_text = (id, text) => { if (find(id).textContent !== text) find(id).textContent = text; };

function pen_of(canvas) {
  if (!pens.has(canvas)) pens.set(canvas, new CanvasPen(canvas));
  return pens.get(canvas);
}

const lane_of = (name) => NAMES.indexOf(name);
const judge = () => lane_of("sliding_log");
const total = () => lanes.count;

// The end of what the timeline shows.
function end_of_time() {
  const { w } = state.p;
  const last = total() > 0 ? lanes.at(total() - 1) : state.origin;
  const least = [state.origin + 3n * w, last + w / 2n, state.now + (state.pattern === "own" ? w / 8n : 0n)];
  return least.reduce((a, b) => (a > b ? a : b));
}

// --- Changing the state -------------------------------------------------------------------------

function changed() {
  if (!wanted) {
    wanted = true;
    requestAnimationFrame(frame);
  }
  clearTimeout(link_timer);
  link_timer = setTimeout(save_link, LINK_WAIT_MS);
}

function save_link() {
  history.replaceState(null, "", write_link(state, lanes.list()));
}

// Lets every algorithm decide all requests again, by the parameters.
function decide_again() {
  const calendar = state.origin;
  state.p.c = lanes.largest_cost();
  const problem = lanes.configure(NAMES.map((name) => ({ ...settings_of(name, state.p), calendar })));
  find("problem").hidden = problem === "";
  set_text("problem", problem);
  changed();
}

function move_to(now, count) {
  state.now = now < state.origin ? state.origin : now;
  state.count = count ?? lanes.until(state.now);
  changed();
}

function load(list, pattern) {
  shut = null;
  state.pattern = pattern;
  state.origin = list.length > 0 && pattern === "log" ? list[0][0] / state.p.w * state.p.w : 0n;
  lanes.load(list);
  decide_again();
  move_to(state.origin);
  fill_controls();
}

// What a closed tap holds back; null: it is open.
let shut = null;

// Closes the tap: requests after now are held back, while time continues and the bucket drains. Opened
// again, those that are still to come then come.
function turn_tap() {
  const list = lanes.list();
  const kept = shut ? [...list, ...shut.filter(([at]) => at > state.now)] : list.slice(0, state.count);
  shut = shut ? null : list.slice(state.count);
  kept.sort((a, b) => (a[0] < b[0] ? -1 : Number(a[0] > b[0])));
  if (state.pattern !== "log") state.pattern = "own";
  lanes.load(kept);
  decide_again();
  state.count = lanes.until(state.now);
  set_text("announce", shut ? `The tap is closed: ${shut.length} requests wait behind it.` : "The tap is open.");
  fill_controls();
}

function load_pattern(name) {
  log_clients = null;
  set_text("log-note", "");
  load(PATTERNS[name].make(state.p), name);
}

function clear() {
  pause();
  log_clients = null;
  set_text("log-note", "");
  load([], "own");
}

function send() {
  if (total() >= MOST) {
    pause();
    set_text("log-note", "10,000 requests are the most: press Clear to continue.");
    return;
  }
  const last = total() === 0 || state.now >= lanes.at(total() - 1);
  if (state.pattern !== "log") state.pattern = "own";
  const i = lanes.insert(state.now, 1n);
  if (!last) decide_again();
  state.count = lanes.until(state.now);
  const outcome = lanes.outcome(lane_of(state.name), i);
  set_text("announce", state.view === "compare" ? `Request ${total()} sent.` : `Request ${i + 1}: ${verdict_text(outcome)}.`);
  fill_controls();
  changed();
}

function play() {
  if (state.pattern !== "own" && state.now >= end_of_time()) move_to(state.origin);
  state.playing = true;
  frame_at = null;
  fill_controls();
  changed();
}

function pause() {
  state.playing = false;
  fill_controls();
}

function step(by) {
  pause();
  const { now, count } = state;
  if (by > 0) {
    if (count < total()) move_to(lanes.at(count), count + 1);
  } else if (count === 0) {
    move_to(state.origin, 0);
  } else if (now > lanes.at(count - 1)) {
    move_to(lanes.at(count - 1), count);
  } else {
    move_to(count > 1 ? lanes.at(count - 2) : state.origin, count - 1);
  }
  if (state.count > 0 && state.view !== "compare")
    set_text("announce", `Request ${state.count}: ${verdict_text(lanes.outcome(lane_of(state.name), state.count - 1))}.`);
}

function open_view(view) {
  state.view = view;
  fill_controls();
  changed();
}

// --- What is shown ------------------------------------------------------------------------------

function wait_text(outcome) {
  if (outcome.allowed) return outcome.delay > 0n ? time_text(outcome.delay) : "–";
  return outcome.retry === NEVER ? "never" : time_text(outcome.retry);
}

function verdict_text(outcome) {
  if (outcome.allowed) return outcome.delay > 0n ? `passes after ${time_text(outcome.delay)}` : "passes";
  return outcome.retry === NEVER ? "denied: 429, and never passes" : `denied: 429, retry after ${time_text(outcome.retry)}`;
}

function show_latest() {
  const lane = lane_of(state.name), rows = [];
  for (let i = state.count - 1; i >= 0 && rows.length < LATEST_SHOWN; i--) {
    const outcome = lanes.outcome(lane, i), row = element("tr");
    row.append(element("td", time_text(lanes.at(i) - state.origin)),
      element("td", outcome.allowed ? (outcome.delay > 0n ? "waits" : "passed") : "denied", { className: outcome.allowed ? "good" : "bad" }),
      element("td", `${outcome.remaining}`), element("td", wait_text(outcome)));
    rows.push(row);
  }
  find("latest").replaceChildren(...rows);
  find("no-decisions").hidden = rows.length > 0;
  find("latest").parentElement.hidden = rows.length === 0;
  if (state.count === 0) {
    set_text("verdict", "");
    return;
  }
  const outcome = lanes.outcome(lane, state.count - 1);
  set_text("verdict", `Request ${state.count} of ${total()}: ${verdict_text(outcome)}`);
  find("verdict").className = `verdict ${outcome.allowed ? "good" : "bad"}`;
}

function scale_of(canvas) {
  return new Scale(state.origin, end_of_time(), canvas.clientWidth);
}

function show_stage() {
  const view = { lanes, lane: lane_of(state.name), name: state.name, p: state.p, origin: state.origin, now: state.now, count: state.count };
  draw_picture(pen_of(find("picture")), view);
  find("picture").setAttribute("aria-label", picture_text(view));
  const canvas = find("timeline"), pen = pen_of(canvas), size = pen.begin();
  const { w } = state.p, window = bound_window(state.name, state.p), worst = lanes.worst(view.lane, state.count, window);
  const shade = state.view === "break" && worst.most > 0n ? { from: worst.from, window, text: `${worst.most} within ${time_text(window)}` } : null;
  draw_timeline(pen, { lanes, lane: view.lane, scale: scale_of(canvas), now: state.now, worst: shade, grid: w, labels: true }, size);
  const passed = lanes.judge(view.lane, judge(), state.count);
  canvas.setAttribute("aria-label", `${state.count} requests until now: ${passed.admitted} passed, ${passed.denied} denied`);
  show_latest();
  if (state.view === "break") show_goal(worst);
}

function show_goal(worst) {
  const algorithm = ALGORITHMS[state.name], { n } = state.p, bound = algorithm.bound(state.p);
  const span = algorithm.held ? "at one time" : `within ${time_text(state.p.w)}`;
  set_text("goal-task", `Let ${2n * n} requests pass ${span}, where the limit is ${n}. The stated bound is ${algorithm.bound_text} = ${bound}.`);
  find("goal-bar").max = Number(2n * n);
  find("goal-bar").value = Number(worst.most > 2n * n ? 2n * n : worst.most);
  const won = worst.most >= 2n * n;
  const said = won ? `${worst.most} of ${2n * n}: twice the limit got through.`
    : worst.most === bound ? `${worst.most} of ${2n * n}: that is its bound. Nobody gets more through.`
      : `${worst.most} of ${2n * n} so far.`;
  set_text("goal-found", said);
  find("goal-found").className = `verdict ${won ? "warn" : worst.most === bound ? "good" : ""}`;
  set_text("goal-reason", algorithm.why);
}

function show_compare() {
  const rows = find("lanes").children;
  state.compared.forEach((name, i) => {
    const lane = lane_of(name), algorithm = ALGORITHMS[name], cells = rows[i].children;
    const canvas = cells[1].firstChild, pen = pen_of(canvas), size = pen.begin();
    const judged = algorithm.held ? undefined : judge();
    draw_timeline(pen, { lanes, lane, judge: judged, scale: scale_of(canvas), now: state.now, grid: state.p.w }, size);
    const found = lanes.judge(lane, judge(), state.count), worst = lanes.worst(lane, state.count, bound_window(name, state.p));
    const bound = algorithm.bound(state.p);
    canvas.setAttribute("aria-label", `${algorithm.title}: ${found.admitted} passed, ${found.denied} denied`);
    const values = [found.admitted, found.denied, algorithm.held ? "–" : found.wrong_allows, algorithm.held ? "–" : found.wrong_denials, worst.most, bound];
    values.forEach((value, column) => {
      const cell = cells[column + 2];
      if (cell.textContent !== `${value}`) cell.textContent = `${value}`;
    });
    cells[4].className = found.wrong_allows > 0n && !algorithm.held ? "warn" : "";
    cells[6].className = worst.most > state.p.n && !algorithm.held ? "warn" : "good";
  });
  set_text("compare-note", `The sliding log is exact, and judges the others: a wrong allow passed where the log denied, a wrong denial the other way. ${grouped(state.count)} of ${grouped(total())} requests so far.`);
}

function show_time() {
  const end = end_of_time(), span = end - state.origin;
  find("seek").value = String((state.now - state.origin) * SEEK_STEPS / (span > 0n ? span : 1n));
  find("seek").setAttribute("aria-valuetext", time_text(state.now - state.origin));
  set_text("clock", `${time_text(state.now - state.origin)} of ${time_text(span)}`);
}

function show_adapt() {
  const { capacity, sets } = state.adapt, runs = sets.map((set) => run_adapt(adapt_core, set, capacity));
  const pen = pen_of(find("adapt-picture"));
  draw_adapt(pen, pen.begin(), capacity, runs);
  find("adapt-picture").setAttribute("aria-label", adapt_text(capacity, runs));
  find("adapt-found").replaceChildren(...runs.map(({ numbers, passed, failed, mean }, i) => {
    const row = element("tr"), cells = [mean.toFixed(1), Math.min(...numbers.slice(numbers.length / 2)), grouped(passed), `${grouped(failed)} (${(failed * 100 / (passed + failed)).toFixed(1)} %)`];
    row.append(element("th", ADAPT_SETS[i][0], { scope: "row" }), ...cells.map((cell) => element("td", `${cell}`)));
    return row;
  }));
}

function show() {
  if (state.view === "choose") return;
  if (state.view === "adapt") {
    show_adapt();
    return;
  }
  if (state.view === "compare") show_compare();
  else show_stage();
  show_time();
}

function frame(at) {
  wanted = false;
  if (state.playing) {
    if (frame_at !== null) {
      // The only numbers of the machine's clock: how long a frame took, in µs.
      const passed = BigInt(Math.min(200_000, Math.max(0, Math.round((at - frame_at) * 1000))));
      state.now += passed * state.p.w / (SPEEDS[state.speed][1] * 1000n);
      state.count = lanes.until(state.now);
      const end = end_of_time();
      if (state.pattern !== "own" && state.now >= end) {
        state.now = end;
        pause();
      }
    }
    frame_at = at;
  }
  show();
  if (state.playing) changed();
}

// --- Controls -----------------------------------------------------------------------------------

// A choice, and what it is in a rules file.
function chip(group, type, value, title, yaml, checked) {
  const label = element("label"), input = element("input", undefined, { type, name: group, value, checked });
  const words = element("span", title);
  if (yaml) words.append(element("code", yaml));
  label.append(input, words);
  return label;
}

function fill_compare() {
  const names = ["algorithm", "requests", "passed", "denied", "wrong allows", "wrong denials", "most in W", "bound"];
  find("lanes").replaceChildren(...state.compared.map((name) => {
    const row = element("tr"), canvas = element("canvas", undefined, { className: "lane", role: "img" }), drawn = element("td", undefined, { className: "draw" });
    drawn.append(canvas);
    row.append(element("th", ALGORITHMS[name].title, { scope: "row" }), drawn);
    for (const column of names.slice(2)) row.append(element("td", undefined, { "data-name": column }));
    return row;
  }));
  pens = new Map([...pens].filter(([canvas]) => canvas.isConnected));
}

function fill_answer() {
  const asked = QUESTIONS.map((_, i) => is_asked(i, state.answers));
  [...find("questions").children].forEach((question, i) => { question.hidden = !asked[i]; });
  const answer = choose(state.answers);
  set_text("answer-title", answer.title);
  set_text("answer-reason", answer.reason);
  set_text("answer-yaml", answer.yaml);
}

// Puts the state into the controls.
function fill_controls() {
  const algorithm = ALGORITHMS[state.name], { p } = state;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const chosen = tab.dataset.view === state.view;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    if (chosen) find("panel").setAttribute("aria-labelledby", tab.id);
  }
  for (const part of document.querySelectorAll("[data-in]")) part.hidden = !part.dataset.in.split(" ").includes(state.view);
  for (const input of document.querySelectorAll("#chips input")) input.checked = input.value === state.name;
  for (const part of document.querySelectorAll("[data-uses]"))
    part.hidden = state.view === "compare" ? !state.compared.some((name) => ALGORITHMS[name].uses === part.dataset.uses) : algorithm.uses !== part.dataset.uses;
  for (const name of ["n", "b", "r"]) if (document.activeElement !== find(name)) find(name).value = `${p[name]}`;
  add_option("w", p.w, window_text(p.w));
  fill_lives();
  for (const name of ["w", "s", "l"]) find(name).value = `${p[name]}`;
  find("speed").value = `${state.speed}`;
  find("pattern").value = state.pattern;
  find("run").textContent = state.playing ? "Pause" : "Play";
  find("client-label").hidden = !log_clients;
  set_text("shut", shut ? "Open the tap" : "Close the tap");
  find("shut").setAttribute("aria-pressed", String(shut !== null));
  set_text("about-title", algorithm.title);
  set_text("about", algorithm.how);
  set_text("about-bound", `Most in any window: ${algorithm.bound_text} = ${algorithm.bound(p)}.`);
  fill_compare();
  fill_rules();
  fill_answer();
  fill_adapt();
}

const ADAPT_FIELDS = { initial: "begins at", increase: "grows by", decrease: "a failure leaves, %" };

function build_adapt() {
  find("adapt-capacity").addEventListener("change", (event) => set_adapt(state.adapt, "capacity", event.target.value, CAPACITY_BOUNDS));
  find("adapt-sets").append(...ADAPT_SETS.map(([title], i) => {
    const row = element("fieldset", undefined, { className: "row" });
    const fields = Object.entries(ADAPT_FIELDS).map(([name, words]) => {
      const [min, max] = ADAPT_BOUNDS[name], label = element("label", `${words} `);
      const input = element("input", undefined, { type: "number", id: `adapt-${name}-${i}`, min: `${min}`, max: `${max}`, step: "1", inputMode: "numeric" });
      input.addEventListener("change", () => set_adapt(state.adapt.sets[i], name, input.value, ADAPT_BOUNDS[name]));
      label.append(input);
      return label;
    });
    const per = element("label", "for each "), select = element("select", undefined, { id: `adapt-per_success-${i}` });
    select.append(element("option", "round trip", { value: "0" }), element("option", "success", { value: "1" }));
    select.addEventListener("change", () => set_adapt(state.adapt.sets[i], "per_success", select.value, ADAPT_BOUNDS.per_success));
    per.append(select);
    fields.splice(2, 0, per);
    row.append(element("legend", title), ...fields);
    return row;
  }));
  find("adapt-legend").append(...[...ADAPT_SETS.map(([title, , colour]) => [title, colour]), ["what the backend takes", "bad"]].map(([title, colour]) => {
    const part = element("span"), mark = element("i", undefined, { className: `key-${colour}-line` });
    part.append(mark, title);
    return part;
  }));
}

function set_adapt(of, name, text, [low, high]) {
  if (/^\d{1,9}$/.test(text)) of[name] = Math.min(Math.max(Number(text), low), high);
  fill_adapt();
  changed();
}

function fill_adapt() {
  find("adapt-capacity").value = `${state.adapt.capacity}`;
  state.adapt.sets.forEach((set, i) => { for (const name of Object.keys(ADAPT_BOUNDS)) find(`adapt-${name}-${i}`).value = `${set[name]}`; });
  set_text("adapt-yaml", adapt_yaml(state.adapt));
}

// The limit of the view, or the limits that it compares.
function fill_rules() {
  const names = state.view === "compare" ? state.compared : [state.name], { title, page } = ALGORITHMS[names[0]];
  set_text("rules-yaml", yaml_of(names, state.p));
  set_text("rules-about", names.length > 1 ? "the choice between them" : title);
  set_text("rules-page", `docs/algorithms/${names.length > 1 ? "index" : page}.md`);
  for (const input of document.querySelectorAll("#chips input, #compared input"))
    input.nextElementSibling.lastChild.textContent = yaml_name(input.value, state.p);
}

function fill_lives() {
  const { w, l } = state.p, lives = [w / 12n, w / 4n, w / 2n, w];
  if (!lives.includes(l)) lives.push(l);
  find("l").replaceChildren(...lives.map((life) => element("option", time_text(life), { value: `${life}` })));
}

// A link may have a value that the list does not.
function add_option(id, value, text) {
  if (![...find(id).options].some((option) => option.value === `${value}`))
    find(id).append(element("option", text, { value: `${value}` }));
}

function build_controls() {
  find("chips").append(...NAMES.map((name) => chip("algorithm", "radio", name, ALGORITHMS[name].title, yaml_name(name, state.p))));
  find("compared").append(...NAMES.map((name) => chip("compared", "checkbox", name, ALGORITHMS[name].title, yaml_name(name, state.p), state.compared.includes(name))));
  find("w").append(...WINDOWS.map((w) => element("option", window_text(w), { value: `${w}` })));
  find("s").append(...SEGMENTS.map((s) => element("option", `${s}`, { value: `${s}` })));
  find("speed").append(...SPEEDS.map(([title], i) => element("option", title, { value: `${i}` })));
  find("pattern").append(element("option", "your own", { value: "own" }),
    ...Object.entries(PATTERNS).map(([name, { title }]) => element("option", title, { value: name })),
    element("option", "an access log", { value: "log", disabled: true }));
  find("questions").append(...QUESTIONS.map(({ title, answers, yaml }, i) => {
    const set = element("fieldset"), chips = element("div", undefined, { className: "chips" });
    chips.append(...answers.map((answer, j) => chip(`question-${i}`, "radio", `${j}`, answer, yaml[j], state.answers[i] === j)));
    set.append(element("legend", title), chips);
    return set;
  }));
}

function set_number(name, text) {
  const low = name === "r" ? 0n : 1n;
  if (!/^\d{1,4}$/.test(text) || BigInt(text) < low || BigInt(text) > 1000n) {
    find(name).setAttribute("aria-invalid", "true");
    find("problem").hidden = false;
    set_text("problem", `${name.toUpperCase()} must be a whole number from ${low} to 1000.`);
    return;
  }
  find(name).removeAttribute("aria-invalid");
  set_parameter(name, BigInt(text));
}

// Patterns follow the limit; requests of your own and of logs stay.
function set_parameter(name, value) {
  const { p } = state, before = p[name];
  p[name] = value;
  if (name === "w") p.l = p.l * value / before || 1n;
  if (name === "r" && p.r > p.n) p.r = p.n;
  if (state.pattern in PATTERNS && (name === "n" || name === "w")) {
    const place = state.now - state.origin;
    load(PATTERNS[state.pattern].make(p), state.pattern);
    move_to(state.origin + (name === "w" ? place * value / before : place));
  }
  if (p.r > p.n) p.r = p.n;
  decide_again();
  fill_controls();
}

async function open_log(file) {
  const found = await read_log(file).catch((error) => ({ total: 0, notes: [`${error.message}.`] }));
  if (found.total === 0) {
    set_text("log-note", `${file.name.slice(0, 40)}: no line is a request. ${found.notes.join(" ")}`);
    return;
  }
  log_clients = found.clients;
  find("client").replaceChildren(...found.clients.map(([client, list], i) =>
    element("option", `${client === "" ? "all together" : client.slice(0, 40)} (${list.length})`, { value: `${i}` })));
  const some = found.total > MOST ? ` The first ${MOST} of a client are kept.` : "";
  set_text("log-note", `${found.total} requests. ${found.notes.join(" ")}${some}`);
  load_client(0);
}

function load_client(i) {
  pause();
  find("client").value = `${i}`;
  load(log_clients[i][1], "log");
}

// Where the browser does not let a page copy, `place` is selected.
async function copy(text, button, place) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Press Ctrl+C";
    if (place) getSelection().selectAllChildren(place);
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

// A press sends one request; held, many. The first of all lets time run, unless the reader prefers
// less motion.
function holdable(button) {
  let timer = null;
  const stop = () => { clearTimeout(timer); timer = null; };
  const again = () => { send(); timer = setTimeout(again, hold_ms.next); };
  const press = () => {
    const first = total() === 0 && state.pattern === "own" && state.view !== "compare";
    if (first && !state.playing && !matchMedia("(prefers-reduced-motion: reduce)").matches) play();
    send();
    stop();
    timer = setTimeout(again, hold_ms.first);
  };
  button.addEventListener("pointerdown", (event) => { if (event.button === 0) press(); });
  for (const name of ["pointerup", "pointerleave", "pointercancel", "blur"]) button.addEventListener(name, stop);
  // A click without a pointer: by a keyboard that is not a space, or by assistive technology.
  button.addEventListener("click", (event) => { if (event.detail === 0) { press(); stop(); } });
  button.addEventListener("contextmenu", (event) => event.preventDefault());
  return { press, stop };
}

function listen() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  for (const tab of tabs) {
    tab.addEventListener("click", () => open_view(tab.dataset.view));
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      event.stopPropagation();
      const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
      next.focus();
      open_view(next.dataset.view);
    });
  }
  find("chips").addEventListener("change", (event) => {
    state.name = event.target.value;
    fill_controls();
    changed();
  });
  find("compared").addEventListener("change", () => {
    const chosen = [...document.querySelectorAll("#compared input:checked")].map((input) => input.value);
    state.compared = chosen.length > 0 ? NAMES.filter((name) => chosen.includes(name)) : ["sliding_log"];
    fill_controls();
    changed();
  });
  find("questions").addEventListener("change", (event) => {
    state.answers[Number(event.target.name.split("-")[1])] = Number(event.target.value);
    fill_answer();
    changed();
  });
  for (const name of ["n", "b", "r"]) find(name).addEventListener("change", (event) => set_number(name, event.target.value));
  for (const name of ["w", "s", "l"]) find(name).addEventListener("change", (event) => set_parameter(name, BigInt(event.target.value)));
  find("speed").addEventListener("change", (event) => { state.speed = Number(event.target.value); changed(); });
  find("pattern").addEventListener("change", (event) => {
    const { value } = event.target; // pause() puts the state into the controls
    pause();
    if (value === "own") clear();
    else load_pattern(value);
  });
  find("client").addEventListener("change", (event) => load_client(Number(event.target.value)));
  find("log").addEventListener("change", (event) => {
    if (event.target.files[0]) open_log(event.target.files[0]);
    event.target.value = ""; // so that the same file can be opened again
  });
  find("clear").addEventListener("click", clear);
  find("shut").addEventListener("click", turn_tap);
  find("run").addEventListener("click", () => (state.playing ? pause() : play()));
  find("start").addEventListener("click", () => { pause(); move_to(state.origin, 0); });
  find("back").addEventListener("click", () => step(-1));
  find("forward").addEventListener("click", () => step(1));
  find("seek").addEventListener("input", (event) => {
    pause();
    move_to(state.origin + (end_of_time() - state.origin) * BigInt(event.target.value) / SEEK_STEPS);
  });
  find("timeline").addEventListener("pointerdown", (event) => {
    pause();
    move_to(scale_of(find("timeline")).time(event.offsetX));
  });
  find("attack").addEventListener("click", () => {
    pause();
    load(attack(state.name, state.p), "own");
    move_to(lanes.at(total() - 1));
    find("goal-why").open = true;
  });
  find("copy-link").addEventListener("click", (event) => { save_link(); copy(location.href, event.target); });
  for (const [button, place] of [["copy-yaml", "answer-yaml"], ["copy-rules", "rules-yaml"], ["copy-adapt", "adapt-yaml"]])
    find(button).addEventListener("click", (event) => copy(find(place).textContent, event.target, find(place)));
  find("try").addEventListener("click", () => {
    state.name = choose(state.answers).name;
    open_view("play");
    window.scrollTo(0, 0);
  });
  const holds = [holdable(find("tap")), holdable(find("compare-tap"))];
  listen_keys(holds[0]);
  for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());
  document.addEventListener("dragenter", () => document.body.classList.add("drop"));
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("drop"); });
  document.addEventListener("drop", (event) => {
    document.body.classList.remove("drop");
    if (event.dataTransfer.files[0]) open_log(event.dataTransfer.files[0]);
  });
  window.addEventListener("resize", changed);
  // The event has the address that was opened: a link that was saved meanwhile does not count.
  window.addEventListener("hashchange", (event) => open_link(event.newURL.slice(event.newURL.indexOf("#"))));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

function listen_keys(hold) {
  const is_ours = (event) => !["choose", "adapt"].includes(state.view) && !event.ctrlKey && !event.metaKey && !event.altKey
    && !event.target.closest("input:not([type=radio]), select, textarea, summary, a");
  document.addEventListener("keydown", (event) => {
    if (!is_ours(event)) return;
    if (event.key === " " && (!event.target.closest("button, input") || event.target.classList.contains("main"))) {
      if (event.target.id === "run") return;
      event.preventDefault();
      if (!event.repeat) hold.press();
    } else if (event.key === "p") {
      if (state.playing) pause();
      else play();
    } else if (event.target.closest("input, [role=tab]")) {
      return;
    } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      event.preventDefault();
      step(event.key === "ArrowRight" ? 1 : -1);
    }
  });
  document.addEventListener("keyup", (event) => { if (event.key === " ") hold.stop(); });
}

function open_link(hash) {
  clearTimeout(link_timer);
  Object.assign(state, first_state());
  const list = read_link(hash, state, SPEEDS.length), { now, count } = state;
  for (const input of document.querySelectorAll("#compared input")) input.checked = state.compared.includes(input.value);
  for (const [i, answer] of state.answers.entries())
    document.querySelector(`input[name=question-${i}][value="${answer}"]`).checked = true;
  if (state.p.r > state.p.n) state.p.r = state.p.n;
  if (list) load(list, state.pattern in PATTERNS ? "own" : state.pattern);
  else if (state.pattern in PATTERNS) load_pattern(state.pattern);
  else load([], "own");
  move_to(state.origin + now, count < 0 || count > total() ? undefined : count);
  document.documentElement.dataset.ready = "yes"; // for the tests
}

async function start() {
  try {
    lanes = new Lanes(await open_core());
    adapt_core = await open_adapt();
  } catch (error) {
    find("problem").hidden = false;
    set_text("problem", `This browser cannot run the playground, which needs WebAssembly with 64-bit integers and DecompressionStream: ${error.message}`);
    return;
  }
  build_controls();
  build_adapt();
  listen();
  find("dashboard").hidden = location.pathname !== "/playground/"; // elsewhere there is none
  open_link(location.hash);
}

// For the tests: the state, what drawing has cost, and one redraw.
globalThis.playground = {
  state, hold_ms, redraw: show,
  strokes: () => [...pens.values()].reduce((sum, pen) => sum + pen.strokes, 0),
  latest: () => exact_text(state.now - state.origin),
};

start();
