// SPDX-License-Identifier: Apache-2.0
// What differs between two texts, line by line.

const CELLS_MAX = 4_000_000; // of the table of what the middles have in common

// The longest list of lines that two lists have in common, as pairs of places (dynamic programming).
function common(before, after) {
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      lengths[i * width + j] = before[i] === after[j] ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
  const pairs = [];
  for (let i = 0, j = 0; i < before.length && j < after.length;) {
    if (before[i] === after[j]) pairs.push([i++, j++]);
    else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i++;
    else j++;
  }
  return pairs;
}

// Lines as {kind: "same", "gone" or "new", text, before, after}; numbers from 1.
export function difference(beforeText, afterText) {
  const before = beforeText.split("\n");
  const after = afterText.split("\n");
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const from = before.slice(head, before.length - tail);
  const to = after.slice(head, after.length - tail);
  const pairs = (from.length + 1) * (to.length + 1) <= CELLS_MAX ? common(from, to) : [];
  const lines = [];
  const put = (kind, i, j) => lines.push({ kind, text: kind === "new" ? after[j] : before[i], before: kind === "new" ? null : i + 1, after: kind === "gone" ? null : j + 1 });
  for (let i = 0; i < head; i++) put("same", i, i);
  let [i, j] = [0, 0];
  for (const [x, y] of [...pairs, [from.length, to.length]]) {
    for (; i < x; i++) put("gone", head + i, 0);
    for (; j < y; j++) put("new", 0, head + j);
    if (x < from.length || y < to.length) put("same", head + i++, head + j++);
  }
  for (let k = 0; k < tail; k++) put("same", before.length - tail + k, after.length - tail + k);
  return lines;
}

// Only what differs, with some lines around it; null stands for lines that are left out.
export function hunks(lines, around = 3) {
  const shown = [];
  let last = -1;
  lines.forEach((line, at) => {
    const near = lines.slice(Math.max(0, at - around), at + around + 1).some(({ kind }) => kind !== "same");
    if (!near) return;
    if (at > last + 1) shown.push(null);
    shown.push(line);
    last = at;
  });
  if (last >= 0 && last < lines.length - 1) shown.push(null);
  return shown;
}
