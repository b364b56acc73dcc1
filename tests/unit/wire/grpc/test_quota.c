/* SPDX-License-Identifier: Apache-2.0 */
/* wire/grpc/quota: what is read and written is what protobuf-c writes and reads. */
#include "../unit_wire.h"
#include "test.h"

#include <stdlib.h>

#include "core/bytes.h"
#include "envoy_service_rate_limit_quota_v3.pb-c.h"
#include "wire/grpc/grpc.h"
#include "wire/grpc/quota.h"

typedef Envoy__Service__RateLimitQuota__V3__BucketId pb_id;
typedef Envoy__Service__RateLimitQuota__V3__BytesPair pb_entry;
typedef Envoy__Service__RateLimitQuota__V3__RateLimitQuotaUsageReports pb_reports;
typedef Envoy__Service__RateLimitQuota__V3__RateLimitQuotaUsageReports__BucketQuotaUsage pb_usage;
typedef Envoy__Service__RateLimitQuota__V3__RateLimitQuotaResponse pb_response;
typedef Envoy__Service__RateLimitQuota__V3__RateLimitQuotaResponse__BucketAction pb_action;

#define ROOM 65536

static char memory[ROOM];

static char *room_give(void *owner, size_t size, size_t *room)
{
    bool *given = owner;
    if (*given || size > ROOM)
        return NULL;
    *given = true;
    *room = ROOM;
    return memory;
}

static int read_reports(struct weir_grpc_quota_reports *reports, const void *data, size_t size)
{
    static bool given;
    struct weir_grpc_arena arena;
    given = false;
    weir_grpc_arena_init(&arena, ROOM, room_give, &given);
    return weir_grpc_quota_read(reports, (struct weir_bytes){data, size}, &arena);
}

static ProtobufCBinaryData text(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

/* --- Reports ---------------------------------------------------------------------------------- */

TEST("reports have a domain and the use of buckets")
{
    pb_entry name = ENVOY__SERVICE__RATE_LIMIT_QUOTA__V3__BYTES_PAIR__INIT;
    pb_entry env = name, *entries[] = {&name, &env};
    pb_id id = ENVOY__SERVICE__RATE_LIMIT_QUOTA__V3__BUCKET_ID__INIT;
    pb_usage usage =
        ENVOY__SERVICE__RATE_LIMIT_QUOTA__V3__RATE_LIMIT_QUOTA_USAGE_REPORTS__BUCKET_QUOTA_USAGE__INIT;
    pb_usage idle = usage, *usages[] = {&usage, &idle};
    pb_reports message = ENVOY__SERVICE__RATE_LIMIT_QUOTA__V3__RATE_LIMIT_QUOTA_USAGE_REPORTS__INIT;
    Google__Protobuf__Duration elapsed = GOOGLE__PROTOBUF__DURATION__INIT;
    struct weir_grpc_quota_reports reports;
    uint8_t packed[512], packed_id[128];
    name.key = text("name"), name.value = text("web");
    env.key = text("env"), env.value = text("");
    id.n_bucket = 2, id.bucket = entries;
    elapsed.seconds = 5;
    usage.bucket_id = idle.bucket_id = &id;
    usage.time_elapsed = &elapsed;
    usage.num_requests_allowed = UINT64_MAX, usage.num_requests_denied = 3;
    message.domain = text("shop");
    message.n_bucket_quota_usages = 2, message.bucket_quota_usages = usages;
    size_t size = protobuf_c_message_pack(&message.base, packed);
    size_t id_size = protobuf_c_message_pack(&id.base, packed_id);

    assert_int_equal(read_reports(&reports, packed, size), 0);
    assert_true(weir_bytes_are(reports.domain, "shop"));
    assert_int_equal(reports.usage_count, 2);
    assert_true(reports.usages[0].allowed == UINT64_MAX);
    assert_int_equal(reports.usages[0].denied, 3);
    assert_int_equal(reports.usages[1].allowed, 0);
    assert_true(reports.usages[0].elapsed_s == 5 && reports.usages[1].elapsed_s == 0);
    for (int i = 0; i < 2; i++) {
        const struct weir_grpc_quota_usage *read = &reports.usages[i];
        assert_int_equal(read->id.size, id_size);
        assert_memory_equal(read->id.data, packed_id, id_size);
        assert_int_equal(read->entry_count, 2);
        assert_true(weir_bytes_are(read->entries[0].key, "name"));
        assert_true(weir_bytes_are(read->entries[0].value, "web"));
        assert_true(weir_bytes_are(read->entries[1].key, "env"));
        assert_int_equal(read->entries[1].value.size, 0);
    }
    for (size_t cut = 0; cut < size; cut++) /* what is cut off is refused, or has less */
        if (read_reports(&reports, packed, cut) == 0)
            assert_true(reports.usage_count < 2);
}

TEST("reports that are malformed are refused")
{
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
        {"\x12\x02\x18\x01", 4},                                   /* a bucket without an id */
        {"\x12\x02\x0a\x00", 4},                                   /* an id without an entry */
        {"\x12\x06\x0a\x04\x0a\x02\x12\x00", 8},                   /* an entry without a key */
        {"\x12\x09\x0a\x07\x0a\x05\x0a\x01\xff\x12\x00", 11},      /* a key that is no UTF-8 */
        {"\x0a\x01\xff", 3},                                       /* a domain that is no UTF-8 */
        {"\x12\x05\x0a", 3},                                       /* cut off */
        {"\x12\x0b\x0a\x05\x0a\x03\x0a\x01k\x12\x02\x08\x80", 13}, /* a time cut off */
    };
    struct weir_grpc_quota_reports reports;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(read_reports(&reports, bad[i].bytes, bad[i].size), WEIR_ERR_SYNTAX);
}

