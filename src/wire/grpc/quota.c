/* SPDX-License-Identifier: Apache-2.0 */
/* see quota.h and protobuf.h */
#include "wire/grpc/quota.h"

#include "core/text/utf8.h"
#include "wire/grpc/grpc.h"
#include "wire/grpc/protobuf.h"

/* --- Reports ----------------------------------------------------------------------------------
 *
 * In two walks, as in ratelimit.c: one counts, the other fills. */

enum reports_field { REPORTS_DOMAIN = 1, REPORTS_USAGES = 2 };
enum usage_field { USAGE_ID = 1, USAGE_ELAPSED = 2, USAGE_ALLOWED = 3, USAGE_DENIED = 4 };
enum duration_field { DURATION_SECONDS = 1 };
enum id_field { ID_ENTRY = 1 };
enum entry_field { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

/* The id of a usage; the last one counts where it has several. False: the usage is malformed. */
static bool usage_id(struct weir_bytes usage, struct weir_bytes *id)
{
    struct weir_pb_reader reader = weir_pb_read(usage);
    *id = (struct weir_bytes){"", 0};
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, USAGE_ID, WEIR_PB_BYTES))
            *id = reader.bytes;
    return !reader.bad;
}

static int id_count(struct weir_bytes id, size_t *entries)
{
    struct weir_pb_reader reader = weir_pb_read(id);
    size_t count = 0;
    if (id.size > WEIR_GRPC_QUOTA_ID_MAX)
        return WEIR_ERR_RANGE;
    while (weir_pb_next(&reader))
        count += weir_pb_is(&reader, ID_ENTRY, WEIR_PB_BYTES);
    if (reader.bad || !count)
        return WEIR_ERR_SYNTAX;
    if (count > WEIR_GRPC_QUOTA_ENTRIES_MAX)
        return WEIR_ERR_RANGE;
    *entries += count;
    return 0;
}

static int reports_count(struct weir_bytes message, size_t *usages, size_t *entries)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    struct weir_bytes id;
    int err = 0;
    while (weir_pb_next(&reader)) {
        if (!weir_pb_is(&reader, REPORTS_USAGES, WEIR_PB_BYTES))
            continue;
        if (++*usages > WEIR_GRPC_QUOTA_USAGES_MAX)
            return WEIR_ERR_RANGE;
        err = usage_id(reader.bytes, &id) ? id_count(id, entries) : WEIR_ERR_SYNTAX;
        if (err < 0)
            return err;
    }
    return reader.bad ? WEIR_ERR_SYNTAX : 0;
}

static bool entry_read(struct weir_envoy_entry *entry, struct weir_bytes message)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    *entry = (struct weir_envoy_entry){{"", 0}, {"", 0}};
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, ENTRY_KEY, WEIR_PB_BYTES))
            entry->key = reader.bytes;
        else if (weir_pb_is(&reader, ENTRY_VALUE, WEIR_PB_BYTES))
            entry->value = reader.bytes;
    return !reader.bad && entry->key.size && weir_utf8_valid(entry->key.data, entry->key.size) &&
           weir_utf8_valid(entry->value.data, entry->value.size);
}

/* The whole seconds of a Duration; 0 where it is negative. False: it is malformed. */
static bool seconds_read(uint64_t *seconds, struct weir_bytes message)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, DURATION_SECONDS, WEIR_PB_VARINT))
            *seconds = reader.value <= INT64_MAX ? reader.value : 0;
    return !reader.bad;
}

/* Takes its entries from the front of what is left of them. */
static bool usage_read(struct weir_grpc_quota_usage *usage, struct weir_bytes message,
                       struct weir_envoy_entry **entries)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    *usage = (struct weir_grpc_quota_usage){.entries = *entries};
    if (!usage_id(message, &usage->id))
        return false;
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, USAGE_ALLOWED, WEIR_PB_VARINT))
            usage->allowed = reader.value;
        else if (weir_pb_is(&reader, USAGE_DENIED, WEIR_PB_VARINT))
            usage->denied = reader.value;
        else if (weir_pb_is(&reader, USAGE_ELAPSED, WEIR_PB_BYTES) &&
                 !seconds_read(&usage->elapsed_s, reader.bytes))
            return false;
    reader = weir_pb_read(usage->id);
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, ID_ENTRY, WEIR_PB_BYTES)) {
            if (!entry_read((*entries)++, reader.bytes))
                return false;
            usage->entry_count++;
        }
    return !reader.bad;
}

static bool reports_fill(struct weir_grpc_quota_reports *reports, struct weir_bytes message,
                         struct weir_grpc_quota_usage *usages, struct weir_envoy_entry *entries)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    *reports = (struct weir_grpc_quota_reports){.domain = {"", 0}, .usages = usages};
    while (weir_pb_next(&reader)) {
        bool good = true;
        if (weir_pb_is(&reader, REPORTS_DOMAIN, WEIR_PB_BYTES)) {
            reports->domain = reader.bytes;
            good = weir_utf8_valid(reader.bytes.data, reader.bytes.size);
        } else if (weir_pb_is(&reader, REPORTS_USAGES, WEIR_PB_BYTES)) {
            good = usage_read(&usages[reports->usage_count++], reader.bytes, &entries);
        }
        if (!good)
            return false;
    }
    return !reader.bad;
}

int weir_grpc_quota_read(struct weir_grpc_quota_reports *reports, struct weir_bytes message,
                         struct weir_grpc_arena *arena)
{
    size_t usage_count = 0, entry_count = 0;
    int err = reports_count(message, &usage_count, &entry_count);
    if (err < 0)
        return err;
    char *copy = weir_grpc_arena_take(arena, message.size);
    struct weir_grpc_quota_usage *usages =
        weir_grpc_arena_take(arena, usage_count * sizeof *usages);
    struct weir_envoy_entry *entries = weir_grpc_arena_take(arena, entry_count * sizeof *entries);
    if (!copy || !usages || !entries)
        return WEIR_ERR_TOO_LARGE;
    if (message.size)
        memcpy(copy, message.data, message.size);
    bool good = reports_fill(reports, (struct weir_bytes){copy, message.size}, usages, entries);
    return good ? 0 : WEIR_ERR_SYNTAX;
}

