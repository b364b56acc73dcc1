/* SPDX-License-Identifier: Apache-2.0 */
/* The engine under rules: checks from requests, counters and names, reload while decisions wait. */
#include <string.h>

#include "core/bytes.h"
#include "core/text/shown.h"
#include "engine/counters.h"
#include "feature/use/engine/top_denied.h"
#include "rig.h"
#include "rules/match/key_values.h"
#include "rules/source.h"
#include "test.h"

static const char before[] = "version: 1\n"
                             "limits:\n"
                             "  - name: login\n"
                             "    match: { path: /login }\n"
                             "    key: [client.ip]\n"
                             "    algorithm: fixed_window\n"
                             "    rate: 2/h\n"
                             "  - name: trial\n"
                             "    key: []\n"
                             "    algorithm: fixed_window\n"
                             "    rate: 1/h\n"
                             "    shadow: true\n";

/* `trial` has gone, `login` is another rule by number, `extra` is new. */
static const char after[] = "version: 1\n"
                            "limits:\n"
                            "  - name: extra\n"
                            "    key: []\n"
                            "    algorithm: fixed_window\n"
                            "    rate: 100/h\n"
                            "  - name: login\n"
                            "    match: { path: /login }\n"
                            "    key: [client.ip]\n"
                            "    algorithm: fixed_window\n"
                            "    rate: 2/h\n";

static struct weir_request request;

static void set(const struct weir_rules *rules, const char *name, const char *value)
{
    int attribute = weir_rules_source(rules, name, strlen(name)).attribute;
    assert_true(attribute >= 0);
    request.values[attribute] = weir_bytes_of(value);
}

static struct weir_decision *queue_request(struct rig *rig, const char *path, const char *client)
{
    struct weir_rules *rules = weir_engine_rules(rig->engine);
    struct weir_decision *d = rig_take(rig, 0);
    weir_request_clear(&request, weir_rules_attribute_count(rules));
    set(rules, "path", path);
    assert_int_equal(weir_address_parse(&request.client, client, strlen(client)), 0);
    struct weir_reason reason;
    assert_int_equal(weir_engine_apply_rules(rig->engine, d, &request, &reason), 0);
    weir_engine_queue(rig->engine, d);
    return d;
}

static void change_to(struct rig *rig, const char *text)
{
    struct weir_rules *rules = rig_rules(text);
    assert_int_equal(weir_engine_set_rules(rig->engine, rules), 0);
    weir_rules_unref(rules);
}

static void assert_counts(struct rig *rig, const char *name, uint64_t allowed, uint64_t denied,
                          uint64_t shadow_denied)
{
    const struct weir_engine_counters *c =
        weir_engine_find_counters(rig->engine, name, strlen(name));
    assert_non_null(c);
    assert_int_equal(c->counts.allowed, allowed);
    assert_int_equal(c->counts.denied, denied);
    assert_int_equal(c->counts.shadow_denied, shadow_denied);
}

