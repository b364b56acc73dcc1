// SPDX-License-Identifier: Apache-2.0
// Where requests come from: patterns and links (reader.js: access logs). Lists of [time, cost], in order.

export const SECOND = 1_000_000_000n;
export const MOST = 10_000; // requests that the page keeps

// The same numbers for the same seed (xorshift64*).
function dice(seed) {
  let state = seed;
  return (below) => {
    state ^= state >> 12n;
    state ^= (state << 25n) & 0xffffffffffffffffn;
    state ^= state >> 27n;
    return ((state * 0x2545f4914f6cdd1dn) & 0xffffffffffffffffn) % below;
  };
}

const in_order = (list) => list.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));

function spread(list, count, from, length) {
  for (let i = 0n; i < count; i++) list.push([from + length * i / count, 1n]);
}

export const PATTERNS = {
  steady: {
    title: "Steady, 1½ times the rate",
    make(p) {
      const list = [];
      spread(list, 6n * p.n, 0n, 4n * p.w);
      return list;
    },
  },
  burst: {
    title: "Bursts",
    make(p) {
      const list = [];
      for (const at of [p.w / 4n, p.w * 5n / 4n, p.w * 11n / 4n]) spread(list, 2n * p.n, at, p.w / 8n);
      return list;
    },
  },
  border: {
    title: "Double burst at a window's border",
    make(p) {
      const list = [];
      for (const border of [p.w, 3n * p.w]) {
        spread(list, p.n, border - p.w / 16n, p.w / 16n);
        spread(list, p.n, border, p.w / 16n);
      }
      return list;
    },
  },
  storm: {
    title: "Retry storm",
    // 3N clients fail together and try again at the same pace, with little jitter.
    make(p) {
      const list = [], throw_dice = dice(17n);
      for (let client = 0n; client < 3n * p.n; client++)
        for (let attempt = 0n; attempt < 8n; attempt++)
          list.push([p.w / 2n + attempt * p.w / 3n + throw_dice(p.w / 24n), 1n]);
      return in_order(list);
    },
  },
  mixed: {
    title: "Irregular traffic",
    make(p) {
      const list = [], throw_dice = dice(5n);
      for (let i = 0n; i < 8n * p.n; i++)
        list.push([throw_dice(6n * p.w), throw_dice(8n) === 0n ? 2n : 1n]);
      return in_order(list);
    },
  },
  many: {
    title: "10,000 requests",
    make(p) {
      const list = [], throw_dice = dice(9n);
      const length = 10_000n * p.w / (2n * p.n);
      for (let i = 0; i < MOST; i++) list.push([throw_dice(length), 1n]);
      return in_order(list);
    },
  },
};

// Requests as a text for a link: distances in ns in base 36, "*cost" where that is not 1, and
// "x3" for three alike.
export function pack(list) {
  const parts = [];
  let before = 0n;
  for (let i = 0; i < list.length;) {
    const [at, cost] = list[i];
    let same = 1;
    while (i + same < list.length && list[i + same][0] === at && list[i + same][1] === cost) same++;
    parts.push((at - before).toString(36) + (cost === 1n ? "" : `*${cost}`) + (same > 1 ? `~${same}` : ""));
    before = at;
    i += same;
  }
  return parts.join(".");
}

function base36(text) {
  let value = 0n;
  for (const digit of text) value = value * 36n + BigInt(parseInt(digit, 36));
  return value;
}

const PACKED = /^([0-9a-z]{1,12})(?:\*(\d{1,9}))?(?:~(\d{1,5}))?$/;
const LATEST = 1n << 62n;

// Ignores what no pack has made.
export function unpack(text) {
  const list = [];
  let at = 0n;
  for (const part of text.split(".")) {
    const match = PACKED.exec(part);
    if (!match) break;
    at += base36(match[1]);
    if (at >= LATEST) break;
    for (let i = Number(match[3] ?? 1); i > 0 && list.length < MOST; i--)
      list.push([at, BigInt(match[2] ?? 1)]);
  }
  return list;
}
