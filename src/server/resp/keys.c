/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of commands as keys of Redis: DEL, EXISTS, TTL, PTTL, DBSIZE. See resp.h.
 *
 * A key exists while its state is not fresh: what redis-cell's keys do with their time to live. One
 * name may have a bucket and a window; it is one key, and two checks of one decision. */
#include "server/resp/keys.h"

#include "server/resp/decide.h"
#include "server/resp/reply.h"
#include "server/resp/script/rates.h"
#include "table/table.h"

#define KEYS_EACH (WEIR_CHECKS_MAX / WEIR_RESP_KINDS) /* of one decision */

/* The decisions of a slot: one, or those that its buffer lists. */
static struct weir_decision *const *decisions_of(struct weir_slot *slot, uint32_t *count)
{
    *count = slot->buffer ? slot->count : 1;
    return slot->buffer ? (struct weir_decision *const *)(void *)slot->buffer->data
                        : &slot->decision;
}

static void give_all(struct weir_worker *worker, struct weir_decision *const *decisions,
                     uint32_t count)
{
    while (count > 0)
        weir_worker_give(worker, decisions[--count]);
}

static void finish(struct weir_slot *slot)
{
    struct weir_worker *worker = slot->connection->worker;
    uint32_t count;
    struct weir_decision *const *decisions = decisions_of(slot, &count);
    give_all(worker, decisions, count);
    weir_buffer_give(&worker->buffers, slot->buffer);
}

/* In how long both states of the key at `i` are fresh; 0: there is none. */
static uint64_t key_fresh_in(const struct weir_decision *decision, uint16_t i)
{
    uint64_t latest_ns = 0;
    for (unsigned kind = 0; kind < WEIR_RESP_KINDS; kind++) {
        const struct weir_outcome *outcome = &decision->outcomes[i + kind];
        if (outcome->verdict == WEIR_ALLOWED && outcome->report.reset_after_ns > latest_ns)
            latest_ns = outcome->report.reset_after_ns;
    }
    return latest_ns;
}

static bool key_found(const struct weir_decision *decision, uint16_t i)
{
    for (unsigned kind = 0; kind < WEIR_RESP_KINDS; kind++)
        if (decision->outcomes[i + kind].verdict == WEIR_ALLOWED)
            return true;
    return false;
}

/* DEL, EXISTS: how many of the keys there were. */
static void count_write(struct weir_slot *slot, struct weir_output *output)
{
    uint32_t count;
    struct weir_decision *const *decisions = decisions_of(slot, &count);
    const struct weir_decision *reported = decisions[0];
    int64_t found = 0;
    for (uint32_t n = 0; n < count; n++) {
        for (uint16_t i = 0; i < decisions[n]->count; i += WEIR_RESP_KINDS)
            found += key_found(decisions[n], i);
        if (decisions[n]->error)
            reported = decisions[n];
    }
    weir_resp_write_count(slot, output, found, reported->error);
    finish(slot);
}

/* Whether the key is a counter: what Redis says of its TTL holds for it. */
static bool key_is_counter(const struct weir_decision *decision)
{
    const struct weir_outcome *outcome = &decision->outcomes[WEIR_RESP_WINDOWS];
    return outcome->verdict == WEIR_ALLOWED && outcome->report.limit == WEIR_LOOK_COUNTER;
}

static int64_t ttl_of(const struct weir_decision *decision, bool seconds)
{
    const struct weir_report *counter = &decision->outcomes[WEIR_RESP_WINDOWS].report;
    uint64_t fresh_in_ns = key_fresh_in(decision, 0);
    if (fresh_in_ns == 0)
        return -2;
    if (key_is_counter(decision)) {
        if (counter->retry_after_ns == WEIR_NEVER)
            return -1;
        int64_t ms = weir_resp_milliseconds(counter->reset_after_ns);
        return seconds ? (ms + 500) / 1000 : ms; /* as Redis rounds */
    }
    return seconds ? weir_resp_seconds(fresh_in_ns) : weir_resp_milliseconds(fresh_in_ns);
}

static void ttl_write(struct weir_slot *slot, struct weir_output *output)
{
    weir_resp_write_count(slot, output, ttl_of(slot->decision, true), slot->decision->error);
    finish(slot);
}

static void pttl_write(struct weir_slot *slot, struct weir_output *output)
{
    weir_resp_write_count(slot, output, ttl_of(slot->decision, false), slot->decision->error);
    finish(slot);
}

