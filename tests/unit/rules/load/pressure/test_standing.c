/* SPDX-License-Identifier: Apache-2.0 */
/* `standing`, `by_standing` and the attribute `standing`: what they become, and what is wrong with
 * them. */
#include <unistd.h>

#include "feature/standing/rules/match.h"
#include "feature/standing/settings.h"
#include "rules/source.h"
#include "rules_test.h"
#include "temporary.h"
#include "test.h"

static void assert_bytes(struct weir_bytes bytes, const char *text)
{
    assert_int_equal(bytes.size, strlen(text));
    assert_memory_equal(bytes.data, text, bytes.size);
}

TEST("there is none unless the file says so")
{
    struct weir_rules *rules = test_load("limits: []\n");
    assert_int_equal(weir_rules_settings(rules)->standing->kinds_count, 0);
    assert_false(weir_rules_timed(rules));
    weir_rules_unref(rules);
}

static char list[TEMPORARY_MAX];

static void write_list(const char *text)
{
    FILE *file = fopen(list, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int make_list(void **state)
{
    return close(temporary_file(list));
}

static const char *with_list(const char *text)
{
    return temporary_in_text(text, list);
}

TEST("everything is read")
{
    struct weir_rules *rules = test_load(
        with_list("standing:\n"
                  "  by: [user, header.X-Api-Key, client.ip/64/24, tenant]\n"
                  "  file: standing.db\n"
                  "  entries: 5000\n"
                  "  lists:\n"
                  "  - {file: @, by: client.ip, level: suspended, reason: listed network}\n"
                  "  - {file: @, by: header.x-api-key, level: trusted}\n"
                  "  answer: {suspended: {status: 451}, revoked: {body: '{}', content_type: "
                  "application/json}}\n"
                  "limits: []\n"));
    const struct weir_standing_settings *standing = weir_rules_settings(rules)->standing;
    assert_string_equal(standing->file, "standing.db");
    assert_string_equal(standing->map, "standing.db.map");
    assert_int_equal(standing->entries_max, 5000);
    assert_int_equal(standing->kinds_count, 4);
    assert_bytes(standing->kinds[0].name, "client.ip"); /* what costs least is looked up first */
    assert_true(standing->kinds[0].address);
    assert_int_equal(standing->kinds[0].bits6, 64);
    assert_int_equal(standing->kinds[0].bits4, 24);
    assert_bytes(standing->kinds[1].name, "header.x-api-key");
    assert_true(standing->kinds[1].secret);
    assert_bytes(standing->kinds[2].name, "tenant");
    assert_false(standing->kinds[2].secret);
    assert_bytes(standing->kinds[3].name, "user");
    assert_int_equal(standing->lists_count, 2);
    assert_string_equal(standing->lists[0].path, list);
    assert_int_equal(standing->lists[0].kind, 0);
    assert_int_equal(standing->lists[0].level, WEIR_STANDING_SUSPENDED);
    assert_bytes(standing->lists[0].reason, "listed network");
    assert_int_equal(standing->lists[1].kind, 1);
    assert_int_equal(standing->lists[1].level, WEIR_STANDING_TRUSTED);
    assert_int_equal(standing->lists[1].reason.size, 0);
    assert_true(weir_rules_timed(rules));
    struct weir_standing_answer answer = weir_rules_standing_answer(rules, WEIR_STANDING_SUSPENDED);
    assert_int_equal(answer.status, 451);
    assert_null(answer.body.data);
    answer = weir_rules_standing_answer(rules, WEIR_STANDING_REVOKED);
    assert_int_equal(answer.status, 403);
    assert_bytes(answer.body, "{}");
    assert_bytes(answer.content_type, "application/json");
    weir_rules_unref(rules);
}

TEST("no request can set it")
{
    struct weir_rules *rules = test_load("standing: {by: user}\nlimits: []\n");
    assert_int_equal(weir_rules_source(rules, "standing", 8).attribute, -1);
    weir_rules_unref(rules);
    rules = test_load("limits: []\n");
    assert_int_equal(weir_rules_source(rules, "standing", 8).attribute, -1);
    weir_rules_unref(rules);
}

TEST("the map may be in another folder")
{
    struct weir_rules *rules = test_load("standing: {by: user, file: /var/lib/weir/standing, map: "
                                         "/run/weir-state/map}\nlimits: []\n");
    const struct weir_standing_settings *standing = weir_rules_settings(rules)->standing;
    assert_string_equal(standing->file, "/var/lib/weir/standing");
    assert_string_equal(standing->map, "/run/weir-state/map");
    weir_rules_unref(rules);
    rules = test_load("standing: {by: user}\nlimits: []\n");
    assert_null(weir_rules_settings(rules)->standing->map);
    weir_rules_unref(rules);
}

TEST("a header of it is sent where the file says so")
{
    struct weir_rules *rules = test_load("headers: [draft, standing]\nlimits: []\n");
    assert_int_equal(weir_rules_settings(rules)->headers,
                     WEIR_HEADERS_DRAFT | WEIR_HEADERS_STANDING);
    weir_rules_unref(rules);
}

#define SECTION(text) "standing: {by: [client.ip/64, user], " text "}\nlimits: []\n"

TEST("mistakes in the section are named")
{
    static const struct test_problem_case cases[] = {
        {"standing: 5\nlimits: []\n", "1:11: `standing` must be a mapping, not a text\n"},
        {"standing: {}\nlimits: []\n",
         "1:11: `standing` needs `by`, which says what callers are known by: "
         "`by: [client.ip/64, user]`\n"},
        {"standing: {by: []}\nlimits: []\n", "1:16: `by` must be a list of 1 to 16 attributes\n"},
        {"standing: {by: {user: 1}}\nlimits: []\n",
         "1:16: `by` must be a list of 1 to 16 attributes\n"},
        {"standing: {by: [path]}\nlimits: []\n",
         "1:17: `path` cannot have a standing: `by` takes what a caller is known by, such as "
         "client.ip/64, user, org or a header\n"},
        {"standing: {by: [standing, path.id, method]}\nlimits: []\n",
         "1:17: `standing` cannot have a standing: `by` takes what a caller is known by, such as "
         "client.ip/64, user, org or a header\n"
         "1:27: `path.id` cannot have a standing: `by` takes what a caller is known by, such as "
         "client.ip/64, user, org or a header\n"
         "1:36: `method` cannot have a standing: `by` takes what a caller is known by, such as "
         "client.ip/64, user, org or a header\n"},
        {"standing: {by: [user, user]}\nlimits: []\n", "1:23: `user` is twice in `by`\n"},
        {"standing: {by: [client.ip, client.ip/64]}\nlimits: []\n",
         "1:28: `client.ip` is twice in `by`\n"},
        {"standing: {by: [client.ip/0]}\nlimits: []\n",
         "1:17: a prefix length of 0 is every address; give 1 or more\n"},
        {"standing: {by: [client.ip/129]}\nlimits: []\n",
         "1:17: `client.ip/129`: prefix lengths are `client.ip/64` (IPv6, 0 to 128) or "
         "`client.ip/64/24` (IPv6, and IPv4, 0 to 32)\n"},
        {"standing: {by: [jwt.sub]}\nlimits: []\n",
         "1:17: the claim `sub` needs the section `jwt:`, which verifies tokens\n"},
        {SECTION("file: ''"), "1:44: `file` is empty; remove it to keep nothing across restarts\n"},
        {SECTION("file: a, map: ''"),
         "1:52: `map` is empty; remove it, and the map lies beside `file`\n"},
        {SECTION("map: /run/m"),
         "1:43: `map` needs `file`, the history that the map is made from at each start\n"},
        {SECTION("entries: 15"), "1:47: `entries` must be 16 to 64000000, not `15`\n"},
        {SECTION("list: []"), "1:38: `standing` has no key `list`; did you mean `lists`?\n"},
    };
    TEST_REFUSED_ALL(cases);
}

TEST("mistakes in lists are named")
{
    static const struct test_problem_case cases[] = {
        {SECTION("lists: bad.txt"), "1:45: `lists` must be a list of at most 64 mappings\n"},
        {SECTION("lists: [bad.txt]"), "1:46: a list must be a mapping, not a text\n"},
        {SECTION("lists: [{}]"), "1:46: `file` is missing in a list\n"
                                 "1:46: `by` is missing in a list\n"
                                 "1:46: `level` is missing in a list\n"},
        {SECTION("lists: [{file: f, by: usr, level: warned}]"),
         "1:60: `usr` is not in `by` of `standing`; did you mean `user`?\n"},
        {SECTION("lists: [{file: f, by: client.ip/64, level: warned}]"),
         "1:60: `client.ip/64`: a list has its prefixes in its lines; write `client.ip`\n"},
        {SECTION("lists: [{file: f, by: user, level: suspend}]"),
         "1:73: `level` must be trusted, good, warned, throttled, challenged, suspended or "
         "revoked, not `suspend`; did you mean `suspended`?\n"},
        {SECTION("lists: [{file: f, by: user, level: good}]"),
         "1:73: `good` is what callers are who are in no list; use another level\n"},
        {SECTION("lists: [{file: f, by: user, level: warned, reason: \"a\\nb\"}]"),
         "1:89: `reason` must be at most 127 bytes on one line\n"},
    };
    TEST_REFUSED_ALL(cases);
}

TEST("mistakes in the files of lists are named")
{
    static const char text[] =
        "standing: {by: [client.ip/64, user], lists: [{file: @, by: client.ip, level: warned}]}\n"
        "limits: []\n";
    char expected[256];
    write_list("# fine\n192.0.2.0/24\n2001:db8::1\n");
    weir_rules_unref(test_load(with_list(text)));
    write_list("192.0.2.0/24\n192.0.2.300\n");
    snprintf(expected, sizeof(expected),
             "1:53: %s:2: not a network or an address; write 10.0.0.0/8, 192.0.2.1 or "
             "2001:db8::/32\n",
             list);
    test_refused(with_list(text), expected);
    test_refused("standing: {by: user, lists: [{file: /dev/null, by: user, level: warned}]}\n"
                 "limits: []\n",
                 "1:37: /dev/null: it is a device; give a regular file\n");
    test_refused("standing: {by: user, lists: [{file: gone.txt, by: user, level: warned}]}\n"
                 "limits: []\n",
                 "1:37: gone.txt: No such file or directory\n");
}

TEST("mistakes in answers are named")
{
    static const struct test_problem_case cases[] = {
        {SECTION("answer: {banned: {}}"),
         "1:47: `answer` has no key `banned`; its keys are suspended, revoked\n"},
        {SECTION("answer: {suspended: {status: 200}}"),
         "1:67: `status` must be 401, 403, 404, 410, 429, 451 or 503, not `200`\n"},
        {SECTION("answer: {suspended: {status: []}}"),
         "1:67: `status` must be 401, 403, 404, 410, 429, 451 or 503\n"},
        {SECTION("answer: {revoked: {content_type: text/html}}"),
         "1:57: `content_type` needs a `body`\n"},
        {SECTION("answer: {revoked: {body: x, content_type: \"a\\r\\nb\"}}"),
         "1:80: `content_type` must be a media type such as `application/json`\n"},
    };
    TEST_REFUSED_ALL(cases);
}

TEST("a body has a largest size")
{
    static char text[8192];
    int used = sprintf(text, "standing: {by: [user], answer: {revoked: {body: ");
    memset(text + used, 'x', 4096);
    strcpy(text + used + 4096, "}}}\nlimits: []\n");
    weir_rules_unref(test_load(text));
    memset(text + used, 'x', 4097);
    strcpy(text + used + 4097, "}}}\nlimits: []\n");
    test_refused(text, "1:49: `body` has more than 4096 bytes\n");
}

#define LIMIT(text) "standing: {by: user}\nlimits:\n- {name: l, key: [], rate: 1/s, " text "}\n"

TEST("mistakes in limits are named")
{
    static const struct test_problem_case cases[] = {
        {"limits:\n- {name: l, match: {standing: warned}, key: [standing], rate: 1/s,\n"
         "   by_standing: {throttled: 20%}}\n",
         "2:21: the attribute `standing` needs the section `standing:`, which says whose standing "
         "counts\n"
         "2:46: the attribute `standing` needs the section `standing:`, which says whose standing "
         "counts\n"
         "3:4: `by_standing` needs the section `standing:`\n"},
        {LIMIT("match: {standing: [warned, throtled]}"),
         "3:60: `standing` must be trusted, good, warned, throttled, challenged, suspended or "
         "revoked, not `throtled`; did you mean `throttled`?\n"},
        {LIMIT("match: {standing: 'w*'}"),
         "3:51: `standing` must be trusted, good, warned, throttled, challenged, suspended or "
         "revoked, not `w*`\n"},
        {LIMIT("by_standing: throttled"),
         "3:46: `by_standing` must be a mapping of levels to percentages: `{ throttled: 20% }`\n"},
        {LIMIT("by_standing: {}"),
         "3:46: `by_standing` must be a mapping of levels to percentages: `{ throttled: 20% }`\n"},
        {LIMIT("by_standing: {throttled: 0%}"),
         "3:58: `throttled` must be 1% to 100%, as in `throttled: 20%`\n"},
        {LIMIT("by_standing: {trusted: 20%}"),
         "3:47: `by_standing` takes warned, throttled and challenged: suspended and revoked "
         "callers meet no limit, and others meet it as it is\n"},
        {"standing: {by: user}\nlimits: [{name: standing, key: [], rate: 1/s}]\n",
         "2:17: no limit may be called `standing` in a file with the section `standing:`: answers "
         "and metrics call the refusals of that section so\n"},
        {"standing: {by: user}\n"
         "limits: [{name: l, key: [], rate: unlimited, by_standing: {throttled: 20%}}]\n",
         "2:46: an unlimited rate has no scale: remove `by_standing`\n"},
        {"standing: {by: user}\nstore: {redis: 'redis://h', on_store_error: open}\n"
         "limits: [{name: l, key: [], rate: 1/s, mode: leased, by_standing: {throttled: 20%}}]\n",
         "3:46: a limit with `by_standing` is decided exactly and cannot be leased; remove `mode`, "
         "or set it to exact\n"},
        {"identify: [standing]\nlimits: []\n", "1:12: `standing` cannot identify a caller; "
                                               "`client.ip`, a header or another attribute can\n"},
    };
    TEST_REFUSED_ALL(cases);
}

RUN_TESTS_WITH(make_list, NULL)
