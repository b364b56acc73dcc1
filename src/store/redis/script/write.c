/* SPDX-License-Identifier: Apache-2.0 */
/* see script.h: calls
 *
 *   EVALSHA <sha> <keys> <key>... [<reservation>] <packed check>... [<"">] [<header> [<time>]]
 */
#include "store/redis/script/script.h"

#include <string.h>

#include "core/bucket.h"
#include "core/reason.h"
#include "store/redis/script/key.h"
#include "store/redis/script/pack.h"
#include "store/redis/script/texts.h"
#include "wire/resp/write.h"

#define PRODUCT_UNIT_NS 1000 /* all times of scripts are whole microseconds */

static const struct weir_check *check_at(const struct redis_batch *batch, uint16_t i)
{
    return &batch->decision->checks[batch->checks[i]];
}

static bool has_reservation(const struct redis_batch *batch)
{
    return batch->action == REDIS_RESERVE || batch->action == REDIS_ROLL_BACK;
}

/* Whether a check is one more rate of the shadow limit before it: see weir_decision_limit_end. */
static bool is_more(const struct redis_batch *batch, uint16_t i)
{
    const struct weir_check *check = check_at(batch, i);

    return i > 0 && batch->checks[i - 1] + 1 == batch->checks[i] &&
           check->flags & WEIR_CHECK_SHADOW && check->rule != UINT32_MAX &&
           check->rule == check_at(batch, i - 1)->rule;
}

static bool same_key(const struct weir_check *a, const struct weir_check *b)
{
    const char *name = a->limit->name, *other = b->limit->name;

    return a->key.size == b->key.size && memcmp(a->key.data, b->key.data, a->key.size) == 0 &&
           (name == other || (name != NULL && other != NULL && strcmp(name, other) == 0));
}

/* Checks that are simply to be decided, each on a key of its own. */
static bool is_plain(const struct redis_batch *batch)
{
    if ((batch->action != REDIS_DECIDE && batch->action != REDIS_RESERVE) ||
        batch->decision->op != WEIR_OP_DECIDE)
        return false;
    for (uint16_t i = 0; i < batch->count; i++) {
        const struct weir_check *check = check_at(batch, i);

        if (check->flags & (WEIR_CHECK_CHARGE_ON_DENY | WEIR_CHECK_ONCE | WEIR_CHECK_COUNTER) ||
            is_more(batch, i))
            return false;
        for (uint16_t j = 0; j < i; j++)
            if (same_key(check_at(batch, j), check))
                return false;
    }
    return true;
}

/* One of them: then the script is its algorithm's. */
static bool is_single(const struct redis_batch *batch)
{
    return batch->count == 1 && batch->action == REDIS_DECIDE && is_plain(batch);
}

static const struct redis_script *single_script(const struct weir_limit *limit)
{
    switch (limit->spec.algorithm) {
    case WEIR_FIXED_WINDOW:
        return &redis_script_fixed_window;
    case WEIR_SLIDING_WINDOW:
        return limit->spec.segments > 1 ? &redis_script_segments : &redis_script_sliding_window;
    case WEIR_SLIDING_LOG:
        return &redis_script_sliding_log;
    case WEIR_CONCURRENCY:
        return &redis_script_concurrency;
    case WEIR_QUOTA:
        return &redis_script_quota;
    default:
        return &redis_script_bucket;
    }
}

static const struct redis_script *script_for(const struct redis_batch *batch)
{
    if (batch->decision->op >= WEIR_OP_RELEASE)
        return &redis_script_operate;
    if (check_at(batch, 0)->flags & WEIR_CHECK_COUNTER)
        return &redis_script_counter;
    return is_single(batch) ? single_script(check_at(batch, 0)->limit) : &redis_script_mixture;
}

/* Whether a check is known by tag and digest, from a lease's token. */
static bool is_token(const struct redis_batch *batch, const struct weir_check *check)
{
    return batch->decision->op == WEIR_OP_RELEASE && check->limit == NULL;
}

static size_t key_size(const struct redis_batch *batch, const struct weir_check *check)
{
    if (is_token(batch, check))
        return REDIS_KEY_DIGEST_SIZE(strlen(batch->prefix));
    return redis_key_size(batch->prefix, check);
}

static size_t packed_size(const struct weir_check *check)
{
    bool quota = check->limit != NULL && check->limit->spec.algorithm == WEIR_QUOTA;

    return quota ? REDIS_PACKED_MAX : REDIS_PACKED_SHORT_MAX;
}

size_t redis_script_size(const struct redis_batch *batch)
{
    size_t size = WEIR_RESP_HEAD_MAX + WEIR_RESP_BULK_MAX(sizeof "EVALSHA" - 1) +
                  WEIR_RESP_BULK_MAX(REDIS_SHA_HEX) + WEIR_RESP_BULK_MAX(WEIR_DECIMAL_MAX) +
                  WEIR_RESP_BULK_MAX(REDIS_HEADER_SIZE) + WEIR_RESP_BULK_MAX(WEIR_DECIMAL_MAX);

    if (has_reservation(batch))
        size += WEIR_RESP_BULK_MAX(REDIS_KEY_RESERVATION_MAX(strlen(batch->prefix))) +
                WEIR_RESP_BULK_MAX(0);
    for (uint16_t i = 0; i < batch->count; i++)
        size += WEIR_RESP_BULK_MAX(key_size(batch, check_at(batch, i))) +
                WEIR_RESP_BULK_MAX(packed_size(check_at(batch, i)));
    return size;
}

