/* SPDX-License-Identifier: Apache-2.0 */
/* From a command's arguments to a decision: numbers, keys, checks, and the slot that waits. See
 * resp.h. */
#ifndef WEIR_SERVER_RESP_DECIDE_H
#define WEIR_SERVER_RESP_DECIDE_H

#include "server/resp/resp.h"

/* The way of weir_resp_number for signs, 19 digits, and what is no number. */
bool weir_resp_number_any(struct weir_bytes arg, int64_t *value);

/* A decimal integer of 64 bits; a plus and leading zeros are taken, as redis-cell takes them. */
static inline bool weir_resp_number(struct weir_bytes arg, int64_t *value)
{
    if (__builtin_expect(arg.size - 1 >= 18, 0))
        return weir_resp_number_any(arg, value);
    int64_t number = 0;
    for (size_t i = 0; i < arg.size; i++) {
        unsigned digit = (unsigned char)(arg.data[i] - '0');
        if (digit > 9)
            return weir_resp_number_any(arg, value);
        number = number * 10 + (int)digit;
    }
    *value = number;
    return true;
}

/* Fills a check of `decision` on a key of a command: its hash, and the text that a shared
 * store knows it by. `limit` may be NULL for operations on states. False: there is no room for the
 * text, and it was answered. */
bool weir_resp_fill_check(struct weir_resp_call *call, struct weir_decision *decision, uint16_t i,
                          enum weir_resp_kind kind, struct weir_bytes key,
                          const struct weir_limit *limit);

/* Queues a decision of one check, whose reply `write` makes. */
void weir_resp_decide(struct weir_resp_call *call, enum weir_resp_kind kind, struct weir_bytes key,
                      const struct weir_limit *limit, enum weir_op op, uint64_t cost,
                      void (*write)(struct weir_slot *, struct weir_output *));

/* A slot that waits for a filled decision; slot->flags has the version of the protocol. */
void weir_resp_wait(struct weir_resp_call *call, struct weir_decision *decision,
                    void (*write)(struct weir_slot *, struct weir_output *));

/* Has everything that is queued decided, and tells the time at which that was. */
uint64_t weir_resp_settle(struct weir_resp_call *call);

#endif
