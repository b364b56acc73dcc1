/* SPDX-License-Identifier: Apache-2.0 */
/* WEIR.CHECK, .PEEK, .REFUND, .RESET, .RELEASE, .RESERVE, .SETTLE: a request, described by its
 * attributes, under the rules file. See resp.h and docs/redis-protocol.md. */
#include "server/resp/rules.h"

#include <stdio.h>
#include <string.h>

#include "feature/adaptive/server/released.h"
#include "feature/region/server/acted.h"
#include "feature/reserve/server/reserve.h"
#include "rules/source.h"
#include "server/resp/decide.h"
#include "server/resp/reply.h"
#include "wire/json/settle.h"

/* The words that are no attributes. */
struct options {
    int64_t cost, age_ms, life_ms;
    bool dry_run;
    struct weir_bytes idempotency_key; /* data == NULL: none */
};
enum takes {
    TAKES_COST = 1,
    TAKES_DRYRUN = 2,
    TAKES_AGE = 4,
    TAKES_IDEMPOTENCY = 8,
    TAKES_LIFE = 16
};

/* --- Requests --------------------------------------------------------------------------------- */

static bool named(struct weir_bytes name, const char *text)
{
    size_t size = strlen(text);
    return name.size == size && !memcmp(name.data, text, size);
}

/* Takes one attribute and its value; null: absent. False: it was answered. */
static bool attribute_read(struct weir_resp_call *call, struct weir_bytes name,
                           struct weir_bytes value)
{
    bool trusted = weir_listener_trusts(call->connection->listener);
    if (!name.data || !name.size) {
        weir_resp_error(call, "ERR an attribute has no name");
        return false;
    }
    weir_request_put_name(&call->redis->attributes, name, value, weir_trust_of(trusted));
    return true;
}

static bool option_number(struct weir_resp_call *call, uint32_t i, int64_t *value)
{
    if (i + 1 < call->count && weir_resp_number(call->args[i + 1], value) && *value >= 0)
        return true;
    weir_resp_error(call, "ERR %.*s is not an integer or out of range",
                    WEIR_RESP_SHOWN(call->args[i]));
    return false;
}

static bool option_key(struct weir_resp_call *call, uint32_t i, struct weir_bytes *key)
{
    struct weir_bytes value = i + 1 < call->count ? call->args[i + 1] : (struct weir_bytes){0};
    bool twice = key->data;
    *key = value;
    if (!twice && value.size > 0 && value.size <= WEIR_IDEMPOTENCY_KEY_MAX)
        return true;
    weir_resp_error(call, "ERR idempotency_key %s",
                    twice ? "is given twice" : "must be 1 to 255 bytes");
    return false;
}

/* Fills redis->attributes and the options from the arguments. False: it was answered. */
static bool request_read(struct weir_resp_call *call, unsigned takes, struct options *options)
{
    struct weir_request *attributes = &call->redis->attributes;
    const struct weir_bytes *args = call->args;
    struct weir_reason reason;
    *options = (struct options){.cost = 1, .life_ms = WEIR_RESERVATION_LIFE_NS / 1000000};
    weir_request_begin(attributes, weir_worker_rules(call->redis->worker), WEIR_FIELDS_NONE,
                       (struct weir_room){NULL, 0});
    weir_request_once(attributes);
    weir_request_of_program(attributes);
    for (uint32_t i = 1; i < call->count; i++) {
        if ((takes & TAKES_DRYRUN) && weir_resp_is(args[i], "DRYRUN")) {
            options->dry_run = true;
            continue;
        }
        if ((takes & TAKES_IDEMPOTENCY) && named(args[i], "idempotency_key")) {
            if (!option_key(call, i, &options->idempotency_key))
                return false;
            i++;
            continue;
        }
        bool cost = (takes & TAKES_COST) && weir_resp_is(args[i], "COST");
        bool read;
        bool life = (takes & TAKES_LIFE) && weir_resp_is(args[i], "LIFE");
        if (cost || life || ((takes & TAKES_AGE) && weir_resp_is(args[i], "AGE"))) {
            int64_t *number = life ? &options->life_ms : &options->age_ms;
            read = option_number(call, i, cost ? &options->cost : number);
        } else if (i + 1 < call->count) {
            read = attribute_read(call, args[i], args[i + 1]);
        } else {
            weir_resp_error(call, "ERR %.*s has no value", WEIR_RESP_SHOWN(args[i]));
            read = false;
        }
        if (!read)
            return false;
        i++;
    }
    attributes->cost = (uint64_t)options->cost;
    weir_connection_tell_peer(call->connection, attributes);
    if (weir_request_end(attributes, &reason) < 0) {
        weir_resp_error(call, "ERR %s", reason.text);
        return false;
    }
    return true;
}

