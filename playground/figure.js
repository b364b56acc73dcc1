// SPDX-License-Identifier: Apache-2.0
// The figures of docs/algorithms: the page's picture and timeline of each algorithm at one moment,
// written as SVG. script/figures and the tests call figure() in a browser.
import { ALGORITHMS, NAMES, settings_of } from "./algorithms.js";
import { Lanes, open_core } from "./lanes.js";
import { SvgPen } from "./pen.js";
import { draw_picture } from "./pictures.js";
import { time_text } from "./time.js";
import { Scale, draw_timeline } from "./timeline.js";

const S = 1_000_000_000n;
const WIDTH = 720, TOP = 40, PICTURE = 240, LINE = 84;
const LIMIT = { n: 5n, w: 60n * S, b: 5n, s: 6n, r: 2n, l: 15n * S, c: 1n };

// Each figure's requests, in seconds, and the moment that it shows, in tenths of a second.
const SOME = [8, 10, 30, 44, 46, 48, 50, 52, 54, 62, 66, 74, 80, 86];
const MOMENTS = {
  leaky_queue: 580n, concurrency: 560n, quota: 780n, gcra: 560n, token_bucket: 560n, leaky_meter: 560n,
  segments: 904n, strict: 940n,
};

// A pen whose strokes land further down on another.
function moved(pen, dy, size) {
  const down = (points) => points.map(([x, y]) => [x, y + dy]);
  return {
    begin: () => size,
    bars: (boxes, fill) => pen.bars(boxes.map(([x, y, ...rest]) => [x, y + dy, ...rest]), fill),
    dots: (places, ...rest) => pen.dots(down(places), ...rest),
    rect: (x, y, width, height, paint) => pen.rect(x, y + dy, width, height, paint),
    dot: (x, y, radius, paint) => pen.dot(x, y + dy, radius, paint),
    line: (points, ...rest) => pen.line(down(points), ...rest),
    shape: (points, paint) => pen.shape(down(points), paint),
    text: (x, y, words, options) => pen.text(x, y + dy, words, options),
  };
}

export async function figures() {
  const lanes = new Lanes(await open_core()), found = {};
  lanes.load(SOME.map((second) => [BigInt(second) * S, 1n]));
  lanes.configure(NAMES.map((name) => settings_of(name, LIMIT)));
  for (const [lane, name] of NAMES.entries()) {
    const pen = new SvgPen(WIDTH, TOP + PICTURE + LINE + 12), now = (MOMENTS[name] ?? 820n) * S / 10n;
    const view = { lanes, lane, name, p: LIMIT, origin: 0n, now, count: lanes.until(now) };
    const title = `${ALGORITHMS[name].title}: ${LIMIT.n} per ${time_text(LIMIT.w)}`;
    pen.text(12, 27, ALGORITHMS[name].title, { size: 17, bold: true });
    pen.text(WIDTH - 12, 27, "above the line: passed; below: denied", { size: 12, align: "end", colour: "muted" });
    draw_picture(moved(pen, TOP, { width: WIDTH, height: PICTURE }), view);
    draw_timeline(moved(pen, TOP + PICTURE + 4, null), { lanes, lane, scale: new Scale(0n, 96n * S, WIDTH), now, grid: LIMIT.w / 4n, labels: true }, { width: WIDTH, height: LINE });
    found[name.replaceAll("_", "-")] = pen.finish(title);
  }
  return found;
}
