/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a limit: its name, algorithm, numbers and behaviour. Every problem with its
 * line and column. */
#include "rules_test.h"
#include "test.h"

static const struct test_problem_case names[] = {
    {"limits:\n"
     "- {key: [], rate: 1/s}\n",
     "2:3: `name` is missing\n"},
    {"limits:\n"
     "- {name: '', key: [], rate: 1/s}\n",
     "2:10: name `` must be 1 to 64 of a-z, 0-9, `.`, `_`, `-`\n"},
    {"limits:\n"
     "- {name: Login, key: [], rate: 1/s}\n",
     "2:10: name `Login` must be 1 to 64 of a-z, 0-9, `.`, `_`, `-`\n"},
    {"limits:\n"
     "- {name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, key: [], rate: "
     "1/s}\n",
     "2:10: name `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...` must be 1 to 64 "
     "of a-z, 0-9, `.`, `_`, `-`\n"},
    {"limits:\n"
     "- {name: a b, key: [], rate: 1/s}\n",
     "2:10: name `a b` must be 1 to 64 of a-z, 0-9, `.`, `_`, `-`\n"},
    {"limits:\n"
     "- {name: [a], key: [], rate: 1/s}\n",
     "2:10: `name` must be a text, not a list\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s}\n"
     "- {name: a, key: [], rate: 1/s}\n",
     "3:10: the name `a` is given twice; first in line 2\n"},
    {"limits:\n"
     "- {name: \"a\\0b\", key: [], rate: 1/s}\n",
     "2:10: `name` has a NUL in it\n"},
    {"limits:\n"
     "- a\n"
     "- [b]\n"
     "- {name: c, key: [], rate: 1/s, nam: d}\n",
     "2:3: a limit must be a mapping, not a text\n"
     "3:3: a limit must be a mapping, not a list\n"
     "4:33: a limit has no key `nam`; did you mean `name`?\n"},
};

TEST("problems of names are reported")
{
    TEST_REFUSED_ALL(names);
}

static const struct test_problem_case rates[] = {
    {"limits:\n"
     "- {name: a, key: [], burst: 3}\n",
     "2:3: `rate` is missing\n"
     "2:22: `burst` belongs to token_bucket, gcra and leaky_bucket, not to sliding_window\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: }\n",
     "2:28: `rate` must be a text, not nothing\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 5}\n",
     "2:28: `5` is not a rate; allowed are `N/unit` as in `100/min`, `unlimited`, `plan`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 5/minn}\n",
     "2:28: `5/minn`: unknown unit `minn` (did you mean `min`?); units are ms, s, sec, min, h, "
     "hour, d, day, w, week\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1000/month}\n",
     "2:28: `1000/month`: a month has no fixed length; write `quota:` for a calendar's, or "
     "`30d`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: -1/s}\n",
     "2:28: `-1/s` is not a rate; allowed are `N/unit` as in `100/min`, `unlimited`, `plan`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1.5/s}\n",
     "2:28: a rate with decimals needs a bucket (token_bucket, gcra, leaky_bucket); "
     "sliding_window counts whole requests: write `15/10s`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: {a: 1/s}}\n",
     "2:28: `rate` must be a text, not a mapping\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s burst 3}\n",
     "2:28: a burst needs a bucket (token_bucket, gcra, leaky_bucket); sliding_window has none\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: gcra, rate: 1/s burst 3, burst: 4}\n",
     "2:58: `rate` already has a burst\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, burst: 3}\n",
     "2:33: `burst` belongs to token_bucket, gcra and leaky_bucket, not to sliding_window\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: fixed_window, rate: 1/s, burst: 3}\n",
     "2:58: `burst` belongs to token_bucket, gcra and leaky_bucket, not to fixed_window\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: gcra, rate: 1/s, burst: 0}\n",
     "2:57: `burst` must be 1 to 1099511627776, not `0`\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: gcra, rate: 1/s, burst: x}\n",
     "2:57: `burst` must be a whole number, not `x`\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: gcra, rate: 0/s, burst: 3}\n",
     "2:45: a rate of 0 denies everything: remove the burst\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: gcra, rate: unlimited, burst: 3}\n",
     "2:56: an unlimited rate has no burst\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 4294967296/s}\n",
     "2:28: sliding_window: rate is 4294967296; the range is 0 to 4294967295\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: gcra, rate: 1099511627777/s}\n",
     "2:45: gcra: rate is 1099511627777; the range is 0 to 1099511627776\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: gcra, rate: 1/366d, burst: 1000}\n",
     "2:45: gcra: burst is 1000, which takes longer than 4611686018427387904 ns to refill at rate "
     "1\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: sliding_log, rate: 10001/s}\n",
     "2:52: sliding_log: rate is 10001; the range is 0 to 10000\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/367d}\n",
     "2:28: the window of a rate must be 1ms to 366d\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: gcra, rate: 1/53week}\n",
     "2:45: the window of a rate must be 1ms to 366d\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 18446744073709551616/s}\n",
     "2:28: `18446744073709551616/s`: a number is too large\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/99999999999999999999s}\n",
     "2:28: `1/99999999999999999999s`: a number is too large\n"},
};