/* The decision of the request in redis->attributes, not yet queued; NULL: it was answered. */
static struct weir_decision *request_apply(struct weir_resp_call *call, enum weir_op op,
                                           struct weir_bytes idempotency_key)
{
    struct weir_worker *worker = call->redis->worker;
    struct weir_reason reason = {{0}};
    struct weir_decision *decision = weir_worker_take(worker);
    if (!decision) { /* not after weir_worker_has_room */
        weir_resp_error(call, "ERR overloaded");
        return NULL;
    }
    decision->op = (uint8_t)op;
    int err = weir_engine_apply_rules(worker->engine, decision, &call->redis->attributes, &reason);
    if (err == 0 && idempotency_key.data)
        err = weir_engine_apply_idempotency(worker->engine, decision, idempotency_key, &reason);
    if (err == 0)
        return decision;
    weir_worker_give(worker, decision);
    weir_resp_error(call, "ERR %s", reason.text[0] ? reason.text : weir_error_text(err));
    return NULL;
}

/* --- Replies ---------------------------------------------------------------------------------- */

/* What a limit and its answer take at most: the name, and words. */
#define LIMIT_MAX 512
_Static_assert(WEIR_CHECKS_MAX *LIMIT_MAX + WEIR_LEASE_TOKEN_MAX + 512 <= WEIR_REPLY_MAX,
               "grow WEIR_REPLY_MAX");

static char *write_count(char *out, uint64_t count)
{
    return weir_resp_write_integer(out, count < INT64_MAX ? (int64_t)count : INT64_MAX);
}

static char *write_limit(char *out, int version, const struct weir_answer_limit *limit)
{
    const char *algorithm = limit->limit ? weir_algorithm_name(limit->limit->spec.algorithm) : "";
    out = weir_resp_write_map(out, version, 8 + limit->overflow + (limit->warning.percent != 0));
    out = WEIR_RESP_WRITE_WORD(out, "name");
    out = weir_resp_write_bulk(out, limit->name.data, limit->name.size);
    out = WEIR_RESP_WRITE_WORD(out, "algorithm");
    out = weir_resp_write_bulk(out, algorithm, strlen(algorithm));
    out = WEIR_RESP_WRITE_WORD(out, "allowed");
    out = weir_resp_write_boolean(out, version, limit->allowed);
    out = WEIR_RESP_WRITE_WORD(out, "shadow");
    out = weir_resp_write_boolean(out, version, limit->shadow);
    out = WEIR_RESP_WRITE_WORD(out, "limit");
    out = write_count(out, limit->report.limit);
    out = WEIR_RESP_WRITE_WORD(out, "remaining");
    out = write_count(out, limit->report.remaining);
    out = WEIR_RESP_WRITE_WORD(out, "retry_after_ms");
    out = weir_resp_write_integer(out, weir_resp_milliseconds(limit->report.retry_after_ns));
    out = WEIR_RESP_WRITE_WORD(out, "reset_after_ms");
    out = weir_resp_write_integer(out, weir_resp_milliseconds(limit->report.reset_after_ns));
    if (limit->overflow) {
        out = WEIR_RESP_WRITE_WORD(out, "overflow");
        out = weir_resp_write_boolean(out, version, true);
    }
    if (limit->warning.percent == 0)
        return out;
    out = WEIR_RESP_WRITE_WORD(out, "warning");
    return weir_resp_write_integer(out, limit->warning.percent);
}

