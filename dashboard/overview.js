// SPDX-License-Identifier: Apache-2.0
// The first view: traffic and the share of 429, the busiest limits, who uses and who is denied most.

import { ask, poll, query } from "./api.js";
import { Chart, sparkline } from "./chart.js";
import { bar, h, setRows, table } from "./dom.js";
import { bytes, count, measured, micros, percent, used } from "./format.js";
import { keyLink, limitLink } from "./names.js";
import { blankUnknown } from "./series.js";

const SPARK_SECONDS = 60;
const POINTS = 600; // seconds of a chart
const FRONTS = ["http", "grpc", "redis", "nginx", "library"];
// Of each limit of a snapshot, after its name.
const FIELDS = ["allowed", "denied", "delayed", "cost", "shadow_denied", "distinct_keys", "edge_allowed", "edge_denied", "edge_shadow_denied"];
// Why requests are refused: the series, and the name of its row among the limits.
const CAUSES = [["refused_limit", "by limits", "bad"], ["refused_standing", "by standing", "other"], ["refused_unknown", "unknown callers", "fourth"],
  ["refused_challenge", "by challenges", "third"], ["refused_store", "store failed", "fifth"], ["refused_unreadable", "not readable", "good"]];
// Those that no limit has counted have a row of their own among the limits.
const ROWS = new Map([["refused_standing", "standing"], ["refused_unknown", "unknown callers"], ["refused_store", "store failed"], ["refused_unreadable", "not readable"]]);
const GROUPS = [["org", "Organisations"], ["user", "Users"], ["client.ip", "Addresses"]];

// A number with its name.
function tile(name, id) {
  const value = h("strong", { id });
  const note = h("span", { class: "muted" });
  return { element: h("div", { class: "tile" }, h("span", null, name), value, note), value, note };
}

// What a limit did in a second, of all that decide with it.
function verdicts(of) {
  const denied = of.denied + of.edge_denied;
  const shadow = of.shadow_denied + of.edge_shadow_denied;
  return { checks: of.allowed + of.edge_allowed + denied + shadow, denied, shadow };
}

// The first of a group of callers, with the name of the group.
function named(title, link) {
  const cell = h("span", null, h("small", { class: "muted group" }, title), link);
  cell.key = `${title}${link.key ?? link.textContent}`;
  return cell;
}

// What to type first, where the server takes requests.
function firstRequest(http) {
  if (!http) return "";
  const path = http.startsWith("unix:") ? `--unix-socket ${http.slice(5)} http://localhost` : http.replace(/\/\/(\*|0\.0\.0\.0|\[::\]):/, `//${location.hostname}:`);
  return ` To see one, send a request: curl ${path}/v1/check --json '{"path": "/", "attributes": {"user": "ann"}}'`;
}

export class Overview {
  constructor(live) {
    this.live = live;
    this.name = "Overview";
    this.parts = ["whole", "limits", "keys", "callers", "denied", "table", "store"];
    this.recent = new Map(); // checks and denials of each limit in the last minute
  }

