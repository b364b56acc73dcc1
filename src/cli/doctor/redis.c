/* SPDX-License-Identifier: Apache-2.0 */
/* see redis.h */
#include "cli/doctor/redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "feature/region/rules/home.h"
#include "feature/region/rules/region.h"
#include "server/daemon/clock.h"
#include "server/daemon/redis_access.h"
#include "server/net/seed.h"
#include "server/stores/shared_store.h"
#include "store/redis/redis.h"
#include "wire/resp/write.h"

#define PATIENCE_MS 5000 /* for all answers; connecting alone may take a second */
#define ROUND_TRIPS 21
#define CLOCK_APART_NS INT64_C(1000000000)
#define VERSION_LEAST 602 /* 6.2: 100 times the major version, and the minor one */
#define REPLY_NODES 4
#define CALL_BYTES 64

/* --- Judging ---------------------------------------------------------------------------------- */

static unsigned version_number(const char *version)
{
    char *end;
    unsigned long major = strtoul(version, &end, 10);
    unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    return (unsigned)(major * 100 + minor);
}

static void judge_memory(struct findings *findings, const struct redis_facts *facts,
                         const char *section)
{
    if (facts->max_bytes == 0)
        return;
    if (facts->policy[0] && strcmp(facts->policy, "noeviction") != 0)
        findings_add(findings, FINDING_WARNING, "redis_evicts",
                     "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf",
                     "%s: maxmemory-policy is %s: a key that Redis evicts is an amnesty", section,
                     facts->policy);
    if (facts->used_bytes > facts->max_bytes / 10 * 9)
        findings_add(findings, FINDING_WARNING, "redis_memory",
                     "raise maxmemory (docs/distributed.md says what a state takes)",
                     "%s: Redis uses %" PRIu64 " of %" PRIu64
                     " MiB; when it is full, on_store_error decides",
                     section, facts->used_bytes >> 20, facts->max_bytes >> 20);
}

void redis_judge(struct findings *findings, const struct redis_facts *facts, const char *section,
                 uint64_t deadline_ns)
{
    unsigned version = version_number(facts->version);
    int64_t apart = facts->ahead_ns < 0 ? -facts->ahead_ns : facts->ahead_ns;
    if (version > 0 && version < VERSION_LEAST)
        findings_add(findings, FINDING_ERROR, "redis_version", "use Redis 6.2 to 8, or Valkey",
                     "%s: Redis is version %s; weir is written for 6.2 and newer", section,
                     facts->version);
    judge_memory(findings, facts, section);
    if (facts->round_trip_ns > deadline_ns / 2)
        findings_add(findings, FINDING_WARNING, "redis_latency",
                     "move Redis nearer, raise the section's `deadline`, or use `mode: leased`",
                     "%s: a round trip takes %" PRIu64
                     " us, more than half of the deadline of %" PRIu64 " us",
                     section, facts->round_trip_ns / 1000, deadline_ns / 1000);
    if (facts->has_time && apart > CLOCK_APART_NS + (int64_t)facts->round_trip_ns)
        findings_add(findings, FINDING_WARNING, "redis_clock",
                     "synchronise both clocks: chronyd or systemd-timesyncd on both machines",
                     "%s: the clock of Redis is %" PRId64 " s %s this one", section,
                     apart / 1000000000, facts->ahead_ns < 0 ? "behind" : "ahead of");
}

/* --- Asking ----------------------------------------------------------------------------------- */

enum step { STEP_INFO, STEP_TIME, STEP_PING };

struct examination {
    uv_loop_t loop;
    uv_timer_t timer;
    struct weir_store *store;
    struct redis_client *client;
    struct redis_call call;
    struct redis_facts facts;
    char bytes[CALL_BYTES];
    enum step step;
    unsigned pings;
    uint64_t sent_ns, sent_wall_ns, round_trips[ROUND_TRIPS];
    bool done, up;
    char problem[WEIR_REASON_MAX];
};

static void finish(struct examination *examination)
{
    examination->done = true;
    uv_stop(&examination->loop);
}

static void on_time_out(uv_timer_t *timer)
{
    struct examination *examination = timer->data;
    if (!examination->problem[0])
        snprintf(examination->problem, sizeof examination->problem, "no answer within %d s",
                 PATIENCE_MS / 1000);
    finish(examination);
}

static void on_store(void *context, const char *event, const char *text)
{
    struct examination *examination = context;
    if (!strcmp(event, "store_up"))
        examination->up = true;
    else if (!strcmp(event, "store_down"))
        snprintf(examination->problem, sizeof examination->problem, "%s", text);
    else
        return;
    finish(examination);
}

static void on_client(void *context, enum redis_event event, const char *text)
{
    struct examination *examination = context;
    if (event != REDIS_EVENT_DOWN)
        return;
    snprintf(examination->problem, sizeof examination->problem, "%s", text);
    finish(examination);
}

