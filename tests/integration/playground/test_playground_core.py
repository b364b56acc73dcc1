# SPDX-License-Identifier: Apache-2.0
"""The core in the browser: it decides as the native one does, and the figures of the documentation
are what the page draws."""

import gzip
import os

import pytest

from browser.chromium import complaints, needs_chromium, open_browser
from browser.playground import FILES, STEPS, StaticFiles, needs_playground
from model.program import ROOT

pytestmark = [needs_chromium, needs_playground]

KB = 1000
WASM_MAX = 24 * KB
ALL_MAX = 64 * KB  # gzipped, with the module in base64
STEP_COUNT = 100_000
# Numbers of enum weir_algorithm; 19: sliding_window of several segments.
ALGORITHMS = {"fixed_window": 0, "two_counters": 1, "sliding_log": 2, "token_bucket": 3, "gcra": 4,
              "leaky_bucket": 5, "leaky_queue": 6, "concurrency": 7, "quota": 8, "segments": 19}
FIGURES = ROOT / "docs" / "algorithms" / "figures"

# Compares block by block; the native outcomes are bytes, and so are those of the module's memory.
COMPARE = """
const [which, done] = arguments;
(async () => {
  const { Lanes, open_core } = await import("/lanes.js");
  const core = await open_core(), lanes = new Lanes(core);
  const data = await (await fetch(`/steps/${which}`)).arrayBuffer();
  const names = ["algorithm", "rate", "window", "burst", "segments", "strict", "rollover", "calendar"];
  let at = 0, steps = 0, allowed = 0, back = 0;
  const words = (count) => { const found = new BigUint64Array(data.slice(at, at + 8 * count)); at += 8 * count; return found; };
  const bytes = (count) => { const found = new Uint8Array(data.slice(at, at + count)); at += count; return found; };
  const same = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);
  while (at < data.byteLength) {
    const settings = Object.fromEntries([...words(8)].map((value, i) => [names[i], value]));
    const count = Number(words(1)[0]), requests = words(2 * count);
    lanes.load(Array.from({ length: count }, (_, i) => [requests[2 * i], requests[2 * i + 1]]));
    const problem = lanes.configure([settings]);
    if (problem) return { problem };
    const memory = core.memory.buffer;
    if (!same(new Uint8Array(memory, core.memory_of_outcomes(0), 24 * count), bytes(24 * count)))
      return { problem: `another outcome for ${JSON.stringify(settings, (_, v) => typeof v === "bigint" ? `${v}` : v)}` };
    const verdicts = lanes.allowed(0).slice(0, count);
    if (!same(verdicts, bytes(count))) return { problem: "another verdict" };
    // A step back: the state after half of the requests is the same from either side.
    const half = count >> 1, now = lanes.at(half - 1);
    const first = lanes.look(0, half, now);
    lanes.look(0, count, lanes.at(count - 1));
    const again = lanes.look(0, half, now);
    if (first.remaining === again.remaining && first.reset === again.reset && first.owed === again.owed) back++;
    steps += count;
    allowed += verdicts.reduce((sum, value) => sum + value, 0);
  }
  return { steps, allowed, back };
})().then(done, (error) => done({ problem: String(error) }));
"""
DRAW = """
const done = arguments[0];
import("/figure.js").then((module) => module.figures()).then(done, (error) => done({ error: String(error) }));
"""


@pytest.fixture(name="browser", scope="module")
def fixture_browser(tmp_path_factory):
    with StaticFiles() as files:
        browser = open_browser(tmp_path_factory.mktemp("browser"))
        browser.get(files.url + "empty")
        yield browser
        browser.quit()


@pytest.mark.skipif(not STEPS.exists(), reason=f"no {STEPS}: -Dtests=enabled builds it")
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_browser_decides_as_native_code_does(browser, name):
    found = browser.execute_async_script(COMPARE, ALGORITHMS[name])
    assert "problem" not in found, found["problem"]
    assert found["steps"] == STEP_COUNT
    assert found["back"] == 10  # in each block
    assert 0.05 * STEP_COUNT < found["allowed"] < 0.95 * STEP_COUNT  # else the steps show little
    assert complaints(browser) == []


def test_the_playground_is_small():
    wasm = (FILES / "weir.wasm").stat().st_size
    assert wasm <= WASM_MAX
    pages = [path for path in FILES.iterdir() if path.suffix in (".html", ".css", ".js")]
    assert len(pages) >= 12
    assert sum(len(gzip.compress(path.read_bytes(), 9)) for path in pages) <= ALL_MAX


def test_times_are_never_numbers():
    """No Number() of a time, and no parseFloat: what becomes a Number is a place or a count."""
    for path in sorted((ROOT / "playground").glob("*.js")):
        text = path.read_text(encoding="utf-8")
        for word in ("parseFloat", "Date.", "new Date", "BigInt.asInt", "Number(state.now", "Number(at)",
                     "Number(now", "Number(view.now", "performance."):
            assert word not in text, f"{path.name}: {word}"


def test_the_figures_of_the_algorithms_are_current(browser):
    """WEIR_WRITE_FIGURES=1 writes them anew; script/figures --playground does that."""
    drawn = browser.execute_async_script(DRAW)
    assert "error" not in drawn, drawn["error"]
    assert len(drawn) == 11
    if os.environ.get("WEIR_WRITE_FIGURES"):
        FIGURES.mkdir(exist_ok=True)
        for name, text in drawn.items():
            (FIGURES / f"{name}.svg").write_text(text, encoding="utf-8")
    assert {path.stem for path in FIGURES.glob("*.svg")} == set(drawn)
    for name, text in drawn.items():
        assert (FIGURES / f"{name}.svg").read_text(encoding="utf-8") == text, \
            f"docs/algorithms/figures/{name}.svg is not what the playground draws: run " \
            "script/figures --playground"