/* The answer, in a map that has room for `more` entries behind it. */
static char *write_answer(struct weir_slot *slot, char *out, unsigned more)
{
    struct weir_resp_workspace *redis = weir_connection_workspace(slot->connection);
    struct weir_answer *answer = &redis->answer;
    int version = slot->flags;
    weir_engine_answer(slot->decision, answer, redis->lease);
    out = weir_resp_write_map(
        out, version,
        5 + (answer->action != WEIR_ACTION_NONE) + answer->repeated + (answer->lease.data != NULL) +
            (answer->standing.level.data ? 2 : 0) + (answer->score.class.data ? 2 : 0) + more);
    out = WEIR_RESP_WRITE_WORD(out, "allowed");
    out = weir_resp_write_boolean(out, version, answer->allowed);
    out = WEIR_RESP_WRITE_WORD(out, "denied_by");
    if (answer->denied_by >= 0) {
        struct weir_bytes name = answer->limits[answer->denied_by].name;
        out = weir_resp_write_bulk(out, name.data, name.size);
    } else if (answer->standing.refused) {
        struct weir_bytes name = weir_answer_refuser(answer->standing.unknown);
        out = weir_resp_write_bulk(out, name.data, name.size);
    } else {
        out = weir_resp_write_null(out, version);
    }
    out = WEIR_RESP_WRITE_WORD(out, "retry_after_ms");
    out = weir_resp_write_integer(out, weir_resp_milliseconds(answer->retry_after_ns));
    out = WEIR_RESP_WRITE_WORD(out, "delay_ms");
    out = weir_resp_write_integer(out, weir_resp_milliseconds(answer->delay_ns));
    out = WEIR_RESP_WRITE_WORD(out, "limits");
    out = weir_resp_write_array(out, answer->count);
    for (uint16_t i = 0; i < answer->count; i++)
        out = write_limit(out, version, &answer->limits[i]);
    if (answer->standing.level.data) {
        const struct weir_answer_standing *standing = &answer->standing;
        out = WEIR_RESP_WRITE_WORD(out, "standing");
        out = weir_resp_write_bulk(out, standing->level.data, standing->level.size);
        out = WEIR_RESP_WRITE_WORD(out, "reason");
        out = weir_resp_write_bulk(out, standing->reason.data, standing->reason.size);
    }
    if (answer->score.class.data) {
        out = WEIR_RESP_WRITE_WORD(out, "score");
        out = weir_resp_write_integer(out, answer->score.score);
        out = WEIR_RESP_WRITE_WORD(out, "class");
        out = weir_resp_write_bulk(out, answer->score.class.data, answer->score.class.size);
    }
    if (answer->action != WEIR_ACTION_NONE) {
        const char *action = weir_action_name(answer->action);
        out = WEIR_RESP_WRITE_WORD(out, "action");
        out = weir_resp_write_bulk(out, action, strlen(action));
    }
    if (answer->repeated) {
        out = WEIR_RESP_WRITE_WORD(out, "repeated");
        out = weir_resp_write_boolean(out, version, true);
    }
    if (answer->lease.data) {
        out = WEIR_RESP_WRITE_WORD(out, "lease");
        out = weir_resp_write_bulk(out, answer->lease.data, answer->lease.size);
    }
    return out;
}

static void check_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct weir_decision *decision = slot->decision;
    if (weir_resp_write_refusal(slot, output))
        return;
    if (decision->op == WEIR_OP_REFUND && decision->error) {
        weir_resp_write_count(slot, output, 0, decision->error); /* nothing was given back */
        weir_worker_give(slot->connection->worker, slot->decision);
        return;
    }
    char *out = write_answer(slot, output->data + output->used, 0);
    output->used = (size_t)(out - output->data);
    weir_worker_give(slot->connection->worker, slot->decision);
}