  show(main, signal) {
    this.signal = signal;
    this.tiles = {
      requests: tile("Requests a second", "tile-requests"),
      denied: tile("Refused", "tile-denied"),
      latency: tile("weir adds, p99", "tile-latency"),
      keys: tile("Keys in the table", "tile-keys"),
      store: tile("Store", "tile-store"),
    };
    this.traffic = new Chart("Requests a second", [
      { field: "denied", name: "refused", kind: "bad" }, { field: "shadow", name: "would be denied (shadow)", kind: "other" },
      { field: "allowed", name: "allowed", kind: "good" }], { stacked: true, quiet: true, show: count, id: "chart-traffic" });
    this.share = new Chart("Refused, in percent of requests", [...CAUSES.map(([field, name, kind]) => ({ field, name, kind })),
      { field: "edge", name: "at the edge", kind: "muted" }],
      { stacked: true, quiet: true, show: (value) => `${Math.round(value * 10) / 10} %`, id: "chart-share" });
    this.latency = new Chart("Latency", [
      { field: "latency_p99_us", name: "weir p99", kind: "good" }, { field: "latency_p50_us", name: "weir p50", kind: "other" }],
      { show: micros, id: "chart-latency" });
    this.fronts = new Chart("Where requests are decided, a second", [
      { field: "http", name: "HTTP", kind: "good" }, { field: "grpc", name: "gRPC", kind: "other" },
      { field: "redis", name: "Redis protocol", kind: "third" }, { field: "nginx", name: "edge: nginx", kind: "fourth" },
      { field: "library", name: "edge: libweir", kind: "fifth" }], { stacked: true, show: count, id: "chart-fronts" });
    this.range = h("select", { id: "range", onchange: () => this.load() },
      h("option", { value: "1s" }, "10 minutes"), h("option", { value: "1min" }, "24 hours"));
    this.limit = h("select", { id: "of-limit", onchange: () => this.load() }, h("option", { value: "" }, "the whole server"));
    this.limits = table("The busiest limits", [{ title: "limit", left: true }, "checks/s", "denied/s", "denied", "last minute"], "busy-limits");
    this.callers = table("Top consumers of the last minute", [{ title: "who", left: true }, "requests", "share of requests", "refused"], "top-callers");
    this.keys = table("Busiest keys of limits in the last minute", [{ title: "key", left: true }, { title: "limit", left: true }, "checks", "of its limit"], "top-keys");
    this.denied = table("Top denied of the last minute", [{ title: "key", left: true }, { title: "limit", left: true }, "denied", "share"], "top-denied");
    this.routes = table("Hottest routes of the last minute", [{ title: "route", left: true }, "requests", "denied", "denied share"], "top-routes");
    main.replaceChildren(
      h("section", { class: "tiles", "aria-label": "Now" }, Object.values(this.tiles).map((one) => one.element)),
      h("div", { class: "row" }, h("label", null, "Traffic of ", this.limit), h("label", null, "over ", this.range)),
      h("div", { class: "two" }, this.traffic.element, this.share.element),
      h("section", { class: "panel" }, h("h2", null, "Busiest limits"), this.limits.element),
      h("div", { class: "two" },
        h("section", { class: "panel" }, h("h2", null, "Top consumers"), this.callers.element),
        h("section", { class: "panel" }, h("h2", null, "Top denied"), this.denied.element),
        h("section", { class: "panel" }, h("h2", null, "Busiest keys"), this.keys.element)),
      h("div", { class: "two" },
        h("section", { class: "panel" }, h("h2", null, "Hottest routes"), this.routes.element), this.fronts.element),
      this.latency.element);
    if (this.live.newest(this)) this.onSnapshot(this.live.newest(this));
    this.load();
    this.loadRecent();
    poll(() => this.loadRoutes(), 10, signal, this.live.problem);
    // A day's points come once a minute.
    poll(async () => {
      if (this.range.value === "1min" && this.data?.step === 60) await this.load();
    }, 60, signal, this.live.problem);
  }

  // The series of what is chosen, whole; snapshots go on from there.
  async load() {
    const resolution = this.range.value;
    const chosen = this.limit.value;
    try {
      // Of latency and fronts there is only the whole: a limit that is chosen freezes none of them.
      const [data, whole] = await Promise.all([this.series(resolution, chosen), chosen ? this.series(resolution, "") : null]);
      if (resolution !== this.range.value || chosen !== this.limit.value) return;
      this.data = data;
      this.wholeData = whole ?? data;
      this.draw();
    } catch (error) {
      if (error.name !== "AbortError") this.live.problem(error.message);
    }
  }

  // The minute that runs has no whole number yet, which would look like a fall: it is left out.
  async series(resolution, limit) {
    const { from_s: from, resolution_s: step, until_s: until, values, gaps } = await ask(
      query("/v1/series", { resolution, limit, count: resolution === "1s" ? POINTS : 1440 }), { signal: this.signal });
    for (const list of step === 1 ? [] : Object.values(values))
      while (list.length > 0 && from + list.length * step > until) list.pop();
    return { from, step, values, gaps };
  }

  // What limits did in the minute before the page was opened.
  async loadRecent() {
    try {
      const found = await ask(query("/v1/series", { limit: "*", count: SPARK_SECONDS }), { signal: this.signal });
      for (const [name, series] of Object.entries(found.limits)) {
        const before = series.allowed.map((_, i) => ({ second: found.from_s + i,
          ...verdicts(Object.fromEntries(FIELDS.map((field) => [field, series[field][i]]))) }))
          .filter((one) => one.checks > 0);
        const known = this.recent.get(name) ?? [];
        const all = [...before, ...known.filter((one) => one.second > found.from_s + found.count - 1)];
        if (all.length > 0) this.recent.set(name, all);
        else this.recent.delete(name);
      }
    } catch {
      // too many limits for one answer: the list fills as they are used
    }
  }

