#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the example of docs/score.md classes browsers and bots: bench/score/run.py [--clients N] [--seed N] [--rules FILE]

Makes the requests of several kinds of clients in virtual time, replays each kind with `weir replay`,
and prints which share of its clients reached which class. Nothing is random but by the seed.
Needs build/weir (or WEIR).
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/129.0 Safari/537.36"
CHROME_JA4 = "t13d1516h2_8daaf6152771_02713d6af862"
GO_JA4 = "t12i3006h1_000000000000_000000000000"
START = 1_700_000_000


class Kind:
    """One kind of client; `run` yields (seconds, path, method, headers) of one of them."""

    def __init__(self, name, person, run, share=1.0):
        self.name, self.person, self.run, self.share = name, person, run, share


def pauses(rng, median, spread=1.0):
    return rng.lognormvariate(0, spread) * median


def browser_headers(cookie):
    headers = {"user-agent": CHROME, "x-ja4": CHROME_JA4}
    return headers | {"cookie": "session=1"} if cookie else headers


def browser(rng):
    """Reads 3 to 15 pages: each is a burst of assets, then a pause of a reader."""
    at = 0.0
    for page in range(rng.randint(3, 15)):
        yield at, f"/page/{rng.randint(1, 30)}", "GET", browser_headers(page > 0)
        for _ in range(rng.randint(5, 40)):
            at += rng.expovariate(1 / 0.03)
            yield at, f"/assets/{rng.randint(1, 60)}.js", "GET", browser_headers(True)
        at += 1 + pauses(rng, 12)


def office(rng):
    """Twenty browsers behind one address."""
    requests = [(at + rng.uniform(0, 120), *rest)
                for _ in range(20) for at, *rest in browser(rng)]
    yield from sorted(requests)


def app(rng):
    """A phone: some calls at each touch, without cookies."""
    at = 0.0
    for _ in range(rng.randint(5, 30)):
        for _ in range(rng.randint(1, 5)):
            at += rng.uniform(0.02, 0.3)
            yield at, f"/api/{rng.choice('abcdefgh')}", "GET", {"user-agent": "Shop/3.1 (iOS 18)"}
        at += pauses(rng, 6)


def dashboard(rng):
    """A page that asks for news every 5 seconds, as setInterval does."""
    at = 0.0
    for _ in range(60):
        at += 5 + rng.gauss(0, 0.008)
        yield at, "/api/news", "GET", browser_headers(True)


def curl_loop(rng):
    at = 0.0
    for _ in range(120):
        at += 1 + rng.uniform(0.004, 0.012)
        yield at, "/api/stock", "GET", {"user-agent": "curl/8.9.1", "x-ja4": GO_JA4}


def scraper(rng):
    at = 0.0
    for item in range(120):
        at += rng.uniform(0.5, 2)
        yield at, f"/items/{item}", "GET", {"user-agent": "python-requests/2.32", "x-ja4": GO_JA4}


def scanner(rng):
    at = 0.0
    for _ in range(60):
        at += rng.uniform(0.05, 0.4)
        yield at, f"/{rng.choice(['wp-login.php', '.env', 'admin', '.git/config'])}", "GET", {}


def disguised(rng):
    """Says that it is Chrome, and shakes hands as another program does."""
    at = 0.0
    for item in range(120):
        at += rng.uniform(0.3, 4)
        yield at, f"/items/{item}", "GET", {"user-agent": CHROME, "x-ja4": GO_JA4}


def stuffing(rng):
    """A real browser under a program: tries a password every 3 seconds."""
    at = 0.0
    for _ in range(80):
        at += 3 + rng.gauss(0, 0.01)
        yield at, "/login", "POST", browser_headers(True)


def patient(rng):
    """The same, with the pauses of people and a page between."""
    at = 0.0
    for _ in range(40):
        at += 2 + pauses(rng, 10)
        yield at, "/login", "GET", browser_headers(True)
        at += 1 + pauses(rng, 4)
        yield at, "/login", "POST", browser_headers(True)


def spread(rng):
    """The same from many addresses: three requests each."""
    at = rng.uniform(0, 600)
    for _ in range(3):
        at += 3 + rng.gauss(0, 0.5)
        yield at, "/login", "POST", browser_headers(False)


KINDS = [
    Kind("browser", True, browser),
    Kind("office, 20 browsers", True, office, 0.1),
    Kind("app on a phone", True, app),
    Kind("dashboard that polls", True, dashboard),
    Kind("curl in a loop", False, curl_loop),
    Kind("scraper in Python", False, scraper),
    Kind("scanner without an agent", False, scanner),
    Kind("disguised as Chrome", False, disguised),
    Kind("password stuffing, steady", False, stuffing),
    Kind("the same, as slow as people", False, patient),
    Kind("the same, many addresses", False, spread, 5.0),
]


def example():
    page = (ROOT / "docs/score.md").read_text(encoding="utf-8")
    return re.search(r"^```yaml\n(.*?)^```", page, re.M | re.S)[1]


def make_folder(folder, rules):
    (folder / "weir.yaml").write_text(rules, encoding="utf-8")
    (folder / "challenge.key").write_text("0123456789abcdef" * 4 + "\n", encoding="ascii")
    shutil.copy(ROOT / "examples/standing/badnets.txt", folder)


def write_trace(kind, clients, rng, path):
    lines = []
    for client in range(clients):
        address = f"198.18.{client // 256 % 256}.{client % 256}"
        begin = START + rng.uniform(0, 600)
        for at, target, method, headers in kind.run(rng):
            lines.append((begin + at, address, target, method, headers))
    lines.sort(key=lambda line: line[0])
    with open(path, "w", encoding="utf-8") as file:
        for at, address, target, method, headers in lines:
            file.write(json.dumps({"t": round(at, 6), "ip": address, "path": target, "method": method,
                                   "headers": headers}) + "\n")
    return len(lines)


def replay(folder, trace):
    """The share of clients in each class, in percent."""
    weir = os.environ.get("WEIR", str(ROOT / "build/weir"))
    done = subprocess.run([weir, "replay", "--config", folder / "weir.yaml", trace],
                          capture_output=True, text=True, check=True, timeout=600)
    shares = re.findall(r"^(legitimate|suspicious|malicious) +\d+ +[\d.]+% +\d+ +([\d.]+)%$",
                        done.stdout, re.M)
    assert len(shares) == 3, done.stdout
    return {name: float(share) for name, share in shares}


def measure(clients, seed, rules):
    """Yields (kind, clients, requests, shares)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_folder(folder, rules)
        for number, kind in enumerate(KINDS):
            rng = random.Random(f"{seed}-{number}")
            count = max(1, int(clients * kind.share))
            requests = write_trace(kind, count, rng, folder / "trace")
            yield kind, count, requests, replay(folder, folder / "trace")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=100, help="of each kind (100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rules", type=Path, help="a rules file instead of the example of docs/score.md")
    options = parser.parse_args()
    rules = options.rules.read_text(encoding="utf-8") if options.rules else example()
    print(f"{'':30} {'clients':>8} {'requests':>9} {'legitimate':>11} {'suspicious':>11} {'malicious':>10}")
    for kind, clients, requests, shares in measure(options.clients, options.seed, rules):
        print(f"{kind.name:30} {clients:8} {requests:9} {shares['legitimate']:10.1f}% "
              f"{shares['suspicious']:10.1f}% {shares['malicious']:9.1f}%")


if __name__ == "__main__":
    main()