/* A message of `usages` buckets, whose ids have `entries` entries and one value of `size` bytes. */
static int read_many(unsigned usages, unsigned entries, unsigned size)
{
    static uint8_t message[1 << 20], id[1 << 16];
    struct weir_grpc_quota_reports reports;
    size_t id_size = 0, used = 0;
    for (unsigned i = 0; i < entries; i++) {
        unsigned value = i ? 0 : size;
        uint8_t head[] = {
            0x0a, (uint8_t)((value + 6) & 127) | 128, (uint8_t)((value + 6) >> 7), 0x0a, 1, 'k',
            0x12, (uint8_t)(value & 127) | 128,       (uint8_t)(value >> 7)};
        memcpy(id + id_size, head, sizeof head);
        memset(id + id_size + sizeof head, 'v', value);
        id_size += sizeof head + value;
    }
    for (unsigned i = 0; i < usages; i++) {
        uint8_t head[] = {0x12, (uint8_t)((id_size + 3) & 127) | 128, (uint8_t)((id_size + 3) >> 7),
                          0x0a, (uint8_t)(id_size & 127) | 128,       (uint8_t)(id_size >> 7)};
        assert_true(used + sizeof head + id_size <= sizeof message);
        memcpy(message + used, head, sizeof head);
        memcpy(message + used + sizeof head, id, id_size);
        used += sizeof head + id_size;
    }
    return read_reports(&reports, message, used);
}

TEST("reports beyond the bounds are refused")
{
    assert_int_equal(read_many(1, WEIR_GRPC_QUOTA_ENTRIES_MAX, 1), 0);
    assert_int_equal(read_many(1, WEIR_GRPC_QUOTA_ENTRIES_MAX + 1, 1), WEIR_ERR_RANGE);
    assert_int_equal(read_many(1, 1, WEIR_GRPC_QUOTA_ID_MAX - 9), 0);
    assert_int_equal(read_many(1, 1, WEIR_GRPC_QUOTA_ID_MAX - 8), WEIR_ERR_RANGE);
    assert_int_equal(read_many(WEIR_GRPC_QUOTA_USAGES_MAX + 1, 1, 1), WEIR_ERR_RANGE);
    assert_int_equal(read_many(WEIR_GRPC_QUOTA_USAGES_MAX, 1, 1),
                     WEIR_ERR_TOO_LARGE); /* the arena */
}

/* --- Responses -------------------------------------------------------------------------------- */

static const char id_bytes[] = "\x0a\x08\x0a\x01n\x12\x03web";
static const struct weir_bytes web = {id_bytes, sizeof id_bytes - 1};

/* Reads back what is written of actions[0..count); the caller frees it. */
static pb_response *written(const struct weir_grpc_quota_action *actions, uint32_t count)
{
    static bool given;
    struct weir_grpc_arena arena;
    struct weir_grpc_prefix prefix;
    struct weir_bytes out;
    given = false;
    weir_grpc_arena_init(&arena, ROOM, room_give, &given);
    assert_int_equal(weir_grpc_quota_write(actions, count, &arena, &out), 0);
    assert_int_equal(weir_grpc_prefix_read(&prefix, out.data, out.size), WEIR_GRPC_PREFIX_BYTES);
    assert_int_equal(prefix.size, out.size - WEIR_GRPC_PREFIX_BYTES);
    pb_response *response = envoy__service__rate_limit_quota__v3__rate_limit_quota_response__unpack(
        NULL, prefix.size, (const uint8_t *)out.data + WEIR_GRPC_PREFIX_BYTES);
    assert_non_null(response);
    assert_int_equal(response->n_bucket_action, count);
    for (uint32_t i = 0; i < count; i++) {
        const pb_id *id = response->bucket_action[i]->bucket_id;
        assert_int_equal(id->n_bucket, 1);
        assert_memory_equal(id->bucket[0]->value.data, "web", 3);
    }
    return response;
}

