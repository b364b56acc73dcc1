// SPDX-License-Identifier: Apache-2.0
// The live stream, once for all windows of a browser: browsers open six connections to a server, for all
// windows together, and the server sends each snapshot once.
//
//   one window leads  ──EventSource──▶ server
//        │ snapshots, beats         ▲ what each of them shows
//        ▼                          │
//   the others  ◀──BroadcastChannel──▶  (a channel of this origin only)
//
// A window that shows a page asks on the channel. If no window answers within a moment, it leads; of
// two that lead at one time the one with the lower name stays the leader. The leader listens to the parts that
// all windows need together, and beats each second; without a beat another window leads. A window that
// is not seen listens to nothing, and does not lead. Without BroadcastChannel each window is its own
// leader.

import { loggedOut, session } from "./api.js";

const CHANNEL = "weir-live-1";
const ANSWER_MS = 250; // within which a leader answers
const BEAT_MS = 1000;
const SILENT_MS = 2600; // without a word of the leader: it is gone
const GONE_MS = 5000; // of another window
const SHRINK_MS = 4000; // a stream with parts that nobody shows any more stays open for so long

export class Live {
  // `onSnapshot` for each snapshot, `onState` with "live", "lost" or "paused". The browser connects again
  // by itself, except where it was refused; then this asks whether a login is needed, and else connects.
  constructor(onSnapshot, onState) {
    Object.assign(this, { onSnapshot, onState, source: null, parts: [], wanted: false, leads: false, leader: "", heard: 0, last: null, state: "" });
    this.name = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    this.others = new Map(); // parts, and when they were heard, of each other window
    this.channel = typeof BroadcastChannel === "function" ? new BroadcastChannel(CHANNEL) : null;
    this.channel?.addEventListener("message", (event) => this.hear(event.data));
    document.addEventListener("visibilitychange", () => {
      if (this.wanted) this.start();
    });
    addEventListener("pagehide", () => this.leave());
    addEventListener("pageshow", (event) => {
      if (event.persisted && this.wanted) this.start();
    });
  }

  // The parts of snapshots that this window shows now.
  show(parts) {
    this.parts = parts;
    if (this.wanted && !document.hidden) this.ask();
    if (this.leads) this.listen();
  }

  start() {
    this.leave();
    this.wanted = true;
    if (document.hidden) {
      this.say("paused");
      return;
    }
    this.heard = Date.now();
    this.beats = setInterval(() => this.beat(), BEAT_MS);
    if (!this.channel) {
      this.lead();
      return;
    }
    this.ask();
    this.claims = setTimeout(() => {
      if (!this.leader) this.lead();
    }, ANSWER_MS * (1 + Math.random()));
  }

  stop() {
    this.leave();
    this.wanted = false;
  }

  // Ends what this window does for others, and what it hears.
  leave() {
    clearTimeout(this.claims);
    clearInterval(this.beats);
    if (this.wanted) this.tell({ type: "gone", leads: this.leads });
    this.close();
    Object.assign(this, { leads: false, leader: "" });
    this.others.clear();
  }

  close() {
    clearTimeout(this.retry);
    clearTimeout(this.shrink);
    this.source?.close();
    Object.assign(this, { source: null, listens: null, retry: 0, shrink: 0 });
  }

  say(state) {
    this.state = state;
    this.onState(state);
  }

  // --- Windows among themselves

  tell(message) {
    this.channel?.postMessage({ ...message, from: this.name });
  }

  ask() {
    this.tell({ type: "shows", parts: this.parts });
  }

  hear(message) {
    if (!this.wanted || document.hidden || message.from === this.name) return;
    if (message.type === "shows") this.hearShows(message);
    else if (message.type === "gone") this.hearGone(message);
    else this.hearLeader(message);
  }

  hearShows({ from, parts }) {
    const known = this.others.has(from);
    this.others.set(from, { parts, at: Date.now() });
    if (!this.leads) return;
    this.listen();
    if (!known) this.tell({ type: "beat", state: this.state, snapshot: this.last, to: from });
  }

  hearGone({ from, leads }) {
    this.others.delete(from);
    if (leads && this.leader === from) {
      this.leader = "";
      this.claimSoon();
    } else if (this.leads) {
      this.listen();
    }
  }

  hearLeader({ from, type, state, snapshot, to }) {
    if (this.leads) {
      if (from > this.name) this.tell({ type: "beat", state: this.state }); // which makes the other one give way
      else this.follow(from);
      return;
    }
    const fresh = this.leader !== from;
    this.leader = from;
    this.heard = Date.now();
    clearTimeout(this.claims);
    if (type === "beat" && state !== this.state) this.say(state);
    if (type === "out") loggedOut();
    if (fresh && type !== "out") this.ask();
    if (snapshot && (to ?? this.name) === this.name) this.take(snapshot);
  }

  follow(leader) {
    this.close();
    Object.assign(this, { leads: false, leader, heard: Date.now() });
    this.ask();
  }

  claimSoon() {
    clearTimeout(this.claims);
    this.claims = setTimeout(() => {
      if (!this.leader && !this.leads) this.lead();
    }, ANSWER_MS * Math.random());
  }

  beat() {
    if (this.leads) {
      this.tell({ type: "beat", state: this.state });
      for (const [name, other] of this.others)
        if (Date.now() - other.at > GONE_MS) this.others.delete(name);
      this.listen();
      return;
    }
    this.ask();
    if (this.leader && Date.now() - this.heard > SILENT_MS) {
      this.leader = "";
      this.claimSoon();
    }
  }

  // --- The one that leads

  lead() {
    this.leads = true;
    this.leader = this.name;
    this.tell({ type: "beat", state: this.state });
    this.listen();
  }

  needs() {
    const all = new Set(this.parts);
    for (const { parts } of this.others.values()) for (const part of parts) all.add(part);
    return [...all].sort();
  }

  // Listens to what is needed: more at once, less after a while.
  listen() {
    const needs = this.needs();
    if (this.source && needs.every((part) => this.listens.includes(part))) {
      if (needs.length < this.listens.length && !this.shrink) this.shrink = setTimeout(() => {
        this.shrink = 0;
        if (this.leads && this.needs().length < this.listens.length) this.open(this.needs());
      }, SHRINK_MS);
      return;
    }
    if (!this.retry) this.open(needs); // else it is about to
  }

  open(parts) {
    this.close();
    this.listens = parts;
    const source = new EventSource(`/v1/events?parts=${parts.join(",")}`);
    this.source = source;
    source.onmessage = (event) => {
      const snapshot = JSON.parse(event.data);
      this.state = "live";
      this.last = snapshot;
      this.tell({ type: "snapshot", snapshot });
      this.take(snapshot);
    };
    source.onerror = () => {
      this.say("lost");
      this.tell({ type: "beat", state: "lost" });
      if (source.readyState === EventSource.CLOSED) this.retry = setTimeout(() => this.again(source), 2000);
    };
  }

  async again(source) {
    let may = true;
    try {
      may = (await session.look()).may_read;
    } catch {
      // the server is away: the next try will show it
    }
    if (this.source !== source || !this.leads) return; // it was stopped, or has begun anew, meanwhile
    if (may) {
      this.open(this.needs());
      return;
    }
    this.tell({ type: "out" });
    loggedOut();
  }

  take(snapshot) {
    this.say("live"); // also where it was: the page may have shown since how old its data is
    this.onSnapshot(snapshot);
  }
}
