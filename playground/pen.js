// SPDX-License-Identifier: Apache-2.0
// Two pens with the same strokes: one draws on a canvas, the other writes an SVG. Colours are names;
// the page's style sheet and FIGURE_STYLE say what they are, in light and in dark.

export const COLOURS = ["ink", "muted", "line", "paper", "panel", "accent", "water", "good", "bad",
  "warn", "used", "tint", "edge"];
const FONT = "system-ui, sans-serif";

// One decimal is enough for a picture, and makes the same text everywhere.
const short = (value) => String(Math.round(value * 10) / 10);

export class CanvasPen {
  constructor(canvas) {
    this.canvas = canvas;
    this.strokes = 0; // since the page was opened: how much work drawing is
  }

  // Fits the canvas to its box; returns the size in CSS pixels.
  begin() {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const scale = globalThis.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
    }
    this.ink = this.canvas.getContext("2d");
    this.ink.setTransform(scale, 0, 0, scale, 0, 0);
    this.ink.clearRect(0, 0, width, height);
    const style = getComputedStyle(document.documentElement);
    this.colours = Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    return { width, height };
  }

  rect(x, y, width, height, { fill, stroke, radius = 0, dash } = {}) {
    this.strokes++;
    const ink = this.ink;
    ink.beginPath();
    ink.roundRect(x, y, Math.max(width, 0), Math.max(height, 0), radius);
    this.#paint(fill, stroke, 1.5, dash);
  }

  // Many boxes of one colour, as [x, y, width, height], in one stroke.
  bars(boxes, fill) {
    if (boxes.length === 0) return;
    this.strokes++;
    this.ink.beginPath();
    for (const [x, y, width, height] of boxes) this.ink.rect(x, y, width, height);
    this.#paint(fill);
  }

  // Many dots of one paint, as [x, y], in one stroke.
  dots(places, radius, { fill, stroke }) {
    if (places.length === 0) return;
    this.strokes++;
    this.ink.beginPath();
    for (const [x, y] of places) {
      this.ink.moveTo(x + radius, y);
      this.ink.arc(x, y, radius, 0, 2 * Math.PI);
    }
    this.#paint(fill, stroke, 1.5);
  }

  dot(x, y, radius, { fill, stroke } = {}) {
    this.strokes++;
    this.ink.beginPath();
    this.ink.arc(x, y, radius, 0, 2 * Math.PI);
    this.#paint(fill, stroke, 1.5);
  }

  line(points, colour, width = 1.5, dash) {
    this.strokes++;
    this.#path(points);
    this.#paint(undefined, colour, width, dash);
  }

  shape(points, { fill, stroke } = {}) {
    this.strokes++;
    this.#path(points);
    this.ink.closePath();
    this.#paint(fill, stroke, 1.5);
  }

  text(x, y, words, { size = 13, colour = "ink", align = "start", bold = false } = {}) {
    this.strokes++;
    this.ink.font = `${bold ? "600 " : ""}${size}px ${FONT}`;
    this.ink.fillStyle = this.colours[colour];
    this.ink.textAlign = align === "middle" ? "center" : align;
    this.ink.fillText(words, x, y);
  }

  #path(points) {
    this.ink.beginPath();
    points.forEach(([x, y], i) => (i ? this.ink.lineTo(x, y) : this.ink.moveTo(x, y)));
  }

  #paint(fill, stroke, width, dash) {
    if (fill) {
      this.ink.fillStyle = this.colours[fill];
      this.ink.fill();
    }
    if (stroke) {
      this.ink.strokeStyle = this.colours[stroke];
      this.ink.lineWidth = width;
      this.ink.setLineDash(dash ? [4, 3] : []);
      this.ink.stroke();
    }
  }
}

const FIGURE_COLOURS = {
  light: { ink: "#1f2933", muted: "#52606d", line: "#9aa5b1", paper: "#ffffff", panel: "#f4f6f8", accent: "#1d4ed8", water: "#a9cdf7", good: "#17693f", bad: "#b42318", warn: "#924307", used: "#7b8794", tint: "#e6effc", edge: "#d3dae1" },
  dark: { ink: "#e4e7eb", muted: "#a7b1bc", line: "#616e7c", paper: "#14181d", panel: "#1d232a", accent: "#8ab4f8", water: "#28518c", good: "#5dcf95", bad: "#ff8a7a", warn: "#fbbf5a", used: "#8795a1", tint: "#1b2a41", edge: "#343d47" },
};

function rules(colours) {
  return COLOURS.map((name) => `.f-${name}{fill:${colours[name]}}.s-${name}{stroke:${colours[name]}}`).join("");
}

const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

export class SvgPen {
  constructor(width, height) {
    this.size = { width, height };
    this.parts = [];
  }

  begin() { return this.size; }

  rect(x, y, width, height, { radius = 0, ...paint } = {}) {
    this.parts.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(Math.max(width, 0))}" height="${short(Math.max(height, 0))}"${radius ? ` rx="${radius}"` : ""}${this.#paint(paint)}/>`);
  }

  bars(boxes, fill) {
    for (const [x, y, width, height] of boxes) this.rect(x, y, width, height, { fill });
  }

  dots(places, radius, paint) {
    for (const [x, y] of places) this.dot(x, y, radius, paint);
  }

  dot(x, y, radius, paint = {}) {
    this.parts.push(`<circle cx="${short(x)}" cy="${short(y)}" r="${short(radius)}"${this.#paint(paint)}/>`);
  }

  line(points, colour, width = 1.5, dash) {
    this.parts.push(`<path d="${this.#path(points)}"${this.#paint({ stroke: colour, width, dash })}/>`);
  }

  shape(points, paint = {}) {
    this.parts.push(`<path d="${this.#path(points)}Z"${this.#paint(paint)}/>`);
  }

  text(x, y, words, { size = 13, colour = "ink", align = "start", bold = false } = {}) {
    this.parts.push(`<text x="${short(x)}" y="${short(y)}" font-size="${size}" class="f-${colour}"${align === "start" ? "" : ` text-anchor="${align}"`}${bold ? ' font-weight="600"' : ""}>${escape(words)}</text>`);
  }

  // The file. `title` is for those who do not see the picture.
  finish(title) {
    const { width, height } = this.size;
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="${FONT}" role="img" aria-label="${escape(title)}">\n`
      + `<style>${rules(FIGURE_COLOURS.light)}@media(prefers-color-scheme:dark){${rules(FIGURE_COLOURS.dark)}}</style>\n`
      + `<rect width="${width}" height="${height}" rx="8" class="f-paper"/>\n`
      + `${this.parts.join("\n")}\n</svg>\n`;
  }

  #path(points) {
    return points.map(([x, y], i) => `${i ? "L" : "M"}${short(x)} ${short(y)}`).join("");
  }

  #paint({ fill, stroke, width = 1.5, dash }) {
    const classes = [fill ? `f-${fill}` : "", stroke ? `s-${stroke}` : ""].filter(Boolean).join(" ");
    return `${fill ? "" : ' fill="none"'}${stroke ? ` stroke-width="${width}"` : ""}${dash ? ' stroke-dasharray="4 3"' : ""} class="${classes}"`;
  }
}
