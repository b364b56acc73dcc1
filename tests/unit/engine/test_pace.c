/* SPDX-License-Identifier: Apache-2.0 */
/* A client that goes by the RateLimit field alone: r requests in t seconds, evenly. It is never
 * denied, and gets nearly all that the limit admits. Engine, table and header fields are the real
 * ones; time is a model's. */
#include <stdio.h>
#include <string.h>

#include "engine/open.h"
#include "rig.h"
#include "structured_list.h"
#include "table/table.h"
#include "table_rig.h"
#include "test.h"
#include "wire/http/ratelimit_headers.h"

#define WINDOWS 20

/* Under a sanitizer every request is slow. */
#ifdef MODEL_QUICK
#define RATE_MAX 100
#else
#define RATE_MAX 10000
#endif

struct place {
    struct weir_engine *engine;
    struct weir_rules *rules;
    struct weir_table *table;
    struct weir_store *store;
    struct weir_answer answer;
    char fields[WEIR_RATELIMIT_HEADERS_MAX + 1];
};

static void done(void *context, struct weir_decision *decision)
{
    static char lease[WEIR_LEASE_TOKEN_MAX];
    struct place *place = context;
    weir_engine_answer(decision, &place->answer, lease);
    size_t size =
        weir_ratelimit_headers_write(WEIR_HEADERS_DRAFT, &place->answer, 0, place->fields);
    place->fields[size] = '\0';
    weir_engine_release(place->engine, decision);
}

static void open_place(struct place *place, const char *limit)
{
    char text[512];
    snprintf(text, sizeof text, "version: 1\nlimits:\n  - { name: api, key: [client.ip], %s }\n",
             limit);
    place->table = rig_table(1 << 20);
    place->store = rig_embedded(place->table);
    place->rules = rig_rules(text);
    rig_prepare(place->rules, place->store);
    struct weir_engine_options options = {.store = place->store,
                                          .rules = place->rules,
                                          .secret = weir_table_secret(place->table),
                                          .done = done,
                                          .done_context = place};
    assert_int_equal(weir_engine_open(&place->engine, &options), 0);
}

static void close_place(struct place *place)
{
    weir_engine_close(place->engine);
    weir_rules_unref(place->rules);
    place->store->ops->close(place->store);
    weir_table_close(place->table);
}

/* One request of a client; the answer is in `place`. */
static void ask(struct place *place, const char *client, uint64_t now_ns)
{
    struct weir_request request;
    struct weir_reason reason;
    struct weir_decision *d = weir_engine_take(place->engine);
    assert_non_null(d);
    weir_request_clear(&request, weir_rules_attribute_count(place->rules));
    assert_int_equal(weir_address_parse(&request.client, client, strlen(client)), 0);
    assert_int_equal(weir_engine_apply_rules(place->engine, d, &request, &reason), 0);
    weir_engine_queue(place->engine, d);
    weir_engine_run(place->engine, now_ns);
}

