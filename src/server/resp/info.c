/* SPDX-License-Identifier: Apache-2.0 */
/* INFO and CONFIG GET: what clients ask before they trust a server. See resp.h. */
#include "server/resp/info.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/resp/decide.h"
#include "server/resp/reply.h"
#include "table/table.h"

#define INFO_MAX 4096
#define PATTERN_MAX 64

/* --- INFO ------------------------------------------------------------------------------------- */

struct info {
    char text[INFO_MAX];
    size_t used;
    struct weir_table_stats stats;
    bool has_stats; /* they look at some thousand buckets: made once, and only where wanted */
};

static void put(struct info *info, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct info *info, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int size = vsnprintf(info->text + info->used, sizeof info->text - info->used, format, values);
    va_end(values);
    if (size > 0 && (size_t)size < sizeof info->text - info->used)
        info->used += (size_t)size;
}

static const struct weir_table_stats *stats_of(struct weir_resp_call *call, struct info *info)
{
    if (!info->has_stats)
        weir_table_stats(call->redis->worker->table, weir_resp_settle(call), &info->stats);
    info->has_stats = true;
    return &info->stats;
}

/* The sum of a counter over all workers. */
static uint64_t total(const struct weir_resp_shared *shared, size_t offset)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < shared->worker_count; i++) {
        const char *counters = (const char *)&shared->workers[i]->counters;
        sum += weir_counted((const _Atomic uint64_t *)(const void *)(counters + offset));
    }
    return sum;
}
#define TOTAL(shared, name) total((shared), offsetof(struct weir_worker_counters, name))

static void put_server(struct weir_resp_call *call, struct info *info)
{
    const struct weir_resp_shared *shared = call->redis->shared;
    uint64_t now_s = call->redis->worker->wall_s;
    uint64_t up_s = now_s > shared->started_wall_s ? now_s - shared->started_wall_s : 0;
    put(info,
        "# Server\r\nredis_version:" WEIR_RESP_COMPATIBLE "\r\nweir_version:" WEIR_VERSION
        "\r\nredis_mode:standalone\r\nprocess_id:%ld\r\nuptime_in_seconds:%llu\r\n\r\n",
        (long)getpid(), (unsigned long long)up_s);
}

static void put_clients(struct weir_resp_call *call, struct info *info)
{
    put(info, "# Clients\r\nconnected_clients:%llu\r\n\r\n",
        (unsigned long long)TOTAL(call->redis->shared, connections));
}

static void put_memory(struct weir_resp_call *call, struct info *info)
{
    const struct weir_table_stats *stats = stats_of(call, info);
    put(info,
        "# Memory\r\nmaxmemory:%llu\r\nmaxmemory_policy:nearest-to-fresh\r\n\r\n"
        "# Persistence\r\nloading:0\r\n\r\n",
        (unsigned long long)stats->bytes);
}

static void put_stats(struct weir_resp_call *call, struct info *info)
{
    struct weir_resp_shared *shared = call->redis->shared;
    const struct weir_table_stats *stats = stats_of(call, info);
    put(info,
        "# Stats\r\ntotal_connections_received:%llu\r\ntotal_decisions:%llu\r\n"
        "rejected_connections:%llu\r\nprotocol_errors:%llu\r\nevicted_keys:%llu\r\n"
        "distinct_limits:%u\r\n\r\n",
        (unsigned long long)TOTAL(shared, accepted), (unsigned long long)TOTAL(shared, decisions),
        (unsigned long long)TOTAL(shared, refused),
        (unsigned long long)TOTAL(shared, protocol_errors), (unsigned long long)stats->evictions,
        weir_adhoc_limits_count(shared->limits));
}

static void put_replication(struct weir_resp_call *call, struct info *info)
{
    (void)call;
    put(info, "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n");
}

static void put_keyspace(struct weir_resp_call *call, struct info *info)
{
    const struct weir_table_stats *stats = stats_of(call, info);
    put(info, "# Keyspace\r\n");
    if (stats->keys)
        put(info, "db0:keys=%llu,expires=%llu,avg_ttl=0\r\n", (unsigned long long)stats->keys,
            (unsigned long long)stats->keys);
}