TEST("a token bucket has its interval and its life")
{
    static const uint32_t values[] = {1, 127, 128, 16384, UINT32_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct weir_grpc_quota_action action = {.id = web,
                                                .kind = WEIR_GRPC_QUOTA_TOKENS,
                                                .max_tokens = values[i],
                                                .tokens_per_fill = values[4 - i],
                                                .ttl_s = 5};
        pb_response *response = written(&action, 1);
        const pb_action *read = response->bucket_action[0];
        assert_int_equal(read->quota_assignment_action->assignment_time_to_live->seconds, 5);
        assert_int_equal(read->quota_assignment_action->assignment_time_to_live->nanos, 0);
        const Envoy__Service__RateLimitQuota__V3__TokenBucket *tokens =
            read->quota_assignment_action->rate_limit_strategy->token_bucket;
        assert_true(tokens->max_tokens == values[i]);
        assert_true(tokens->tokens_per_fill->value == values[4 - i]);
        assert_int_equal(tokens->fill_interval->seconds, WEIR_GRPC_QUOTA_FILL_S);
        assert_int_equal(tokens->fill_interval->nanos, 1);
        envoy__service__rate_limit_quota__v3__rate_limit_quota_response__free_unpacked(response,
                                                                                       NULL);
    }
}

TEST("buckets are denied and abandoned")
{
    const struct weir_grpc_quota_action actions[] = {
        {.id = web, .kind = WEIR_GRPC_QUOTA_ABANDON},
        {.id = web, .kind = WEIR_GRPC_QUOTA_DENY_ALL, .ttl_s = 300},
        {.id = web, .kind = WEIR_GRPC_QUOTA_ALLOW_ALL, .ttl_s = 5}};
    pb_response *response = written(actions, 3);
    const pb_action *abandon = response->bucket_action[0], *deny = response->bucket_action[1];
    assert_int_equal(abandon->bucket_action_case, 3);
    assert_int_equal(deny->bucket_action_case, 2);
    assert_int_equal(deny->quota_assignment_action->assignment_time_to_live->seconds, 300);
    assert_int_equal(
        deny->quota_assignment_action->rate_limit_strategy->blanket_rule,
        ENVOY__SERVICE__RATE_LIMIT_QUOTA__V3__RATE_LIMIT_STRATEGY__BLANKET_RULE__DENY_ALL);
    assert_int_equal(
        deny->quota_assignment_action->rate_limit_strategy->strategy_case,
        ENVOY__SERVICE__RATE_LIMIT_QUOTA__V3__RATE_LIMIT_STRATEGY__STRATEGY_BLANKET_RULE);
    const pb_action *allow = response->bucket_action[2];
    assert_int_equal(
        allow->quota_assignment_action->rate_limit_strategy->blanket_rule,
        ENVOY__SERVICE__RATE_LIMIT_QUOTA__V3__RATE_LIMIT_STRATEGY__BLANKET_RULE__ALLOW_ALL);
    assert_int_equal(
        allow->quota_assignment_action->rate_limit_strategy->strategy_case,
        ENVOY__SERVICE__RATE_LIMIT_QUOTA__V3__RATE_LIMIT_STRATEGY__STRATEGY_BLANKET_RULE);
    envoy__service__rate_limit_quota__v3__rate_limit_quota_response__free_unpacked(response, NULL);
}

TEST("the entries of an id are read again")
{
    struct weir_envoy_entry entries[WEIR_GRPC_QUOTA_ENTRIES_MAX];
    assert_int_equal(weir_grpc_quota_entries(web, entries), 1);
    assert_true(weir_bytes_are(entries[0].key, "n"));
    assert_true(weir_bytes_are(entries[0].value, "web"));
}

TEST("a response without room is refused")
{
    struct weir_grpc_quota_action action = {.id = web, .kind = WEIR_GRPC_QUOTA_ABANDON};
    struct weir_grpc_arena arena;
    struct weir_bytes out;
    bool given = true;
    weir_grpc_arena_init(&arena, ROOM, room_give, &given);
    assert_int_equal(weir_grpc_quota_write(&action, 1, &arena, &out), WEIR_ERR_TOO_LARGE);
}

RUN_TESTS()