  async loadRoutes() {
    const found = await ask("/v1/use/top?count=1", { signal: this.signal });
    setRows(this.routes.body, found.routes.slice(0, 10).map((route) => ({
      id: route.route, left: [0],
      cells: [route.route, count(route.requests), count(route.denied), percent(route.denied, route.requests)],
    })), "No request in the last minute has met a limit.", 4);
  }

  draw() {
    for (const data of [this.data, this.wholeData]) blankUnknown(data, this.live);
    const { from, step, values } = this.data;
    const length = values.allowed.length;
    const sum = (i, ...fields) => fields.reduce((all, field) => all + (values[field]?.[i] ?? 0), 0);
    const each = (of) => Array.from({ length }, (_, i) => (values.allowed[i] === null ? null : of(i)));
    const { marks } = this.live;
    const rate = (...fields) => each((i) => sum(i, ...fields) / step);
    // Of the whole, requests; of a limit, its verdicts, which have no causes.
    const whole = values.requests !== undefined;
    const total = (i) => sum(i, "allowed", "denied", "edge_allowed", "edge_denied", ...(whole ? [] : ["shadow_denied", "edge_shadow_denied"]));
    const part = (i, ...fields) => (total(i) > 0 ? (sum(i, ...fields) / total(i)) * 100 : 0);
    const shares = Object.fromEntries(CAUSES.map(([field]) => [field, each((i) => part(i, whole || field !== "refused_limit" ? field : "denied"))]));
    this.traffic.set({ from, step, marks, values: { allowed: rate("allowed", "edge_allowed"), denied: rate("denied", "edge_denied"),
      shadow: whole ? each(() => 0) : rate("shadow_denied", "edge_shadow_denied") } });
    this.share.set({ from, step, marks, values: { ...shares, edge: each((i) => part(i, "edge_denied")) } });
    const { values: all, ...time } = this.wholeData;
    if (!all.requests) return;
    this.fronts.set({ ...time, marks, values: Object.fromEntries(FRONTS.map((front) =>
      [front, all[front].map((value) => (value === null ? null : value / time.step))])) });
    this.latency.set({ ...time, marks, values: all });
  }

  // Appends a second to the series that are shown.
  append(second, point, data = this.data) {
    if (!data || data.step !== 1) return;
    const next = data.from + data.values.allowed.length;
    if (second - next >= POINTS) { // a server that has just begun, or a machine that slept
      this.load();
      return;
    }
    for (let at = next; at <= second; at++)
      for (const [field, list] of Object.entries(data.values)) {
        list.push(at === second ? point[field] ?? 0 : null); // what was missed is a gap
        if (list.length > POINTS) list.shift();
      }
    if (second >= next) data.from = second - data.values.allowed.length + 1;
    this.draw();
    // Between the answer with the series and the first snapshot, or while another answer was under way:
    // the server has what was in these seconds.
    if (second > next && !this.filling) this.filling = this.load().finally(() => { this.filling = null; });
  }

  onSnapshot(snapshot) {
    const { whole } = snapshot;
    const edge = whole.nginx + whole.library;
    const requests = whole.requests + edge;
    const denied = whole.denied + whole.edge_denied;
    this.tiles.requests.value.textContent = count(requests);
    this.tiles.requests.note.textContent = edge > 0 ? `${percent(edge, requests)} of them at the edge` : "";
    this.tiles.denied.value.textContent = percent(denied, requests);
    this.tiles.denied.note.textContent = `${count(denied)} a second`;
    this.tiles.latency.value.textContent = measured(whole.latency_p99_us);
    this.tiles.latency.note.textContent = `p50 ${measured(whole.latency_p50_us)}`;
    const { places, share } = used(snapshot.table);
    this.tiles.keys.value.textContent = places;
    this.tiles.keys.note.textContent = `${share} of ${bytes(snapshot.table.bytes)}`;
    const { store } = snapshot;
    this.tiles.store.value.textContent = !store ? "this node" : store.up === store.workers ? "reached" : "not reached";
    this.tiles.store.note.textContent = !store ? "the table in memory or a file"
      : store.up === store.workers ? `p99 ${measured(whole.store_p99_us)}` : store.refusal || `by ${store.workers - store.up} of ${store.workers} workers`;
    this.tiles.store.element.classList.toggle("bad", Boolean(store) && store.up < store.workers);
    this.showLimits(snapshot);
    this.showKeys(snapshot);
    const chosen = this.limit.value;
    const point = chosen ? snapshot.limits.find(([name]) => name === chosen) : null;
    if (chosen) this.append(snapshot.second, whole, this.wholeData);
    this.append(snapshot.second, chosen ? Object.fromEntries(FIELDS.map((field, i) => [field, point?.[i + 1] ?? 0])) : whole);
  }