static void reserve_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_worker *worker = slot->connection->worker;
    char token[WEIR_RESERVATION_TEXT_MAX];
    uint64_t life_ns;
    size_t size = weir_reserve_finish(slot, token, &life_ns);
    if (weir_resp_write_refusal(slot, output))
        return;
    char *out = write_answer(slot, output->data + output->used, size ? 2 : 0);
    if (size) {
        out = WEIR_RESP_WRITE_WORD(out, "reservation");
        out = weir_resp_write_bulk(out, token, size);
        out = WEIR_RESP_WRITE_WORD(out, "life_ms");
        out = write_count(out, life_ns / 1000000);
    }
    output->used = (size_t)(out - output->data);
    weir_worker_give(worker, slot->decision);
}

static char *write_settled(char *out, int version, const struct weir_settled_limit *limit)
{
    out = weir_resp_write_map(out, version, 5);
    out = WEIR_RESP_WRITE_WORD(out, "name");
    out = weir_resp_write_bulk(out, limit->name, strlen(limit->name));
    out = limit->charged ? WEIR_RESP_WRITE_WORD(out, "charged")
                         : WEIR_RESP_WRITE_WORD(out, "refunded");
    out = write_count(out, limit->amount);
    out = WEIR_RESP_WRITE_WORD(out, "dropped");
    out = write_count(out, limit->dropped);
    out = WEIR_RESP_WRITE_WORD(out, "limit");
    out = write_count(out, limit->report.limit);
    out = WEIR_RESP_WRITE_WORD(out, "remaining");
    return write_count(out, limit->report.remaining);
}

static void settle_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_resp_workspace *redis = weir_connection_workspace(slot->connection);
    struct weir_settled settled;
    int version = slot->flags;
    char *out = output->data + output->used;
    weir_settle_finish(redis->worker, slot->decision, &settled);
    if (settled.failed || settled.kept) {
        out += sprintf(out, "-ERR %s\r\n", settled.kept ? WEIR_SETTLE_KEPT : WEIR_SETTLE_FAILED);
    } else {
        out = weir_resp_write_map(out, version, 5);
        out = WEIR_RESP_WRITE_WORD(out, "settled");
        out = weir_resp_write_boolean(out, version, true);
        out = WEIR_RESP_WRITE_WORD(out, "repeated");
        out = weir_resp_write_boolean(out, version, settled.repeated);
        out = WEIR_RESP_WRITE_WORD(out, "capped");
        out = weir_resp_write_boolean(out, version, settled.capped);
        out = WEIR_RESP_WRITE_WORD(out, "gone");
        out = write_count(out, settled.gone);
        out = WEIR_RESP_WRITE_WORD(out, "limits");
        out = weir_resp_write_array(out, weir_settled_count(slot->decision, &settled));
        for (uint16_t i = 0; i < settled.count;) {
            struct weir_settled_limit limit;
            i = weir_settled_limit(slot->decision, &settled, i, &limit);
            out = write_settled(out, version, &limit);
        }
    }
    output->used = (size_t)(out - output->data);
    weir_worker_give(redis->worker, slot->decision);
}

/* How many limits had a state: one of several rates has several. */
static void reset_write(struct weir_slot *slot, struct weir_output *output)
{
    int64_t found = 0;
    char partly[WEIR_ACTED_MAX];
    if (weir_resp_write_refusal(slot, output))
        return;
    if (weir_acted_problem(slot->decision, partly)) {
        char *out = output->data + output->used;
        output->used += (size_t)sprintf(out, "-ERR %s\r\n", partly);
        weir_worker_give(slot->connection->worker, slot->decision);
        return;
    }
    for (uint16_t i = 0, end; i < weir_decision_limits(slot->decision); i = end) {
        bool any = false;
        end = weir_decision_limit_end(slot->decision, i);
        for (uint16_t rate = i; rate < end; rate++)
            any |= slot->decision->outcomes[rate].verdict == WEIR_ALLOWED;
        found += any;
    }
    weir_resp_write_count(slot, output, found, slot->decision->error);
    weir_worker_give(slot->connection->worker, slot->decision);
}

