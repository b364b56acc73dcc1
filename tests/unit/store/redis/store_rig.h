/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis store on a loop of its own, for tests: decisions, and runs of the loop until a
 * condition holds. A condition that does not come within 20 s fails the test. */
#ifndef TESTS_STORE_RIG_H
#define TESTS_STORE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "redis_server.h"
#include "store/redis/redis.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define START (UINT64_C(1700000000) * SECOND)
#define STORE_RIG_EVENTS 64
#define STORE_RIG_CHECKS 4

struct store_rig;

/* A decision with room for what it needs. */
struct rig_decision {
    struct weir_decision decision; /* first */
    struct weir_check checks[STORE_RIG_CHECKS];
    struct weir_outcome outcomes[STORE_RIG_CHECKS];
    char keys[STORE_RIG_CHECKS][48];
    bool done;
    int error;
};

struct store_rig {
    uv_loop_t loop;
    uv_timer_t guard; /* wakes the loop, so that deadlines are looked at */
    struct redis_server server;
    struct redis_url url;
    struct weir_store *store;
    const struct weir_store_redis_stats *stats;
    char events[STORE_RIG_EVENTS][320]; /* "name text" */
    uint32_t event_count;
    uint32_t finished;
    uint64_t now_ns; /* the scripts' time, where the options name it; else the engine's */
    bool closed;
    /* Called when a decision is done; may be NULL. */
    void (*on_done)(struct store_rig *rig, struct rig_decision *decision);
};

/* The loop alone. */
void store_rig_init(struct store_rig *rig);
/* Loop and server; no store yet. Ends the test's process where there is none. */
void store_rig_start(struct store_rig *rig);
/* The options for this server; real time. */
struct weir_store_redis_options store_rig_options(struct store_rig *rig);
/* Opens the store and waits until it is connected. */
void store_rig_open(struct store_rig *rig, const struct weir_store_redis_options *options);
/* Server, options, store. `test_time`: scripts take rig->now_ns for the server's time. */
void store_rig_set_up(struct store_rig *rig, bool test_time);
/* Shuts the store down, and waits for it. */
void store_rig_close(struct store_rig *rig);
/* Ends all. */
void store_rig_end(struct store_rig *rig);

struct weir_limit store_rig_limit(enum weir_algorithm algorithm, uint64_t rate, uint64_t window_ns);

/* Makes it an empty decision. */
void store_rig_begin(struct rig_decision *decision, uint8_t op);
/* Adds a check on the key of this text. */
struct weir_check *store_rig_add(struct rig_decision *decision, const struct weir_limit *limit,
                                 const char *key, uint64_t cost);

/* Hands one over, without a flush. Returns whether it is pending. */
bool store_rig_submit(struct store_rig *rig, struct rig_decision *decision);
/* The same, a flush, and its end. Returns the verdict, or the error. */
int store_rig_decide(struct store_rig *rig, struct rig_decision *decision);
/* One cost of one key. */
int store_rig_take(struct store_rig *rig, const struct weir_limit *limit, const char *key,
                   uint64_t cost);

/* How often an event of this name was reported. */
uint32_t store_rig_events(const struct store_rig *rig, const char *name);

void store_rig_fail(struct store_rig *rig, const char *condition, const char *file, int line)
    __attribute__((noreturn));

#define STORE_UNTIL(rig, condition)                                                                \
    do {                                                                                           \
        uint64_t store_rig_by = uv_hrtime() + 60 * SECOND;                                         \
        while (!(condition)) {                                                                     \
            if (uv_hrtime() > store_rig_by)                                                        \
                store_rig_fail((rig), #condition, __FILE__, __LINE__);                             \
            uv_run(&(rig)->loop, UV_RUN_ONCE);                                                     \
        }                                                                                          \
    } while (0)

#endif