/* A decision on the states of `count` keys; NULL: it was answered. */
static struct weir_decision *keys_take(struct weir_resp_call *call, enum weir_op op,
                                       const struct weir_bytes *keys, uint32_t count)
{
    struct weir_decision *decision = weir_worker_take(call->redis->worker);
    if (!decision) { /* not after weir_worker_has_room */
        weir_resp_error(call, "ERR overloaded");
        return NULL;
    }
    for (uint32_t i = 0; i < count * WEIR_RESP_KINDS; i++) {
        if (!weir_resp_fill_check(call, decision, (uint16_t)i,
                                  (enum weir_resp_kind)(i % WEIR_RESP_KINDS),
                                  keys[i / WEIR_RESP_KINDS], NULL)) {
            weir_worker_give(call->redis->worker, decision);
            return NULL;
        }
        decision->checks[i].cost = 0;
    }
    decision->op = (uint8_t)op;
    decision->count = (uint16_t)(count * WEIR_RESP_KINDS);
    return decision;
}

/* More keys than one decision takes: a list of them. */
static void keys_wait_all(struct weir_resp_call *call, enum weir_op op, uint32_t keys)
{
    struct weir_worker *worker = call->redis->worker;
    uint32_t wanted = (keys + KEYS_EACH - 1) / KEYS_EACH, made = 0;
    struct weir_buffer *list =
        weir_buffer_take(&worker->buffers, wanted * sizeof(struct weir_decision *));
    struct weir_decision **decisions = list ? (struct weir_decision **)(void *)list->data : NULL;
    for (uint32_t at = 0; list && at < keys; at += KEYS_EACH) {
        uint32_t count = keys - at < KEYS_EACH ? keys - at : KEYS_EACH;
        decisions[made] = keys_take(call, op, &call->args[1 + at], count);
        if (!decisions[made])
            break;
        made++;
    }
    struct weir_slot *slot = made == wanted ? weir_connection_slot(call->connection) : NULL;
    if (!slot) {
        if (made == wanted || !list)
            call->close = true;
        give_all(worker, decisions, made);
        weir_buffer_give(&worker->buffers, list);
        return;
    }
    slot->buffer = list;
    slot->count = made;
    slot->write = count_write;
    for (uint32_t i = 0; i < made; i++)
        weir_slot_wait(slot, decisions[i]);
}

static void keys_wait(struct weir_resp_call *call, enum weir_op op, uint32_t keys,
                      void (*write)(struct weir_slot *, struct weir_output *))
{
    if (keys > KEYS_EACH) {
        keys_wait_all(call, op, keys);
        return;
    }
    struct weir_decision *decision = keys_take(call, op, &call->args[1], keys);
    if (decision)
        weir_resp_wait(call, decision, write);
}

/* Whether there was any state. */
static void any_write(struct weir_slot *slot, struct weir_output *output)
{
    bool found = false;
    for (uint16_t i = 0; i < slot->decision->count; i += WEIR_RESP_KINDS)
        found = found || key_found(slot->decision, i);
    weir_resp_write_count(slot, output, found, slot->decision->error);
    finish(slot);
}

_Static_assert(WEIR_SCRIPT_RATES_MAX <= KEYS_EACH, "the rates of a key fit into one decision");

/* A key to which scripts may hold several rates: all of them are forgotten. */
static void del_places(struct weir_resp_call *call, uint32_t places)
{
    char names[WEIR_SCRIPT_RATES_MAX][WEIR_SCRIPT_RATE_NAME_MAX];
    struct weir_bytes keys[WEIR_SCRIPT_RATES_MAX];
    for (uint32_t i = 0; i < places; i++)
        keys[i] = weir_script_rate_key(call->args[1], i, names[i]);
    struct weir_decision *decision = keys_take(call, WEIR_OP_RESET, keys, places);
    if (decision)
        weir_resp_wait(call, decision, any_write);
}

void weir_resp_del(struct weir_resp_call *call)
{
    uint32_t places = weir_script_rate_places(call->redis->shared, call->args[1]);
    if (call->count == 2 && places > 1 && !call->redis->remote) {
        del_places(call, places);
        return;
    }
    keys_wait(call, WEIR_OP_RESET, call->count - 1, count_write);
}

void weir_resp_exists(struct weir_resp_call *call)
{
    keys_wait(call, WEIR_OP_LOOK, call->count - 1, count_write);
}

void weir_resp_ttl(struct weir_resp_call *call)
{
    keys_wait(call, WEIR_OP_LOOK, 1, ttl_write);
}

void weir_resp_pttl(struct weir_resp_call *call)
{
    keys_wait(call, WEIR_OP_LOOK, 1, pttl_write);
}

void weir_resp_dbsize(struct weir_resp_call *call)
{
    struct weir_table_stats stats;
    uint64_t now_ns = weir_resp_settle(call);
    weir_table_stats(call->redis->worker->table, now_ns, &stats);
    weir_resp_integer(call, (int64_t)stats.keys);
}
