# SPDX-License-Identifier: Apache-2.0
"""What `weir validate` says of mistakes in the sections and keys for times of pressure: each with its
line and column, what is wrong, and what to write. The table has every message of their loaders."""

import re

import pytest

from model.program import ROOT, run_weir

L = "limits: [{name: a, key: [], rate: 10/h}]\n"
S = "standing: { by: [client.ip] }\n"
P = "priority: { from: header.x-p }\n"
STEPS = "standing: { by: [user, client.ip/64], file: s.db }\n"
GOOD = "{name: s, when: {path: /a}, add: 3}"
SCORE = "score: {key: [client.ip/64], signals: [%s]}\n" % GOOD
LISTS = "standing: { by: [user, client.ip], lists: [%s] }\n"
USERS = "{file: users.txt, by: user, level: warned}"
NETS = "{file: nets.txt, by: client.ip, level: warned}"
SHARED = 'store: { redis: "redis://127.0.0.1:1", nodes: 2 }\n'
SOURCES = [ROOT / "src" / name for name in (
    "feature/adaptive/rules/section.c", "feature/penalties/rules/section.c",
    "feature/priority/rules/section.c", "feature/standing/rules/section.c",
    "feature/challenge/rules/section.c", "feature/score/rules/section.c",
    "rules/load/limit/match_list.c", "rules/actions/load_reject.c", "rules/actions/load_steps.c")]


def limit(more, rate="rate: 10/h"):
    return f"limits:\n- name: a\n  key: []\n  {rate}\n  {more}\n"


def adaptive(text):
    return f"adaptive:\n  b: {text}\n{L}"


def penalty(text, limits=L):
    return f"{STEPS}{limits}penalties:\n- {text}\n"


def pen(**over):
    """A penalty with these keys besides those that it needs; None: without one of them."""
    fields = {"name": "p", "key": "user", "strikes": "5/h", "ladder": "[warn 1h]"} | over
    text = ", ".join(f"{name}: {value}" for name, value in fields.items() if value is not None)
    return penalty("{" + text + "}")


def score(text, more=L):
    return f"score: {text}\n{more}"


def signal(text):
    return score("{key: [client.ip/64], signals: [%s]}" % text)


def scored(text):
    return score("{key: [client.ip/64], signals: [%s], %s}" % (GOOD, text))


