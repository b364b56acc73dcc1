// SPDX-License-Identifier: Apache-2.0
// Access logs as `weir replay` reads them: its table of formats as WebAssembly (reader.c), and what a
// file needs beyond its lines. Times are BigInts of nanoseconds.
import base64 from "./reader_core.js";
import { gunzip, open_module } from "./lanes.js";
import { MOST, SECOND } from "./requests.js";

const SAMPLE = 32; // lines that fit some format tell which (src/cli/replay/trace/detect.h)
const ENVELOPES = [1, 2]; // docker, CRI
const DISORDER = 60n * SECOND;
const FOUND = ["at_ns", "written_ns", "cost", "whole_second", "at", "size", "is_error", "goes_on"];

class Reader {
  constructor(core) {
    this.core = core;
    this.line = new Uint8Array(core.memory.buffer, core.memory_of_line(), core.line_max());
    this.found = new BigUint64Array(core.memory.buffer, core.memory_of_found(), FOUND.length);
  }

  text_at(at, size) {
    return new TextDecoder().decode(new Uint8Array(this.core.memory.buffer, at, size));
  }
  name_at(at) {
    const bytes = new Uint8Array(this.core.memory.buffer, at);
    return this.text_at(at, bytes.indexOf(0));
  }
  put(bytes) {
    if (bytes.length > this.line.length) return false;
    this.line.set(bytes);
    return true;
  }
  result() { return Object.fromEntries(FOUND.map((name, i) => [name, this.found[i]])); }

  // The program's line in a container's, or null.
  unwrap(envelope, bytes) {
    if (!this.put(bytes) || !this.core.line_unwrap(envelope, bytes.length)) return null;
    const { at: place, size, is_error, goes_on } = this.result(), from = Number(place);
    return { bytes: this.line.slice(from, from + Number(size)), stream: is_error, goes_on: goes_on === 1n };
  }
  envelope_of(lines) {
    const sample = lines.slice(0, SAMPLE);
    return ENVELOPES.find((kind) => 2 * sample.filter((bytes) => this.unwrap(kind, bytes)).length > sample.length) ?? 0;
  }
  // The number of the format that fits the first lines best, -1 for none.
  format_of(lines) {
    const count = this.core.format_count(), points = new Uint32Array(count);
    let fit = 0;
    for (const bytes of lines) {
      const before = points.reduce((sum, value) => sum + value, 0);
      for (let format = 0; format < count; format++)
        if (this.put(bytes)) points[format] += this.core.line_fits(format, bytes.length);
      if (points.reduce((sum, value) => sum + value, 0) > before && ++fit === SAMPLE) break;
    }
    new Uint32Array(this.core.memory.buffer, this.core.memory_of_line(), count).set(points);
    return this.core.format_best(this.core.memory_of_line());
  }
  // A request; "other": a server's word about itself; null: malformed.
  read(format, bytes) {
    const got = this.put(bytes) ? this.core.line_read(format, bytes.length) : -1;
    if (got !== 0) return got > 0 ? "other" : null;
    const at = this.core.memory_of_client();
    const client = this.text_at(at + 4, new DataView(this.core.memory.buffer).getUint32(at, true));
    return { ...this.result(), client };
  }
}

let opened = null;
async function open_reader() {
  opened ??= open_module(base64).then((core) => new Reader(core));
  return opened;
}

// The bytes of a file, decompressed: [bytes, what packed them].
async function unpacked(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const begins = (...magic) => magic.every((byte, i) => bytes[i] === byte);
  if (begins(0x28, 0xb5, 0x2f, 0xfd))
    throw new Error("it is compressed with zstd, which browsers do not read: give its text");
  if (!begins(0x1f, 0x8b)) return [bytes, ""];
  return [await gunzip(bytes), "gzip"];
}

const blank = (bytes) => bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);

