# SPDX-License-Identifier: Apache-2.0
"""What the comparison writes: a section of docs/performance.md, and a plot."""

import datetime
import platform
import re
import subprocess
from pathlib import Path

BEGIN = "<!-- written by bench/compare/run.py: begin -->"
END = "<!-- written by bench/compare/run.py: end -->"
PLOT = "performance-compare.svg"
STATE_BYTES = 32 << 20  # rules.yaml
PIPELINES = (1, 16, 64)
CASES = ("weir CL.THROTTLE", "Redis GET", "Redis INCR", "Redis EVALSHA")
# Of a case in light and in dark.
COLOURS = {"weir CL.THROTTLE": ("#0b7285", "#3bc9db"), "Redis GET": ("#adb5bd", "#868e96"),
           "Redis INCR": ("#868e96", "#ced4da"), "Redis EVALSHA": ("#e8590c", "#ff922b")}


def facts(options):
    """Where and with what it was measured."""
    cpu = re.search(r"^model name\s*: (.*)$",
                    Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)

    def output(*command):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    redis = re.search(r"v=(\S+)", output(options.redis_server, "--version"))
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "kernel": platform.release().split("-")[0],
        "weir": output(str(options.weir), "version").split()[-1],
        "redis": redis.group(1) if redis else "?",
        "runs": options.runs, "seconds": options.seconds, "keys": options.keys,
        "quick": options.quick,
    }


# --- The section ---------------------------------------------------------------------------------

def ratio(a, b):
    return a / b if b else float("inf")


def targets(measured):
    """(what, wanted, measured, met)"""
    cpu, throughput = measured["cpu"], measured["throughput"]
    weir, memory, p99, loops = CASES[0], measured["memory"], measured["p99"], measured["loops"]

    def at_most(what, value, limit, unit=""):
        shown = f"{value:.3f}" if not unit else f"{value:.1f}{unit}"
        wanted = f"at most {limit:.3f}" if not unit else f"under {limit:g}{unit}"
        return what, wanted, shown, value <= limit

    def at_least(what, value, limit, text):
        return what, f"at least {text(limit)}", text(value), value >= limit

    speed_up = ratio(2 * measured["workers"]["one worker"], measured["workers"]["two workers"])
    rows = [
        at_most("CPU time of INCR, pipelining 64",
                ratio(cpu[weir, 64], cpu["Redis INCR", 64]), 1 / 2),
        at_most("CPU time of EVALSHA, pipelining 64",
                ratio(cpu[weir, 64], cpu["Redis EVALSHA", 64]), 1 / 12),
        at_most("CPU time of GET, no pipelining", ratio(cpu[weir, 1], cpu["Redis GET", 1]), 1),
        at_least("decisions a second, pipelining 64", throughput[weir, 64], 2e6,
                 lambda value: f"{value / 1e6:.2f} M"),
        at_most("p99 of GET, at half of the highest throughput",
                ratio(p99[weir], p99["Redis GET"]), 1),
        at_least("two workers beside one, by CPU time", speed_up, 1.8,
                 lambda value: f"{value:.2f} x"),
        at_most("memory of a key", memory[weir], 64, " bytes"),
    ]
    for depth in (1, 64):
        rows.append(at_most(f"libuv beside a bare epoll loop, pipelining {depth}",
                            ratio(loops["uv", depth], loops["epoll", depth]), 1.1))
    return rows


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def section(measured, known):
    cpu, throughput = measured["cpu"], measured["throughput"]
    depths = [str(depth) for depth in PIPELINES]
    cost = [[name, *(f"{cpu[name, depth]:.3f}" for depth in PIPELINES)] for name in CASES]
    speed = [[name, *(f"{throughput[name, depth]:,.0f}" for depth in PIPELINES),
              f"{cpu[name, 64] * throughput[name, 64] / 1e4:.0f} %"] for name in CASES]
    client = [f"{measured['client_cpu'][CASES[0], depth]:.3f}" for depth in PIPELINES]
    latency = [[name, f"{measured['half_rate'][name]:,.0f}", f"{measured['p99'][name]:.1f}"]
               for name in measured["p99"]]
    memory = [[name, f"{value:.1f}"] for name, value in measured["memory"].items()]
    loops = [[f"pipelining {depth}", f"{measured['loops']['uv', depth]:.3f}",
              f"{measured['loops']['epoll', depth]:.3f}"] for depth in (1, 64)]
    met = [[what, wanted, shown, "yes" if good else "**no**"]
           for what, wanted, shown, good in targets(measured)]
    quick = "\nThis was a quick run: its figures are rough.\n" if known["quick"] else ""
    return f"""\
## Beside Redis

`bench/compare/run.py` on {known['date']}: {known['cpu']}, Linux {known['kernel']},
weir {known['weir']}, redis-server {known['redis']}. One worker and redis-server on one core, the
load (`weir bench`, 50 connections over TCP, {known['keys']:,} keys, uniform) on the other; medians
of {known['runs']} runs of {known['seconds']} s that took turns. EVALSHA runs a GCRA of ours,
`bench/compare/gcra.lua`. Every decision is an admission that changes the state of its key; none is
denied.
{quick}
CPU time of the server for one decision, in microseconds, by pipelining:

{table(["", *depths], cost)}

Decisions a second on that core:

![Decisions a second by pipelining]({PLOT})

{table(["", *depths, "of its core, at 64"], speed)}

(The last column is what the server got of its core: where it is far from 100 %, something else ran
on the machine, and throughput and latency are that much worse than CPU time says. The load itself
takes {", ".join(client)} us a decision on its own core.)

Latency at half of the highest throughput without pipelining (open loop: from the time each request
was due):

{table(["", "requests/s", "p99, us"], latency)}

Memory that a process grows by with {known['keys']:,} keys (for weir the whole table, which is as
large as the rules file says):

{table(["", "bytes a key"], memory)}

CPU time for one request of a server that only reads commands and answers them
(`bench/compare/responder.c`), in microseconds:

{table(["", "libuv", "bare epoll"], loops)}

What was aimed at:

{table(["", "wanted", "measured", "met"], met)}
"""


