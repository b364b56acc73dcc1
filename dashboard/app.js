// SPDX-License-Identifier: Apache-2.0
// The dashboard: which view is shown, who may see it, and what keeps it live.

import { Live, session, whenLoggedOut } from "./api.js";
import { Denials } from "./denials.js";
import { find, h, showProblem } from "./dom.js";
import { Health } from "./health.js";
import { Key } from "./key.js";
import { Limits } from "./limits.js";
import { showClosed, showLogin } from "./login.js";
import { Overview } from "./overview.js";
import { Rules } from "./rules.js";
import { Standing } from "./standing.js";

// What views share: the newest snapshot, what the caller may do, and where problems are shown.
const live = { snapshot: null, may: {}, problem: showProblem };
const views = new Map([["overview", new Overview(live)], ["limits", new Limits(live)], ["denials", new Denials(live)], ["key", new Key(live)],
  ["standing", new Standing(live)], ["health", new Health(live)], ["rules", new Rules(live)]]);
const stream = new Live((snapshot) => {
  const missed = live.snapshot !== null && snapshot.second > live.snapshot.second + 1;
  live.snapshot = snapshot;
  find("node").textContent = snapshot.node;
  document.title = `weir ${snapshot.node}`;
  current?.onSnapshot?.(snapshot);
  if (missed) current?.onMissed?.();
  document.documentElement.dataset.second = snapshot.second;
}, setLive);
let current = null;
let leave = new AbortController();

function setLive(state) {
  find("live").textContent = { live: "live", lost: "no connection", paused: "paused" }[state];
  find("live").className = `badge ${state}`;
}

// "#key/user%3Dann" is the view "key" of "user=ann".
function route() {
  const [name, ...rest] = location.hash.slice(1).split("/");
  const known = views.has(name) ? name : "overview";
  let of = "";
  try {
    of = decodeURIComponent(rest.join("/"));
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
}

function stop() {
  stream.stop();
  leave.abort();
  current = null;
  find("views").replaceChildren();
  find("log-out").hidden = true;
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
  find("log-out").hidden = !live.may.session;
  find("views").replaceChildren(...[...views].filter(([, view]) => view.name).map(([name, view]) =>
    h("li", null, h("a", { href: `#${name}`, "data-view": name }, view.name))));
  route();
  stream.start();
  document.documentElement.dataset.ready = "open";
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
start();
