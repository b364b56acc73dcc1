/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC messages: any bytes are read or refused within the arena's bound, and what is read lies in
 * memory; what is read by hand, protobuf-c reads alike. The first byte says which message. */
#include "fuzz.h"

#include "ratelimit_oracle.h"
#include "wire/grpc/authz.h"
#include "wire/grpc/grpc.h"
#include "wire/grpc/health.h"
#include "wire/grpc/limiter.h"
#include "wire/grpc/quota.h"
#include "wire/grpc/ratelimit.h"
#include "wire/grpc/reflection.h"

#define ARENA_MAX (1u << 20)
#define BLOCKS_MAX 1024

struct blocks {
    char *list[BLOCKS_MAX];
    size_t count, bytes;
};

/* Blocks of exactly the size that was asked for, so that a sanitizer sees any step beyond it. */
static char *blocks_grow(void *owner, size_t size, size_t *room)
{
    struct blocks *blocks = owner;
    REQUIRE(blocks->bytes + size <= ARENA_MAX);
    if (blocks->count == BLOCKS_MAX)
        return NULL;
    blocks->bytes += size;
    *room = size;
    return blocks->list[blocks->count++] = malloc(size);
}

static unsigned sum;

static void touch(struct weir_bytes text)
{
    REQUIRE(text.data != NULL);
    for (size_t i = 0; i < text.size; i++)
        sum += (unsigned char)text.data[i];
}

static void touch_pairs(const struct weir_grpc_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        touch(pairs->list[i].name);
        touch(pairs->list[i].value);
    }
}

static void read_ratelimit(struct weir_bytes message, struct weir_grpc_arena *arena)
{
    struct weir_envoy_request request;
    int err = weir_grpc_ratelimit_read(&request, message, arena);
    REQUIRE(err != WEIR_ERR_SYNTAX || oracle_refuses(message));
    if (err != 0)
        return;
    REQUIRE(oracle_reads(message, &request));
    touch(request.domain);
    for (uint32_t i = 0; i < request.descriptor_count; i++) {
        for (uint32_t j = 0; j < request.descriptors[i].entry_count; j++) {
            touch(request.descriptors[i].entries[j].key);
            touch(request.descriptors[i].entries[j].value);
        }
    }
}

static void read_authz(struct weir_bytes message, struct weir_grpc_arena *arena)
{
    struct weir_grpc_authz_request request;
    struct weir_bytes out;
    if (weir_grpc_authz_read(&request, message, arena) != 0)
        return;
    touch_pairs(&request.headers);
    touch_pairs(&request.extensions);
    struct weir_grpc_authz_response response = {.allowed = request.headers.count & 1,
                                                .headers = request.headers,
                                                .response_headers = request.extensions};
    if (weir_grpc_authz_write(&response, arena, &out) == 0)
        touch(out);
}

static void touch_given(struct weir_bytes text)
{
    if (text.data)
        touch(text);
}

static void read_limiter(struct weir_bytes message, struct weir_grpc_arena *arena)
{
    static struct weir_given_limits given;
    static struct weir_answer answer;
    struct weir_reason reason;
    struct weir_bytes out;
    int err = weir_grpc_limiter_read(&given, message, arena, &reason);
    REQUIRE(err == 0 || err == WEIR_ERR_SYNTAX || err == WEIR_ERR_TOO_LARGE);
    if (err != 0)
        return;
    REQUIRE(given.count >= 1 && given.count <= WEIR_CHECKS_MAX);
    answer = (struct weir_answer){.denied_by = -1, .count = given.count};
    for (uint16_t i = 0; i < given.count; i++) {
        const struct weir_given_limit *limit = &given.limits[i];
        REQUIRE(limit->key.size > 0 && (limit->given & 1u << WEIR_LIMIT_KEY) != 0);
        touch(limit->key);
        touch_given(limit->name);
        touch_given(limit->rate);
        touch_given(limit->algorithm);
        touch_given(limit->life);
        answer.limits[i].name = limit->key;
        answer.limits[i].report.limit = limit->limit;
        answer.limits[i].report.retry_after_ns = limit->cost;
    }
    if (weir_grpc_limiter_write(&answer, arena, &out) == 0)
        touch(out);
}

/* What is read, abandoned and assigned, is written. */
static void read_quota(struct weir_bytes message, struct weir_grpc_arena *arena)
{
    struct weir_grpc_quota_reports reports;
    struct weir_bytes out;
    if (weir_grpc_quota_read(&reports, message, arena) != 0)
        return;
    touch(reports.domain);
    for (uint32_t i = 0; i < reports.usage_count; i++) {
        const struct weir_grpc_quota_usage *usage = &reports.usages[i];
        touch(usage->id);
        REQUIRE(usage->entry_count >= 1 && usage->entry_count <= WEIR_GRPC_QUOTA_ENTRIES_MAX);
        REQUIRE(usage->id.size <= WEIR_GRPC_QUOTA_ID_MAX && usage->elapsed_s <= INT64_MAX);
        for (uint32_t j = 0; j < usage->entry_count; j++) {
            touch(usage->entries[j].key);
            touch(usage->entries[j].value);
        }
        struct weir_grpc_quota_action action = {.id = usage->id,
                                                .kind =
                                                    (enum weir_grpc_quota_kind)(usage->denied % 4),
                                                .max_tokens = (uint32_t)usage->allowed | 1,
                                                .tokens_per_fill = (uint32_t)usage->denied | 1,
                                                .ttl_s = 5};
        if (weir_grpc_quota_write(&action, 1, arena, &out) == 0)
            touch(out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *copy = fuzz_copy(data + 1, size - 1);
    struct weir_bytes message = {copy, size - 1}, out;
    struct blocks blocks = {.count = 0};
    struct weir_grpc_arena arena;
    weir_grpc_arena_init(&arena, ARENA_MAX, blocks_grow, &blocks);
    switch (data[0] % 6) {
    case 0:
        read_ratelimit(message, &arena);
        break;
    case 1:
        read_authz(message, &arena);
        break;
    case 2:
        if (weir_grpc_health_read(&out, message, &arena) == 0)
            touch(out);
        break;
    case 3:
        if (weir_grpc_reflection_answer(message, &arena, &out) == 0)
            touch(out);
        break;
    case 5:
        read_quota(message, &arena);
        break;
    default:
        read_limiter(message, &arena);
    }
    while (blocks.count)
        free(blocks.list[--blocks.count]);
    free(copy);
    return 0;
}
