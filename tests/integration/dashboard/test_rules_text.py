# SPDX-License-Identifier: Apache-2.0
"""The text of the rules as people may see it, and what a reload would change, by the API."""

import pytest

from daemon.weir import Weir

# Each SECRET… must not be shown; line breaks stay where they are.
RULES = """\
# the rules of a test; token: SECRET0
version: 1
server:
  admin: { address: "127.0.0.1:0", token: "SECRET1-and-more-of-it" }
  http:
    address: 127.0.0.1:0
    token: 'SECRET2 of http' # SECRET3 is the token before
    # it is open
limits:
  - name: api
    match: { path: /api/**, header.authorization: ["Bearer SECRET4", 'Bearer SECRET5'] }
    key: [header.authorization]
    rate: 10/min
  - name: folded
    match:
      header.cookie: >-
        SECRET6
        SECRET7
      method: [GET, POST]
    key: [user]
    rate: 1/s   # as they asked for
"""


def start(folder, rules=RULES):
    return Weir(folder, rules, "--workers", "1", admin=None, http=None)


def call(weir, path, token="SECRET1-and-more-of-it"):
    with weir.admin() as client:
        return client.request("GET", path, {"Authorization": f"Bearer {token}"})


def look(weir):
    return call(weir, "/v1/rules/file")


def test_what_is_secret_is_hidden_and_lines_stay(tmp_path):
    with start(tmp_path) as weir:
        loaded = weir.config.read_text(encoding="utf-8")
        reply = call(weir, "/v1/rules/text")
        assert reply.status == 200 and reply.json["file"] == str(weir.config)
        text = reply.json["text"]
        assert "SECRET" not in text and text.count("(hidden)") >= 6
        before, after = loaded.splitlines(), text.splitlines()
        assert len(before) == len(after)
        same = [line for line in before if "SECRET" not in line and "header.cookie" not in line]
        assert [line for line in after if line in same] == same
        assert "    rate: 1/s   # as they asked for" in after
        assert '  admin: { address: "127.0.0.1:0", token: (hidden) }' in after
        with weir.admin() as client:
            assert client.request("GET", "/v1/rules/text", {"Authorization": ""}).status == 401


@pytest.mark.parametrize("value, shown", [
    ("redis://user:SECRET@db.example:6379/1", "redis://(hidden)@db.example:6379/1"),
    ('"rediss://:SECRET@db.example"', '"rediss://(hidden)@db.example"'),
    ("redis://db.example:6379", "redis://db.example:6379")])
def test_of_an_address_the_password_is_hidden(tmp_path, value, shown):
    rules = f"version: 1\nserver: {{ admin: '127.0.0.1:0' }}\nstore: {{ redis: {{ url: {value} }} }}\nlimits: []\n"
    with start(tmp_path, rules) as weir:
        assert f"url: {shown}" in call(weir, "/v1/rules/text").json["text"]


def test_what_an_alias_brings_to_a_secret_place_is_hidden_where_it_stands(tmp_path):
    rules = """\
version: 1
server:
  http: { address: &a "127.0.0.1:0", token: &t SECRET9-SECRET9-SECRET9 }
  admin: { address: *a, token: *t }
limits:
  - { name: &n secret10-is-a-name, key: [user], rate: 1/s, match: { header.authorization: *n } }
"""
    with start(tmp_path, rules) as weir:
        text = call(weir, "/v1/rules/text", "SECRET9-SECRET9-SECRET9").json["text"]
        assert "SECRET" not in text and "secret10" not in text and "token: *t" in text and '"127.0.0.1:0"' in text


def test_a_look_at_the_file_says_what_a_reload_would_change(tmp_path):
    with start(tmp_path) as weir:
        good = weir.config.read_text(encoding="utf-8")
        now = look(weir).json
        assert now == {"text": call(weir, "/v1/rules/text").json["text"], "same": True, "errors": None}
        weir.write_rules(good.replace("rate: 10/min", "rate: 20/min"))
        now = look(weir).json
        assert not now["same"] and "rate: 20/min" in now["text"] and "SECRET" not in now["text"]
        assert now["errors"] is None
        assert "rate: 10/min" in call(weir, "/v1/rules/text").json["text"]  # in use
        weir.write_rules(good.replace("rate: 10/min", "rate: 10/fortnight"))
        now = look(weir).json
        assert f"{weir.config}:" in now["errors"] and "10/fortnight" in now["text"]
        weir.write_rules(good.replace("Bearer SECRET4", "Bearer SECRET11"))
        now = look(weir).json
        assert not now["same"] and now["text"] == call(weir, "/v1/rules/text").json["text"]
        weir.write_rules("limits: [\n")
        now = look(weir).json
        assert now["text"] is None and now["errors"]
        weir.config.unlink()
        assert look(weir).status == 503
        weir.write_rules(good.replace("rate: 10/min", "rate: 30/min"))
        assert "event=reloaded" in weir.reload()
        assert "rate: 30/min" in call(weir, "/v1/rules/text").json["text"]


def test_plans_are_numbers(tmp_path):
    rules = """\
version: 1
server: { admin: '127.0.0.1:0' }
plans:
  free: { api: 10/min }
  team: { api: [100/min, 1000/h] }
  staff: { api: unlimited }
default_plan: free
limits:
  - { name: api, key: [user], rate: plan, algorithm: fixed_window }
"""
    with start(tmp_path, rules) as weir:
        plans = {one["plan"]: one for one in call(weir, "/v1/limits/api").json["plans"]}
        assert {name: [(rate["rate"], rate["window_ms"]) for rate in one["rates"]] for name, one in plans.items()} \
            == {"free": [(10, 60000)], "team": [(100, 60000), (1000, 3600000)], "staff": []}
        assert [name for name, one in plans.items() if one["unlimited"]] == ["staff"]
