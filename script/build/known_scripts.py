#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/server/resp/script/known.c: the SHA-1 of each Lua script of the limiter libraries that
weir serves, with the versions that have it. See script/known-scripts.

It downloads the published packages by the ordinary clients of their registries, unpacks them in a
temporary folder and runs nothing of them. Only hashes leave that folder. `--show` prints the
scripts instead, to see what a new one does.
"""
import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "src/server/resp/script/known.c"

# What tells a script: a part of its text that is in all of its versions, in this order. The name
# is that of the algorithm in known.h.
KINDS = [
    ("rate-limiter-flexible", "INCREMENT_NEW", r"call\('set', KEYS\[1\], 0, 'EX'.*ttl == -1"),
    ("rate-limiter-flexible", "INCREMENT_KEPT", r"call\('set', KEYS\[1\], 0, 'EX'"),
    ("rate-limit-redis", "COUNT_THEN_LIFE", r'"INCR".*ARGV\[1\] == "1"'),
    ("rate-limit-redis", "WINDOW_OR_RESET", r'ARGV\[1\] == "1"'),
    ("rate-limit-redis", "WINDOW", r"tonumber\(ARGV\[1\]\)"),
    ("rate-limit-redis", "COUNT_AND_LIFE", r'call\("GET", KEYS\[1\]\)'),
    ("limits", "MOVING_TAKE", r"\A(?!.*no_add).*'lpush'"),
    ("limits", "MOVING_COUNT", r"tostring\(oldest\)"),
    ("limits", "SLIDING_TAKE", r"'rename'.*\(weighted_count \+ amount\)"),
    ("limits", "SLIDING_COUNTS", r"'rename'"),
    ("limits", "INCREMENT", r'"incr(by)?"'),
    ("throttled-py", "GCRA_PEEK", r"\A(?!.*ARGV\[3\]).*emission_interval"),
    ("throttled-py", "GCRA", r"emission_interval"),
    ("throttled-py", "TWO_WINDOWS_ALL", r"INCRBY.*KEYS\[2\]"),
    ("throttled-py", "TWO_WINDOWS", r"KEYS\[2\]"),
    ("throttled-py", "BUCKET", r"last_refreshed"),
    ("throttled-py", "FIXED", r"INCRBY"),
    ("redis_rate", "RATE_AT_MOST", r"remaining < cost"),
    ("redis_rate", "RATE", r"emission_interval"),
    ("throttled", "SWAP", r"'setex'"),
    ("ulule/limiter", "INCREMENT_MS", r'"incrby"'),
    ("ulule/limiter", "COUNT_OR_ZERO", r'"get"'),
    ("Spring Cloud Gateway", "SPRING", r"requested"),
    ("@fastify/rate-limit", "FASTIFY_BAN", r"ARGV\[3\]\).*ban ~= -1"),
    ("@fastify/rate-limit", "FASTIFY", r"current == 1"),
    ("@fastify/rate-limit", "FASTIFY_LIFE", r"ttl == -1"),
    ("@fastify/rate-limit", "FASTIFY_READ", r"'GET', key"),
    ("@nest-lab/throttler-storage-redis", "NEST", r"blockKey"),
    ("async-ratelimiter", "KOA", r"ZREMRANGEBYRANK"),
    ("fastapi-limiter", "FASTAPI", r"expire_time"),
    ("pyrate-limiter", "PYRATE_GCRA", r"emission"),
    ("pyrate-limiter", "PYRATE_WINDOWS", r"blocking_rank"),
    ("pyrate-limiter", "PYRATE_INTERVALS", r"rates_count"),
]

# Laravel is in none of the registries that this program asks. The scripts are those of
# Illuminate\Cache\RedisStore::add and of Illuminate\Redis\Limiters\DurationLimiter; their hashes
# were made from the sources of this version.
LARAVEL = [
    ("LARAVEL_ADD", "a08c9c69b7c07ae2485190873b90d128a23e502d", "12"),
    ("LARAVEL_DURATION", "29cc07bd431ccbf64637e5dcb60484560fdfa2da", "12"),
    ("LARAVEL_TOO_MANY", "1c5d436d6863e949247f4fa66fa1e32b7fa18da9", "12"),
]


# A library that is known by that of which it is a part.
NAMES = {"async-ratelimiter": "koa-ratelimit"}


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300,
                          **options).stdout


def release(version):
    return tuple(int(part) for part in re.findall(r"\d+", version))


def newest_of_minors(versions):
    """The last patch of each minor version, in order."""
    minors = {}
    for version in sorted((v for v in versions if re.fullmatch(r"v?\d+(\.\d+)*(\.RELEASE)?", v)),
                          key=release):
        minors[release(version)[:2]] = version
    return list(minors.values())


# --- Registries: the files of each version, as (version, {path: text}) ----------------------------

def texts_of(names, read):
    return {name: read(name).decode("utf-8", "replace") for name in names
            if name.endswith((".js", ".mjs", ".lua", ".py", ".go")) and "/." not in name}


def from_npm(package):
    for version in newest_of_minors(json.loads(run("npm", "view", package, "versions", "--json"))):
        with tempfile.TemporaryDirectory() as folder:
            run("npm", "pack", "--silent", "--ignore-scripts", f"{package}@{version}", cwd=folder)
            with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
                yield version, texts_of([m.name for m in archive if m.isfile()],
                                        lambda name: archive.extractfile(name).read())


def from_pypi(package):
    said = run(sys.executable, "-m", "pip", "index", "versions", package)
    found = re.search(r"Available versions: (.*)", said)[1].split(", ")
    for version in newest_of_minors(found):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                                   "--only-binary=:all:", "--no-cache-dir", "-d", folder,
                                   f"{package}=={version}"], check=False, timeout=300)
            wheels = list(Path(folder).glob("*.whl"))
            if done.returncode or not wheels:  # of the source only
                continue
            with zipfile.ZipFile(wheels[0]) as archive:
                yield version, texts_of(archive.namelist(), archive.read)


def from_go(module):
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    with tempfile.TemporaryDirectory() as folder:
        environment["GOPATH"] = folder
        for version in newest_of_minors(
                run("go", "list", "-m", "-versions", module, env=environment).split()[1:]):
            said = run("go", "mod", "download", "-json", f"{module}@{version}", env=environment)
            with zipfile.ZipFile(json.loads(said)["Zip"]) as archive:
                yield version, texts_of(archive.namelist(), archive.read)
        run("go", "clean", "-modcache", env=environment)


def from_maven(group, artifact, versions):
    for version in versions:
        with tempfile.TemporaryDirectory() as folder:
            run("mvn", "--batch-mode", "--quiet", "dependency:copy", f"-DoutputDirectory={folder}",
                f"-Dartifact={group}:{artifact}:{version}", "-Dmdep.useBaseVersion=true")
            with zipfile.ZipFile(next(Path(folder).glob("*.jar"))) as archive:
                yield version, texts_of(archive.namelist(), archive.read)


# --- Scripts in files ------------------------------------------------------------------------------

def is_script(text):
    return re.search(r"\b(redis|server)\.call\(", text)


def of_javascript(text):
    """Template literals; some are trimmed by the expression behind them."""
    for match in re.finditer(r"`([^`]*)`(\s*\.replace(?:All)?\(/\^\\s\+/gm, (?:\"\"|'')\)\s*\.trim\(\))?", text):
        script = match[1].replace("\\\n", "")
        if match[2]:
            script = re.sub(r"^\s+", "", script, flags=re.M).strip()
        if is_script(script):
            yield script


def of_go(text):
    yield from (script for script in re.findall(r"`([^`]*)`", text) if is_script(script))


def of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_script(node.value):
            yield node.value


READERS = {".js": of_javascript, ".mjs": of_javascript, ".py": of_python, ".go": of_go,
           ".lua": lambda text: iter([text])}


def scripts_of(files):
    for name, text in files.items():
        if is_script(text) and "test" not in name.lower():
            try:
                yield from READERS[Path(name).suffix](text)
            except SyntaxError:
                continue


def kind_of(library, script):
    for of, kind, pattern in KINDS:
        if of == library and re.search(pattern, script, re.S):
            return kind
    return None


# --- The table -------------------------------------------------------------------------------------

GO = [("redis_rate", "github.com/go-redis/redis_rate/v9"),
      ("redis_rate", "github.com/go-redis/redis_rate/v10"),
      ("throttled", "github.com/throttled/throttled/v2"),
      ("ulule/limiter", "github.com/ulule/limiter/v3")]

SPRING = [("spring-cloud-gateway-core", ["2.0.4.RELEASE", "2.2.10.RELEASE"]),
          ("spring-cloud-gateway-server", ["3.0.8", "3.1.9", "4.0.9", "4.1.9", "4.2.6"]),
          ("spring-cloud-gateway-server-webflux", ["4.3.0"])]


def all_versions():
    for package in ("rate-limiter-flexible", "rate-limit-redis", "@fastify/rate-limit",
                    "@nest-lab/throttler-storage-redis", "async-ratelimiter"):
        yield from ((package, version, files) for version, files in from_npm(package))
    for package in "limits", "throttled-py", "fastapi-limiter", "pyrate-limiter":
        yield from ((package, version, files) for version, files in from_pypi(package))
    for library, module in GO:
        yield from ((library, version, files) for version, files in from_go(module))
    for artifact, versions in SPRING:
        yield from (("Spring Cloud Gateway", version, files) for version, files
                    in from_maven("org.springframework.cloud", artifact, versions))


def libraries_of(found):
    """A C literal of the libraries' names."""
    names = sorted({NAMES.get(library, library) for kind, library, _, _ in found.values() if kind},
                   key=str.lower)
    lines = textwrap.wrap(", ".join(names), 88)
    return "\n    ".join(f'"{line}{" " if line is not lines[-1] else ""}"' for line in lines)