static bool is(struct weir_bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

TEST("a request becomes checks and its answer names the limits")
{
    struct rig rig;
    rig_open_text(&rig, before);
    struct weir_decision *d = queue_request(&rig, "/login", "192.0.2.1");
    assert_int_equal(d->count, 2);
    assert_ptr_equal(weir_decision_rules(d), weir_engine_rules(rig.engine));
    weir_engine_run(rig.engine, START);
    static struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
    weir_engine_answer(d, &answer, lease);
    assert_true(answer.allowed);
    assert_true(is(answer.limits[0].name, "login"));
    assert_int_equal(answer.limits[0].report.remaining, 1);
    assert_true(is(answer.limits[1].name, "trial"));
    assert_true(answer.limits[1].shadow);
    rig_close(&rig);
}

static const char several_keys[] =
    "version: 1\n"
    "limits:\n"
    "  - { name: of-path, match: { path: '/of/:team' }, key: [path.team, user], rate: 1/h }\n"
    "  - { name: of-token, key: [header.authorization, client.ip/64], rate: 1/h }\n"
    "  - { name: of-few, key: [user], rate: 1/h, enforce: 99% }\n"
    "  - { name: of-long, key: [header.x-name], rate: 1/h }\n";

/* Fills a request whose bytes are all in `bytes`. */
static void ask_with(struct rig *rig, char bytes[4][256])
{
    struct weir_rules *rules = weir_engine_rules(rig->engine);
    struct weir_decision *d = rig_take(rig, 0);
    struct weir_reason reason;
    strcpy(bytes[0], "/of/blue%20team");
    strcpy(bytes[1], "alice");
    strcpy(bytes[2], "bearer  alice's"); /* shown in its one form */
    memset(bytes[3], 'n', 200);
    bytes[3][200] = '\0';
    weir_request_clear(&request, weir_rules_attribute_count(rules));
    set(rules, "path", bytes[0]);
    set(rules, "user", bytes[1]);
    set(rules, "header.authorization", bytes[2]);
    set(rules, "header.x-name", bytes[3]);
    assert_int_equal(weir_address_parse(&request.client, "2001:db8::1", 11), 0);
    assert_int_equal(weir_engine_apply_rules(rig->engine, d, &request, &reason), 0);
    assert_int_equal(d->count, 4);
    weir_engine_queue(rig->engine, d);
}

TEST("keys are shown when the bytes of their request are gone")
{
    static struct weir_heavy_entry list[WEIR_TOP_DENIED_KEYS];
    char bytes[4][256], name[256] = "header.x-name=";
    struct rig rig;
    rig_open_text(&rig, several_keys);
    for (int i = 0; i < 2; i++) {
        ask_with(&rig, bytes);
        memset(bytes, 0, sizeof bytes);
        memset(&request, 0, sizeof request);
        weir_engine_run(rig.engine, START);
    }
    rig_expect_key(rig.done[1], 0, "path.team=blue%2520team,user=alice");
    rig_expect_key(rig.done[1], 1,
                   "header.authorization=sha256:5cd5dd5d4a41012d,client.ip=2001:db8::/64");
    rig_expect_key(rig.done[1], 2, "user=alice");
    memset(name + 14, 'n', 96); /* and the hash of all 200 */
    memcpy(name + 14 + 96, "~1be63cc0bde6bd45", 18);
    rig_expect_key(rig.done[1], 3, name);
    assert_int_equal(weir_top_denied_collect(weir_engine_top_denied(rig.engine),
                                             (struct weir_bytes){"of-path", 7}, list, 0,
                                             WEIR_TOP_DENIED_KEYS),
                     1);
    char shown[WEIR_SHOWN_TEXT_MAX];
    size_t size = weir_shown_text((struct weir_bytes){list[0].text, list[0].text_size}, shown);
    assert_true(is((struct weir_bytes){shown, size}, "path.team=blue%2520team,user=alice"));
    rig_close(&rig);
}

TEST("a malformed request is an error and leaves no checks")
{
    struct rig rig;
    rig_open_text(&rig, before);
    struct weir_decision *d = rig_take(&rig, 0);
    struct weir_reason reason = {""};
    weir_request_clear(&request, weir_rules_attribute_count(weir_engine_rules(rig.engine)));
    set(weir_engine_rules(rig.engine), "path", "/%zz");
    assert_int_equal(weir_engine_apply_rules(rig.engine, d, &request, &reason), WEIR_ERR_SYNTAX);
    assert_int_not_equal(strlen(reason.text), 0);
    assert_int_equal(d->count, 0);
    assert_int_equal(weir_engine_apply_rules(rig.engine, d, &request, NULL), WEIR_ERR_SYNTAX);
    weir_engine_release(rig.engine, d);
    rig_close(&rig);
}

TEST("counters tell each limits own verdicts")
{
    struct rig rig;
    rig_open_text(&rig, before);
    for (int i = 0; i < 5; i++)
        queue_request(&rig, "/login", "192.0.2.1");
    queue_request(&rig, "/other", "192.0.2.1")->op = WEIR_OP_PEEK; /* is not counted */
    weir_engine_run(rig.engine, START);
    assert_counts(&rig, "login", 2, 3, 0);
    assert_counts(&rig, "trial", 1, 0, 4);
    assert_ptr_equal(weir_engine_counters(rig.engine, 0),
                     weir_engine_find_counters(rig.engine, "login", 5));
    assert_null(weir_engine_counters(rig.engine, 2));
    assert_null(weir_engine_find_counters(rig.engine, "logi", 4));
    rig_close(&rig);
}

TEST("denied keys are recorded under the name of their limit")
{
    struct rig rig;
    rig_open_text(&rig, before);
    for (int i = 0; i < 5; i++)
        queue_request(&rig, "/login", "192.0.2.1");
    weir_engine_run(rig.engine, START);
    struct weir_heavy_entry list[4];
    struct weir_top_denied *top_denied = weir_engine_top_denied(rig.engine);
    struct weir_bytes login = {"login", 5};
    assert_int_equal(weir_top_denied_collect(top_denied, login, list, 0, 4), 1);
    assert_int_equal(list[0].count, 3);
    assert_non_null(memmem(list[0].text, list[0].text_size, "192.0.2.1", 9));
    rig_close(&rig);
}

TEST("the state of one key is found by its values")
{
    struct rig rig;
    rig_open_text(&rig, before);
    struct weir_decision *asked = queue_request(&rig, "/login", "192.0.2.1");
    weir_engine_run(rig.engine, START);
    struct weir_key_values values = {.values = {{"192.0.2.1", 9}}, .count = 1};
    struct weir_reason reason;
    struct weir_decision *d = rig_take(&rig, 0);
    d->op = WEIR_OP_PEEK;
    assert_int_equal(weir_engine_apply_key(rig.engine, d, 0, &values, &reason), 0);
    assert_int_equal(d->count, 1);
    assert_memory_equal(d->checks[0].hash, asked->checks[0].hash, sizeof d->checks[0].hash);
    weir_engine_queue(rig.engine, d);
    weir_engine_run(rig.engine, START);
    struct weir_report report;
    weir_decision_report(d, 0, &report);
    assert_int_equal(report.remaining, 1);
    assert_counts(&rig, "login", 1, 0, 0); /* looking is not counted */
    values.count = 0;
    d = rig_take(&rig, 0);
    assert_int_equal(weir_engine_apply_key(rig.engine, d, 0, &values, &reason), WEIR_ERR_RANGE);
    assert_int_equal(d->count, 0);
    rig_close(&rig);
}

TEST("counters survive new rules by name")
{
    struct rig rig;
    rig_open_text(&rig, before);
    for (int i = 0; i < 3; i++)
        queue_request(&rig, "/login", "192.0.2.1");
    weir_engine_run(rig.engine, START);
    change_to(&rig, after);
    assert_counts(&rig, "login", 2, 1, 0);
    assert_counts(&rig, "extra", 0, 0, 0);
    assert_null(weir_engine_find_counters(rig.engine, "trial", 5));
    queue_request(&rig, "/login", "192.0.2.1");
    weir_engine_run(rig.engine, START);
    assert_counts(&rig, "login", 2, 2, 0);
    assert_counts(&rig, "extra", 1, 0, 0);
    change_to(&rig, before);
    assert_counts(&rig, "login", 2, 2, 0);
    assert_counts(&rig, "trial", 0, 0, 0); /* a new limit of an old name */
    rig_close(&rig);
}

TEST("a pending decision keeps its rules through reloads")
{
    struct rig rig;
    rig_open_text(&rig, before);
    rig.store->later_every = 1;
    struct weir_decision *d = queue_request(&rig, "/login", "192.0.2.1");
    weir_engine_run(rig.engine, START);
    const struct weir_rules *pinned = weir_decision_rules(d);
    change_to(&rig, after);
    change_to(&rig, before);
    assert_ptr_equal(weir_decision_rules(d), pinned);
    assert_ptr_not_equal(weir_engine_rules(rig.engine), pinned);
    fake_store_answer(rig.store, 0);
    static struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
    weir_engine_answer(d, &answer, lease);
    assert_true(is(answer.limits[0].name, "login"));
    assert_true(is(answer.limits[1].name, "trial"));
    assert_counts(&rig, "login", 1, 0, 0); /* the same name in both: one counter */
    weir_engine_release(rig.engine, d);    /* frees the old rules: the sanitizer watches */
    rig_close(&rig);
}

TEST("a queued decision is decided under the rules it was made from")
{
    struct rig rig;
    rig_open_text(&rig, before);
    struct weir_decision *d = queue_request(&rig, "/login", "192.0.2.1");
    change_to(&rig, after);
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.done_count, 1);
    assert_int_equal(d->count, 2);
    assert_counts(&rig, "login", 1, 0, 0);
    assert_counts(&rig, "extra", 0, 0, 0);
    rig_close(&rig);
}

