// SPDX-License-Identifier: Apache-2.0
// Asking the admin API: calls and the session.

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

export function loggedOut() {
  onLoggedOut();
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
  begin: (token, name) => ask("/v1/session", { method: "POST", body: name ? { token, name } : { token } }),
  end: () => ask("/v1/session", { method: "DELETE" }),
};

// Calls `load` now and every `seconds`, or what it returns, while `signal` lasts and the page is seen;
// never two at once.
export function poll(load, seconds, signal, onProblem) {
  let timer = 0;
  const step = async () => {
    let after = seconds;
    try {
      if (!document.hidden) {
        after = (await load()) ?? seconds;
        onProblem?.("");
      }
    } catch (error) {
      if (error.name !== "AbortError") onProblem?.(error.message);
    }
    if (!signal.aborted) timer = setTimeout(step, after * 1000);
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  step();
  return () => {
    clearTimeout(timer);
    step();
  };
}
