// SPDX-License-Identifier: Apache-2.0
// Where requests come from: patterns, access logs, and links. Lists of [time, cost], in order.

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

// Days since 1970-01-01 of a date (Howard Hinnant, "chrono-compatible low-level date algorithms").
function days(year, month, day) {
  const y = month <= 2n ? year - 1n : year, era = y / 400n, of_era = y - era * 400n;
  const of_year = (153n * (month + (month > 2n ? -3n : 9n)) + 2n) / 5n + day - 1n;
  return era * 146097n + of_era * 365n + of_era / 4n - of_era / 100n + of_year - 719468n;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const STAMP = /\[(\d\d)\/([A-Z][a-z][a-z])\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)\]/;
const JSON_TIME = /"t"\s*:\s*"?(\d{1,10})(?:\.(\d+))?/;

function line_of(line) {
  if (line.startsWith("{")) {
    const time = JSON_TIME.exec(line);
    if (!time) return null;
    const fraction = BigInt((time[2] ?? "").slice(0, 9).padEnd(9, "0"));
    return {
      at: BigInt(time[1]) * SECOND + fraction,
      client: /"(?:ip|user)"\s*:\s*"([^"]+)"/.exec(line)?.[1] ?? "-",
      cost: BigInt(/"cost"\s*:\s*(\d{1,9})/.exec(line)?.[1] ?? 1),
      exact: true,
    };
  }
  const stamp = STAMP.exec(line);
  if (!stamp) return null;
  const [day, year, hour, minute, second, zone_hour, zone_minute] =
    [1, 3, 4, 5, 6, 8, 9].map((i) => BigInt(stamp[i]));
  const zone = (zone_hour * 60n + zone_minute) * (stamp[7] === "-" ? -60n : 60n);
  const month = BigInt(MONTHS.indexOf(stamp[2]) + 1);
  return {
    at: (days(year, month, day) * 86400n + hour * 3600n + minute * 60n + second - zone) * SECOND,
    client: line.slice(0, line.indexOf(" ")),
    cost: 1n,
    exact: false,
  };
}

// Lines of one second are spread evenly over it, as `weir replay` does; a line that is earlier than
// those before it counts at their time.
function spread_seconds(entries) {
  let latest = 0n;
  for (const entry of entries) {
    if (entry.at < latest) entry.at = latest;
    latest = entry.at;
  }
  for (let from = 0; from < entries.length;) {
    let to = from + 1;
    while (to < entries.length && entries[to].at === entries[from].at) to++;
    for (let i = from + 1; i < to; i++)
      if (!entries[i].exact) entries[i].at += SECOND * BigInt(i - from) / BigInt(to - from);
    from = to;
  }
  return entries;
}

// Reads an access log (common or combined), or JSON lines with "t". Returns the clients, busiest
// first, with their requests; the first is all of them together.
export function read_log(text) {
  let bad = 0;
  const entries = [];
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const entry = line_of(line);
    if (entry) entries.push(entry);
    else bad++;
  }
  spread_seconds(entries);
  const clients = new Map([["", []]]);
  for (const { at, client, cost } of entries) {
    if (!clients.has(client)) clients.set(client, []);
    for (const list of [clients.get(""), clients.get(client)])
      if (list.length < MOST) list.push([at, cost]);
  }
  const sorted = [...clients].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
  return { bad, total: entries.length, clients: sorted.slice(0, 20) };
}

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