TEST("a decision that is never given back keeps only its own rules")
{
    struct rig rig;
    rig_open_text(&rig, before);
    rig.store->later_every = 1;
    queue_request(&rig, "/login", "192.0.2.1");
    weir_engine_run(rig.engine, START);
    queue_request(&rig, "/login", "192.0.2.1");
    change_to(&rig, after);
    rig_close(&rig); /* cancels both and frees both generations: the sanitizer watches */
}

static uint32_t network_of(struct rig *rig, const char *client)
{
    struct weir_decision *d = queue_request(rig, "/login", client);
    weir_engine_run(rig->engine, START);
    uint32_t network = d->network;
    weir_engine_release(rig->engine, d);
    return network;
}

/* Where the table is full, clients behind one translator do not crowd out each other. */
TEST("a client behind a translator is of the network of the address inside")
{
    struct rig rig;
    rig_open_text(&rig, before);
    assert_int_equal(network_of(&rig, "64:ff9b::8.8.8.8"), network_of(&rig, "8.8.8.8"));
    assert_int_equal(network_of(&rig, "64:ff9b::9.9.9.9"), network_of(&rig, "9.9.9.9"));
    assert_int_not_equal(network_of(&rig, "8.8.8.8"), network_of(&rig, "9.9.9.9"));
    assert_int_equal(network_of(&rig, "64:ff9b::10.0.0.1"), network_of(&rig, "64:ff9b::10.9.0.1"));
    rig_close(&rig);
}

RUN_TESTS()
