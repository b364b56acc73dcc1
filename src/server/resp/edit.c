/* SPDX-License-Identifier: Apache-2.0 */
/* see edit.h */
#include "server/resp/edit.h"

#include <stdio.h>
#include <string.h>

#include "core/counter.h"
#include "server/resp/decide.h"
#include "server/resp/reply.h"
#include "server/resp/throttle.h"

/* How long a counter without an end lives unused. */
#define UNUSED_NS (24 * COUNTER_HOUR_NS)

/* In the worker's cache of limits: no bucket and no window has these numbers. */
#define CACHE_MARK (UINT64_MAX - 1)

bool weir_resp_has_counters(struct weir_resp_call *call)
{
    if (!call->redis->remote)
        return true;
    weir_resp_error(call,
                    "ERR counters are not kept beside store: redis; send '%.*s' to that "
                    "Redis itself",
                    WEIR_RESP_SHOWN(call->args[0]));
    return false;
}

/* The limit of counters of this width; NULL: it was answered. */
static const struct weir_limit *counter_limit(struct weir_resp_call *call, uint64_t bits)
{
    struct weir_resp_workspace *redis = call->redis;
    struct weir_adhoc_cached *cached = weir_adhoc_cache_at(&redis->cache, CACHE_MARK, bits, 0);
    struct weir_limit_spec spec = {.algorithm = WEIR_COUNTER, .rate = bits, .window_ns = UNUSED_NS};
    struct weir_reason reason = {{0}};
    const struct weir_limit *found;
    if (cached->limit && cached->a == CACHE_MARK && cached->b == bits)
        return cached->limit;
    int err = weir_adhoc_limits_find(redis->shared->limits, redis->worker->store,
                                     redis->worker->local, &spec, NULL, &found, &reason);
    if (err < 0) {
        weir_adhoc_limit_error(call, err, "ERR ", &reason);
        return NULL;
    }
    *cached = (struct weir_adhoc_cached){CACHE_MARK, bits, 0, found};
    return found;
}

void *weir_resp_build_begin(struct weir_resp_build *build, struct weir_resp_call *call, size_t size,
                            void (*run)(struct weir_edit *, struct weir_edit_state *, uint32_t,
                                        uint64_t))
{
    struct weir_worker *worker = call->redis->worker;
    weir_resp_refresh(call->redis);
    const struct weir_limit *narrow = counter_limit(call, COUNTER_PACKED_BITS);
    const struct weir_limit *wide = narrow ? counter_limit(call, COUNTER_WIDE_BITS) : NULL;
    if (!wide)
        return NULL;
    *build = (struct weir_resp_build){.call = call,
                                      .decision = weir_worker_take(worker),
                                      .buffer = weir_buffer_take(&worker->buffers, size),
                                      .narrow = narrow};
    if (!build->decision || !build->buffer) {
        weir_resp_build_drop(build);
        weir_resp_error(call, "ERR overloaded");
        return NULL;
    }
    memset(build->buffer->data, 0, size);
    struct weir_edit *edit = (struct weir_edit *)(void *)build->buffer->data;
    edit->run = run;
    edit->wide = wide;
    build->decision->edit = edit;
    build->decision->op = WEIR_OP_EDIT;
    return build->buffer->data;
}

int weir_resp_build_key(struct weir_resp_build *build, struct weir_bytes key)
{
    return weir_resp_build_state(build, WEIR_RESP_WINDOWS, key, build->narrow);
}

int weir_resp_build_state(struct weir_resp_build *build, enum weir_resp_kind kind,
                          struct weir_bytes key, const struct weir_limit *limit)
{
    struct weir_decision *decision = build->decision;
    uint16_t at = decision->count;
    if (at == WEIR_CHECKS_MAX)
        return -1;
    /* Never refused: only a store that nodes share takes the texts of keys. */
    (void)weir_resp_fill_check(build->call, decision, at, kind, key, limit);
    struct weir_check *check = &decision->checks[at];
    for (uint16_t i = 0; i < at; i++)
        if (decision->checks[i].hash[0] == check->hash[0] &&
            decision->checks[i].hash[1] == check->hash[1])
            return i;
    check->flags = 0;
    check->cost = 0;
    decision->count++;
    return at;
}

void weir_resp_build_wait(struct weir_resp_build *build,
                          void (*write)(struct weir_slot *, struct weir_output *))
{
    struct weir_slot *slot = weir_connection_slot(build->call->connection);
    if (!slot) {
        weir_resp_build_drop(build);
        build->call->close = true;
        return;
    }
    slot->decision = build->decision;
    slot->buffer = build->buffer;
    slot->write = write;
    slot->flags = build->call->session->version;
    weir_slot_wait(slot, build->decision);
}

void weir_resp_build_drop(struct weir_resp_build *build)
{
    struct weir_worker *worker = build->call->redis->worker;
    if (build->decision)
        weir_worker_give(worker, build->decision);
    weir_buffer_give(&worker->buffers, build->buffer);
}

const char *weir_resp_edit_failure(const struct weir_slot *slot, char text[WEIR_RESP_PROBLEM_MAX])
{
    const struct weir_decision *decision = slot->decision;
    if (decision->error) {
        snprintf(text, WEIR_RESP_PROBLEM_MAX, "ERR store: %s", weir_error_text(decision->error));
        return text;
    }
    if (decision->verdict == WEIR_ALLOWED)
        return NULL;
    return "OOM the state has no room for this key: raise state.size";
}

void weir_resp_edit_finish(struct weir_slot *slot)
{
    struct weir_worker *worker = slot->connection->worker;
    weir_worker_give(worker, slot->decision);
    weir_buffer_give(&worker->buffers, slot->buffer);
}
