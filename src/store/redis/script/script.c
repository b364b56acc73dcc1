/* SPDX-License-Identifier: Apache-2.0 */
/* see script.h
 *
 *   EVALSHA <sha> <keys> <key>... [<reservation>] <packed check>... [<"">] [<header> [<time>]]
 */
#include "store/redis/script/script.h"

#include <string.h>

#include "core/bucket.h"
#include "core/scale.h"
#include "core/text/reason.h"
#include "store/redis/script/form.h"
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
           (name == other || (name && other && strcmp(name, other) == 0));
}

/* A scale of a bucket is in its packed cost and depth, that of others in the general case. */
static bool is_plain_scale(const struct weir_check *check)
{
    return !scale_is_set(check) || (bucket_is(check->limit->spec.algorithm) && check->cost > 0);
}

/* Checks that are simply to be decided, each on a key of its own. */
static bool is_plain(const struct redis_batch *batch)
{
    if ((batch->action != REDIS_DECIDE && batch->action != REDIS_RESERVE) ||
        batch->decision->op != WEIR_OP_DECIDE)
        return false;
    for (uint16_t i = 0; i < batch->count; i++) {
        const struct weir_check *check = check_at(batch, i);

        if (check->flags &
                (WEIR_CHECK_CHARGE_ON_DENY | WEIR_CHECK_IDEMPOTENCY | WEIR_CHECK_COUNTER) ||
            is_more(batch, i) || !is_plain_scale(check))
            return false;
        for (uint16_t j = 0; j < i; j++)
            if (same_key(check_at(batch, j), check))
                return false;
    }
    return true;
}

/* One of them: then the script is its algorithm's, if it has one. */
static bool is_single(const struct redis_batch *batch)
{
    return batch->count == 1 && batch->action == REDIS_DECIDE && is_plain(batch) &&
           redis_form_of(check_at(batch, 0)->limit)->single;
}

static const struct redis_script *script_for(const struct redis_batch *batch)
{
    if (batch->decision->op >= WEIR_OP_RELEASE)
        return &redis_script_operate;
    if (check_at(batch, 0)->flags & WEIR_CHECK_COUNTER)
        return &redis_script_counter;
    return is_single(batch) ? redis_form_of(check_at(batch, 0)->limit)->single
                            : &redis_script_mixture;
}

/* Whether a check is known by tag and digest, from a lease's token. */
static bool is_token(const struct redis_batch *batch, const struct weir_check *check)
{
    return batch->decision->op == WEIR_OP_RELEASE && !check->limit;
}

static size_t key_size(const struct redis_batch *batch, const struct weir_check *check)
{
    if (is_token(batch, check))
        return REDIS_KEY_DIGEST_SIZE(strlen(batch->prefix));
    return redis_key_size(batch->prefix, check);
}

