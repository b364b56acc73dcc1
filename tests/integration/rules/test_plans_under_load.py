# SPDX-License-Identifier: Apache-2.0
"""Plans, overrides and keys that change while clients ask: what was used stays used, and what the
file says counts from the next request after the reload."""

import hashlib
import itertools
import threading

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir

# Buckets that refill by one a day, and a window of a day: what is admitted adds up. The quota of an
# organisation is shared by users whose windows differ.
RULES = """
identify: header.x-api-key
keys: keys.yaml
default_plan: small
plans: { small: { api: 1/d burst 100 }, large: { api: 1/d burst 500 } }
limits:
- { name: api, match: { path: /api }, key: [user], algorithm: token_bucket, rate: plan }
- { name: org, match: { path: /org }, key: [org], algorithm: sliding_log, rate: 150/d }
- { name: month, match: { path: /month }, key: [user], quota: 100/month }
"""


def digest(key):
    return hashlib.sha256(key.encode()).hexdigest()


def entry(user, plan=None, limits=None, org=None, key=None):
    fields = [f"user: {user}"]
    fields += [f"org: {org}"] if org else []
    fields += [f"plan: {plan}"] if plan else []
    rates = ", ".join(f"{name}: {rate}" for name, rate in (limits or {}).items())
    fields += [f"limits: {{ {rates} }}"] if limits else []
    return f"{digest(key or user)}: {{ {', '.join(fields)} }}\n"


def write_keys(folder, *entries):
    beside = folder / "keys.new"
    beside.write_text("".join(entries), encoding="utf-8")
    beside.rename(folder / "keys.yaml")


def ask(client, path, key):
    return client.check(path=path, ip="192.0.2.1", headers={"x-api-key": key})


class Hammer:
    """Threads that ask until they have to stop."""

    def __init__(self, weir, path, keys):
        self.stopping, self.failures = threading.Event(), []
        self.admitted, self.asked = [], 0
        self.threads = [threading.Thread(target=self._run, args=(weir, path, key)) for key in keys]

    def _run(self, weir, path, key):
        with weir.client() as client:
            while not self.stopping.is_set():
                answer = ask(client, path, key)
                self.asked += 1
                # Without limits: a key that no caller has now.
                if answer.status == 200 and answer.json["limits"]:
                    self.admitted.append(key)
                elif answer.status not in (200, 429):
                    self.failures.append(answer.status)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def go_on(self, count=20):
        """Waits until so many more were asked."""
        wanted = self.asked + count
        wait_until(lambda: self.asked >= wanted, what="more requests")


def test_what_was_used_stays_used_while_plans_and_overrides_change(tmp_path):
    variants = [entry("alice"), entry("alice", "large"),
                entry("alice", limits={"api": "1/d burst 700"}),
                entry("alice", "large", {"api": "1/d burst 300", "month": "5/month"}),
                entry("alice", limits={"api": "2/d burst 50"}), ""]
    write_keys(tmp_path, variants[0])
    with Weir(tmp_path, RULES, "--workers", "2") as weir:
        with Hammer(weir, "/api", ["alice"] * 4) as hammer:
            for variant in itertools.islice(itertools.cycle(variants), 25):
                write_keys(tmp_path, variant, entry("bob"))
                assert "event=reloaded" in weir.reload()
                hammer.go_on()
        assert hammer.failures == []
        # The most that any of them allows, and that to the last one.
        write_keys(tmp_path, variants[2])
        assert "event=reloaded" in weir.reload()
        admitted = len(hammer.admitted)
        with weir.client() as client:
            while ask(client, "/api", "alice").status == 200:
                admitted += 1
    assert admitted == 700


def test_callers_of_one_organisation_with_other_windows_start_nobody_fresh(tmp_path):
    """Two states, the day's and the hour's: each is used up once, however the callers take turns."""
    write_keys(tmp_path, entry("alice", org="acme"),
               entry("bob", org="acme", limits={"org": "40/h"}), entry("carol", org="acme"))
    with Weir(tmp_path, RULES, "--workers", "2") as weir:
        with Hammer(weir, "/org", ["alice", "bob", "carol", "bob"]) as hammer:
            wait_until(lambda: len(hammer.admitted) >= 190, what="both states used up")
            hammer.go_on(400)
        assert hammer.failures == []
        assert hammer.admitted.count("bob") == 40
        assert len(hammer.admitted) == 190


def test_a_change_counts_from_the_next_request(tmp_path):
    write_keys(tmp_path, entry("alice"))
    with Weir(tmp_path, RULES, "--workers", "2") as weir, weir.client() as client:
        for used in range(100):
            assert ask(client, "/api", "alice").json["limits"][0]["remaining"] == 99 - used
        assert ask(client, "/api", "alice").status == 429
        capacities = {"large": 500, "small": 100}
        used = 100
        for i in range(10):
            capacity = 150 + 20 * i
            write_keys(tmp_path, entry("alice", limits={"api": f"1/d burst {capacity}"}))
            assert "event=reloaded" in weir.reload()
            result = ask(client, "/api", "alice").json["limits"][0]
            used += 1
            assert (result["limit"], result["remaining"]) == (capacity, capacity - used)
            for plan, capacity in capacities.items():
                write_keys(tmp_path, entry("alice", plan))
                assert "event=reloaded" in weir.reload()
                result = ask(client, "/api", "alice").json["limits"][0]
                used += plan == "large"
                assert (result["limit"], result["remaining"]) == (capacity, max(0, capacity - used))
        # Who loses his key is nobody, and has what he had used when he gets another.
        write_keys(tmp_path, entry("bob"))
        weir.reload()
        assert ask(client, "/api", "alice").json["limits"] == []
        write_keys(tmp_path, entry("alice", "large", key="alice-2"))
        weir.reload()
        assert ask(client, "/api", "alice-2").json["limits"][0]["remaining"] == 500 - used - 1