# The text of a file, and the problems that it has.
CASES = [
    (limit("steps: 5"),
     ["5:10: `steps` must be a list of 1 to 8 steps, as in [{ at: 80%, mark: true }]"]),
    (limit("steps: []"),
     ["5:10: `steps` must be a list of 1 to 8 steps, as in [{ at: 80%, mark: true }]"]),
    (limit("steps: [5]"),
     ["5:11: a step must be a mapping, not a text"]),
    (limit("steps: [{mark: true}]"),
     ["5:11: a step needs `at`, the use from which it counts: `at: 80%`"]),
    (limit("steps: [{at: 50%}]"),
     ["5:11: a step needs one of `mark: true`, `delay` and `challenge: true`"]),
    (limit("steps: [{at: 50%, mark: true, delay: 1s}]"),
     ["5:11: a step needs one of `mark: true`, `delay` and `challenge: true`, not several"]),
    (limit("steps: [{at: 0%, mark: true}]"),
     ["5:16: `at` must be 1% to 99%, as in `at: 80%`"]),
    (limit("steps: [{at: 100%, mark: true}]"),
     ["5:16: `at` must be 1% to 99%, as in `at: 80%`"]),
    (limit("steps: [{at: 50%, mark: no}]"),
     ["5:27: `mark` must be true or false, not `no`"]),
    (limit("steps: [{at: 50%, mark: false}]"),
     ["5:27: `mark` must be true; to do nothing, remove the step"]),
    (limit("steps: [{at: 50%, challenge: 5}]"),
     ["5:32: `challenge` must be true or false, not `5`"]),
    (limit("steps: [{at: 50%, mark: true}, {at: 50%, delay: 1s}]"),
     ["5:39: steps must be in ascending order; 50% comes after 50%"]),
    (limit("steps: [{at: 60%, mark: true}, {at: 50%, delay: 1s}]"),
     ["5:39: steps must be in ascending order; 50% comes after 60%"]),
    (limit("steps: [{at: 50%, delay: 2min}]"),
     ["5:28: `delay` must be 1ms to 1min, or true, not `2min`"]),
    (limit("steps: [{at: 50%, delay: x}]"),
     ["5:28: `x` is not a duration; write a number and a unit, as in `30s`"]),
    (limit("steps: [{at: 50%, delay: true}]"),
     ["5:28: `delay: true` needs a bucket (token_bucket, gcra, leaky_bucket); for others "
      "give a constant: `delay: 500ms`"]),
    (limit("steps: [{at: 50%, delay: true}]", "algorithm: gcra\n  rate: [10/h, 5/s]"),
     ["6:28: `delay: true` needs a limit of one rate; with several give a constant: `delay:"
      " 500ms`"]),
    (limit("steps: [{at: 50%, challenge: true}, {at: 60%, challenge: true}]"),
     ["5:21: `challenge: true` needs the section `challenge:`, which says how clients prove themselves; "
      "without it no request can pass",
      "5:49: a limit has one challenge, and an earlier step is one"]),
    (limit("steps: [{at: 50%, challenge: true}]"),
     ["5:21: `challenge: true` needs the section `challenge:`, which says how clients prove themselves; "
      "without it no request can pass"]),
    (limit("steps: [{at: 50%, challenge: true}]\n  on_deny: charge"),
     ["5:21: a challenged request is charged nothing: remove `on_deny: charge`"]),
    (limit("steps: [{at: 50%, tarpit: 1s}]"),
     ["5:11: a step needs one of `mark: true`, `delay` and `challenge: true`",
      "5:21: a step has no key `tarpit`; its keys are at, mark, delay, challenge"]),
    (limit("steps: [{at: 50%, mark: true}]", "rate: unlimited"),
     ["5:3: an unlimited rate never reaches a step: remove `steps`"]),
    (limit("reject: 5"),
     ["5:11: `reject` must be a mapping, not a text"]),
    (limit("reject: {status: 200}"),
     ["5:20: `status` must be one of 400, 401, 402, 403, 404, 409, 413, 429, 500, 503, not "
      "`200`; did you mean `400`?"]),
    (limit("reject: {status: x}"),
     ["5:20: `status` must be one of 400, 401, 402, 403, 404, 409, 413, 429, 500, 503, not `x`"]),
    (limit("reject: {tarpit: 2min}"),
     ["5:20: `tarpit` must be 1ms to 1min, not `2min`"]),
    (limit("reject: {tarpit: 0s}"),
     ["5:20: `0s` is not a time: it is 0 long"]),
    (limit("reject: {headers: 5}"),
     ["5:21: `headers` must be a mapping of 1 to 8 names to values"]),
    (limit("reject: {headers: {}}"),
     ["5:21: `headers` must be a mapping of 1 to 8 names to values"]),
    (limit("reject: {headers: {'a b': c}}"),
     ["5:22: `a b` is not the name of a header field"]),
    (limit("reject: {headers: {Retry-After: '5'}}"),
     ["5:22: weir sets `Retry-After` itself; remove it from `headers`"]),
    (limit('reject: {headers: {X-A: "a\\nb"}}'),
     ["5:27: the value of a header field must be visible ASCII characters, and spaces "
      "between them"]),
    (limit("reject: {headers: {X-A: ''}}"),
     ["5:27: the value of a header field must be visible ASCII characters, and spaces "
      "between them"]),
    (limit("reject: {headers: {X-A: %s}}" % ("a" * 1030)),
     ["5:21: `headers` are longer than 1024 bytes together"]),
    (limit("reject: {body: '{{other}}', content_type: text/plain}"),
     ["5:18: `body`, at byte 0: unknown variable; use {{retry_after}}, {{limit}}, "
      "{{remaining}} or {{reason}}"]),
    (limit("reject: {body: '{{limit', content_type: text/plain}"),
     ["5:18: `body`, at byte 0: `{{` has no `}}`"]),
    (limit("reject: {body: '{'}"),
     ["5:18: `body` is not JSON when its variables are filled in, in its line 1: string or "
      "'}' expected near end of file"]),
    (limit("reject: {body: %s, content_type: text/plain}" % ("a" * 5000)),
     ["5:18: `body`, at byte 0: it is longer than 4096 bytes"]),
    (limit("reject: {content_type: text/html}"),
     ["5:12: `content_type` is that of a `body`, which is missing"]),
    (limit("reject: {body: x, content_type: text}"),
     ["5:35: `content_type` must be a media type such as `application/json`"]),
    (limit("reject: {headers: {X-A: '{{other}}'}}"),
     ["5:27: the value, at byte 0: unknown variable; use {{retry_after}}, {{limit}}, "
      "{{remaining}} or {{reason}}"]),
    (limit("reject: {headers: {%s}}" % ", ".join(f"X-{i}: '{{{{limit}}}}'" for i in range(7))),
     ["5:21: `headers` have more than 6 variables together"]),
    (limit("reject: {form: json, body: '{}'}"),
     ["5:12: `form` is that of a body that `body` replaces"]),
    (limit("reject: {documentation: /limits}"),
     ["5:27: `documentation` must be a URL of at most 256 bytes, such as "
      "`https://example.com/docs/limits`"]),
    (limit("reject: {bdy: x}"),
     ["5:12: `reject` has no key `bdy`; did you mean `body`?"]),
    (limit("reject: {body: 5, status: [4]}"),
     ["5:29: `status` must be a text, not a list"]),
    ("adaptive: 5\n" + L,
     ["1:11: `adaptive` must be a mapping of names to controllers, see docs/adaptive.md"]),
    (adaptive("5"),
     ["2:6: a controller must be a mapping, not a text"]),
    (adaptive("{}"),
     ["2:6: a controller needs `signals` and `table`, or `algorithm: aimd` or `gradient2`"]),
    (adaptive("{algorithm: pid}"),
     ["2:18: `algorithm` must be one of aimd, gradient2, not `pid`"]),
    (adaptive("{algorithm: aimd}"),
     ["2:6: `max` is missing: the limit while nothing is wrong"]),
    (adaptive("{algorithm: aimd, max: 0}"),
     ["2:29: `max` must be 1 to 1000000, not `0`"]),
    (adaptive("{algorithm: aimd, max: 5, min: 6}"),
     ["2:37: `min` must not be above `max`"]),
    (adaptive("{algorithm: aimd, max: 50, min: 10, initial: 9}"),
     ["2:51: `initial` must be from `min` to `max`, 10 to 50"]),
    (adaptive("{algorithm: aimd, max: 50, increase: 51}"),
     ["2:43: `increase` must be 1 to 50, not `51`"]),
    (adaptive("{algorithm: aimd, max: 50, decrease: 100%}"),
     ["2:43: `decrease` must be 1% to 99%, as in `decrease: 90%`"]),
    (adaptive("{algorithm: gradient2, max: 50, increase: 1}"),
     ["2:38: `increase` goes with `algorithm: aimd`"]),
    (adaptive("{algorithm: gradient2, max: 50, on: [5xx]}"),
     ["2:38: `on` goes with `algorithm: aimd`"]),
    (adaptive("{algorithm: aimd, max: 50, on: []}"),
     ["2:37: `on` must be what counts as a failure: statuses and a latency, as in [5xx, "
      "timeout 5s]"]),
    (adaptive("{algorithm: aimd, max: 50, on: [6xx]}"),
     ["2:38: `on` takes statuses: `404`, or `5xx` for a class"]),
    (adaptive("{algorithm: aimd, max: 50, on: [timeout 1h]}"),
     ["2:38: a timeout must be 1ms to 10min"]),
    (adaptive("{algorithm: aimd, max: 50, on: [timeout x]}"),
     ["2:38: `x` is not a duration; write a number and a unit, as in `30s`"]),
    (adaptive("{algorithm: aimd, max: 50, onn: [5xx]}"),
     ["2:33: a controller has no key `onn`; did you mean `on`?"]),
    (adaptive("{signals: {cpu: proc}}"),
     ["2:6: a controller needs `signals` and `table`, or `algorithm: aimd` or `gradient2`"]),
    (adaptive("{table: [{cpu: 5%, x: 50%}]}"),
     ["2:6: a controller needs `signals` and `table`, or `algorithm: aimd` or `gradient2`"]),
    (adaptive("{signals: 5, table: [{cpu: 5%, x: 50%}]}"),
     ["2:16: `signals` must be a mapping, not a text",
      "2:28: `signals` does not say where `cpu` comes from"]),
    (adaptive("{signals: {cpu: outcomes}, table: [{cpu: 5%, x: 50%}]}"),
     ["2:22: the signal `cpu` comes from `proc`, `psi` or `pushed`"]),
    (adaptive("{signals: {load: proc}, table: [{cpu: 5%, x: 50%}]}"),
     ["2:17: `signals` has no key `load`; its keys are cpu, memory, p99, errors, queue",
      "2:39: `signals` does not say where `cpu` comes from"]),
    (adaptive("{signals: {cpu: proc}, table: 5}"),
     ["2:36: `table` must be a list of 1 to 32 rows: { cpu: 80%, x: 50% }"]),
    (adaptive("{signals: {cpu: proc}, table: []}"),
     ["2:36: `table` must be a list of 1 to 32 rows: { cpu: 80%, x: 50% }"]),
    (adaptive("{signals: {cpu: proc}, table: [5]}"),
     ["2:37: a row of `table` must be a mapping, not a text"]),
    (adaptive("{signals: {cpu: proc}, table: [{cpu: 5%}]}"),
     ["2:37: a row has one signal and the scale `x` from there on: { cpu: 80%, x: 50% }"]),
    (adaptive("{signals: {cpu: proc}, table: [{cpu: 5%, memory: 5%, x: 50%}]}"),
     ["2:37: a row has one signal and the scale `x` from there on: { cpu: 80%, x: 50% }"]),
    (adaptive("{signals: {cpu: proc}, table: [{memory: 5%, x: 50%}]}"),
     ["2:38: `signals` does not say where `memory` comes from"]),
    (adaptive("{signals: {cpu: proc}, table: [{cpu: 0%, x: 50%}]}"),
     ["2:43: `cpu` must be 1% to 100%, as in `cpu: 80%`"]),
    (adaptive("{signals: {cpu: proc}, table: [{cpu: 5%, x: 101%}]}"),
     ["2:50: `x` must be 1% to 100%, as in `x: 50%`"]),
    (adaptive("{signals: {p99: pushed}, table: [{p99: 1h, x: 50%}]}"),
     ["2:45: `p99` must be 1ms to 10min, not `1h`"]),
    (adaptive("{signals: {queue: pushed}, table: [{queue: -1, x: 50%}]}"),
     ["2:49: `queue` must be a whole number, not `-1`"]),
    (adaptive("{signals: {cpu: proc}, table: [{cpu: 5%, x: 50%}], floor: 0%}"),
     ["2:64: `floor` must be 1% to 100%, as in `floor: 10%`"]),
    (adaptive("{signals: {cpu: proc}, table: [{cpu: 5%, x: 50%}], hysteresis: 2h}"),
     ["2:69: `hysteresis` must be 1s to 1h, not `2h`"]),
    (adaptive("{signals: {cpu: proc}, table: [{cpu: 5%, x: 50%}], hysteresis: x}"),
     ["2:69: `x` is not a duration; write a number and a unit, as in `30s`"]),
    ("adaptive: {b: {algorithm: aimd, max: 50}}\n" + limit("adaptive: c"),
     ["6:13: the section `adaptive` has no controller `c`"]),
    ("adaptive: {b: {algorithm: aimd, max: 50}}\n" + limit("adaptive: [b]"),
     ["6:13: `adaptive` must be a text, not a list"]),
    (limit("adaptive: b"),
     ["5:13: the section `adaptive` has no controller `b`"]),
    ("adaptive: {b: {algorithm: aimd, max: 50}}\n"
     + limit("adaptive: b", "algorithm: concurrency\n  limit: 60"),
     ["7:13: `max` of `b` is 50, but this limit is 60: make them equal"]),
    ("adaptive: {b: {algorithm: aimd, max: 50}}\n" + limit("adaptive: b", "rate: unlimited"),
     ["6:3: an unlimited rate has no scale: remove `adaptive`"]),
    ("adaptive: {b: {algorithm: aimd, max: 50}, b: {algorithm: aimd, max: 50}}\n" + L,
     ["1:43: `b` is given twice; first in line 1"]),
    ("priority: 5\n" + L,
     ["1:11: `priority` must be a mapping, not a text"]),
    ("priority: {}\n" + L,
     ["1:11: `from` is missing; set it to a header field, `plan`, or a mapping of paths to "
      "classes"]),
    ("priority: {from: 5}\n" + L,
     ["1:18: `from` must be a header field such as `header.x-priority`, `plan`, or a "
      "mapping of paths to classes"]),
    ("priority: {from: path}\n" + L,
     ["1:18: `from` must be a header field such as `header.x-priority`, `plan`, or a "
      "mapping of paths to classes"]),
    ("priority: {from: plan}\n" + L,
     ["1:18: `from: plan` needs 2 to 16 `plans`, or `classes` that name some of them"]),
    ("priority: {from: {}}\n" + L,
     ["1:18: `from` has no route; write { /pattern: class }"]),
    ("priority: {from: {'a b': critical}}\n" + L,
     ["1:19: path pattern `a b`: must begin with `/`"]),
    ("priority: {from: {/a: highest}}\n" + L,
     ["1:23: `priority` has no class `highest`"]),
    ("priority: {from: {'/{': critical}}\n" + L,
     ["1:19: path pattern `/{`: no regular expressions: `:name` or `*` matches one segment,"
      " `**` the rest"]),
    ("priority: {from: header.x, classes: [a]}\n" + L,
     ["1:37: `classes` must be a list of 2 to 16 names, the most important first"]),
    ("priority: {from: header.x, classes: [a, a]}\n" + L,
     ["1:11: `default` is missing; name the class of requests that have none",
      "1:41: `classes` has `a` twice"]),
    ("priority: {from: header.x, classes: [a, 'B c']}\n" + L,
     ["1:11: `default` is missing; name the class of requests that have none",
      "1:41: class `B c` must be 1 to 64 of a-z, 0-9, `.`, `_`, `-`"]),
    ("priority: {from: header.x, classes: [a, b]}\n" + L,
     ["1:11: `default` is missing; name the class of requests that have none"]),
    ("priority: {from: header.x, default: lowest}\n" + L,
     ["1:37: `priority` has no class `lowest`"]),
    ("priority: {form: header.x}\n" + L,
     ["1:11: `from` is missing; set it to a header field, `plan`, or a mapping of paths to "
      "classes",
      "1:12: `priority` has no key `form`; did you mean `from`?"]),
    (limit("shed: {normal: 50%}"),
     ["5:3: `shed` needs the section `priority:`, which says the class of a request"]),
    (P + limit("shed: 5"),
     ["6:9: `shed` must be a mapping of classes to percentages, as in { sheddable: 60% }"]),
    (P + limit("shed: {}"),
     ["6:9: `shed` must be a mapping of classes to percentages, as in { sheddable: 60% }"]),
    (P + limit("shed: {low: 50%}"),
     ["6:10: `priority` has no class `low`"]),
    (P + limit("shed: {normal: 0%}"),
     ["6:18: `shed` must be 1% to 100%, as in `shed: 60%`"]),
    (P + limit("shed: {normal: 50%, sheddable: 60%}"),
     ["6:9: `shed` leaves `sheddable` 60% and `normal`, which is more important, 50%; give "
      "`sheddable` 50% or less"]),
    (P + limit("shed: {normal: 50%, normal: 60%}"),
     ["6:9: `shed` leaves `sheddable` 100% and `normal`, which is more important, 60%; give"
      " `sheddable` 60% or less",
      "6:23: `normal` is given twice; first in line 6"]),
    ("standing: { by: [user], map: m }\n" + L,
     ["1:30: `map` needs `file`, the history that the map is made from at each start"]),
    ("standing: { by: [user], file: s.db, map: '' }\n" + L,
     ["1:42: `map` is empty; remove it, and the map lies beside `file`"]),
    ("standing: 5\n" + L,
     ["1:11: `standing` must be a mapping, not a text"]),
    ("standing: {}\n" + L,
     ["1:11: `standing` needs `by`, which says what callers are known by: `by: "
      "[client.ip/64, user]`"]),
    ("standing: {by: []}\n" + L,
     ["1:16: `by` must be a list of 1 to 16 attributes"]),
    ("standing: {by: [path]}\n" + L,
     ["1:17: `path` cannot have a standing: `by` takes what a caller is known by, such as "
      "client.ip/64, user, org or a header"]),
    ("standing: {by: [client.ip/0]}\n" + L,
     ["1:17: a prefix length of 0 is every address; give 1 or more"]),
    ("standing: {by: [user, user]}\n" + L,
     ["1:23: `user` is twice in `by`"]),
    ("standing: {by: [client.ip/200]}\n" + L,
     ["1:17: `client.ip/200`: prefix lengths are `client.ip/64` (IPv6, 0 to 128) or "
      "`client.ip/64/24` (IPv6, and IPv4, 0 to 32)"]),
    ("standing: {by: [user], file: ''}\n" + L,
     ["1:30: `file` is empty; remove it to keep nothing across restarts"]),
    ("standing: {by: [user], entries: 5}\n" + L,
     ["1:33: `entries` must be 16 to 64000000, not `5`"]),
    ("standing: {by: [user], lists: 5}\n" + L,
     ["1:31: `lists` must be a list of at most 64 mappings"]),
    ("standing: {by: [user], lists: [5]}\n" + L,
     ["1:32: a list must be a mapping, not a text"]),
    ("standing: {by: [user], lists: [{file: none.txt, by: user, level: suspended}]}\n" + L,
     ["1:39: ./none.txt: No such file or directory"]),
    ("standing: {by: [user], lists: [{file: none.txt, by: org, level: suspended}]}\n" + L,
     ["1:53: `org` is not in `by` of `standing`"]),
    ("standing: {by: [client.ip], lists: [{file: none.txt, by: client.ip/64, level: suspended}]}\n" + L,
     ["1:58: `client.ip/64`: a list has its prefixes in its lines; write `client.ip`"]),
    ("standing: {by: [user], lists: [{by: user, level: suspended}]}\n" + L,
     ["1:32: `file` is missing in a list"]),
    ("standing: {by: [user], lists: [{file: key, by: user, level: bad}]}\n" + L,
     ["1:61: `level` must be trusted, good, warned, throttled, challenged, suspended or "
      "revoked, not `bad`"]),
    ("standing: {by: [user], lists: [{file: key, by: user, level: good}]}\n" + L,
     ["1:61: `good` is what callers are who are in no list; use another level"]),
    ("standing: {by: [user], lists: [{file: key, by: user, level: warned, reason: '%s'}]}\n"
     % ("a" * 200) + L,
     ["1:77: `reason` must be at most 127 bytes on one line"]),
    ("standing: {by: [user], answer: 5}\n" + L,
     ["1:32: `answer` must be a mapping, not a text"]),
    ("standing: {by: [user], answer: {warned: {status: 403}}}\n" + L,
     ["1:33: `answer` has no key `warned`; its keys are suspended, revoked"]),
    ("standing: {by: [user], answer: {suspended: {status: 500}}}\n" + L,
     ["1:53: `status` must be 401, 403, 404, 410, 429, 451 or 503, not `500`"]),
    ("standing: {by: [user], answer: {suspended: {body: %s}}}\n" % ("a" * 5000) + L,
     ["1:51: `body` has more than 4096 bytes"]),
    ("standing: {by: [user], answer: {suspended: {body: x, content_type: text}}}\n" + L,
     ["1:68: `content_type` must be a media type such as `application/json`"]),
    ("standing: {by: [user], answer: {suspended: {content_type: text/html}}}\n" + L,
     ["1:45: `content_type` needs a `body`"]),
    (limit("by_standing: {warned: 50%}"),
     ["5:3: `by_standing` needs the section `standing:`"]),
    (S + limit("by_standing: 5"),
     ["6:16: `by_standing` must be a mapping of levels to percentages: `{ throttled: 20% }`"]),
    (S + limit("by_standing: {}"),
     ["6:16: `by_standing` must be a mapping of levels to percentages: `{ throttled: 20% }`"]),
    (S + limit("by_standing: {bad: 50%}"),
     ["6:17: `by_standing` must be trusted, good, warned, throttled, challenged, suspended "
      "or revoked, not `bad`"]),
    (S + limit("by_standing: {suspended: 50%}"),
     ["6:17: `by_standing` takes warned, throttled and challenged: suspended and revoked "
      "callers meet no limit, and others meet it as it is"]),
    (S + limit("by_standing: {warned: 0%}"),
     ["6:25: `warned` must be 1% to 100%, as in `warned: 20%`"]),
    (S + limit("by_standing: {warned: 50%}", "rate: unlimited"),
     ["6:3: an unlimited rate has no scale: remove `by_standing`"]),
    (limit("match: {standing: bad}"),
     ["5:11: the attribute `standing` needs the section `standing:`, which says whose "
      "standing counts"]),
    (S + limit("match: {standing: bad}"),
     ["6:21: `standing` must be trusted, good, warned, throttled, challenged, suspended or "
      "revoked, not `bad`"]),
    ("challenge: 5\n" + L,
     ["1:12: `challenge` must be a mapping, not a text"]),
    ("challenge: {}\n" + L,
     ["1:12: `secret_file` is missing: a file with a key, such as the output of `openssl "
      "rand -hex 32`"]),
    ("challenge: {secret_file: none}\n" + L,
     ["1:26: cannot read ./none: No such file or directory"]),
    ("challenge: {secret_file: short}\n" + L,
     ["1:26: ./short, line 1: the key has 3 bytes; use 32 to 512, such as the output of "
      "`openssl rand -hex 32`"]),
    ("challenge: {secret_file: key, life: 10s}\n" + L,
     ["1:37: `life` must be 1min to 30d, not `10s`"]),
    ("challenge: {secret_file: key, life: x}\n" + L,
     ["1:37: `x` is not a duration; write a number and a unit, as in `30s`"]),
    ("challenge: {secret_file: key, difficulty: 27}\n" + L,
     ["1:43: `difficulty` must be 1 to 26, not `27`"]),
    ("challenge: {secret_file: key, difficulty: x}\n" + L,
     ["1:43: `difficulty` must be a whole number, not `x`"]),
    ("challenge: {secret_file: key, difficulty: {legitimate: 9, suspicious: 9, malicious: 9}}\n"
     + L,
     ["1:43: a `difficulty` for each class needs the section `score:`, which says the class of a "
      "client; without it, write one number"]),
    ("score: {key: [client.ip/64], signals: [{name: s, when: {path: /a}, add: 3}]}\n"
     "challenge: {secret_file: key, difficulty: {legitimate: 9, suspicious: 9}}\n" + L,
     ["2:43: `difficulty` needs one for each class; `malicious` is missing"]),
    ("challenge: {secret_file: key, cookie: 'a b'}\n" + L,
     ["1:39: `a b` is not the name of a cookie: use 1 to 64 letters, digits, `-` and `_`"]),
    ("challenge: {secret_file: key, secure: false}\n" + L,
     ["1:12: browsers refuse a cookie `__Host-weir` without `secure: true`; give `cookie` a"
      " name without `__Host-` or `__Secure-`"]),
    ("challenge: {secret_file: key, secure: 5}\n" + L,
     ["1:39: `secure` must be true or false, not `5`"]),
    ("challenge: {secret_file: key, listen: x}\n" + L,
     ["1:39: `x` is not an address to listen on; allowed are `127.0.0.1:8080`, "
      "`[::1]:8080`, `unix:/run/weir/http.sock` and `off`"]),
    ("challenge: {secret: key}\n" + L,
     ["1:12: `secret_file` is missing: a file with a key, such as the output of `openssl "
      "rand -hex 32`",
      "1:13: `challenge` has no key `secret`; did you mean `secure`?"]),
    (limit("match: {challenge: passed}"),
     ["5:11: the attribute `challenge` needs the section `challenge:`, which says how "
      "clients prove themselves"]),
    ("challenge: {secret_file: key}\n" + limit("match: {challenge: failed}"),
     ["6:22: `challenge` is never `failed`; it is `passed`, or the request has none"]),
    (SHARED+limit("steps: [{at: 50%, mark: true}]\n  mode: leased"),
     ["7:9: a limit with `steps` is decided exactly and cannot be leased; remove `mode`, or"
      " set it to exact"]),
    (SHARED+"adaptive: {b: {algorithm: aimd, max: 50}}\n"+limit("adaptive: b\n  mode: leased"),
     ["8:9: a limit with `adaptive` is decided exactly and cannot be leased; remove `mode`,"
      " or set it to exact"]),
    (SHARED+"priority: { from: header.x-p }\n"+limit("shed: {sheddable: 50%}\n  mode: leased"),
     ["8:9: a limit with `shed` is decided exactly and cannot be leased; remove `mode`, or "
      "set it to exact"]),
    (SHARED+"standing: { by: [client.ip] }\n"+limit("by_standing: {warned: 50%}\n  mode: leased"),
     ["8:9: a limit with `by_standing` is decided exactly and cannot be leased; remove "
      "`mode`, or set it to exact"]),
    ("priority: { from: header.x-p }\n"+limit("shed: {sheddable: 50%}","rate: unlimited"),
     ["6:3: an unlimited rate has no scale: remove `shed`"]),
    (L + "penalties: []\n",
     ["2:1: `penalties` needs the section `standing:`"]),
    ("standing: { by: user }\n" + L + "penalties: []\n",
     ["3:1: `penalties` needs `file` in `standing`, or `store: redis`: there the steps of "
      "callers are kept"]),
    (STEPS + L + "penalties: 5\n",
     ["3:12: `penalties` must be a list of at most 16 mappings"]),
    (pen(name=None, key=None, strikes=None, ladder=None),
     ["4:3: `name` is missing in a penalty",
      "4:3: `key` is missing in a penalty",
      "4:3: `strikes` is missing in a penalty",
      "4:3: `ladder` is missing in a penalty"]),
    (penalty("{name: p, key: user, strikes: 5/h, ladder: [warn 1h]}\n"
             "- {name: p, key: user, strikes: 5/h, ladder: [warn 1h]}"),
     ["5:10: two penalties are called `p`"]),
    (pen(key="[user, org]"),
     ["4:18: `key` of a penalty must be one attribute of `by` of `standing`"]),
    (pen(key="usr"),
     ["4:18: `usr` is not in `by` of `standing`; did you mean `user`?"]),
    (pen(strikes="x"),
     ["4:33: `strikes`: `x` is not a rate; allowed are `N/unit` as in `100/min`, "
      "`unlimited`, `plan`"]),
    (pen(strikes="10000/h"),
     ["4:33: `strikes` must be 1 to 9999 in a window, such as `5/h`"]),
    (pen(strikes="5/0s"),
     ["4:33: `strikes`: `5/0s` is not a time: it is 0 long"]),
    (pen(strikes="5/400d"),
     ["4:33: `strikes`: the window of a rate must be 1ms to 366d"]),
    (pen(**{"for": "[b]"}),
     ["4:63: `for` names no limit of this file: `b`"]),
    (penalty("{name: p, key: user, strikes: 5/h, ladder: [warn 1h], for: [a]}",
             limits="limits: [{name: a, key: [], rate: 10/h, shadow: true}]\n"),
     ["4:63: `a` denies nothing, so it gives no strikes"]),
    (pen(**{"for": "{a: b}"}),
     ["4:62: `for` must be a list of limits"]),
    (pen(**{"for": "[]"}),
     ["4:62: nothing is a strike: name limits in `for`, or statuses in `outcomes`"]),
    (pen(outcomes="[]"),
     ["4:67: `outcomes` must be a status or a list: [401, 403]"]),
    (pen(outcomes="[99]"),
     ["4:68: `outcomes` takes statuses: `404`, or `5xx` for a class"]),
    (pen(ladder="[]"),
     ["4:46: `ladder` must be a list of 1 to 16 steps, such as [warn 1h, suspend 10min]"]),
    (pen(ladder="[war 1h]"),
     ["4:47: `ladder`: a step is warn, throttle, challenge or suspend and a duration, such "
      "as `suspend 10min`, or `revoke`"]),
    (pen(ladder="[warn 10ms]"),
     ["4:47: `ladder`: the duration of a step must be 1s to 3660d"]),
    (pen(ladder="[challenge 1h]"),
     ["4:47: a step `challenge` needs the section `challenge:`, which says how clients prove "
      "themselves; without it, use `throttle`"]),
    (pen(key="client.ip/64", ladder="[revoke]"),
     ["4:55: a ladder on addresses cannot revoke, because addresses change hands: use "
      "`suspend` with a duration"]),
    (pen(ladder="[revoke, warn 1h]"),
     ["4:47: no step comes after `revoke`, which has no end: remove those"]),
    (pen(forgive="10ms"),
     ["4:66: `forgive` must be 1s to 3660d, not `10ms`"]),
    ("standing: { by: [user], lists: [{file: none, by: user, level: challenged}] }\n" + L,
     ["1:63: the level `challenged` needs the section `challenge:`, which says how clients "
      "prove themselves; without it, use `throttled`"]),
    (score("{}"),
     ["1:8: `score` needs `key`, which tells clients apart: `key: [client.ip/64]`",
      "1:8: `score` needs `signals`"]),
    (score("{key: [], signals: [%s]}" % GOOD),
     ["1:14: `key` is empty: all clients would be one"]),
    (score("{key: [client.ip/64], signals: []}"),
     ["1:39: `signals` must be a list of 1 to 32 signals"]),
    (signal("{when: {path: /a}}"),
     ["1:40: `name` is missing",
      "1:40: `add` is missing: what the signal adds to the score"]),
    (signal("{name: s, add: 3}"),
     ["1:40: a signal needs `when`, `regular`, `same_route` or `new_connections`"]),
    (signal(GOOD + ", " + GOOD),
     ["1:84: the name `s` is given to two signals"]),
    (signal("{name: s, when: {}, add: 3}"),
     ["1:56: `when` is empty: the signal would hold for all requests"]),
    (signal("{name: s, when: 5, add: 3}"),
     ["1:56: `when` must be a mapping of attributes to values"]),
    (signal("{name: s, regular: {over: 10}, add: 3}"),
     ["1:59: `regular` needs `over`, and `within` or `spread`: "
      "{ over: 10, within: 50ms }, { over: 10, spread: 20% }"]),
    (signal("{name: s, regular: {over: 10, within: 50ms}, add: 3}, "
            "{name: t, regular: {over: 10, within: 60ms}, add: 3}"),
     ["1:132: all signals with `regular` must have the same `within` or `spread`, here 50ms"]),
    (signal("{name: s, regular: {over: 10, spread: 20%}, add: 3}, "
            "{name: t, regular: {over: 10, spread: 30%}, add: 3}"),
     ["1:131: all signals with `regular` must have the same `within` or `spread`, here 20%"]),
    (signal("{name: s, new_connections: {from: header.a}, add: 3}"),
     ["1:67: `new_connections` needs `over`: how many requests in a row"]),
    (signal("{name: s, new_connections: {over: 3, from: header.a}, add: 3}, "
            "{name: t, new_connections: {over: 3, from: header.b}, add: 3}"),
     ["1:146: all signals with `new_connections` must have the same `from`"]),
    (signal("{name: s, when: {client.class: malicious}, add: 3}"),
     ["1:57: `client.class` is what `score` makes: it cannot depend on itself"]),
    (scored("classes: {}"),
     ["1:87: `classes` is empty; give `suspicious`, `malicious` or both"]),
    (scored("classes: {suspicious: 5, malicious: 5}"),
     ["1:114: `malicious` must be more than `suspicious`"]),
    (scored("routes: []"),
     ["1:86: `routes` must be a list of 1 to 64 patterns of paths"]),
    (scored("routes: [x]"),
     ["1:87: path pattern `x`: must begin with `/`"]),
    (limit("match: {client.score: 5}"),
     ["5:11: the attribute `client.score` needs the section `score:`, which comes from signals"]),
    (SCORE + limit("match: {client.score: x}"),
     ["6:25: `client.score` is a number from 0 to 3200, not `x`; for a range, write { "
      "at_least: 45 }"]),
    (SCORE + limit("match: {client.class: malicous}"),
     ["6:25: `client.class` must be legitimate, suspicious or malicious, not `malicous`; did "
      "you mean `malicious`?"]),
    (limit("by_class: {suspicious: 50%}"),
     ["5:3: `by_class` needs the section `score:`"]),
    (SCORE + limit("by_class: 5"),
     ["6:13: `by_class` must be a mapping of classes to percentages: `{ suspicious: 50% }`"]),
    (SCORE + limit("by_class: {suspicious: 50%}", "rate: unlimited"),
     ["6:3: an unlimited rate has no scale: remove `by_class`"]),
    (SCORE + limit("by_class: {suspicious: 0%}"),
     ["6:26: `suspicious` must be 1% to 100%, as in `suspicious: 50%`"]),
    (LISTS % "{file: users.txt, by: user, level: warned, name: a}, "
     "{file: nets.txt, by: client.ip, level: warned, name: a}" + L,
     ["1:150: the name `a` is given to two lists"]),
    (LISTS % f"{USERS}, {USERS}" + limit("match: {list: users}"),
     ["6:17: two lists are called `users`; give one of them a `name`"]),
    (LISTS % USERS + limit("match: {list: user}"),
     ["6:17: no list of `standing` is called `user`; did you mean `users`?"]),
    (LISTS % f"{USERS}, {NETS}" + limit("match: {list: [users, nets]}"),
     ["6:25: lists that are named together must have the same `by`"]),
    (limit("match: {list: users}"),
     ["5:17: `list` names one of the `lists` of `standing:`, which has none"]),
    (LISTS % USERS + limit("match: {list: []}"),
     ["6:17: `list` must be the name of a list, or several of them"]),
    (signal("{name: s, when: {header.x-a: '*%s*'}, add: 3}" % ("a" * 256)),
     ["1:69: between two `*` there are at most 255 bytes"]),
]


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    (folder / "key").write_text("0123456789abcdef" * 4 + "\n", encoding="ascii")
    (folder / "users.txt").write_text("mallory\n", encoding="ascii")
    (folder / "nets.txt").write_text("192.0.2.0/24\n", encoding="ascii")
    (folder / "short").write_text("abc\n", encoding="ascii")
    return folder


