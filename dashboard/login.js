// SPDX-License-Identifier: Apache-2.0
// The login page, where the listener has a token; and why nothing is shown, where it has none.

import { session } from "./api.js";
import { find, h } from "./dom.js";

export function showLogin(main, onDone) {
  const token = h("input", { type: "password", id: "token", name: "token", autocomplete: "current-password", required: true });
  const name = h("input", { type: "text", id: "person", name: "person", autocomplete: "name", maxlength: 64 });
  const button = h("button", { type: "submit", class: "main" }, "Log in");
  const problem = h("p", { class: "bad", role: "alert", id: "login-problem" });
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    problem.textContent = "";
    try {
      await session.begin(token.value, name.value.trim());
      token.value = "";
      onDone();
    } catch (error) {
      problem.textContent = error.message;
      button.disabled = false;
      token.select();
    }
  };
  main.replaceChildren(h("form", { class: "panel login", onsubmit: submit, "aria-label": "Log in" },
    h("h2", null, "Log in"),
    h("p", { class: "muted" }, "Give the admin token of this server: ", h("code", null, "server.admin.token"), " of its rules."),
    h("input", { type: "text", name: "username", autocomplete: "username", value: `weir ${location.host}`, hidden: true }),
    h("label", { for: "token" }, "Admin token"), token,
    h("label", { for: "person" }, "Your name ", h("span", { class: "muted" }, "(for the history of what you change)")), name, button, problem));
  find("live").textContent = "logged out";
  token.focus();
}

export function showClosed(main) {
  main.replaceChildren(h("section", { class: "panel" }, h("h2", null, "Not from here"),
    h("p", null, "This listener has no token, so that only its own machine may read. Forward its port, "
      + "or set ", h("code", null, "server.admin.token"), " and log in:"),
    h("pre", null, `ssh -L ${location.port || 9090}:127.0.0.1:${location.port || 9090} ${location.hostname}`)));
}