TEST("problems of rates are reported")
{
    TEST_REFUSED_ALL(rates);
}

static const struct test_problem_case algorithms[] = {
    {"limits:\n"
     "- {name: a, key: [], algorithm: gcrra, rate: 1/s}\n",
     "2:33: `algorithm` must be one of fixed_window, sliding_window, sliding_log, token_bucket, "
     "gcra, leaky_bucket, concurrency, not `gcrra`; did you mean `gcra`?\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: leaky_queue, rate: 1/s}\n",
     "2:33: `algorithm` must be one of fixed_window, sliding_window, sliding_log, token_bucket, "
     "gcra, leaky_bucket, concurrency, not `leaky_queue`\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: [gcra], rate: 1/s}\n",
     "2:33: `algorithm` must be a text, not a list\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: gcra, rate: 1/s, segments: 2}\n",
     "2:50: `segments` belongs to sliding_window, not to gcra\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: gcra, rate: 1/s, strict: true}\n",
     "2:50: `strict` belongs to sliding_window, not to gcra\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: gcra, rate: 1/s, queue: true}\n",
     "2:50: `queue` belongs to leaky_bucket, not to gcra\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, queue: true}\n",
     "2:33: `queue` belongs to leaky_bucket, not to sliding_window\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: leaky_bucket, rate: 1/s, queue: yes}\n",
     "2:65: `queue` must be true or false, not `yes`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, segments: 0}\n",
     "2:43: `segments` must be 1 to 120, not `0`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, segments: 121}\n",
     "2:43: `segments` must be 1 to 120, not `121`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, segments: 7}\n",
     "2:43: `segments` 7 does not divide the window; the nearest that does is 8\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/min, segments: 59}\n",
     "2:45: `segments` 59 does not divide the window; the nearest that does is 60\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/7ms, segments: 113}\n",
     "2:45: `segments` 113 does not divide the window; the nearest that does is 112\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, strict: 1}\n",
     "2:41: `strict` must be true or false, not `1`\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: concurrency}\n",
     "2:3: concurrency needs `limit`, how many may be in flight\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: concurrency, rate: 5/s}\n",
     "2:3: concurrency needs `limit`, how many may be in flight\n"
     "2:46: `rate` belongs to the other algorithms, not to concurrency\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: concurrency, limit: 5/s}\n",
     "2:53: concurrency limits requests in flight, not a rate: remove the unit\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: concurrency, limit: 5, burst: 3}\n",
     "2:56: `burst` belongs to token_bucket, gcra and leaky_bucket, not to concurrency\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: concurrency, limit: 10001}\n",
     "2:53: `limit` must be 0 to 10000, not `10001`\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: concurrency, limit: 5, life: 30}\n",
     "2:62: `30` is not a time: it needs a unit, as in `30s`\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: concurrency, limit: 5, life: 400d}\n",
     "2:62: `life` must be 1ms to 366d\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, limit: 5, life: 30s}\n",
     "2:33: `limit` belongs to concurrency, not to sliding_window\n"
     "2:43: `life` belongs to concurrency, not to sliding_window\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: concurrency, limit: 5, on_deny: charge}\n",
     "2:65: concurrency cannot charge a denied request, which is not in flight\n"},
    {"limits:\n"
     "- {name: a, key: [], algorithm: concurrency, limit: 5, segments: 2}\n",
     "2:56: `segments` belongs to sliding_window, not to concurrency\n"},
};

TEST("problems of algorithms are reported")
{
    TEST_REFUSED_ALL(algorithms);
}

