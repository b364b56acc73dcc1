// SPDX-License-Identifier: Apache-2.0
// The dashboard: which view is shown, who may see it, and what keeps it live.

import { session, whenLoggedOut } from "./api.js";
import { Denials } from "./denials.js";
import { find, h, showProblem } from "./dom.js";
import { localZone, setUtc } from "./format.js";
import { Health } from "./health.js";
import { Key } from "./key.js";
import { Limits } from "./limits.js";
import { Live } from "./live.js";
import { showClosed, showLogin } from "./login.js";
import { Overview } from "./overview.js";
import { Rules } from "./rules.js";
import { Standing } from "./standing.js";

// What views share: the newest snapshot, what the caller may do, and where problems are shown.
const live = { snapshot: null, may: {}, problem: showProblem, newest, marks: [] };
const views = new Map([["overview", new Overview(live)], ["limits", new Limits(live)], ["denials", new Denials(live)], ["key", new Key(live)],
  ["standing", new Standing(live)], ["health", new Health(live)], ["rules", new Rules(live)]]);
const stream = new Live((snapshot) => {
  const missed = live.snapshot !== null && snapshot.second > live.snapshot.second + 1;
  live.snapshot = snapshot;
  mark(snapshot);
  find("node").textContent = snapshot.node;
  heard = Date.now();
  if (document.body.classList.contains("stale")) setLive("live"); // in place of the age
  showTrouble(snapshot.trouble ?? []);
  if (current && newest(current)) current.onSnapshot?.(snapshot);
  if (missed) current?.onMissed?.();
  document.documentElement.dataset.second = snapshot.second;
}, setLive);
let current = null;
let heard = 0; // when the last snapshot came
let leave = new AbortController();

// The newest snapshot, if it has the parts that a view shows; else null.
function newest({ parts = [] }) {
  return live.snapshot && parts.every((part) => part in live.snapshot) ? live.snapshot : null;
}

const MARKS = 50;

// Remembers when the server began, and when it took rules: charts mark these times.
function mark({ started_s: started, reloads }) {
  for (const second of [started, reloads.loaded_s])
    if (second && !live.marks.includes(second)) live.marks.push(second);
  live.marks.splice(0, live.marks.length - MARKS);
}

const QUIET_MS = 3000; // a snapshot comes each second

// What is wrong now, most urgent first, on top, in the title, and as the colour of the icon.
function showTrouble(list) {
  const bad = list.some((one) => one.bad);
  const text = list.map((one) => one.text).join("\u0001");
  const line = find("trouble");
  document.title = `${bad ? "● " : list.length > 0 ? "○ " : ""}weir ${live.snapshot.node}${list.length > 0 ? `: ${list[0].text}` : ""}`;
  setIcon(bad ? "#b42318" : list.length > 0 ? "#8a5a00" : "#17693f");
  if (line.dataset.text === text) return;
  line.dataset.text = text;
  line.hidden = list.length === 0;
  line.className = bad ? "panel bad" : "panel";
  line.replaceChildren(...list.flatMap((one, i) => [i > 0 ? " · " : "", h("a", { href: `#${one.link}` }, one.text)]));
}

function setIcon(colour) {
  const picture = `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="${colour}"/></svg>`)}`;
  if (find("icon").getAttribute("href") !== picture) find("icon").setAttribute("href", picture);
}

// A server that says nothing is not alive: all of the page is greyed, and says how old it is.
function showAge() {
  const age = Date.now() - heard;
  const stale = heard > 0 && !document.hidden && current !== null && age > QUIET_MS;
  document.body.classList.toggle("stale", stale);
  if (!stale) return;
  find("live").textContent = `last data ${Math.round(age / 1000)} s ago`;
  find("live").className = "badge lost";
  document.title = `✕ weir ${live.snapshot?.node ?? ""}: no data`;
  setIcon("#616e7c");
}
setInterval(showAge, 1000);

function setLive(state) {
  find("live").textContent = { live: "live", lost: "no connection", paused: "paused" }[state];
  find("live").className = `badge ${state}`;
}

// "#key/user%3Dann" is the view "key" of "user=ann"; "#denials?limit=api" is one with a choice, which
// the view reads itself.
function route() {
  const [, name, rest] = /^#?([^/?]*)(.*)$/s.exec(location.hash);
  const known = views.has(name) ? name : "overview";
  let of = "";
  try {
    of = rest.startsWith("?") ? rest : decodeURIComponent(rest.slice(1));
  } catch {
    // a link that was cut: the view without its subject
  }
  leave.abort();
  leave = new AbortController();
  showProblem("");
  for (const link of find("views").querySelectorAll("a"))
    if (link.dataset.view === known) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  current = views.get(known);
  current.show(find("main"), leave.signal, of);
  stream.show(current.parts ?? []);
}

function stop() {
  stream.stop();
  leave.abort();
  current = null;
  find("views").replaceChildren();
  find("log-out").hidden = true;
  find("times").hidden = true;
}

async function start() {
  stop();
  try {
    live.may = await session.look();
  } catch (error) {
    showProblem(error.message);
    setTimeout(start, 2000);
    return;
  }
  showProblem("");
  if (!live.may.may_read) {
    if (live.may.token) showLogin(find("main"), start);
    else showClosed(find("main"));
    document.documentElement.dataset.ready = "closed";
    return;
  }
  find("live").textContent = "connecting";
  find("times").hidden = false;
  find("log-out").hidden = !live.may.session;
  find("log-out").textContent = live.may.name ? `Log out ${live.may.name}` : "Log out";
  find("views").replaceChildren(...[...views].filter(([, view]) => view.name).map(([name, view]) =>
    h("li", null, h("a", { href: `#${name}`, "data-view": name }, view.name))));
  route();
  stream.start();
  document.documentElement.dataset.ready = "open";
}

// Which zone the times have: the reader's, or UTC, which this browser remembers.
const REMEMBERED = "weir-times";

function nameZone() {
  find("zone").options[0].textContent = localZone();
}

function chooseZone(name) {
  find("zone").value = name;
  setUtc(name === "utc");
  nameZone();
}

function startZone() {
  let name = "local";
  try {
    name = localStorage.getItem(REMEMBERED) === "utc" ? "utc" : "local";
  } catch {
    // a browser that keeps nothing
  }
  chooseZone(name);
  find("zone").addEventListener("change", () => {
    chooseZone(find("zone").value);
    try {
      localStorage.setItem(REMEMBERED, find("zone").value);
    } catch {
      // it holds for this window
    }
    if (current) route();
  });
  setInterval(nameZone, 60000); // summer time begins or ends
}

find("log-out").addEventListener("click", async () => {
  try {
    await session.end();
  } catch {
    // it has ended already
  }
  start();
});
whenLoggedOut(() => {
  if (document.documentElement.dataset.ready === "open") start();
});
addEventListener("hashchange", () => {
  if (current) route();
});
startZone();
start();
