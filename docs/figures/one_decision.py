# SPDX-License-Identifier: Apache-2.0
"""Draws docs/figures/one-decision.svg: two requests, each of which meets three limits.

Called by script/figures, which passes the path to write. Standard library only, no randomness: the
same script always writes the same bytes.
"""
import sys
from html import escape

WIDTH, HEIGHT = 880, 366
PANEL_WIDTH, PANEL_TOP, PANEL_HEIGHT = 420, 14, 338
INK, MUTED, LINE, PAPER = "#1f2933", "#5f6c7b", "#cbd2d9", "#ffffff"
ADMIT, ADMIT_PALE, DENY, DENY_PALE = "#1b7f4d", "#e3f5ea", "#b42318", "#fde8e6"
USED, NEW, EMPTY = "#7b8794", "#1b7f4d", "#e9edf1"

# Name, rate, used before, capacity: the limits of both requests.
FIRST = [("user", "100/min", 41, 100), ("organisation", "3000/min", 1200, 3000),
         ("month", "10000/month", 9999, 10000)]
SECOND = [("user", "100/min", 42, 100), ("organisation", "3000/min", 1201, 3000),
          ("month", "10000/month", 10000, 10000)]


def text(x, y, words, size=14, fill=INK, weight="normal", anchor="start"):
    return (f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}" font-weight="{weight}" '
            f'text-anchor="{anchor}">{escape(words)}</text>')


def box(x, y, width, height, fill, stroke="none", radius=6):
    return (f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}" fill="{fill}" '
            f'stroke="{stroke}"/>')


def limit_row(x, y, limit, charged):
    """One limit: its name, a bar of what is used, and its own verdict."""
    name, rate, used, capacity = limit
    allows = used < capacity
    width = 190
    filled = round(width * used / capacity)
    parts = [text(x, y, name, weight="bold"), text(x, y + 18, rate, 12, MUTED),
             box(x + 112, y - 10, width, 14, EMPTY, radius=3),
             box(x + 112, y - 10, filled, 14, USED if allows else DENY, radius=3)]
    if charged:
        parts.append(box(x + 112 + filled - 1, y - 13, 4, 20, NEW, radius=1))
    counts = f"{used:,} → {used + 1:,}" if charged else f"stays at {used:,}"
    parts.append(text(x + 112, y + 20, f"{counts} of {capacity:,}", 12, MUTED))
    parts.append(text(x + 388, y + 2, "allows" if allows else "denies", 14,
                      ADMIT if allows else DENY, "bold", "end"))
    return parts


def panel(x, title, limits, verdict, detail):
    admitted = all(used < capacity for _, _, used, capacity in limits)
    colour, pale = (ADMIT, ADMIT_PALE) if admitted else (DENY, DENY_PALE)
    y = PANEL_TOP
    parts = [box(x, y, PANEL_WIDTH, PANEL_HEIGHT, PAPER, LINE, 10),
             text(x + 16, y + 30, title, 15, weight="bold"),
             text(x + 16, y + 50, "GET /v1/things by user alice of organisation acme", 12, MUTED)]
    for row, limit in enumerate(limits):
        parts += limit_row(x + 16, y + 90 + row * 56, limit, admitted)
    parts += [box(x + 16, y + 254, PANEL_WIDTH - 32, 66, pale, colour),
              text(x + 32, y + 281, verdict, 15, colour, "bold"), text(x + 32, y + 304, detail, 13)]
    return parts


def picture():
    parts = panel(10, "A request that every limit allows", FIRST, "200: admitted",
                  "Charged to all three limits, in one step.")
    parts += panel(450, "A request that one limit denies", SECOND, "429: denied by “month”",
                   "Charged to none. Retry-After: until the month ends.")
    label = "Two requests, each checked against three limits: charged to all of them, or to none"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif" role="img" '
        f'aria-label="{label}">', *parts, "</svg>", ""])


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(picture())