static size_t packed_size(const struct weir_check *check)
{
    return check->limit ? redis_form_of(check->limit)->size + REDIS_PACKED_MORE
                        : REDIS_PACKED_SHORT_MAX;
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
    if (redis_has_floor(batch->decision, check)) {
        out[1] = (char)(out[1] | REDIS_FLAG_FLOOR);
        end = redis_pack_floor(end, check);
    }
    if (!scale_is_set(check))
        return end;
    out[1] = (char)(out[1] | REDIS_FLAG_SCALE);
    return redis_pack_scale(end, check);
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
    if (slot)
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

int redis_script_accepts(const struct weir_limit *limit, struct weir_reason *reason)
{
    const struct weir_limit_spec *spec = &limit->spec;
    uint64_t part_ns = spec->segments > 1 ? limit->segment_ns : spec->window_ns;

    if (part_ns % PRODUCT_UNIT_NS != 0) {
        reason_text(reason, spec->segments > 1 ? "a segment is " : "window in ns is ");
        reason_number(reason, part_ns);
        reason_text(reason, " ns; in Redis it must be whole microseconds");
        return WEIR_ERR_RANGE;
    }
    return redis_form_accepts(limit, reason);
}

/* --- Replies ----------------------------------------------------------------------------------
 *
 * A part is read with the knowledge of the call, and refused unless the script can have made it. A
 * server that lies can at worst make a number wrong.
 */

enum { STATUS_DECIDED, STATUS_REPEATED, STATUS_GONE };

/* Of an operation on a state: whether there was one, and when it will be fresh. */
static bool read_operation(struct redis_part *part, struct weir_outcome *outcome)
{
    uint64_t us, ns, now_ns;

    if (part->is_state || !redis_part_time(part, &part->now_us) ||
        !redis_part_number(part, REDIS_TAT_MAX_US - REDIS_EPOCH_US, &us) ||
        !redis_part_number(part, 1000, &ns))
        return false;
    now_ns = part->now_us * 1000;
    us += REDIS_EPOCH_US;
    outcome->reported = true;
    outcome->report = (struct weir_report){0, 0, 0, 0};
    if (us * 1000 + ns > now_ns)
        outcome->report.reset_after_ns = us * 1000 + ns - now_ns;
    return true;
}

/* What was charged of a debit with a floor of debt; a cost that is no double was sent as less. */
static bool read_kept(struct redis_part *part, struct weir_check *check)
{
    uint64_t kept;

    if (!redis_part_number(part, check->cost, &kept))
        return false;
    if (kept < REDIS_NUMBER_MAX)
        check->cost = kept;
    return true;
}

/* One check's part of the reply. */
static bool read_part(const struct weir_decision *decision, struct weir_check *check,
                      const struct weir_resp_node *node, struct weir_outcome *outcome,
                      uint64_t *now_us)
{
    struct redis_part part;
    bool good;

    if (node->type != WEIR_RESP_BULK || !redis_part_begin(&part, node->text))
        return false;
    *outcome = (struct weir_outcome){.delay_ns = 0};
    if (decision->op >= WEIR_OP_RELEASE)
        good = read_operation(&part, outcome);
    else
        good = redis_form_of(check->limit)->read(&part, check, outcome);
    if (decision->op >= WEIR_OP_DEBIT)
        outcome->delay_ns = 0;
    if (good && redis_has_floor(decision, check))
        good = read_kept(&part, check);
    outcome->verdict = part.mark & REDIS_MARK_ADMITTED ? WEIR_ALLOWED : WEIR_DENIED;
    outcome->charged = (part.mark & REDIS_MARK_CHARGED) != 0;
    *now_us = part.now_us;
    return good && part.left == 0;
}

/* These checks together: see weir_decision_join. */
static int join(const struct redis_batch *batch, const struct weir_decision *decision)
{
    bool on_states = decision->op >= WEIR_OP_RELEASE;
    bool takes_all = on_states || decision->policy == WEIR_POLICY_QUOTA;
    uint16_t can_deny = 0, denying = 0;

    for (uint16_t i = 0; i < batch->count; i++) {
        uint16_t at = batch->checks[i];

        if (!on_states && decision->checks[at].flags & WEIR_CHECK_SILENT)
            continue;
        can_deny++;
        denying += decision->outcomes[at].verdict == WEIR_DENIED;
    }
    return (takes_all ? can_deny > 0 && denying == can_deny : denying > 0) ? WEIR_DENIED
                                                                           : WEIR_ALLOWED;
}

static int no_reply_of_ours(struct weir_reason *reason)
{
    reason_text(reason, "not a reply of weir's scripts");
    return WEIR_ERR_SYNTAX;
}

/* If a key holds a string shorter than any state, a script fails with an error of its library. */
static void explain(struct weir_reason *reason)
{
    if (!strstr(reason->text, "data string too short"))
        return;
    reason->text[0] = '\0';
    reason_text(reason,
                "ERR a key of this decision holds a value that is not the state of a limit");
}

static int error_reply(struct weir_bytes text, struct weir_reason *reason)
{
    size_t size = text.size < WEIR_REASON_MAX - 1 ? text.size : WEIR_REASON_MAX - 1;

    if (reason) {
        memcpy(reason->text, text.data, size);
        reason->text[size] = '\0';
        for (size_t i = 0; i < size; i++) /* one line, and no text of C ends within */
            if ((unsigned char)reason->text[i] < ' ')
                reason->text[i] = ' ';
        explain(reason);
    }
    return WEIR_ERR_STORE;
}

int redis_script_read(const struct redis_batch *batch, struct weir_decision *into,
                      const struct weir_resp_node *nodes, uint32_t count, uint64_t *now_ns,
                      bool *repeated, struct weir_reason *reason)
{
    const struct weir_resp_node *part = nodes;
    uint64_t now_us = 0;

    *repeated = false;
    if (reason)
        reason->text[0] = '\0';
    if (count > 0 && nodes[0].type == WEIR_RESP_ERROR)
        return error_reply(nodes[0].text, reason);
    if (count > 1) {
        if (nodes[0].type != WEIR_RESP_ARRAY || nodes[0].count + 1 != count ||
            nodes[1].type != WEIR_RESP_INTEGER)
            return no_reply_of_ours(reason);
        if (nodes[1].integer == STATUS_GONE) {
            reason_text(reason, "the reservation was rolled back before");
            return WEIR_ERR_STORE;
        }
        *repeated = nodes[1].integer == STATUS_REPEATED;
        if (batch->action == REDIS_ROLL_BACK)
            return count == 2 ? WEIR_ALLOWED : no_reply_of_ours(reason);
        part += 2;
        count -= 2;
    }
    if (count != batch->count)
        return no_reply_of_ours(reason);
    for (uint32_t i = 0; i < count; i++) {
        uint16_t at = batch->checks[i];

        if (!read_part(into, &into->checks[at], &part[i], &into->outcomes[at], &now_us))
            return no_reply_of_ours(reason);
    }
    *now_ns = now_us * 1000;
    return join(batch, into);
}
