// SPDX-License-Identifier: Apache-2.0
// Names of keys and callers: what is shown, and what links, searches and bans say. A value is
// {kind, value}, or {kind, sha256} of a secret or a long one (docs/use.md, Names).

import { h } from "./dom.js";

// "user=ann" of a key of one value, as the API takes it; null: of several, of one that is no text, and of
// one of which only the beginning is known.
function realName({ values }) {
  const [one] = values ?? [];
  if (values?.length !== 1 || !one.kind) return null;
  if (one.sha256 !== undefined) return `${one.kind}=sha256:${one.sha256}`;
  return one.value === undefined ? null : `${one.kind}=${one.value ?? "-"}`;
}

// The real name, else the text of the key, which searches find, too.
export function nameOf(item) {
  return realName(item) ?? item.key ?? "";
}

// What is shown of it: the same, but where only a digest is known, or characters hide or turn others, the text of
// the key.
export function shownName(item) {
  const name = realName(item);
  return name === null || item.values[0].sha256 !== undefined || /[\p{C}\p{Zl}\p{Zp}]/u.test(name) ? item.key : name;
}

// For a link: "#key/user=ann".
function encoded(text) {
  return encodeURIComponent(text).replaceAll("%3D", "=");
}

// What a link says.
export function subjectOf(item) {
  return encoded(nameOf(item));
}

// Links to what is known of a key. The one key of a limit with `key: []` is the limit itself.
export function keyLink(item) {
  if (!item.key) return item.limit ? limitLink(item.limit, item, "(one for all)") : "(one for all)";
  return h("a", { href: `#key/${subjectOf(item)}`, class: "key", title: item.key }, shownName(item));
}

// What refuses like a limit, but is none, and where it can be seen.
const NO_LIMITS = new Map([["unknown", "denials?cause=unknown"], ["unknown callers", "denials?cause=unknown"], ["store failed", "health"],
  ["challenge", "denials?cause=challenge"], ["challenges", "denials?cause=challenge"]]);

// A limit; what is named like one, but is none, leads to where it can be seen.
export function limitLink(name, item, text = name) {
  if (name === "standing") return h("a", { href: `#standing/${encoded((item && realName(item)) ?? "")}` }, text);
  return h("a", { href: `#${NO_LIMITS.get(name) ?? `limits/${encodeURIComponent(name)}`}` }, text);
}

// One value of a caller.
export function valueLink(value) {
  const text = value.value ?? (value.begins !== undefined ? `${value.begins}…` : value.encoded ?? `sha256:${(value.sha256 ?? "").slice(0, 16)}`);
  return keyLink({ key: `${value.kind}=${text}`, values: [value] });
}

// Who asked, as far as the key does not say it: a line each.
export function callerCell(denial) {
  const known = new Set((denial.values ?? []).map((value) => JSON.stringify(value)));
  const links = (denial.caller ?? []).filter((value) => !known.has(JSON.stringify(value))).map(valueLink);
  const cell = h("div", null, links.map((link) => h("div", null, link)));
  cell.key = JSON.stringify(denial.caller);
  return links.length > 0 ? cell : "–";
}

// The kind and value that a subject names, for a form: "user=ann".
export function splitSubject(text) {
  const cut = text.indexOf("=");
  return cut > 0 ? { kind: text.slice(0, cut), value: text.slice(cut + 1) } : { kind: "", value: text };
}
