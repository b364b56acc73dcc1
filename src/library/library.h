/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources of libweir share: a struct weir, and what a call does with its lane. */
#ifndef WEIR_LIBRARY_LIBRARY_H
#define WEIR_LIBRARY_LIBRARY_H

#include <pthread.h>

#include <weir/weir.h>

#include "library/absence.h"
#include "library/attributes.h"
#include "library/engine_slots.h"
#include "library/strikes.h"
#include "rules/counter.h"
#include "table/operate.h"

/* Whom an operator's lines go to: weir_options.say. */
struct library_say {
    void (*say)(void *context, enum weir_say level, const char *text);
    void *context;
};

/* What is said once a minute at most, while it lasts. */
enum library_news { LIBRARY_STOPPED, LIBRARY_STANDING, LIBRARY_STRIKES, LIBRARY_NEWS };

struct weir {
    struct weir_engine_slots lanes;
    _Atomic(struct weir_table *) table; /* changes once, where it is a stand-in at first */
    struct weir_table *spare; /* see weir_table_open_spare; NULL: private memory, a stand-in */
    struct weir_absence absence;
    struct weir_attributes attributes;
    struct weir_library_strikes strikes;
    char *rules_file;
    struct library_say say;
    _Atomic uint64_t unknown_told, unknown_next_ns; /* library_leave */
    _Atomic uint64_t news_next_ns[LIBRARY_NEWS];
    bool names_are_configured; /* weir_front "nginx": names come from a configuration */
    pthread_mutex_t reloading;
    struct weir_lease_owners owners;         /* that were alive when weir_tend last looked */
    uint32_t generations[WEIR_LEASE_OWNERS]; /* of the last owner of each slot by then */
    uint64_t tended;                         /* where its walk continues; 0: there is none */
    const struct weir_table *looked_at;      /* of which table these are */
    _Atomic uint64_t test_ns;                /* a clock for tests; 0: the kernel's */
    /* A page that the kernel zeroes in a child (MADV_WIPEONFORK): tells it that the table's owner
     * slots are its parent's, for the price of a load. */
    unsigned char *ours;
    size_t page_size;
};

/* False in a child of the process that opened it. */
static inline bool library_is_ours(const struct weir *weir)
{
    return *(const volatile unsigned char *)weir->ours != 0;
}

uint64_t library_clock(clockid_t clock);

/* Unix time, or what a clock for tests makes of it. */
uint64_t library_wall_time(const struct weir *weir);

/* What stands for CLOCK_BOOTTIME in the times of the state. */
uint64_t library_boot_time(const struct weir *weir);

/* The time of the state now; `context` is a struct weir. */
uint64_t library_time(void *context);

/* The file that keeps the state; NULL: private memory. */
const char *library_state_file(const struct weir *weir, const struct weir_options *options,
                               const struct weir_rules *rules);

/* Ends the leases of processes that have died in up to `buckets` buckets of the state, from where
 * the last call stopped. Returns how many it ended. */
uint64_t library_end_dead(struct weir *weir, uint64_t buckets);

/* The lane's time, which is also noted in the state once in a while. */
uint64_t library_now(struct weir *weir, struct weir_lane *lane);

/* `weir serve` may have begun to keep standing, or replaced its map. */
void library_renew_standing(struct weir *weir, struct weir_lane *lane);

/* Options of a program's size (core/sized.h), of which `given` may be NULL. NULL: it sets one that
 * is not known. */
const struct weir_options *library_options(const struct weir_options *given, size_t size,
                                           struct weir_options *room);

/* Says one line; without somebody to say it to, on standard error. The callback may call libweir,
 * so no lane is taken then. */
void library_say(const struct library_say *say, enum weir_say level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Takes the rules that are in force from now on, and says it where no server keeps their penalties.
 */
void library_look_for_keeper(struct weir *weir, const struct weir_rules *rules);
/* Says what is deprecated in rules that were loaded. */
void library_say_deprecated(const struct library_say *say, const struct weir_problems *problems);
/* Says what X-RateLimit-Reset means now, at a start by rules that do not choose it. */
void library_say_of_reset(const struct library_say *say, const char *file,
                          const struct weir_rules *rules);

/* Which table weir_open opens, except its path and the times; the texts are those of rules and
 * options. */
struct weir_table_options library_table_options(const struct weir_rules *rules,
                                                const struct weir_options *options);

/* Leaves the lane of a decision. Then says at once, and then once a minute, which names in requests
 * are neither built in nor declared, that a process on the state is stopped, and that there is no
 * map of standing. Costs some loads where there is nothing to say. `store_failed`: of the answer;
 * false: there is none. */
void library_leave(struct weir *weir, struct weir_lane *lane, bool store_failed);

/* Loads a rules file and refuses what libweir cannot do. Errors: WEIR_ERR_RULES,
 * WEIR_ERR_UNSUPPORTED, WEIR_ERR_MEMORY; `problems` are the caller's to free. */
int library_load(struct weir_rules **rules, const char *file, struct weir_problems *problems,
                 struct weir_reason *reason) __attribute__((warn_unused_result));

/* Makes the rules' limits known to the table. Errors: as weir_open. */
int library_prepare(struct weir_rules *rules, struct weir_table *table, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