static void on_reply(struct redis_call *call, int error, const struct weir_resp_node *nodes,
                     uint32_t count);

static void ask(struct examination *examination)
{
    char *out = examination->bytes;
    out = weir_resp_write_array(out, 1);
    if (examination->step == STEP_INFO)
        out = WEIR_RESP_WRITE_WORD(out, "INFO");
    else if (examination->step == STEP_TIME)
        out = WEIR_RESP_WRITE_WORD(out, "TIME");
    else
        out = WEIR_RESP_WRITE_WORD(out, "PING");
    examination->call = (struct redis_call){
        .bytes = examination->bytes,
        .size = (size_t)(out - examination->bytes),
        .give_up_ns = uv_hrtime() + (uint64_t)PATIENCE_MS * 1000000,
        .done = on_reply,
    };
    examination->sent_ns = uv_hrtime();
    examination->sent_wall_ns = weir_clock_wall_ns();
    if (redis_client_send(examination->client, &examination->call) < 0) {
        snprintf(examination->problem, sizeof examination->problem, "it cannot be asked");
        finish(examination);
        return;
    }
    redis_client_flush(examination->client);
}

/* The value of "name:value" in a reply to INFO. */
static void read_field(struct weir_bytes info, const char *name, char text[REDIS_FACT_TEXT_MAX])
{
    size_t size = strlen(name), length = 0;
    const char *at = memmem(info.data, info.size, name, size);
    text[0] = '\0';
    if (!at)
        return;
    at += size;
    size_t left = info.size - (size_t)(at - info.data);
    while (length < left && length < REDIS_FACT_TEXT_MAX - 1 && at[length] != '\r')
        length++;
    memcpy(text, at, length);
    text[length] = '\0';
}

static void read_info(struct redis_facts *facts, struct weir_bytes info)
{
    char text[REDIS_FACT_TEXT_MAX];
    read_field(info, "\nredis_version:", facts->version);
    read_field(info, "\nmaxmemory_policy:", facts->policy);
    read_field(info, "\nmaxmemory:", text);
    facts->max_bytes = strtoull(text, NULL, 10);
    read_field(info, "\nused_memory:", text);
    facts->used_bytes = strtoull(text, NULL, 10);
}

static uint64_t number_of(const struct weir_resp_node *node)
{
    char text[REDIS_FACT_TEXT_MAX];
    size_t size = node->text.size < sizeof text ? node->text.size : sizeof text - 1;
    memcpy(text, node->text.data, size);
    text[size] = '\0';
    return strtoull(text, NULL, 10);
}

static void read_time(struct examination *examination, const struct weir_resp_node *nodes,
                      uint32_t count)
{
    uint64_t took_ns = uv_hrtime() - examination->sent_ns;
    if (count != 3 || nodes[0].type != WEIR_RESP_ARRAY)
        return;
    uint64_t theirs = number_of(&nodes[1]) * 1000000000 + number_of(&nodes[2]) * 1000;
    uint64_t ours = examination->sent_wall_ns + took_ns / 2;
    examination->facts.ahead_ns = (int64_t)(theirs - ours);
    examination->facts.has_time = true;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* A command that this user may not run brings an error reply, and its fact stays unknown. */
static void on_reply(struct redis_call *call, int error, const struct weir_resp_node *nodes,
                     uint32_t count)
{
    struct examination *examination =
        (struct examination *)(void *)((char *)call - offsetof(struct examination, call));
    if (error < 0) {
        if (!examination->problem[0]) /* on_client knew why */
            snprintf(examination->problem, sizeof examination->problem, "it did not answer");
        finish(examination);
        return;
    }
    if (examination->step == STEP_INFO) {
        if (nodes[0].type == WEIR_RESP_BULK)
            read_info(&examination->facts, nodes[0].text);
        examination->step = STEP_TIME;
    } else if (examination->step == STEP_TIME) {
        read_time(examination, nodes, count);
        examination->step = STEP_PING;
    } else {
        examination->round_trips[examination->pings++] = uv_hrtime() - examination->sent_ns;
    }
    if (examination->pings < ROUND_TRIPS) {
        ask(examination);
        return;
    }
    qsort(examination->round_trips, ROUND_TRIPS, sizeof *examination->round_trips, compare);
    examination->facts.round_trip_ns = examination->round_trips[ROUND_TRIPS / 2];
    examination->up = true;
    finish(examination);
}

/* --- Running ---------------------------------------------------------------------------------- */

static void run_until_done(struct examination *examination)
{
    examination->done = examination->up = false;
    uv_timer_start(&examination->timer, on_time_out, PATIENCE_MS, 0);
    while (!examination->done)
        uv_run(&examination->loop, UV_RUN_DEFAULT);
    uv_timer_stop(&examination->timer);
}

static void run_until_closed(struct examination *examination)
{
    while (uv_run(&examination->loop, UV_RUN_DEFAULT) != 0)
        ;
}

static bool is_refusal(const char *text)
{
    static const char *const words[] = {"NOPERM", "WRONGPASS", "NOAUTH", "permission", "password"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i]))
            return true;
    return false;
}