/* A lease on several limits is one. */
static void release_write(struct weir_slot *slot, struct weir_output *output)
{
    weir_released_tell(slot->connection->worker, slot->decision, 0);
    weir_resp_write_count(slot, output, slot->decision->verdict == WEIR_ALLOWED,
                          slot->decision->error);
    weir_worker_give(slot->connection->worker, slot->decision);
}

/* --- Commands --------------------------------------------------------------------------------- */

void weir_resp_check(struct weir_resp_call *call)
{
    struct options options;
    if (!request_read(call, TAKES_COST | TAKES_DRYRUN | TAKES_IDEMPOTENCY, &options))
        return;
    struct weir_decision *decision = request_apply(
        call, options.dry_run ? WEIR_OP_PEEK : WEIR_OP_DECIDE, options.idempotency_key);
    if (decision)
        weir_resp_wait(call, decision, check_write);
}

void weir_resp_peek(struct weir_resp_call *call)
{
    struct options options;
    if (!request_read(call, TAKES_COST | TAKES_IDEMPOTENCY, &options))
        return;
    struct weir_decision *decision = request_apply(call, WEIR_OP_PEEK, options.idempotency_key);
    if (decision)
        weir_resp_wait(call, decision, check_write);
}

void weir_resp_refund(struct weir_resp_call *call)
{
    struct options options;
    if (!request_read(call, TAKES_COST | TAKES_AGE, &options))
        return;
    struct weir_decision *decision = request_apply(call, WEIR_OP_REFUND, options.idempotency_key);
    if (!decision)
        return;
    uint64_t age_ns = 0, now_ns = weir_resp_settle(call);
    now_ns = weir_engine_store_time(call->redis->worker->engine, now_ns);
    if (__builtin_mul_overflow((uint64_t)options.age_ms, UINT64_C(1000000), &age_ns) ||
        age_ns > now_ns)
        age_ns = now_ns;
    decision->charged_at_ns = now_ns - age_ns;
    weir_resp_wait(call, decision, check_write);
}

void weir_resp_reset_states(struct weir_resp_call *call)
{
    struct options options;
    if (!request_read(call, 0, &options))
        return;
    struct weir_decision *decision = request_apply(call, WEIR_OP_RESET, options.idempotency_key);
    if (!decision)
        return;
    weir_engine_reach_homes(decision);
    weir_resp_wait(call, decision, reset_write);
}

void weir_resp_release(struct weir_resp_call *call)
{
    struct weir_worker *worker = call->redis->worker;
    struct weir_decision *decision = weir_worker_take(worker);
    if (!decision) { /* not after weir_worker_has_room */
        weir_resp_error(call, "ERR overloaded");
        return;
    }
    if (weir_engine_apply_lease(worker->engine, decision, call->args[1]) == 0) {
        weir_resp_wait(call, decision, release_write);
        return;
    }
    weir_worker_give(worker, decision);
    weir_resp_error(call, "ERR not a lease token");
}

void weir_resp_reserve(struct weir_resp_call *call)
{
    struct weir_worker *worker = call->redis->worker;
    struct weir_reason reason = {{0}};
    struct options options;
    if (!request_read(call, TAKES_COST | TAKES_LIFE, &options))
        return;
    uint64_t life_ns = (uint64_t)options.life_ms * 1000000;
    if (options.cost < 1 || options.life_ms > INT32_MAX || life_ns < WEIR_RESERVATION_LIFE_MIN_NS ||
        life_ns > WEIR_RESERVATION_LIFE_MAX_NS) {
        weir_resp_error(call, options.cost < 1 ? "ERR COST of a reservation must be at least 1"
                                               : "ERR LIFE must be 1000 to 3600000 milliseconds");
        return;
    }
    struct weir_reserve reserve = {.decision =
                                       request_apply(call, WEIR_OP_DECIDE, options.idempotency_key),
                                   .estimate = (uint64_t)options.cost,
                                   .life_ns = life_ns};
    if (!reserve.decision)
        return;
    if (weir_reserve_begin(call->connection, &reserve, &reason) < 0) {
        weir_worker_give(worker, reserve.decision);
        weir_resp_error(call, "ERR %s", reason.text);
        return;
    }
    struct weir_slot *slot = weir_connection_slot(call->connection);
    if (!slot) {
        weir_reserve_cancel(worker, &reserve);
        call->close = true;
        return;
    }
    slot->write = reserve_write;
    slot->flags = call->session->version;
    weir_reserve_wait(slot, &reserve);
}

