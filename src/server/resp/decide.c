/* SPDX-License-Identifier: Apache-2.0 */
/* see decide.h */
#include "server/resp/decide.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "core/text/hex.h"
#include "core/text/siphash.h"
#include "server/resp/reply.h"

/* --- Arguments and keys ----------------------------------------------------------------------- */

bool weir_resp_number_any(struct weir_bytes arg, int64_t *value)
{
    if (!arg.size)
        return false;
    const char *at = arg.data, *end = at + arg.size;
    bool negative = *at == '-';
    at += negative || *at == '+';
    if (at == end)
        return false;
    uint64_t number = 0, most = (uint64_t)INT64_MAX + negative;
    for (; at < end; at++) {
        unsigned digit = (unsigned char)(*at - '0');
        if (digit > 9 || number > (most - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *value = (int64_t)(negative ? 0 - number : number);
    return true;
}

/* Longer keys are sent as their SHA-256. */
#define KEY_SENT_MAX 256

static struct weir_bytes key_text(const struct weir_resp_call *call, enum weir_resp_kind kind,
                                  struct weir_bytes key, char text[KEY_SENT_MAX + 8])
{
    static const char kinds[WEIR_RESP_KINDS] = {'b', 'w'};
    unsigned char digest[SHA256_DIGEST_LENGTH];
    bool whole = !key.data || key.size <= KEY_SENT_MAX;
    int size = snprintf(text, 8, "%c%u%c", kinds[kind], call->session->database, whole ? ':' : '#');
    char *at = text + size;
    if (whole) {
        if (key.data)
            memcpy(at, key.data, key.size);
        return (struct weir_bytes){text, (size_t)size + key.size};
    }
    SHA256((const unsigned char *)key.data, key.size, digest);
    at = weir_hex_write(at, digest, sizeof digest);
    return (struct weir_bytes){text, (size_t)(at - text)};
}

/* The rare part of weir_resp_fill_check. */
static __attribute__((noinline)) bool keep_text(struct weir_resp_call *call,
                                                struct weir_decision *decision, uint16_t i,
                                                enum weir_resp_kind kind, struct weir_bytes key)
{
    /* Names the state of an operation that has no limit. */
    static const struct weir_limit any[WEIR_RESP_KINDS] = {
        [WEIR_RESP_BUCKETS] = {.spec = {.algorithm = WEIR_GCRA}},
        [WEIR_RESP_WINDOWS] = {.spec = {.algorithm = WEIR_FIXED_WINDOW}},
    };
    struct weir_check *check = &decision->checks[i];
    char text[KEY_SENT_MAX + 8];
    if (!check->limit)
        check->limit = &any[kind];
    check->key = weir_decision_keep(decision, key_text(call, kind, key, text));
    if (check->key.data)
        return true;
    weir_resp_error(call, "ERR the keys are too long in total");
    return false;
}

bool weir_resp_fill_check(struct weir_resp_call *call, struct weir_decision *decision, uint16_t i,
                          enum weir_resp_kind kind, struct weir_bytes key,
                          const struct weir_limit *limit)
{
    const struct weir_resp_workspace *redis = call->redis;
    struct weir_check *check = &decision->checks[i];
    weir_siphash128(redis->secrets[kind][call->session->database], key.data ? key.data : "",
                    key.size, check->hash);
    check->limit = limit;
    check->key = (struct weir_bytes){"", 0};
    check->tag = 0;
    weir_check_begin(check, UINT32_MAX, redis->flags, redis->on_store_error);
    return __builtin_expect(!redis->remote, 1) || keep_text(call, decision, i, kind, key);
}

/* --- Decisions -------------------------------------------------------------------------------- */

void weir_resp_wait(struct weir_resp_call *call, struct weir_decision *decision,
                    void (*write)(struct weir_slot *, struct weir_output *))
{
    struct weir_slot *slot = weir_connection_slot(call->connection);
    if (!slot) {
        weir_worker_give(call->redis->worker, decision);
        call->close = true;
        return;
    }
    slot->decision = decision;
    slot->write = write;
    slot->flags = call->session->version;
    weir_slot_wait(slot, decision);
}

void weir_resp_decide(struct weir_resp_call *call, enum weir_resp_kind kind, struct weir_bytes key,
                      const struct weir_limit *limit, enum weir_op op, uint64_t cost,
                      void (*write)(struct weir_slot *, struct weir_output *))
{
    struct weir_decision *decision = weir_worker_take(call->redis->worker);
    if (!decision) { /* not after weir_worker_has_room */
        weir_resp_error(call, "ERR overloaded");
        return;
    }
    if (!weir_resp_fill_check(call, decision, 0, kind, key, limit)) {
        weir_worker_give(call->redis->worker, decision);
        return;
    }
    decision->checks[0].cost = cost;
    decision->count = 1;
    decision->op = (uint8_t)op;
    weir_resp_wait(call, decision, write);
}

uint64_t weir_resp_settle(struct weir_resp_call *call)
{
    uint64_t now_ns = call->redis->clock(call->redis->worker);
    weir_worker_settle(call->redis->worker, now_ns);
    return now_ns;
}