static void add_problem(struct findings *findings, const char *section, const char *problem)
{
    if (is_refusal(problem))
        findings_add(findings, FINDING_ERROR, "redis_refused",
                     "correct `user` and `password_file`, and give the account +evalsha "
                     "+script|load +ping and what docs/distributed.md lists (ACL SETUSER)",
                     "%s: Redis refuses this node: %s", section, problem);
    else
        findings_add(findings, FINDING_ERROR, "redis_unreachable",
                     "check the URL, that Redis runs (redis-cli -u URL ping), and the firewall",
                     "%s: Redis cannot be used: %s", section, problem);
}

/* Whether scripts can be loaded and run, as the server does it. */
static bool try_scripts(struct examination *examination, const struct redis_url *url,
                        const char *prefix, bool far)
{
    const struct weir_store_redis_options options = {
        .loop = &examination->loop,
        .url = url,
        .prefix = prefix,
        .far = far,
        .random_seed = weir_seed_draw(0),
        .event = on_store,
        .event_context = examination,
    };
    struct weir_reason reason = {{0}};
    if (weir_store_redis_open(&examination->store, &options, &reason) < 0) {
        snprintf(examination->problem, sizeof examination->problem, "%s", reason.text);
        return false;
    }
    run_until_done(examination);
    bool up = examination->up;
    examination->store->ops->close(examination->store);
    return up;
}

static bool ask_all(struct examination *examination, const struct redis_url *url)
{
    const struct redis_client_options options = {
        .loop = &examination->loop,
        .url = url,
        .random_seed = weir_seed_draw(1),
        .event = on_client,
        .context = examination,
    };
    struct weir_reason reason = {{0}};
    if (redis_client_open(&examination->client, &options, &reason) < 0) {
        snprintf(examination->problem, sizeof examination->problem, "%s", reason.text);
        return false;
    }
    ask(examination);
    run_until_done(examination);
    bool up = examination->up;
    redis_client_close(examination->client, NULL, NULL);
    return up;
}

static void examine(struct findings *findings, const struct weir_redis_access *access,
                    const char *section, const char *prefix, uint64_t deadline_ns, bool far)
{
    struct examination *examination = calloc(1, sizeof *examination);
    struct redis_url url;
    struct weir_reason reason;
    if (!examination || weir_redis_access_url(&url, access, section, &reason) < 0) {
        free(examination);
        return; /* the rules were refused for it */
    }
    uv_loop_init(&examination->loop);
    uv_timer_init(&examination->loop, &examination->timer);
    examination->timer.data = examination;
    bool good = !prefix || try_scripts(examination, &url, prefix, far);
    if (good)
        good = ask_all(examination, &url);
    if (good)
        redis_judge(findings, &examination->facts, section, deadline_ns);
    else
        add_problem(findings, section, examination->problem);
    uv_close((uv_handle_t *)&examination->timer, NULL);
    run_until_closed(examination);
    uv_loop_close(&examination->loop);
    free(examination);
}

#define DEADLINE_DEFAULT_NS UINT64_C(20000000)

/* Those of other regions, if this node asks them. */
static void examine_regions(struct findings *findings, const struct weir_rules *rules)
{
    struct weir_bytes name;
    for (uint32_t i = 0; weir_rules_regions_reached(rules) && i < RULES_REGIONS_MAX; i++) {
        const struct weir_store_settings *region = weir_rules_region_store(rules, i, &name);
        char section[96];
        if (!region)
            continue;
        snprintf(section, sizeof section, "regions.%.*s.redis",
                 (int)(name.size < 64 ? name.size : 64), name.data);
        examine(findings, &region->redis, section,
                region->prefix ? region->prefix : "weir:", WEIR_LENDER_DEADLINE_NS, true);
    }
}

void redis_examine(struct findings *findings, const struct weir_rules *rules)
{
    const struct weir_settings *settings = weir_rules_settings(rules);
    const struct weir_store_settings *store = &settings->store;
    const struct weir_identities_settings *identities = &settings->identities;
    if (store->redis.url)
        examine(findings, &store->redis, "store.redis", store->prefix ? store->prefix : "weir:",
                store->deadline_ns > 0 ? store->deadline_ns : DEADLINE_DEFAULT_NS, false);
    examine_regions(findings, rules);
    if (identities->redis.url)
        examine(findings, &identities->redis, "identities.redis", NULL,
                identities->deadline_ns > 0 ? identities->deadline_ns : DEADLINE_DEFAULT_NS, false);
}