static char *write_line_end(char *out)
{
    return WEIR_LITERAL_WRITE(out, "\r\n");
}

static char *write_key(char *out, const struct redis_batch *batch, const struct weir_check *check)
{
    out = weir_resp_write_head(out, '$', key_size(batch, check));
    if (is_token(batch, check)) {
        unsigned char digest[REDIS_DIGEST] = {0};

        memcpy(digest, check->key.data,
               check->key.size < REDIS_DIGEST ? check->key.size : REDIS_DIGEST);
        out = redis_key_write_digest(out, batch->prefix, check->tag, digest);
    } else {
        out = redis_key_write(out, batch->prefix, check);
    }
    return write_line_end(out);
}

static char *write_reservation(char *out, const struct redis_batch *batch)
{
    out = weir_resp_write_head(out, '$', REDIS_KEY_RESERVATION_MAX(strlen(batch->prefix)));
    out = redis_key_write_reservation(out, batch->prefix, redis_key_tag(check_at(batch, 0)),
                                      batch->id);
    return write_line_end(out);
}

static char *write_time(char *out, uint64_t now_us)
{
    char digits[WEIR_DECIMAL_MAX] = {0};

    return weir_resp_write_bulk(out, digits, (size_t)(weir_decimal_write(digits, now_us) - digits));
}

static char *pack_argument(char *out, const struct redis_batch *batch, uint16_t i)
{
    const struct weir_lease *lease = &batch->decision->lease;
    const struct weir_check *check = check_at(batch, i);

    if (batch->decision->op >= WEIR_OP_RELEASE)
        return redis_pack_operation(out, lease);

    char *end = redis_pack_check(out, check, lease, batch->now_ns);

    if (is_more(batch, i))
        out[1] |= REDIS_FLAG_MORE;
    if (!redis_has_floor(batch->decision, check))
        return end;
    out[1] = (char)(out[1] | REDIS_FLAG_FLOOR);
    return redis_pack_floor(end, check);
}

static char *write_arguments(char *out, const struct redis_batch *batch, bool single)
{
    char packed[REDIS_PACKED_MAX];

    for (uint16_t i = 0; i < batch->count; i++) {
        char *end = pack_argument(packed, batch, i);

        out = weir_resp_write_bulk(out, packed, (size_t)(end - packed));
    }
    if (has_reservation(batch))
        out = weir_resp_write_bulk(out, NULL, 0);
    if (!single) {
        char *end = redis_pack_header(packed, batch, is_plain(batch));

        out = weir_resp_write_bulk(out, packed, (size_t)(end - packed));
    } else if (batch->test_now_us != 0) {
        out = weir_resp_write_bulk(out, NULL, 0);
    }
    return batch->test_now_us != 0 ? write_time(out, batch->test_now_us) : out;
}

size_t redis_script_write(const struct redis_batch *batch, char *out,
                          const struct redis_script **script, uint16_t *slot)
{
    const char *start = out;
    bool single = is_single(batch);
    uint16_t keys = (uint16_t)(batch->count + has_reservation(batch));
    uint16_t more = batch->test_now_us != 0 ? 2 : single ? 0 : 1;

    *script = script_for(batch);
    if (slot != NULL)
        *slot = redis_check_cluster_slot(check_at(batch, 0));
    out = weir_resp_write_array(out, 3 + 2 * (uint64_t)keys + more);
    out = WEIR_RESP_WRITE_WORD(out, "EVALSHA");
    out = weir_resp_write_bulk(out, (*script)->sha, REDIS_SHA_HEX);
    out = write_time(out, keys);
    for (uint16_t i = 0; i < batch->count; i++)
        out = write_key(out, batch, check_at(batch, i));
    if (has_reservation(batch))
        out = write_reservation(out, batch);
    out = write_arguments(out, batch, single);
    return (size_t)(out - start);
}

static bool has_whole_bounds(const struct weir_limit_spec *spec)
{
    for (uint32_t i = 0; i < spec->bound_count; i++)
        if (spec->bounds[i] % PRODUCT_UNIT_NS != 0)
            return false;
    return true;
}

int redis_script_accepts(const struct weir_limit *limit, struct weir_reason *reason)
{
    const struct weir_limit_spec *spec = &limit->spec;
    uint64_t part_ns = spec->segments > 1 ? limit->segment_ns : spec->window_ns;

    if (spec->algorithm == WEIR_QUOTA && !has_whole_bounds(spec)) {
        reason_text(reason, "a period begins between two microseconds; in Redis none may");
        return WEIR_ERR_RANGE;
    }
    if (part_ns % PRODUCT_UNIT_NS != 0) {
        reason_text(reason, spec->segments > 1 ? "a segment is " : "window in ns is ");
        reason_number(reason, part_ns);
        reason_text(reason, " ns; in Redis it must be whole microseconds");
        return WEIR_ERR_RANGE;
    }
    if (spec->algorithm == WEIR_LEAKY_QUEUE &&
        (limit->depth_ns > WEIR_DEPTH_MAX_NS ||
         (limit->depth_ns == WEIR_DEPTH_MAX_NS && limit->depth_rem != 0))) {
        reason_text(reason, "burst is ");
        reason_number(reason, spec->burst);
        reason_text(reason, "; in Redis a queue and one more may take ");
        reason_number(reason, WEIR_DEPTH_MAX_NS);
        reason_text(reason, " ns");
        return WEIR_ERR_RANGE;
    }
    return 0;
}