void weir_resp_info(struct weir_resp_call *call)
{
    static const struct {
        const char *name;
        void (*put)(struct weir_resp_call *call, struct info *info);
    } sections[] = {
        {"SERVER", put_server}, {"CLIENTS", put_clients},         {"MEMORY", put_memory},
        {"STATS", put_stats},   {"REPLICATION", put_replication}, {"KEYSPACE", put_keyspace},
    };
    struct info info;
    info.used = 0;
    info.has_stats = false;
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        bool wanted = call->count == 1;
        for (uint32_t i = 1; i < call->count && !wanted; i++)
            wanted = weir_resp_is(call->args[i], sections[s].name) ||
                     weir_resp_is(call->args[i], "ALL") || weir_resp_is(call->args[i], "DEFAULT") ||
                     weir_resp_is(call->args[i], "EVERYTHING");
        if (wanted)
            sections[s].put(call, &info);
    }
    weir_resp_bulk(call, (struct weir_bytes){info.text, info.used});
}

/* --- CONFIG ----------------------------------------------------------------------------------- */

/* What tools ask for (redis-benchmark: save, appendonly), and what is so here. */
static const struct {
    const char *name, *value;
} parameters[] = {
    {"appendonly", "no"},
    {"databases", "16"},
    {"maxmemory-policy", "nearest-to-fresh"},
    {"proto-max-bulk-len", "1048576"},
    {"save", ""},
    {"timeout", "86400"},
};
#define PARAMETERS (sizeof parameters / sizeof *parameters)

static bool parameter_wanted(const struct weir_resp_call *call, const char *name)
{
    for (uint32_t i = 2; i < call->count; i++) {
        char pattern[PATTERN_MAX];
        size_t size = call->args[i].size;
        if (!size || size >= sizeof pattern || memchr(call->args[i].data, '\0', size))
            continue;
        memcpy(pattern, call->args[i].data, size);
        pattern[size] = '\0';
        if (fnmatch(pattern, name, FNM_CASEFOLD) == 0)
            return true;
    }
    return false;
}

static void config_get(struct weir_resp_call *call)
{
    bool wanted[PARAMETERS];
    uint64_t count = 0;
    for (size_t i = 0; i < PARAMETERS; i++) {
        wanted[i] = parameter_wanted(call, parameters[i].name);
        count += wanted[i];
    }
    char *out = weir_resp_begin(call, 1024);
    if (!out)
        return;
    out = weir_resp_write_map(out, call->session->version, count);
    for (size_t i = 0; i < PARAMETERS; i++) {
        if (!wanted[i])
            continue;
        out = weir_resp_write_bulk(out, parameters[i].name, strlen(parameters[i].name));
        out = weir_resp_write_bulk(out, parameters[i].value, strlen(parameters[i].value));
    }
    weir_resp_end(call, out);
}

void weir_resp_config(struct weir_resp_call *call)
{
    if (!weir_resp_is(call->args[1], "GET"))
        weir_resp_error(call,
                        "ERR CONFIG %.*s is not supported: weir is configured by its rules "
                        "file",
                        WEIR_RESP_SHOWN(call->args[1]));
    else if (call->count < 3)
        weir_resp_error(call, "ERR wrong number of arguments for 'config|get' command");
    else
        config_get(call);
}

/* Seconds and microseconds of the clock that decisions are made by. */
void weir_resp_time(struct weir_resp_call *call)
{
    uint64_t now_us = call->redis->clock(call->redis->worker) / 1000;
    uint64_t parts[2] = {now_us / 1000000, now_us % 1000000};
    char *out = weir_resp_begin(call, WEIR_RESP_HEAD_MAX + 2 * WEIR_RESP_BULK_MAX(20));
    if (!out)
        return;
    out = weir_resp_write_array(out, 2);
    for (int i = 0; i < 2; i++) {
        char digits[WEIR_DECIMAL_MAX];
        size_t size = (size_t)(weir_decimal_write(digits, parts[i]) - digits);
        out = weir_resp_write_bulk(out, digits, size);
    }
    weir_resp_end(call, out);
}