# --- The plot ------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 360, 80, 60, 50
# By class, in light and in dark: the page that shows the plot may be either.
INKS = {"ink": ("#212529", "#e9ecef"), "paper": ("#ffffff", "#14181d"), "line": ("#dee2e6", "#343a40")}


def class_of(name):
    return "bar-" + name.replace(" ", "-").replace(".", "-").lower()


def styles():
    """The colours as classes; those of dark by prefers-color-scheme, which pictures obey, too."""
    colours = INKS | {class_of(name): pair for name, pair in COLOURS.items()}
    light, dark = ("".join(f".{name}{{fill:{pair[i]};stroke:{pair[i] if name == 'line' else 'none'}}}"
                           for name, pair in colours.items()) for i in (0, 1))
    return f"<style>{light}@media(prefers-color-scheme:dark){{{dark}}}</style>"


def round_up(value):
    """1, 2, 2.5 or 5 times a power of ten, not below the value."""
    power = 1
    while power * 10 <= value:
        power *= 10
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value)


def bar(x, y, width, height, name, title):
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'class="{class_of(name)}"><title>{title}</title></rect>')


def text(x, y, words, anchor="middle", turned=False):
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="ink"{turn}>{words}</text>'


def plot(throughput):
    """Decisions a second: one group of bars for each depth of pipelining."""
    most = round_up(max(throughput.values()))
    scale = (HEIGHT - TOP - BOTTOM) / most
    base, group = HEIGHT - BOTTOM, (WIDTH - LEFT - 20) / len(PIPELINES)
    width = group * 0.8 / len(CASES)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             'font-family="sans-serif" font-size="12">',
             "<title>Decisions a second on one core</title>", styles(),
             f'<rect width="{WIDTH}" height="{HEIGHT}" class="paper"/>',
             text(18, (TOP + base) / 2, "decisions a second on one core, in millions", turned=True),
             text((LEFT + WIDTH - 20) / 2, HEIGHT - 12, "pipelining: requests sent before their answers")]
    for i in range(6):
        y = base - most * i / 5 * scale
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" class="line"/>')
        parts.append(text(LEFT - 8, y + 4, f"{most * i / 5 / 1e6:g}", "end"))
    for i, depth in enumerate(PIPELINES):
        start = LEFT + group * i + group * 0.1
        for j, name in enumerate(CASES):
            value = throughput[name, depth]
            parts.append(bar(start + width * j, base - value * scale, width - 3, value * scale,
                             name, f"{name}, pipelining {depth}: {value:,.0f}/s"))
        parts.append(text(LEFT + group * (i + 0.5), base + 20, f"{depth}"))
    for j, name in enumerate(CASES):
        x = LEFT + j * (WIDTH - LEFT - 20) / len(CASES)
        parts.append(bar(x, 14, 12, 12, name, name))
        parts.append(text(x + 18, 24, name, "start"))
    return "\n".join(parts) + "\n</svg>\n"


# --- Writing -------------------------------------------------------------------------------------

def write(docs, measured, known):
    """Puts the section between its markers, behind the rest where there are none yet."""
    path = docs / "performance.md"
    old = path.read_text(encoding="utf-8") if path.exists() else "# Performance\n"
    new = f"{BEGIN}\n{section(measured, known)}{END}\n"
    if BEGIN in old and END in old:
        before, _, rest = old.partition(BEGIN)
        new = before + new + rest.partition(END)[2].lstrip("\n")
    else:
        new = old.rstrip("\n") + "\n\n" + new
    path.write_text(new, encoding="utf-8")
    (docs / PLOT).write_text(plot(measured["throughput"]), encoding="utf-8")
