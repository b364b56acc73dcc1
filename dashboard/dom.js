// SPDX-License-Identifier: Apache-2.0
// Elements without HTML: what comes from the server is text, whatever it holds.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function find(id) {
  return document.getElementById(id);
}

// A table with a caption for readers of the screen; `columns`: {title, left} or a title.
export function table(caption, columns, id) {
  const body = h("tbody", { id });
  body.titles = columns.map((column) => column.title ?? column);
  const heads = columns.map((column) => (column.title ?? column) === "" ? h("td") // over buttons: it names nothing
    : h("th", { scope: "col", class: column.left ? "left" : null }, column.title ?? column));
  const element = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", null, h("caption", { class: "skip" }, caption), h("thead", null, h("tr", null, heads)), body));
  return { element, body };
}

// Puts rows in place of those that are there, and leaves alone what does not change, so that a focus
// or a selection stays. A row is {id, cells}, a cell a text or a node; `empty` is shown without rows.
export function setRows(body, rows, empty, columns) {
  if (rows.length === 0) {
    if (body.dataset.empty !== empty)
      body.replaceChildren(h("tr", null, h("td", { colspan: columns, class: "muted left" }, empty)));
    body.dataset.empty = empty;
    return;
  }
  if (body.dataset.empty) body.replaceChildren();
  delete body.dataset.empty;
  const known = new Map([...body.children].map((row) => [row.dataset.id, row]));
  rows.forEach((row, place) => {
    let element = known.get(row.id);
    known.delete(row.id);
    const text = row.cells.map((cell) => cell?.key ?? cell?.textContent ?? cell).join("\u0001");
    if (!element) element = h("tr", { "data-id": row.id });
    if (element.shown !== text)
      element.replaceChildren(...row.cells.map((cell, i) =>
        cell instanceof HTMLTableCellElement ? cell : h("td", { class: row.left?.includes(i) ? "left" : null, "data-title": body.titles?.[i] || null }, cell)));
    element.shown = text;
    if (body.children[place] !== element) body.insertBefore(element, body.children[place] ?? null);
  });
  for (const row of known.values()) row.remove();
}

// A bar of `percent` with its text.
export function bar(percent, text, bad) {
  const fillElement = h("i");
  fillElement.style.width = `${Math.max(0, Math.min(100, percent))}%`;
  const element = h("span", { class: bad ? "bar bad" : "bar" }, fillElement, h("b", null, text));
  element.key = `${text}${percent}${bad}`;
  return element;
}

export function say(text) {
  find("said").textContent = text;
}

export function showProblem(text) {
  find("problem").textContent = text;
  find("problem").hidden = !text;
}