// Lines that are not blank, without their ends and without a byte order mark.
function lines_of(bytes) {
  const lines = [];
  let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  while (at < bytes.length) {
    let end = bytes.indexOf(0x0a, at);
    if (end < 0) end = bytes.length;
    const line = bytes.subarray(at, end > at && bytes[end - 1] === 0x0d ? end - 1 : end);
    if (!blank(line)) lines.push(line);
    at = end + 1;
  }
  return lines;
}

// The lines of a container's program, of which a runtime may have cut some; null for one without envelope.
function program_lines(reader, envelope, lines) {
  const open = new Map(), out = [];
  for (const line of lines) {
    const piece = reader.unwrap(envelope, line);
    if (!piece) {
      out.push(null);
      continue;
    }
    const parts = [...(open.get(piece.stream) ?? []), ...piece.bytes];
    if (piece.goes_on) open.set(piece.stream, parts);
    else {
      open.delete(piece.stream);
      if (!blank(parts)) out.push(Uint8Array.from(parts));
    }
  }
  for (let i = 0; i < open.size; i++) out.push(null);
  return out;
}

// Lines of one second, one after the other, are spread evenly over it; one that is earlier than those
// before it counts at their time.
function spread_seconds(entries) {
  for (let from = 0; from < entries.length;) {
    const { at, exact } = entries[from];
    let to = from + 1;
    while (!exact && to < entries.length && entries[to].at === at) to++;
    for (let i = from + 1; i < to; i++) entries[i].at += SECOND * BigInt(i - from) / BigInt(to - from);
    from = to;
  }
  let latest = 0n;
  for (const entry of entries) {
    if (entry.at < latest) entry.at = latest;
    latest = entry.at;
  }
  return entries;
}

// The requests of lines, and what there is to say of the others, in the words of `weir replay`.
function entries_of(reader, format, lines) {
  const entries = [];
  let bad = 0, others = 0, latest = 0n, behind = 0n;
  for (const line of lines) {
    const found = line && reader.read(format, line);
    if (!found) bad++;
    else if (found === "other") others++;
    else {
      entries.push({ at: found.at_ns, client: found.client, cost: found.cost, exact: found.whole_second === 0n });
      if (found.written_ns > latest) latest = found.written_ns;
      else if (latest - found.written_ns > behind) behind = latest - found.written_ns;
    }
  }
  const count = (n, one, many) => (n === 1 ? `1 ${one}` : `${n} ${many}`);
  const notes = [];
  if (bad > 0) notes.push(count(bad, "line was", "lines were") + " malformed and left out.");
  if (others > 0)
    notes.push(count(others, "line is", "lines are") + " what a server says of itself, and no requests.");
  if (behind > DISORDER)
    notes.push("Its lines are more than a minute out of the order of time: weir replay wants them sorted, or --allow-disorder.");
  return { entries, notes };
}

// Reads an access log of any format that `weir replay` reads. Returns the clients, busiest first, with
// their requests, of which the first is all of them together, and what it was read as; throws an
// Error where nothing can be read.
export async function read_log(file) {
  const reader = await open_reader(), [bytes, packing] = await unpacked(file);
  const outer = lines_of(bytes), envelope = reader.envelope_of(outer);
  const lines = envelope ? program_lines(reader, envelope, outer) : outer;
  const format = reader.format_of(lines.filter((line) => line));
  if (format < 0) throw new Error("its first lines are of no format that weir knows");
  const { entries, notes } = entries_of(reader, format, lines);
  const clients = new Map([["", []]]);
  for (const { at, client, cost } of spread_seconds(entries)) {
    if (!clients.has(client)) clients.set(client, []);
    for (const list of [clients.get(""), clients.get(client)])
      if (list.length < MOST) list.push([at, cost]);
  }
  const sorted = [...clients].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
  const names = [packing, envelope ? reader.name_at(reader.core.envelope_name(envelope)) : "",
    reader.name_at(reader.core.format_name(format))];
  notes.unshift(`Read as ${names.filter((name) => name).join(", ")}, ${lines.length} line${lines.length === 1 ? "" : "s"}.`);
  return { total: entries.length, notes, clients: sorted.slice(0, 20) };
}