static const struct test_problem_case behaviour[] = {
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, cost: -1}\n",
     "2:39: `cost` must be a whole number, not `-1`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, cost: 1.5}\n",
     "2:39: `cost` must be a whole number, not `1.5`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, cost: 1099511627777}\n",
     "2:39: `cost` must be 0 to 1099511627776, not `1099511627777`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, shadow: yes}\n",
     "2:41: `shadow` must be true or false, not `yes`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, shadow: 'true'}\n",
     "2:41: `shadow` must be true or false, not `true`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, on_deny: chrge}\n",
     "2:42: `on_deny` must be one of none, charge, not `chrge`; did you mean `charge`?\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, on_store_error: opn}\n",
     "2:49: `on_store_error` must be one of local, open, closed, not `opn`; did you mean "
     "`open`?\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, unless: b}\n",
     "2:41: `unless` names no limit of this file: `b`\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, unless: [a]}\n",
     "2:42: `unless` names earlier limits only; `a` is this one\n"},
    {"limits:\n"
     "- {name: a, key: [], rate: 1/s, unless: [bb]}\n"
     "- {name: bb, key: [], rate: 1/s, unless: [a, aa]}\n"
     "- {name: ccc, key: [], rate: 1/s, unless: [cc]}\n",
     "2:42: `unless` names earlier limits only; `bb` comes later\n"
     "3:46: `unless` names no limit of this file: `aa`\n"
     "4:44: `unless` names no limit of this file: `cc`; did you mean `ccc`?\n"},
    {"limits:\n"
     "- {name: g0, key: [], rate: 1/s}\n"
     "- {name: g1, key: [], rate: 1/s}\n"
     "- {name: g2, key: [], rate: 1/s}\n"
     "- {name: g3, key: [], rate: 1/s}\n"
     "- {name: g4, key: [], rate: 1/s}\n"
     "- {name: g5, key: [], rate: 1/s}\n"
     "- {name: g6, key: [], rate: 1/s}\n"
     "- {name: g7, key: [], rate: 1/s}\n"
     "- {name: g8, key: [], rate: 1/s}\n"
     "- {name: g9, key: [], rate: 1/s}\n"
     "- {name: g10, key: [], rate: 1/s}\n"
     "- {name: g11, key: [], rate: 1/s}\n"
     "- {name: g12, key: [], rate: 1/s}\n"
     "- {name: g13, key: [], rate: 1/s}\n"
     "- {name: g14, key: [], rate: 1/s}\n"
     "- {name: g15, key: [], rate: 1/s}\n"
     "- {name: g16, key: [], rate: 1/s}\n"
     "- {name: g17, key: [], rate: 1/s}\n"
     "- {name: g18, key: [], rate: 1/s}\n"
     "- {name: g19, key: [], rate: 1/s}\n"
     "- {name: g20, key: [], rate: 1/s}\n"
     "- {name: g21, key: [], rate: 1/s}\n"
     "- {name: g22, key: [], rate: 1/s}\n"
     "- {name: g23, key: [], rate: 1/s}\n"
     "- {name: g24, key: [], rate: 1/s}\n"
     "- {name: g25, key: [], rate: 1/s}\n"
     "- {name: g26, key: [], rate: 1/s}\n"
     "- {name: g27, key: [], rate: 1/s}\n"
     "- {name: g28, key: [], rate: 1/s}\n"
     "- {name: g29, key: [], rate: 1/s}\n"
     "- {name: g30, key: [], rate: 1/s}\n"
     "- {name: g31, key: [], rate: 1/s}\n"
     "- {name: g32, key: [], rate: 1/s}\n"
     "- {name: g33, key: [], rate: 1/s}\n",
     "34:3: more than 32 limits apply to every request\n"},
};

TEST("problems of behaviour are reported")
{
    TEST_REFUSED_ALL(behaviour);
}

TEST("a 33rd limit that always applies is refused")
{
    static char text[16384] = "limits:\n";
    for (int i = 0; i < 32; i++)
        sprintf(text + strlen(text), "- {name: g%d, key: [], rate: 1/s}\n", i);
    weir_rules_unref(test_load(text));
    strcat(text, "- {name: last, key: [user], on_missing: shared, rate: 1/s}\n");
    test_refused(text, "34:3: more than 32 limits apply to every request\n");
}

TEST("all problems are reported in one run in the order of the file")
{
    test_refused("version: 2\n"
                 "limits:\n"
                 "- name: Bad\n"
                 "  rate: 5/minn\n"
                 "  key: [client_ip]\n"
                 "  burst: x\n"
                 "sever: {}\n",
                 "1:10: `version` must be 1, not `2`\n"
                 "3:9: name `Bad` must be 1 to 64 of a-z, 0-9, `.`, `_`, `-`\n"
                 "4:9: `5/minn`: unknown unit `minn` (did you mean `min`?); units are ms, s, sec, "
                 "min, h, hour, d, day, w, week\n"
                 "5:9: unknown attribute `client_ip`; did you mean `client.ip`?\n"
                 "6:3: `burst` belongs to token_bucket, gcra and leaky_bucket, not to "
                 "sliding_window\n"
                 "7:1: a rules file has no key `sever`; did you mean `server`?\n");
}

TEST("the parts of a rate in other limiters lead to rate")
{
    static const char *const words[] = {"window", "max",      "period",
                                        "per",    "interval", "max_requests"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char text[160], expected[200];
        snprintf(text, sizeof text, "limits:\n- name: a\n  key: [user]\n  rate: 1/s\n  %s: 60\n",
                 words[i]);
        snprintf(expected, sizeof expected,
                 "5:3: a limit has no key `%s`; `rate` says how many in which time, as in `rate: "
                 "100/min`\n",
                 words[i]);
        test_refused(text, expected);
    }
    test_refused("limits: []\nstate: {window: 1s}\n",
                 "2:9: state has no key `window`; its keys are file, size, spans, owner, group, "
                 "mode\n");
}

TEST("a keys file is named as one")
{
    char text[160];
    snprintf(text, sizeof text, "# keys\n%064d: {user: ann}\n", 1);
    test_refused(text, "2:1: this is a keys file, not a rules file: name it by `keys` of a rules "
                       "file, and validate that one\n");
    snprintf(text, sizeof text, "%063d: {user: ann}\n", 1); /* a digit is missing */
    static char problems[TEST_PROBLEMS_MAX];
    assert_null(test_parse(text, problems));
    assert_non_null(strstr(problems, "1:1: a rules file has no key "));
}

RUN_TESTS()
