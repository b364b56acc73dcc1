/* SPDX-License-Identifier: Apache-2.0 */
/* Reserving and settling, for every front end: what stands between the engine's settlements and the
 * list of open reservations. See feature/reserve/engine/reservation.h.
 *
 * The caller that a place in that list counts for: of the limits that are charged, the one whose
 * key has the fewest fields, but at least one, names the caller by the value of its key (of several
 * such limits the first). So a client that varies the other fields stays the same caller. Where
 * every limit has the key [], the address is the caller (an IPv6 one by its /64); also until a
 * directory has found the caller. A reservation that can charge nothing needs no place, and one
 * that has charged nothing keeps none.
 *
 * Threads: a worker's own.
 */
#ifndef WEIR_FEATURE_RESERVE_SERVER_RESERVE_H
#define WEIR_FEATURE_RESERVE_SERVER_RESERVE_H

#include "feature/reserve/server/reservations.h"
#include "server/daemon/worker.h"

/* How front ends word what goes wrong. */
#define WEIR_SETTLE_LATE                                                                           \
    "the life of this reservation has ended: what was reserved has been given back"
#define WEIR_SETTLE_FAILED "the store did not answer: settle again"
#define WEIR_SETTLE_UNKNOWN                                                                        \
    "not a reservation of this node, and what others sign with is not known yet: settle again"
#define WEIR_SETTLE_NONE "not a reservation of this node, nor of its store"
#define WEIR_SETTLE_KEPT "settled, but the store did not answer: what was reserved stays charged"

struct weir_reserve {
    struct weir_decision *decision; /* that the rules have filled, not yet queued */
    uint64_t estimate, life_ns;
    uint32_t place; /* claimed for it: its slot keeps it */
};

/* Makes a decision one to reserve by; its slot's `write` calls weir_reserve_finish. Errors:
 * WEIR_ERR_FULL (too many are open, of this caller or of all), as weir_engine_apply_reservation. */
int weir_reserve_begin(struct weir_connection *connection, struct weir_reserve *reserve,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

/* Lets a new slot wait for it. */
void weir_reserve_wait(struct weir_slot *slot, const struct weir_reserve *reserve);

/* There is no memory for a slot: gives back the place and the decision. */
void weir_reserve_cancel(struct weir_worker *worker, const struct weir_reserve *reserve);

/* It is decided. Returns the size of its token, 0 where it was denied. */
size_t weir_reserve_finish(const struct weir_slot *slot, char token[WEIR_RESERVATION_TEXT_MAX],
                           uint64_t *life_ns);

/* The owner of a reservation whose connection has gone while the store had it: its place,
 * distinguished from a slot by an odd address. */
_Static_assert(UINTPTR_MAX > UINT64_C(2) * UINT32_MAX, "a place fits");
static inline void *weir_reserve_owner(uint32_t place)
{
    return (void *)((uintptr_t)place << 1 | 1);
}
static inline uint32_t weir_reserve_place(const void *owner)
{
    return (uint32_t)((uintptr_t)owner >> 1);
}
/* Whether a decision has no slot, so that its end is for weir_reserve_alone. */
static inline bool weir_reserve_is_alone(const struct weir_decision *decision)
{
    return !decision->owner || ((uintptr_t)decision->owner & 1) != 0;
}

/* A decision without a slot is done: a release, or a reservation whose connection has gone. */
void weir_reserve_alone(struct weir_worker *worker, struct weir_decision *decision);

/* Adds a true cost by its name to a settlement, whose `costs` have room for it. False: no limit
 * counts it, or it was given before under another spelling; `reason` says which. */
bool weir_settle_add(const struct weir_worker *worker, struct weir_settle *settle,
                     struct weir_true_cost costs[WEIR_TRUE_COSTS_MAX], struct weir_bytes name,
                     uint64_t amount, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Makes a taken decision the settlement of a token. Errors: as weir_engine_apply_settle. */
int weir_settle_begin(struct weir_worker *worker, struct weir_decision *decision,
                      struct weir_bytes token, const struct weir_settle *settle)
    __attribute__((warn_unused_result));
void weir_settle_finish(struct weir_worker *worker, const struct weir_decision *decision,
                        struct weir_settled *settled);

/* One limit of a finished settlement; of several rates the tightest. */
struct weir_settled_limit {
    const char *name;
    uint64_t amount, dropped; /* given back, or charged; and what lies beyond the floor of debt */
    bool charged;
    struct weir_report report;
};

/* Fills the limit that begins at check `i` < settled->count. Returns where the next begins. */
uint16_t weir_settled_limit(const struct weir_decision *decision,
                            const struct weir_settled *settled, uint16_t i,
                            struct weir_settled_limit *limit);
/* How many there are. */
uint16_t weir_settled_count(const struct weir_decision *decision,
                            const struct weir_settled *settled);

/* Releases those whose life has ended: some of them, a tick. */
void weir_reserve_tick(struct weir_worker *worker);

#endif