/* How long the slowest policy makes a client wait: t/r, or t where nothing is left. */
static uint64_t pause_ns(const struct place *place)
{
    struct structured_list list;
    uint64_t longest_ns = 0;
    const char *value = strstr(place->fields, "RateLimit: ");
    assert_non_null(value);
    value += strlen("RateLimit: ");
    assert_true(structured_list_read(&list, value, (size_t)(strchr(value, '\r') - value)));
    for (unsigned i = 0; i < list.count; i++) {
        uint64_t r = (uint64_t)structured_parameter(&list.members[i], "r")->integer;
        uint64_t t = (uint64_t)structured_parameter(&list.members[i], "t")->integer;
        uint64_t ns = (t * SECOND + (r > 1 ? r - 1 : 0)) / (r > 0 ? r : 1);
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    return longest_ns;
}

/* What a client gets beyond its first burst that asks whenever it may, by retry_after to the
 * nanosecond. */
static uint64_t sustained(struct place *place, uint64_t from_ns, uint64_t window_ns)
{
    uint64_t admitted = 0, burst = 0;
    for (uint64_t now_ns = from_ns; now_ns < from_ns + WINDOWS * window_ns;) {
        ask(place, "192.0.2.1", now_ns);
        admitted += place->answer.allowed;
        burst += place->answer.allowed && now_ns == from_ns;
        now_ns += place->answer.retry_after_ns;
    }
    return admitted - burst;
}

/* What a client gets that uses some at once and then paces r/t. */
static uint64_t paced(struct place *place, uint64_t from_ns, uint64_t window_ns, uint64_t at_once)
{
    uint64_t admitted = 0;
    for (uint64_t now_ns = from_ns; now_ns < from_ns + WINDOWS * window_ns;) {
        ask(place, "192.0.2.2", now_ns);
        if (!place->answer.allowed)
            fail_msg("denied after %llu ns", (unsigned long long)(now_ns - from_ns));
        admitted++;
        bool burst = admitted < at_once && place->answer.limits[0].report.remaining > 0;
        now_ns += burst ? 0 : pause_ns(place);
    }
    return admitted;
}

/* `percent` of N a window, or of what the limit still admits where that is less (`strict`),
 * is what the pace has to reach. */
struct pace {
    const char *limit;
    uint64_t rate, window_s, percent;
};

static void check_pace(const struct pace *pace)
{
    static struct place place;
    uint64_t window_ns = pace->window_s * SECOND, whole = pace->rate * WINDOWS;
    if (pace->rate > RATE_MAX)
        return;
    for (uint64_t from_ns = START; from_ns < START + window_ns; from_ns += window_ns * 3 / 7 + 1) {
        for (uint64_t at_once = 0; at_once < pace->rate; at_once += (pace->rate + 1) / 2) {
            open_place(&place, pace->limit);
            uint64_t most = sustained(&place, from_ns, window_ns);
            uint64_t got = paced(&place, from_ns, window_ns, at_once);
            most = most < whole ? most : whole;
            if (got * 100 < most * pace->percent)
                fail_msg("%s, %d at once: %d of %d", pace->limit, (int)at_once, (int)got,
                         (int)most);
            close_place(&place);
        }
    }
}

TEST("who paces r by t gets 95 percent and is never denied")
{
    static const struct pace paces[] = {
        {"rate: 5/min", 5, 60, 95},
        {"rate: 60/min", 60, 60, 95},
        {"rate: 7/h", 7, 3600, 95},
        {"rate: 100/h", 100, 3600, 95},
        {"rate: 1000/h", 1000, 3600, 95},
        {"rate: 10000/h", 10000, 3600, 95},
        {"rate: 1000/10min", 1000, 600, 95},
        {"rate: 100/h, segments: 10", 100, 3600, 95},
        {"rate: 1000/h, segments: 60", 1000, 3600, 95},
        {"rate: 1000/h, segments: 60, strict: true", 1000, 3600, 95},
        {"rate: 100/h, strict: true", 100, 3600, 95},
        {"rate: 100/h, algorithm: sliding_log", 100, 3600, 95},
        {"rate: 1000/h, algorithm: sliding_log", 1000, 3600, 95},
        {"rate: 100/h, algorithm: fixed_window", 100, 3600, 95},
        {"rate: 100/min, algorithm: fixed_window", 100, 60, 95},
        {"rate: 1000/h, algorithm: gcra", 1000, 3600, 95},
        {"rate: 1000/h, algorithm: token_bucket, burst: 5000", 1000, 3600, 95},
        {"rate: 1000/h, algorithm: leaky_bucket, burst: 10", 1000, 3600, 95},
        {"rate: 1000/h, algorithm: leaky_bucket, queue: true", 1000, 3600, 95},
        {"quota: 1000/day", 1000, 86400, 95},
        {"quota: 1000/day, rollover: 500", 1000, 86400, 95},
        {"rate: [100/min, 1000/h]", 1000, 3600, 95},
    };
    for (size_t i = 0; i < sizeof paces / sizeof paces[0]; i++)
        check_pace(&paces[i]);
}

/* What docs/http-api.md says of it. */
TEST("whole seconds cost a fast or shallow limit more")
{
    static const struct pace paces[] = {
        {"rate: 100/min", 100, 60, 90},
        {"rate: 600/min", 600, 60, 90},
        {"rate: 6000/min", 6000, 60, 90},
        {"rate: 1000/h, algorithm: gcra, burst: 1", 1000, 3600, 90},
        {"rate: 10/s", 10, 1, 50},
        {"rate: 1000/s, algorithm: gcra", 1000, 1, 50},
    };
    for (size_t i = 0; i < sizeof paces / sizeof paces[0]; i++)
        check_pace(&paces[i]);
}

RUN_TESTS()