def main(show):
    found = {}  # sha: [kind, library, versions, script]
    for library, version, files in all_versions():
        print(f"{library} {version}", file=sys.stderr)
        for script in scripts_of(files):
            sha = hashlib.sha1(script.encode()).hexdigest()
            entry = found.setdefault(sha, [kind_of(library, script), library, [], script])
            if version not in entry[2]:
                entry[2].append(version)
    for kind, sha, versions in LARAVEL:
        if len(sha) == 40:
            found[sha] = [kind, "Laravel", versions.split(" to "), ""]
    if show:
        for sha, (kind, library, versions, script) in sorted(found.items(), key=lambda e: e[1][1]):
            print(f"=== {library} {versions[0]} to {versions[-1]}: {kind} {sha}\n{script}")
        return
    rows = [f'    {{"{sha}", WEIR_SCRIPT_{kind}}}, /* {library} {versions[0]} to {versions[-1]} */'
            for sha, (kind, library, versions, _) in sorted(found.items()) if kind]
    OUT.write_text(f"""/* SPDX-License-Identifier: Apache-2.0 */
/* see known.h; made by script/known-scripts */
#include "server/resp/script/known.h"

/* clang-format off */
const struct weir_known_script weir_known_scripts[] = {{
{chr(10).join(rows)}
}};
/* clang-format on */
const unsigned weir_known_script_count = sizeof weir_known_scripts / sizeof *weir_known_scripts;
/* clang-format off */
const char weir_known_libraries[] =
    {libraries_of(found)};
/* clang-format on */
""", encoding="utf-8")


main("--show" in sys.argv[1:])