uint32_t weir_grpc_quota_entries(struct weir_bytes id,
                                 struct weir_envoy_entry entries[WEIR_GRPC_QUOTA_ENTRIES_MAX])
{
    struct weir_pb_reader reader = weir_pb_read(id);
    uint32_t count = 0;
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, ID_ENTRY, WEIR_PB_BYTES) && count < WEIR_GRPC_QUOTA_ENTRIES_MAX &&
            entry_read(&entries[count], reader.bytes))
            count++;
    return count;
}

/* --- Responses -------------------------------------------------------------------------------- */

enum response_field { RESPONSE_ACTION = 1 };
enum action_field { ACTION_ID = 1, ACTION_ASSIGN = 2, ACTION_ABANDON = 3 };
enum assign_field { ASSIGN_TTL = 2, ASSIGN_STRATEGY = 3 };
enum strategy_field { STRATEGY_BLANKET = 1, STRATEGY_TOKENS = 3 };
enum tokens_field { TOKENS_MAX = 1, TOKENS_PER_FILL = 2, TOKENS_INTERVAL = 3 };
enum blanket { BLANKET_ALLOW_ALL = 0, BLANKET_DENY_ALL = 1 };

/* What the messages of one action hold, in bytes. */
struct sizes {
    size_t ttl, per_fill, interval, tokens, strategy, assign, action;
};

static struct sizes sizes_of(const struct weir_grpc_quota_action *action)
{
    struct sizes sizes = {.ttl = weir_pb_number_size(action->ttl_s)};
    sizes.action = weir_pb_bytes_size(action->id.size);
    if (action->kind == WEIR_GRPC_QUOTA_ABANDON) {
        sizes.action += weir_pb_bytes_size(0);
        return sizes;
    }
    if (action->kind == WEIR_GRPC_QUOTA_TOKENS) {
        sizes.per_fill = weir_pb_number_size(action->tokens_per_fill);
        sizes.interval = weir_pb_number_size(WEIR_GRPC_QUOTA_FILL_S) + weir_pb_number_size(1);
        sizes.tokens = weir_pb_number_size(action->max_tokens) +
                       weir_pb_bytes_size(sizes.per_fill) + weir_pb_bytes_size(sizes.interval);
        sizes.strategy = weir_pb_bytes_size(sizes.tokens);
    } else {
        sizes.strategy = 2; /* of a oneof also 0 is written */
    }
    sizes.assign = weir_pb_bytes_size(sizes.ttl) + weir_pb_bytes_size(sizes.strategy);
    sizes.action += weir_pb_bytes_size(sizes.assign);
    return sizes;
}

static char *put_tokens(char *out, const struct weir_grpc_quota_action *action,
                        const struct sizes *sizes)
{
    out = weir_pb_put_head(out, STRATEGY_TOKENS, sizes->tokens);
    out = weir_pb_put_number(out, TOKENS_MAX, action->max_tokens);
    out = weir_pb_put_head(out, TOKENS_PER_FILL, sizes->per_fill);
    out = weir_pb_put_number(out, 1, action->tokens_per_fill);
    out = weir_pb_put_head(out, TOKENS_INTERVAL, sizes->interval);
    out = weir_pb_put_number(out, 1, WEIR_GRPC_QUOTA_FILL_S);
    return weir_pb_put_number(out, 2, 1); /* the nanosecond: see quota.h */
}

static char *put_action(char *out, const struct weir_grpc_quota_action *action)
{
    struct sizes sizes = sizes_of(action);
    out = weir_pb_put_head(out, RESPONSE_ACTION, sizes.action);
    out = weir_pb_put_bytes(out, ACTION_ID, action->id);
    if (action->kind == WEIR_GRPC_QUOTA_ABANDON)
        return weir_pb_put_head(out, ACTION_ABANDON, 0);
    out = weir_pb_put_head(out, ACTION_ASSIGN, sizes.assign);
    out = weir_pb_put_head(out, ASSIGN_TTL, sizes.ttl);
    out = weir_pb_put_number(out, 1, action->ttl_s);
    out = weir_pb_put_head(out, ASSIGN_STRATEGY, sizes.strategy);
    if (action->kind == WEIR_GRPC_QUOTA_TOKENS)
        return put_tokens(out, action, &sizes);
    *out++ = (char)(STRATEGY_BLANKET << 3 | WEIR_PB_VARINT);
    *out++ =
        (char)(action->kind == WEIR_GRPC_QUOTA_DENY_ALL ? BLANKET_DENY_ALL : BLANKET_ALLOW_ALL);
    return out;
}

int weir_grpc_quota_write(const struct weir_grpc_quota_action *actions, uint32_t count,
                          struct weir_grpc_arena *arena, struct weir_bytes *out)
{
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += weir_pb_bytes_size(sizes_of(&actions[i]).action);
    char *start = weir_grpc_arena_take(arena, WEIR_GRPC_PREFIX_BYTES + size), *at = start;
    if (!start)
        return WEIR_ERR_TOO_LARGE;
    weir_grpc_prefix_write(at, (uint32_t)size);
    at += WEIR_GRPC_PREFIX_BYTES;
    for (uint32_t i = 0; i < count; i++)
        at = put_action(at, &actions[i]);
    *out = (struct weir_bytes){start, (size_t)(at - start)};
    return 0;
}
