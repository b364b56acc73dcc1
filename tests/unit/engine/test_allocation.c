/* SPDX-License-Identifier: Apache-2.0 */
/* The path of a request allocates nothing. */
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "core/bytes.h"
#include "engine/open.h"
#include "rig.h"
#include "rules/source.h"
#include "table/table.h"
#include "test.h"
#include "wire/http/ratelimit_headers.h"

static const char text[] =
    "version: 1\n"
    "score:\n"
    "  key: [client.ip/64, header.x-key]\n"
    "  signals:\n"
    "  - { name: absent, when: { header.x-key: [absent, 'a*'] }, add: 40 }\n"
    "  - { name: other, when: { path: { not: '/other' }, user: absent }, add: 10 }\n"
    "  - { name: steady, regular: { over: 3, within: 1ms }, add: 30 }\n"
    "  - { name: same, same_route: 3, add: 5 }\n"
    "  routes: ['/u/:id']\n"
    "  debug: true\n"
    "limits:\n"
    "  - { name: classes, key: [client.class, client.score], rate: 9/s, by_class: { suspicious: "
    "50% } "
    "}\n"
    "  - { name: a, key: [client.ip/64], rate: 3/s, algorithm: gcra }\n"
    "  - { name: b, match: { path: '/u/:id' }, key: [path.id], rate: 5/s, algorithm: sliding_log "
    "}\n"
    "  - { name: c, key: [header.x-key], rate: 4/s, on_missing: shared, segments: 10 }\n"
    "  - { name: d, key: [], limit: 6, life: 1s, algorithm: concurrency }\n"
    "  - { name: e, key: [method], rate: 1/s, shadow: true }\n";

struct place {
    struct weir_engine *engine;
    struct weir_rules *rules;
    struct weir_table *table;
    struct weir_store *store;
    uint64_t allowed, denied, header_bytes;
};

static void done(void *context, struct weir_decision *decision)
{
    struct place *place = context;
    static struct weir_answer answer;
    static char lease[WEIR_LEASE_TOKEN_MAX], headers[WEIR_RATELIMIT_HEADERS_MAX];
    weir_engine_answer(decision, &answer, lease);
    place->header_bytes += weir_ratelimit_headers_write(WEIR_HEADERS_DRAFT | WEIR_HEADERS_X_DELTA,
                                                        &answer, START / SECOND, headers);
    if (answer.allowed)
        place->allowed++;
    else
        place->denied++;
    weir_engine_release(place->engine, decision);
}

static int prepare(void *context, struct weir_limit *limit, const char *name)
{
    return weir_table_intern(context, limit);
}

static void open_place(struct place *place)
{
    struct weir_table_options options = {.bytes = 1 << 20, .wall_ns = START, .boot_ns = 1};
    struct weir_reason reason;
    memset(place, 0, sizeof *place);
    assert_int_equal(weir_table_open(&place->table, &options, &reason), 0);
    assert_int_equal(weir_store_embedded_open(&place->store, place->table), 0);
    place->rules = rig_rules(text);
    assert_int_equal(weir_rules_prepare(place->rules, prepare, place->table), 0);
    struct weir_engine_options engine = {.store = place->store,
                                         .rules = place->rules,
                                         .secret = weir_table_secret(place->table),
                                         .done = done,
                                         .done_context = place};
    assert_int_equal(weir_engine_open(&place->engine, &engine), 0);
}

static void close_place(struct place *place)
{
    weir_engine_close(place->engine);
    weir_rules_unref(place->rules);
    place->store->ops->close(place->store);
    weir_table_close(place->table);
}

static void queue_request(struct place *place, int number)
{
    static struct weir_request request;
    static const char *const paths[] = {"/u/1", "/u/%32", "/x/../u/3", "/other"};
    static const char *const clients[] = {"192.0.2.1", "2001:db8::1", "2001:db8:0:1::1"};
    const char *path = paths[number % 4], *client = clients[number % 3];
    struct weir_decision *d = weir_engine_take(place->engine);
    assert_non_null(d);
    weir_request_clear(&request, weir_rules_attribute_count(place->rules));
    request.fields = WEIR_FIELDS_ALL;
    request.values[WEIR_ATTR_METHOD] = (struct weir_bytes){"GET", 3};
    request.values[WEIR_ATTR_PATH] = weir_bytes_of(path);
    assert_int_equal(weir_address_parse(&request.client, client, strlen(client)), 0);
    int header = weir_rules_field(place->rules, "X-Key", 5).attribute;
    assert_true(header >= 0);
    if (number % 5 == 0)
        request.values[header] = (struct weir_bytes){"secret", 6};
    struct weir_reason reason;
    assert_int_equal(weir_engine_apply_rules(place->engine, d, &request, &reason), 0);
    weir_engine_queue(place->engine, d);
}

TEST("a request from rules to headers allocates nothing")
{
    struct place place;
    open_place(&place);
    assert_true(allocations > 0); /* the counters are in place */
    allocations = 0;
    for (int turn = 0; turn < 200; turn++) {
        for (int i = 0; i < 32; i++)
            queue_request(&place, turn * 31 + i);
        weir_engine_run(place.engine, START + (uint64_t)turn * SECOND / 10);
    }
    uint64_t counted = allocations;
    assert_int_equal(counted, 0);
    assert_int_equal(place.allowed + place.denied, 200 * 32);
    assert_true(place.allowed > 100 && place.denied > 100 && place.header_bytes > 10000);
    close_place(&place);
}

RUN_TESTS()