/* Where args[i] is a number, of a cost. */
static bool cost_read(struct weir_resp_call *call, uint32_t i, uint64_t *cost)
{
    int64_t number;
    if (!option_number(call, i - 1, &number))
        return false;
    *cost = (uint64_t)number;
    return true;
}

/* COSTS n name number ... at args[at]. Returns where they end; 0: they are wrong, and it is said.
 */
static uint32_t costs_read(struct weir_resp_call *call, uint32_t at, struct weir_true_cost *costs,
                           struct weir_settle *settle)
{
    uint64_t count, amount;
    if (!cost_read(call, at + 1, &count))
        return 0;
    if (count > WEIR_TRUE_COSTS_MAX || at + 2 + 2 * (uint32_t)count > call->count) {
        weir_resp_error(call, "ERR COSTS is a count up to %d, then as many names and numbers",
                        WEIR_TRUE_COSTS_MAX);
        return 0;
    }
    at += 2;
    settle->how = WEIR_SETTLE_COSTS;
    for (uint64_t i = 0; i < count; i++, at += 2) {
        struct weir_reason reason;
        if (!cost_read(call, at + 1, &amount))
            return 0;
        if (!weir_settle_add(call->redis->worker, settle, costs, call->args[at], amount, &reason)) {
            weir_resp_error(call, "ERR %s", reason.text);
            return 0;
        }
    }
    return at;
}

/* Reads what a settlement says: COST n or COSTS n name number ..., STATUS s, or both. */
static bool settlement_read(struct weir_resp_call *call, struct weir_true_cost *costs,
                            struct weir_settle *settle)
{
    const struct weir_bytes *args = call->args;
    uint32_t at = 2;
    settle->how = WEIR_SETTLE_STATUS;
    while (at < call->count) {
        bool priced = settle->how != WEIR_SETTLE_STATUS;
        if (at + 1 == call->count) {
            weir_resp_syntax_error(call);
            return false;
        }
        if (weir_resp_is(args[at], "STATUS") && settle->status == 0) {
            if (weir_status_parse(args[at + 1], &settle->status) < 0) {
                weir_resp_error(call, "ERR STATUS must be 100 to 599, or a class like 5xx");
                return false;
            }
            at += 2;
        } else if (weir_resp_is(args[at], "COST") && !priced) {
            if (!cost_read(call, at + 1, &settle->cost))
                return false;
            settle->how = WEIR_SETTLE_COST;
            at += 2;
        } else if (weir_resp_is(args[at], "COSTS") && !priced) {
            at = costs_read(call, at, costs, settle);
            if (at == 0)
                return false;
        } else {
            weir_resp_syntax_error(call);
            return false;
        }
    }
    return true;
}

void weir_resp_settle_reservation(struct weir_resp_call *call)
{
    struct weir_worker *worker = call->redis->worker;
    struct weir_true_cost costs[WEIR_TRUE_COSTS_MAX];
    struct weir_settle settle = {.how = WEIR_SETTLE_COST};
    if (!settlement_read(call, costs, &settle))
        return;
    struct weir_decision *decision = weir_worker_take(worker);
    if (!decision) { /* not after weir_worker_has_room */
        weir_resp_error(call, "ERR overloaded");
        return;
    }
    int err = weir_settle_begin(worker, decision, call->args[1], &settle);
    if (err == 0) {
        weir_resp_wait(call, decision, settle_write);
        return;
    }
    weir_worker_give(worker, decision);
    weir_resp_error(call, err == WEIR_ERR_NOT_FOUND ? "ERR " WEIR_SETTLE_LATE
                          : err == WEIR_ERR_STORE   ? "ERR " WEIR_SETTLE_UNKNOWN
                                                    : "ERR " WEIR_SETTLE_NONE);
}
