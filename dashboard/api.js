// SPDX-License-Identifier: Apache-2.0
// Asking the admin API: calls, the session, the live stream.

export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

let onLoggedOut = () => {};

export function whenLoggedOut(then) {
  onLoggedOut = then;
}

// Asks, and returns what the server answers. Throws Refused with the server's words.
export async function ask(path, { method = "GET", body, signal } = {}) {
  let reply;
  try {
    reply = await fetch(path, {
      method, signal, credentials: "same-origin", cache: "no-store", redirect: "error",
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer.");
  }
  const text = await reply.text();
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    // what is no JSON is a problem of something in between
  }
  if (reply.ok && value !== null) return value;
  if (reply.status === 401 && path !== "/v1/session") onLoggedOut();
  throw new Refused(reply.status, value?.detail ?? value?.title ?? `The server answers ${reply.status}.`);
}

export function query(path, parameters) {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  return pairs.length === 0 ? path : `${path}?${new URLSearchParams(pairs)}`;
}

export const session = {
  look: () => ask("/v1/session"),
  begin: (token) => ask("/v1/session", { method: "POST", body: { token } }),
  end: () => ask("/v1/session", { method: "DELETE" }),
};

// The live stream: `onSnapshot` for each, `onState` with "live", "lost" or "paused". The browser connects
// again by itself, except where it was refused; then this asks whether a login is needed, and goes on. A
// page that is not seen listens to nothing: browsers open six connections to a server for all tabs together.
export class Live {
  constructor(onSnapshot, onState) {
    this.onSnapshot = onSnapshot;
    this.onState = onState;
    this.source = null;
    this.timer = 0;
    this.wanted = false;
    document.addEventListener("visibilitychange", () => {
      if (this.wanted) this.start();
    });
  }

  start() {
    this.stop();
    this.wanted = true;
    if (document.hidden) {
      this.onState("paused");
      return;
    }
    this.source = new EventSource("/v1/events");
    this.source.onmessage = (event) => {
      this.onState("live");
      this.onSnapshot(JSON.parse(event.data));
    };
    this.source.onerror = () => {
      this.onState("lost");
      if (this.source?.readyState === EventSource.CLOSED) this.timer = setTimeout(() => this.again(), 2000);
    };
  }

  async again() {
    const { source } = this;
    let may = true;
    try {
      may = (await session.look()).may_read;
    } catch {
      // the server is away: the next try will show it
    }
    if (this.source !== source) return; // it was stopped, or has begun anew, meanwhile
    if (may) this.start();
    else onLoggedOut();
  }

  stop() {
    this.wanted = false;
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }
}

// Calls `load` now and every `seconds`, while `signal` lasts and the page is seen; never two at once.
export function poll(load, seconds, signal, onProblem) {
  let timer = 0;
  const step = async () => {
    try {
      if (!document.hidden) {
        await load();
        onProblem?.("");
      }
    } catch (error) {
      if (error.name !== "AbortError") onProblem?.(error.message);
    }
    if (!signal.aborted) timer = setTimeout(step, seconds * 1000);
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  step();
  return () => {
    clearTimeout(timer);
    step();
  };
}