def problems_of(folder, text):
    """Each as "LINE:COLUMN: TEXT"."""
    config = folder / "weir.yaml"
    config.write_text(text, encoding="utf-8")
    done = run_weir("validate", config)
    assert done.returncode == 1, text
    said = done.stderr.replace("weir: ", "", 1).replace(f"{folder}/", "./")
    return [line.replace("./weir.yaml:", "", 1) for line in said.splitlines()]


@pytest.mark.parametrize("part", range(4))
def test_each_mistake_is_named_with_its_place_and_remedy(folder, part):
    for text, expected in CASES[part::4]:
        assert problems_of(folder, text) == expected, text


# Reasons that other modules word, and a bound that no file of this test reaches.
WORDED_BY_OTHERS = re.compile(r"%s(: %s)?|at most %u limits can follow a controller|"
                              r"%s, line %u: %s|%s has more than %d bytes")


def messages():
    """The formats of all problems that the loaders report."""
    for source in SOURCES:
        text = source.read_text(encoding="utf-8")
        for match in re.finditer(r'rules_problem\(\s*loader,[^;"]*?((?:"(?:[^"\\]|\\.)*"\s*)+)', text):
            yield source.name, "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[1]))


def test_the_table_has_every_message_of_the_loaders():
    said = [problem for _, expected in CASES for problem in expected]
    missing = []
    for name, form in messages():
        if WORDED_BY_OTHERS.fullmatch(form):
            continue
        pattern = re.sub(r"%(llu|zu|[sdu])", ".*", re.escape(form.replace("%.*s", "%s")).replace("%%", "%"))
        if not any(re.search(pattern, one) for one in said):
            missing.append((name, form))
    assert not missing