  // Snapshots are missing between this one and the last: the server has what was in them.
  onMissed() {
    this.recent.clear();
    this.load();
    this.loadRecent();
  }

  showLimits(snapshot) {
    const put = (name, one) => {
      if (!this.recent.has(name)) this.recent.set(name, []);
      this.recent.get(name).push({ second: snapshot.second, ...one });
    };
    for (const [name, ...values] of snapshot.limits)
      put(name, verdicts(Object.fromEntries(FIELDS.map((field, i) => [field, values[i]]))));
    for (const [field, name] of ROWS) {
      const denied = snapshot.whole[field];
      if (denied > 0) put(name, { checks: denied, denied, shadow: 0 });
    }
    const chosen = this.limit.value;
    const rows = [];
    for (const [name, list] of this.recent) {
      while (list.length > 0 && list[0].second <= snapshot.second - SPARK_SECONDS) list.shift();
      if (list.length === 0) {
        this.recent.delete(name);
        continue;
      }
      const seconds = new Array(SPARK_SECONDS).fill(0);
      let checks = 0;
      let denied = 0;
      let shadow = 0;
      for (const one of list) {
        seconds[SPARK_SECONDS - 1 - (snapshot.second - one.second)] = one.checks;
        checks += one.checks;
        denied += one.denied;
        shadow += one.shadow;
      }
      const now = list[list.length - 1].second === snapshot.second ? list[list.length - 1] : { checks: 0, denied: 0, shadow: 0 };
      const share = shadow > 0 ? bar((shadow / checks) * 100, `shadow: ${percent(shadow, checks)}`, false) : bar((denied / checks) * 100, percent(denied, checks), denied > 0);
      rows.push({ id: name, checks, left: [0],
        cells: [[...ROWS.values()].includes(name) && name !== "standing" ? name : limitLink(name), count(now.checks), count(now.denied),
          share, sparkline(seconds, "good")] });
    }
    rows.sort((a, b) => b.checks - a.checks);
    setRows(this.limits.body, rows.slice(0, 20), `No limit was used in the last minute.${firstRequest(snapshot.http)}`, 5);
    const rowNames = [...ROWS.values()];
    const names = rows.map((row) => row.id).filter((name) => !rowNames.includes(name)).sort();
    const shown = [...this.limit.options].map((option) => option.value).slice(1);
    if (chosen && !names.includes(chosen)) names.push(chosen);
    if (names.join("\n") !== shown.join("\n") && document.activeElement !== this.limit) {
      this.limit.replaceChildren(h("option", { value: "" }, "the whole server"), ...names.map((name) => h("option", { value: name }, name)));
      this.limit.value = chosen;
    }
  }

  showKeys(snapshot) {
    setRows(this.keys.body, snapshot.keys.map((key) => ({
      id: `${key.limit}\n${key.key}`, left: [0, 1],
      cells: [keyLink(key), limitLink(key.limit, key), count(key.requests),
        key.limit === "standing" ? "–" : bar(key.used_percent, `${key.used_percent} %`, key.used_percent >= 100)],
    })), "No key was seen in the last minute.", 4);
    const { callers, requests } = snapshot.callers;
    setRows(this.callers.body, GROUPS.flatMap(([kind, title]) => {
      const found = callers.filter((caller) => caller.values[0]?.kind === kind).slice(0, 5);
      return found.map((caller, place) => ({
        id: caller.key, left: [0],
        cells: [place === 0 ? named(title, keyLink(caller)) : keyLink(caller), count(caller.requests), bar(caller.share_percent, percent(caller.requests - caller.error, requests), false),
          caller.denied > 0 ? percent(caller.denied, caller.requests) : "–"],
      }));
    }), "Nobody has asked in the last minute.", 4);
    const denied = snapshot.denied.filter((key) => key.denied > 0);
    setRows(this.denied.body, denied.map((key) => ({
      id: `${key.limit}\n${key.key}`, left: [0, 1],
      cells: [keyLink(key), limitLink(key.limit, key), count(key.denied), percent(key.denied, snapshot.denied_sum)],
    })), snapshot.denied_sum > 0 ? `${count(snapshot.denied_sum)} denials of the last minute, of so many keys that none stands out.` : "Nothing was denied in the last minute.", 4);
  }
}
