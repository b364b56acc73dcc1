/* From checks to script calls, and from replies to outcomes: no sockets, no clock.
 *
 * A script call decides up to WEIR_CHECKS_MAX checks whose keys share a slot, atomically. There is
 * one script per algorithm for the common single check, and one for any mixture; both are put
 * together by the build from the same files (number.lua, one file per algorithm, decide.lua). They
 * decide in whole microseconds of the server's own clock (TIME), which is also what they answer, so
 * that outcomes can be reported later, by the core, from the state that they return.
 *
 * Keys: <prefix>{<tag>}<limit's name>:<key's text>, tag 16 hex digits: those of the rule's hash_tag
 * values, else of the key's own text. A limit of a command has no name: <prefix>{<tag>}!<text>.
 * Concurrency: <prefix>{<tag>}~<32 hex digits, SHA-256 of name and text>, which a lease's token can
 * name. Reservations: <prefix>{<tag>}?<id>; idempotency: <prefix>{<tag>}=<text>.
 * Every key has an expiry: when its state equals a fresh one, rounded up to a millisecond.
 */
#ifndef WEIR_STORE_REDIS_SCRIPT_H
#define WEIR_STORE_REDIS_SCRIPT_H

#include "core/check.h"
#include "store/redis/client.h"

enum redis_action {
    REDIS_DECIDE,    /* decision->op says which: decide, peek, debit, refund */
    REDIS_RESERVE,   /* decide, and remember under `id` what was charged, for REDIS_ROLL_BACK */
    REDIS_ROLL_BACK, /* give back what reservation `id` charged, once; a reservation of that id that
                        comes later is refused */
    REDIS_PEEK,      /* whatever decision->op: outcomes, nothing charged */
};

/* Some checks of a decision, all of one slot. */
struct redis_batch {
    const struct weir_decision *decision;
    const uint16_t *checks; /* indexes, `count` of them; those with a state only */
    uint16_t count;
    uint8_t action; /* enum redis_action */
    uint64_t id;    /* of the reservation */
    const char *prefix;
    uint64_t test_now_us; /* tests only; 0: the server's TIME */
};

/* The most bytes that a call of `count` checks takes, for keys of the texts given. */
size_t redis_script_size(const struct redis_batch *batch);

/* Writes the EVALSHA at `out` (redis_script_size bytes), sets *script and *slot (NULL: it is no
 * Cluster, where the slot is worth knowing). Returns its size. */
size_t redis_script_write(const struct redis_batch *batch, char *out,
                          const struct redis_script **script, uint16_t *slot);

/* Fills the outcomes of the batch's checks from a reply, *now_ns from the server's time in it, and
 * *repeated when the idempotency record was there. Returns WEIR_ALLOWED or WEIR_DENIED (these
 * checks together, as the decision's policy says). Errors: WEIR_ERR_STORE (an error reply; `reason`
 * has its text), WEIR_ERR_SYNTAX (no reply of ours). */
int redis_script_read(const struct redis_batch *batch, struct weir_decision *into,
                      const struct weir_resp_node *nodes, uint32_t count, uint64_t *now_ns,
                      bool *repeated, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Whether a limit can live in Redis: whole microseconds, and products that the scripts can hold.
 * Errors: WEIR_ERR_RANGE, with the field and the bound in `reason`. */
int redis_script_accepts(const struct weir_limit *limit, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* All scripts, for redis_client_options. */
extern const struct redis_script *const redis_scripts[];
extern const unsigned redis_script_count;

#endif
