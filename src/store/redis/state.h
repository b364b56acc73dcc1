/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis store from inside: what its files share; see redis.h.
 *
 *   redis.c       opening and closing, events of the client, the timer
 *   submit.c      decisions that are made at once, those that are refused, cancelling
 *   pending.c      pending decisions: their calls, their replies, several slots
 *   background.c  calls that no decision waits for: shares of budgets, what has to be undone, the
 *                 probe of the breaker
 *   server_info.c       likewise: the store's secret and its time
 *   calls.c       calls: memory, sending, accounting, time limits
 *
 * Two clocks: `hr` is uv_hrtime(), by which the client gives up; what shares and denials go by runs
 * through a suspension of the machine too (CLOCK_BOOTTIME; in tests, the time they give).
 */
#ifndef WEIR_STORE_REDIS_STATE_H
#define WEIR_STORE_REDIS_STATE_H

#include "store/redis/call_plan.h"
#include "store/redis/denial_cache.h"
#include "store/redis/redis.h"
#include "store/redis/share/shares.h"
#include "store/redis/slab.h"

#define STORE_TURNS 1024 /* a call that takes longer than so many is entered as queued then */
/* Calls, plans and pending decisions: 65536 of the usual size, and some. */
#define STORE_CALLS_BYTES ((size_t)64 * 1024 * 1024)
#define STORE_PENDING_BYTES ((size_t)32 * 1024 * 1024)
/* How long the calls of no decision may take; beyond it their end is unknown. */
#define STORE_SHARE_DEADLINES 5 /* of decisions: nobody waits for a refill */
#define STORE_ORPHAN_NS UINT64_C(1000000000)
#define STORE_ORPHAN_PAUSE_NS UINT64_C(50000000)
#define STORE_ORPHAN_TRIES (STORE_ORPHAN_NS / STORE_ORPHAN_PAUSE_NS)
#define STORE_SHUTDOWN_NS UINT64_C(200000000)
/* Behind the prefix: the key of the store's secret; no state's key is called so (script/key.h). */
#define SECRET_KEY "secret"

enum call_kind {
    CALL_DECISION, /* all of a decision */
    CALL_STEP,     /* one step of its plan */
    CALL_SHARE,
    CALL_ORPHAN, /* a roll-back or release: nobody waits for it */
    CALL_PROBE,
    CALL_SERVER_INFO,
    CALL_KINDS,
};

struct call_list {
    struct store_call *first, *last;
};

/* One command, in one block with its bytes. */
struct store_call {
    struct redis_call call; /* first */
    struct store *store;
    struct pending *pending;         /* DECISION, STEP */
    struct redis_shares_call *share; /* SHARE: in this block */
    struct call_list *list;          /* of the pending's calls, or of the background's kind */
    struct store_call *previous, *next;
    uint64_t sent_hr;
    size_t size; /* of the block */
    uint32_t turn;
    uint8_t kind, action; /* enum call_kind; DECISION: enum redis_action; LEARN: its own */
    uint8_t times;        /* ORPHAN: tried */
    struct redis_step step;
    _Alignas(16) char bytes[];
};

enum pending_state {
    PENDING_NEW,
    PENDING_WAITS,   /* for a share of a budget */
    PENDING_CALLS,   /* one call, or those of its plan */
    PENDING_REFUSED, /* `done` comes with the next flush */
    PENDING_WOKEN,   /* its share is there: it is tried again next */
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
    bool again;            /* its call is made a second time, by the server's clock */
    uint8_t state, waited; /* enum pending_state; how often, for shares */
};