def test_a_wrong_keys_file_changes_nothing(tmp_path):
    write_keys(tmp_path, entry("alice", limits={"api": "1/d burst 7"}))
    with Weir(tmp_path, RULES) as weir, weir.client() as client:
        assert ask(client, "/api", "alice").json["limits"][0]["limit"] == 7
        wrong = entry("alice", limits={"apii": "1/d burst 8", "month": "9/fortnight"})
        write_keys(tmp_path, entry("bob"), wrong)
        assert "event=reload_failed" in weir.reload()
        log = weir.text()
        for what, hint in (("apii", "did you mean `api`?"),
                           ("9/fortnight", "`9/fortnight` is not a quota")):
            assert f"line=2 column={wrong.index(what) + 1} message=" in log and hint in log
        assert ask(client, "/api", "alice").json["limits"][0]["remaining"] == 5
        write_keys(tmp_path, entry("alice", limits={"api": "1/d burst 8"}))
        assert "event=reloaded" in weir.reload()
        assert ask(client, "/api", "alice").json["limits"][0]["remaining"] == 5


def test_a_watched_keys_file_is_read_when_it_alone_changes(tmp_path):
    write_keys(tmp_path, entry("alice"))
    with Weir(tmp_path, RULES, "--watch") as weir, weir.client() as client:
        assert ask(client, "/api", "alice").json["limits"][0]["limit"] == 100
        write_keys(tmp_path, entry("alice", "large"))
        weir.wait_event("reloaded")
        assert ask(client, "/api", "alice").json["limits"][0]["limit"] == 500


def test_an_operator_sees_and_tops_up_what_counts_for_a_caller(tmp_path):
    write_keys(tmp_path, entry("alice", org="acme", limits={"month": "3000/month", "org": "160/d"}),
               entry("bob", org="acme"))
    token = {"Authorization": "Bearer t"}
    rules = RULES + "server: { admin: { address: '127.0.0.1:0', token: t } }\n"
    with Weir(tmp_path, rules, admin=None) as weir, weir.client() as client, weir.admin() as admin:
        for _ in range(155):
            ask(client, "/org", "alice")
        client.check(path="/month", ip="192.0.2.1", headers={"x-api-key": "alice"}, cost=2500)
        limits = {limit["name"]: limit for limit in
                  admin.request("GET", "/v1/limits", token).json["limits"]}
        assert limits["month"]["overrides"] == 1 and "overrides" not in limits["api"]

        def look(limit, query):
            path = f"/v1/limits/{limit}/state?{query}"
            return admin.request("GET", path, token).json["limits"][0]

        assert look("month", "key=alice")["remaining"] == 500
        # The organisation's key does not tell whose rates count.
        assert look("org", "key=acme")["limit"] == 150
        result = look("org", "key=acme&user=alice")
        assert (result["limit"], result["remaining"]) == (160, 5)
        granted = admin.request("POST", "/v1/limits/month/grant?key=alice&units=1000", token).json
        assert granted["granted"] and granted["limits"][0]["remaining"] == 1500
        assert ask(client, "/month", "alice").json["limits"][0]["remaining"] == 1499


def test_a_grant_by_plan_does_not_guess_the_plan(tmp_path):
    rules = """\
version: 1
default_plan: free
plans: { free: { month: 100/h }, pro: { month: 1000000/h } }
limits: [{ name: month, key: [org], algorithm: fixed_window, rate: plan }]
server: { admin: { address: '127.0.0.1:0', token: t } }
"""
    token = {"Authorization": "Bearer t"}
    with Weir(tmp_path, rules, admin=None) as weir, weir.admin() as admin:
        weir.check(attributes={"org": "acme", "plan": "pro"}, cost=299952)
        path = "/v1/limits/month/grant?key=acme&units=1000"
        refused = admin.request("POST", path, token)
        assert refused.status == 400 and "plan: required" in refused.json["detail"]
        assert admin.request("POST", path + "&plan=pro", token).json["limits"][0]["remaining"] \
            == 701048


@pytest.mark.parametrize("style", ["lines", "yaml"])
def test_many_keys_are_reloaded_while_clients_ask(tmp_path, style):
    def keys(plan):
        first = "" if style == "lines" else "---\n"
        return first + "".join(entry(f"u{i}", plan, org=f"o{i % 50}", key=f"key{i}")
                               for i in range(20000))

    (tmp_path / "keys.yaml").write_text(keys("small"), encoding="utf-8")
    with Weir(tmp_path, RULES, "--workers", "2") as weir:
        with Hammer(weir, "/api", ["key7", "key19999"]) as hammer:
            for plan in ["large", "small"] * 2 + ["large"]:
                (tmp_path / "keys.yaml").write_text(keys(plan), encoding="utf-8")
                assert "event=reloaded" in weir.reload()
                hammer.go_on()
            wait_until(lambda: len(hammer.admitted) >= 1000, what="both users' budgets used up")
            hammer.go_on()
        assert hammer.failures == []
        assert hammer.admitted.count("key7") == hammer.admitted.count("key19999") == 500
