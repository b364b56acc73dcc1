#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Objects that call each other in a circle: circles.py FOLDER [--names] [--root FOLDER]

FOLDER is a build folder; its objects of src/ are read by nm. Two objects are in one circle if each
needs, by way of others, a symbol that the other defines. A circle is listed with the symbols that tie
it, since moving a symbol into another file may open it. No circle may have more than 7 objects, except for
those of circles.txt: `SOURCE N` allows N objects to the circle that SOURCE is in. That list only shrinks.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

MOST = 7


def sources(root, folder):
    """{object: source} of the objects of src/ that are there, as the compiler was called."""
    commands = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
    named = {}
    for one in commands:
        path, source = folder / one["output"], os.path.relpath(folder / one["file"], root)
        if source.startswith("src/") and source.endswith(".c") and path.exists():
            named.setdefault(path, source)
    return named


def symbols(named):
    """{source: symbols it defines}, {source: symbols it needs}"""
    defined, needed = collections.defaultdict(set), collections.defaultdict(set)
    output = subprocess.run(["nm", "-A", "-g", *[str(path) for path in named]],
                            capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        path, rest = line.split(":", 1)
        *_, kind, symbol = rest.split()
        (needed if kind in "Uw" else defined)[named[pathlib.Path(path)]].add(symbol)
    return defined, needed


def edges(defined, needed):
    owner = {symbol: name for name, own in defined.items() for symbol in own}
    graph = collections.defaultdict(lambda: collections.defaultdict(set))
    for name, wanted in needed.items():
        for symbol in wanted:
            other = owner.get(symbol)
            if other and other != name:
                graph[name][other].add(symbol)
    return graph


def circles(graph):
    """Strongly connected parts, Tarjan's way, without recursion."""
    index, low, stack, on, result, counter = {}, {}, [], set(), [], 0
    nodes = set(graph) | {other for row in graph.values() for other in row}
    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = counter
        counter += 1
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = counter
                    counter += 1
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while True:
                        other = stack.pop()
                        on.discard(other)
                        part.append(other)
                        if other == node:
                            break
                    if len(part) > 1:
                        result.append(sorted(part))
    return sorted(result, key=lambda part: (-len(part), part))


def show(graph, part):
    for name in part:
        for other in sorted(graph[name]):
            if other in part:
                print(f"    {name} -> {other}: {' '.join(sorted(graph[name][other]))}")


def allowed(part, known):
    """Objects that this circle may have: 7, or what circles.txt says of one of its files."""
    return max([MOST] + [most for source, most in known.items() if source in part])


def read_known(path):
    if not path.exists():
        return {}
    rows = (line.split() for line in path.read_text().splitlines() if line and line[0] != "#")
    return {source: int(most) for source, most in rows}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--names", action="store_true", help="also the symbols that tie a circle")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2],
                        help="the folder that has src/")
    args = parser.parse_args()
    known = read_known(args.root / "script" / "checks" / "circles.txt")
    named = sources(args.root, args.folder.resolve())
    if not named:
        sys.exit(f"{args.folder}: no objects of src/: build weir there")
    graph = edges(*symbols(named))
    failed = 0
    for part in circles(graph):
        most = allowed(part, known)
        failed += len(part) > most
        if args.names or len(part) > most:
            print(f"{len(part)} objects, {most} may be: {' '.join(part)}")
            show(graph, part)
    print(f"{len(named)} objects, {failed} circles with too many")
    sys.exit(failed > 0)


main()
