// SPDX-License-Identifier: Apache-2.0
// The whole state of the page as the part of its address behind #. What cannot be read is left at
// its default, so that an old link still opens.
import { read_adapt, write_adapt } from "./adapt.js";
import { NAMES } from "./algorithms.js";
import { QUESTIONS } from "./chooser.js";
import { PATTERNS, pack, unpack } from "./requests.js";

export const VIEWS = ["play", "compare", "break", "choose", "adapt"];
const LATEST = 1n << 62n;
const NUMBERS = { n: [1n, 1000n], w: [1_000_000_000n, 86_400_000_000_000n], b: [1n, 1000n], s: [1n, 60n],
  r: [0n, 1000n], l: [1_000_000n, 86_400_000_000_000n] };

export function write_link(state, list) {
  const parts = [["v", state.view], ["a", state.name]];
  for (const name of Object.keys(NUMBERS)) parts.push([name, state.p[name]]);
  parts.push(["c", state.compared.map((name) => NAMES.indexOf(name)).join(".")], ["x", state.speed],
    ["p", state.pattern], ["t", (state.now - state.origin).toString(36)], ["k", state.count],
    ["z", state.answers.join("")]);
  if (state.view === "adapt") parts.push(["d", write_adapt(state.adapt)]);
  if (!(state.pattern in PATTERNS) && list.length > 0) parts.push(["q", pack(list)]);
  return `#${parts.map(([name, value]) => `${name}=${value}`).join("&")}`;
}

const whole = (text, low, high) => {
  if (!/^\d{1,19}$/.test(text ?? "")) return undefined;
  const value = BigInt(text);
  return value < low || value > high ? undefined : value;
};

// Changes `state` to what a link says. Returns the requests of the link, or null.
export function read_link(hash, state, speeds) {
  const parts = new Map(hash.slice(1).split("&").map((part) => {
    const at = part.indexOf("=");
    return [part.slice(0, at), part.slice(at + 1)];
  }));
  if (VIEWS.includes(parts.get("v"))) state.view = parts.get("v");
  if (NAMES.includes(parts.get("a"))) state.name = parts.get("a");
  for (const [name, [low, high]] of Object.entries(NUMBERS))
    state.p[name] = whole(parts.get(name), low, high) ?? state.p[name];
  const compared = (parts.get("c") ?? "").split(".").map((i) => NAMES[Number(i)]).filter(Boolean);
  if (parts.get("c")) state.compared = [...new Set(compared)];
  state.speed = whole(parts.get("x"), 0n, BigInt(speeds - 1)) === undefined ? state.speed : Number(parts.get("x"));
  if (parts.get("p") in PATTERNS || ["own", "log"].includes(parts.get("p"))) state.pattern = parts.get("p");
  const time = /^[0-9a-z]{1,12}$/.test(parts.get("t") ?? "") ? parts.get("t") : "0";
  let now = 0n;
  for (const digit of time) now = now * 36n + BigInt(parseInt(digit, 36));
  state.now = now < LATEST ? now : 0n;
  state.count = Number(whole(parts.get("k"), 0n, 20000n) ?? -1n); // -1: as many as the time says
  const answers = [...(parts.get("z") ?? "")].map(Number);
  if (answers.length === QUESTIONS.length && answers.every((answer, i) => answer < QUESTIONS[i].answers.length))
    state.answers = answers;
  state.adapt = read_adapt(parts.get("d"));
  return parts.has("q") ? unpack(parts.get("q")) : null;
}