struct store {
    struct weir_store base; /* first */
    struct redis_client *client;
    struct redis_shares *shares;
    struct redis_denial_cache *denials;
    struct redis_breaker breaker;
    struct redis_slabs call_slabs, pending_slabs;
    struct pending_list refused, woken;
    struct call_list background[CALL_KINDS];
    struct call_list paused; /* orphans that could not be sent; sent_hr: when they are again */
    bool connected, queued, closing, told_open;
    bool flush_soon; /* something was queued outside of a turn's flush */
    uint16_t probe_slot;
    uint32_t turn;
    bool clocks_read;
    uint64_t hr, now_ns;           /* the clocks */
    uint64_t turn_hr[STORE_TURNS]; /* when the calls of each turn were written */
    uint64_t timer_hr;             /* when it is due; UINT64_MAX: not armed */
    uint64_t tick_hr;              /* when shares are to be looked at */
    uint64_t error_told_hr;
    uint64_t shut_down_by_hr;         /* 0: not asked to */
    uint64_t server_ns, server_at_ns; /* the server's time of a reply, and when that was by ours */
    bool server_told;                 /* until then, server_ns is the engine's time */
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

/* The server's time, about: what a client is told goes by it. */
static inline uint64_t store_server_now(struct store *store)
{
    return store->server_ns + (store_now(store) - store->server_at_ns);
}

/* --- redis.c */
void store_tell(struct store *store, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void store_update(struct store *store); /* the timer and the stats, after a change of state */
void store_arm(struct store *store, uint64_t due_hr); /* the timer comes then, or before */
void store_tick_soon(struct store *store);            /* shares have changed */
void store_flush_soon(struct store *store); /* what is queued now goes out before the loop waits */
void store_close(struct weir_store *base);

void store_flush(struct store *store); /* at once */

/* --- calls.c */
void call_append(struct call_list *list, struct store_call *call);
/* A call with room for so many bytes; NULL: full. */
struct store_call *call_take(struct store *store, enum call_kind kind, size_t bytes);
void call_give(struct store *store, struct store_call *call);
void call_unlink(struct store_call *call);
/* Queues it; it stands in `list` until its end. Errors: as redis_client_send. */
int call_queue(struct store *store, struct store_call *call, struct call_list *list,
               uint64_t give_up_hr) __attribute__((warn_unused_result));
/* The same; with an error the call is given back. */
int call_send(struct store *store, struct store_call *call, struct call_list *list,
              uint64_t give_up_hr) __attribute__((warn_unused_result));
/* Nobody waits for it any more; the call is given back. Returns whether it was perhaps executed. */
bool call_forget(struct store *store, struct store_call *call);
/* Writes the batch's command into a new call; NULL: full. */
struct store_call *call_write(struct store *store, enum call_kind kind,
                              const struct redis_batch *batch);
/* Writes a step of a plan. */
struct store_call *call_write_step(struct store *store, enum call_kind kind,
                                   const struct pending *pending, struct redis_step step);
/* A call's end that a server's silence explains, or an answer. */
void call_account(struct store *store, uint16_t slot, bool answered);
/* An error reply was read: whether it says nothing but what the time is, so that the same call may
 * be made again. */
bool call_learned(struct store *store, const struct weir_reason *reason);
/* An error reply was read, to a call of `count` checks. */
void call_refused(struct store *store, const struct weir_check *first, uint16_t count,
                  const struct weir_reason *reason);

/* --- pending.c */
void pending_finish(struct store *store, struct pending *pending, int error);
void pending_free(struct store *store, struct pending *pending);
/* Sends what decides it. Errors: it could not be sent (the caller refuses or finishes it). */
int pending_start(struct store *store, struct pending *pending) __attribute__((warn_unused_result));
/* Ends its calls, and undoes what they may have done. */
void pending_drop_calls(struct store *store, struct pending *pending);
void pending_answered(struct store *store, struct store_call *call, int error,
                      const struct weir_resp_node *nodes, uint32_t count);
void pending_batch(struct store *store, const struct weir_decision *decision, uint8_t action,
                   uint16_t checks[WEIR_CHECKS_MAX], struct redis_batch *batch);

/* --- submit.c */
extern const struct weir_store_ops redis_store_ops;
/* Hands back what has waited for a share: tried again, or failed. */
void store_wake(struct store *store, struct redis_shares_wait *waits, int error);

/* An operation after which a remembered denial may be wrong. */
static inline bool store_gives_back(const struct weir_decision *decision)
{
    return decision->op == WEIR_OP_REFUND || decision->op == WEIR_OP_RESET;
}

/* --- background.c */
/* Sends a call that no decision waits for, whose time limit is its kind's; with an error it is
 * given back. */
int background_send(struct store *store, struct store_call *call)
    __attribute__((warn_unused_result));
void background_send_shares(struct store *store);
/* Returns whether the call is kept, to be sent again. */
bool background_answered(struct store *store, struct store_call *call, int error,
                         const struct weir_resp_node *nodes, uint32_t count);
void background_roll_back(struct store *store, struct pending *pending, struct redis_step step);
/* Ends the leases that a decision of unknown end may have been given. */
void background_release(struct store *store, const struct weir_decision *decision);
void background_probe(struct store *store);
/* Gives up calls that have had their time. Returns when the next has (UINT64_MAX: none), hr. */
uint64_t background_expire(struct store *store, uint64_t hr);

/* --- server_info.c */
/* Asks for the secret and the time where that is due. Returns when it is next (UINT64_MAX: never),
 * hr. */
uint64_t server_info_tick(struct store *store, uint64_t hr);
void server_info_answered(struct store *store, const struct store_call *call, int error,
                          const struct weir_resp_node *nodes, uint32_t count);
void server_info_failed(struct store *store); /* nobody answered */
bool server_info_secret(const struct weir_store *base, unsigned i, uint64_t words[2]);

#endif
