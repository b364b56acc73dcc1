/* SPDX-License-Identifier: Apache-2.0 */
/* The controllers of this process: they learn from how requests ended and from signals, and set the
 * scales of the limits that follow them (feature/adaptive/rules/limit.h).
 *
 *   ended   a request has ended: any worker, when a settlement or a report tells it
 *   released   a lease has ended: its token says when it began
 *   push    a signal comes from outside: POST /v1/health
 *   tick    once a second: reads the machine, looks readings up in the tables
 *
 * AIMD and Gradient2 react to each result at once; a table of health reacts at the next tick. At a
 * reload a limit keeps what its controller has learned, if both have the same names as before.
 *
 * A line of the log says when the scale of a limit has moved: at once where it falls by 10 or more,
 * else at most every 10 seconds.
 *
 * Each caller has the same weight, however many requests it makes (feature/adaptive/key_sample.h).
 *
 * Memory: 45 KiB a controller, 500 bytes a limit; and 350 KiB at most for the callers of each table
 * with outcomes, and of each limit of AIMD or Gradient2. Threads: set_rules and tick one; the rest
 * any, under one lock, which no decision takes and no reading of callers holds.
 */
#ifndef WEIR_FEATURE_ADAPTIVE_SERVER_CONTROLLERS_H
#define WEIR_FEATURE_ADAPTIVE_SERVER_CONTROLLERS_H

#include "feature/adaptive/rules/limit.h"
#include "feature/adaptive/scale_history.h"
#include "server/daemon/log.h"

#define WEIR_SIGNAL_LIFE_NS UINT64_C(10000000000) /* of a pushed signal that does not say */
#define WEIR_SIGNAL_LIFE_MAX_NS UINT64_C(3600000000000)

struct weir_controllers;

/* `log` NULL: none. `secret` is this process's: a client that has it can choose which callers are
 * sampled. Errors: WEIR_ERR_MEMORY. */
int weir_controllers_open(struct weir_controllers **controllers, struct weir_log *log,
                          const uint64_t secret[2]) __attribute__((warn_unused_result));
void weir_controllers_close(struct weir_controllers *controllers);

/* Takes the rules that are about to be used (one reference), and sets their scales. Errors:
 * WEIR_ERR_MEMORY (the rules before stay). */
int weir_controllers_set_rules(struct weir_controllers *controllers, struct weir_rules *rules,
                               uint64_t now_ns) __attribute__((warn_unused_result));

void weir_controllers_tick(struct weir_controllers *controllers, uint64_t now_ns);

/* How a request ended. */
struct weir_ended {
    uint64_t now_ns, latency_ns;
    bool has_latency;
    uint32_t status;    /* 100..599; 0: not known */
    uint64_t caller;    /* whose request it was: a hash; each counts alike
                           (feature/adaptive/key_sample.h) */
    uint32_t in_flight; /* WEIR_IN_FLIGHT_UNKNOWN: of limits that are not on concurrency */
};

/* Status and latency in one word, for the time until a request's decision is done: 10 bits and 54
 * bits of nanoseconds, which are 208 days; a longer latency is taken for that. NULL: not known. */
uint64_t weir_ended_pack(uint32_t status, const uint64_t *latency_ms);
struct weir_ended weir_ended_unpack(uint64_t packed, uint64_t now_ns);

/* A request that limit `rule` of `rules` applied to has ended. Nothing happens where the limit
 * follows no controller. */
void weir_controllers_ended(struct weir_controllers *controllers, const struct weir_rules *rules,
                            uint32_t rule, const struct weir_ended *ended);

/* A lease has ended: the limits that its token names learn, with what was in flight as it began. */
struct weir_lease_begun;
void weir_controllers_released(struct weir_controllers *controllers,
                               const struct weir_lease_begun *begun, struct weir_ended ended);

/* Takes a reading of a pushed signal, for one controller or (name.data NULL) for all that have it
 * pushed. Returns how many took it. */
uint32_t weir_controllers_push(struct weir_controllers *controllers, struct weir_bytes name,
                               enum weir_signal signal, struct weir_reading reading);

/* What an operator sees: each controller, then each limit that follows one. */
struct weir_controller_view {
    const struct weir_adaptive *adaptive;
    const struct weir_reading *readings; /* of a table, WEIR_SIGNALS of them; else NULL */
    const struct weir_health *health;    /* likewise */
};
struct weir_follower_view {
    const char *limit;
    const struct weir_adaptive *adaptive;
    uint32_t number; /* AIMD, Gradient2: the limit that the controller has found; else 0 */
    uint8_t percent;
    const struct weir_scale_history *history;
};

/* What scales one limit now, and why. */
struct weir_scale_view {
    const struct weir_adaptive *adaptive; /* its controller */
    uint32_t number;                      /* as in struct weir_follower_view */
    uint8_t percent;
    uint8_t lowest;               /* of the last hour */
    uint8_t causes[WEIR_SIGNALS]; /* of a table: what each signal asks for, 1..100; 0: it has no
                                     such signal, or is no table */
};
/* False: the limit follows no controller, or `rules` are not the newest. What `view` points at
 * belongs to `rules`. */
bool weir_controllers_look(struct weir_controllers *controllers, const struct weir_rules *rules,
                           uint32_t rule, struct weir_scale_view *view);

struct weir_controllers_visitor {
    void (*controller)(void *context, const struct weir_controller_view *view); /* may be NULL */
    void (*follower)(void *context, const struct weir_follower_view *view);     /* may be NULL */
    void *context;
};
/* Calls the visitor under the lock: it must not call this module. */
void weir_controllers_visit(struct weir_controllers *controllers,
                            const struct weir_controllers_visitor *visitor);

#endif
