/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of the Redis store that its modules share.
 *
 *   redis.c       opens and closes; submits, refuses and cancels decisions; events, the timer
 *   pending.c     pending decisions: their calls, their replies, plans of several cluster slots
 *   background.c  calls that no decision waits for: shares of budgets, undoing, the breaker's
 * probe, the server's secret and time
 *
 * There are two clocks. `hr` is uv_hrtime(), by which the client gives up. Shares and denials use a
 * clock that also runs while the machine is suspended (CLOCK_BOOTTIME; in tests, the time they
 * set).
 */
#ifndef WEIR_STORE_REDIS_STATE_H
#define WEIR_STORE_REDIS_STATE_H

#include "store/redis/call_plan.h"
#include "store/redis/denial_cache.h"
#include "store/redis/redis.h"
#include "store/redis/share/shares.h"
#include "store/redis/slab.h"

#define STORE_TURNS 1024 /* a call that takes longer counts from when it was queued */

enum call_kind {
    CALL_DECISION, /* all of a decision */
    CALL_STEP,     /* one step of its plan */
    CALL_SHARE,
    CALL_ORPHAN, /* a roll-back or release */
    CALL_PROBE,
    CALL_SERVER_INFO,
    CALL_KINDS,
};

/* Whose breaker a probe is for. */
enum probe_of { PROBE_OWN, PROBE_SHARED };

struct call_list {
    struct store_call *first, *last;
};

/* One command, in one block with its bytes. */
struct store_call {
    struct redis_call call; /* first */
    struct store *store;
    struct pending *pending;         /* DECISION, STEP */
    struct redis_shares_call *share; /* SHARE: in this block */
    struct call_list *list;          /* its decision's calls, or a background kind's */
    struct store_call *previous, *next;
    uint64_t sent_hr;
    size_t size; /* of the block */
    uint32_t turn;
    uint8_t kind;   /* enum call_kind */
    uint8_t action; /* DECISION: enum redis_action; SERVER_INFO: its own; PROBE: enum probe_of */
    uint8_t times;  /* ORPHAN: tried */
    struct redis_step step;
    _Alignas(16) char bytes[];
};

enum pending_state {
    PENDING_NEW,
    PENDING_WAITS,   /* for a portion of a budget */
    PENDING_CALLS,   /* one call, or those of its plan */
    PENDING_REFUSED, /* `done` comes with the next flush */
    PENDING_WOKEN,   /* its portion is there: it is tried again next */
};

struct pending_list {
    struct pending *first, *last;
};

/* A pending decision; decision->store_data. */
struct pending {
    struct weir_decision *decision; /* NULL: cancelled in one of the store's lists */
    struct call_plan *call_plan;    /* NULL: one call */
    struct call_list calls;
    struct pending *next; /* refused, woken */
    struct redis_shares_wait wait;
    uint64_t sent_ns, give_up_hr;
    int8_t error;          /* refused: why */
    bool again;            /* its call is repeated, with the server's time */
    uint8_t state, waited; /* enum pending_state; how often, for portions */
};

struct store {
    struct weir_store base; /* first */
    struct redis_client *client;
    struct redis_shares *shares;
    struct redis_denial_cache *denials;
    struct weir_breaker breaker;                 /* of this connection: local */
    struct redis_shared_breaker *shared_breaker; /* NULL: none, or closing */
    struct redis_slabs call_slabs, pending_slabs;
    struct pending_list refused, woken;
    struct call_list background[CALL_KINDS];
    struct call_list paused; /* orphans that could not be sent; sent_hr: when they are again */
    bool connected, queued, closing, reported_open;
    bool flush_soon; /* something was queued outside of a turn's flush */
    uint16_t probe_slot;
    uint32_t turn;
    bool clocks_read;
    uint64_t hr, now_ns;           /* the clocks */
    uint64_t turn_hr[STORE_TURNS]; /* when the calls of each turn were written */
    uint64_t timer_hr;             /* when it is due; UINT64_MAX: not armed */
    uint64_t tick_hr;              /* when shares are to be looked at */
    uint64_t error_logged_hr;
    uint64_t shut_down_by_hr;         /* 0: not asked to */
    uint64_t server_ns, server_at_ns; /* the server's time of a reply, and when that was by ours */
    bool server_known;                /* until then, server_ns is the engine's time */
    struct redis_secret *secret;      /* NULL: none, and nothing is asked for */
    uint64_t server_info_hr;          /* when it is asked for next, and the time */
    uint64_t deadline_ns, random;
    const uint64_t *test_time_ns;
    char prefix[REDIS_PREFIX_MAX + 1];
    uv_loop_t *loop;
    uv_timer_t timer;
    uv_prepare_t prepare; /* flushes; the clocks are to be read again after the wait */
    uv_check_t check;     /* and after what it brought */
    unsigned handles;     /* open; the store is freed with the last */
    void (*event)(void *context, const char *event, const char *text);
    void *event_context;
    void (*closed)(void *context);
    void *closed_context;
    struct weir_store_redis_stats stats;
};

static inline struct store *store_of(const struct weir_store *base)
{
    return (struct store *)(uintptr_t)base; /* its first member */
}

/* Both clocks are read once for all that one poll of the loop brings, and for each batch. */
void store_read_clocks(struct store *store);

static inline uint64_t store_hr(struct store *store)
{
    if (!store->clocks_read)
        store_read_clocks(store);
    return store->hr;
}

static inline uint64_t store_now(struct store *store)
{
    if (!store->clocks_read)
        store_read_clocks(store);
    return store->now_ns;
}

/* About the server's time, which reports to clients go by. */
static inline uint64_t store_server_now(struct store *store)
{
    return store->server_ns + (store_now(store) - store->server_at_ns);
}

/* --- Functions of redis.c for the modules below it ---------------------------------------------
 */

/* Reports a change of state as an event. */
void store_tell(struct store *store, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Updates timer and stats after a change of state. */
void store_update(struct store *store);
/* Whether both breakers are closed; where not, the timer comes for the next probe. */
bool store_may_send(struct store *store);
/* The timer comes at `due_hr`, or before. */
void store_arm(struct store *store, uint64_t due_hr);
/* Shares have changed: they are looked at soon. */
void store_tick_soon(struct store *store);
/* Sends what is queued now before the loop waits. */
void store_flush_soon(struct store *store);
/* Continues the decisions that waited for a portion: tries them again, or fails them with `error`.
 */
void store_wake(struct store *store, struct redis_shares_wait *waits, int error);

/* An operation after which a remembered denial may be wrong. */
static inline bool store_gives_back(const struct weir_decision *decision)
{
    return decision->op == WEIR_OP_REFUND || decision->op == WEIR_OP_RESET;
}

#endif
