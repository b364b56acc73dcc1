/* SPDX-License-Identifier: Apache-2.0 */
/* EVAL, EVALSHA, EVAL_RO, EVALSHA_RO and SCRIPT, for the scripts of limiter libraries. See
 * ../resp.h.
 *
 * weir runs no Lua. A script that it knows by the SHA-1 of its text (known.h) is an algorithm of
 * weir's own with the same arguments and the same reply:
 *
 *   counting   fixed windows and their like: edits of counters, as the script counts
 *   deciding   buckets and logs: decisions on limits, exact where the script counts in doubles or
 *              whole seconds
 *   rates      several buckets or logs of one key, decided together
 *
 * Times among the arguments are ignored: weir's clock decides. No text is kept, and SCRIPT LOAD
 * answers the hash of a known one; what is unknown is NOSCRIPT, or an error that names the page of
 * the docs.
 */
#ifndef WEIR_SERVER_RESP_SCRIPT_SCRIPT_H
#define WEIR_SERVER_RESP_SCRIPT_SCRIPT_H

#include "server/resp/resp.h"
#include "server/resp/script/known.h"

/* One call of a script, taken apart. */
struct weir_script_call {
    struct weir_resp_call *call;
    enum weir_script script;
    const struct weir_bytes *keys, *args;
    uint32_t key_count, arg_count;
};

void weir_resp_eval(struct weir_resp_call *call);
void weir_resp_evalsha(struct weir_resp_call *call);
void weir_resp_script(struct weir_resp_call *call);

/* The argument at `i` as an integer from `min` to `max`. False: it was answered. */
bool weir_script_integer(const struct weir_script_call *script, uint32_t i, int64_t min,
                         int64_t max, int64_t *value);

/* The argument at `i`, above 0 and at most 1e12, as a fraction of integers of at most 2^40: the
 * simplest one that is the same double. False: it was answered. */
bool weir_script_fraction(const struct weir_script_call *script, uint32_t i, uint64_t *numerator,
                          uint64_t *denominator);

/* --- Replies -----------------------------------------------------------------------------------
 */

enum weir_script_type {
    WEIR_SCRIPT_INTEGER,
    WEIR_SCRIPT_STRING,  /* the number as a string */
    WEIR_SCRIPT_SECONDS, /* nanoseconds, as a string of seconds */
    WEIR_SCRIPT_NULL,
    WEIR_SCRIPT_OK,
};

struct weir_script_item {
    uint8_t type;
    int64_t number;
};

/* An array of `count` items; `single`: one item alone. */
struct weir_script_reply {
    const char *error; /* static; instead of all else. NULL: none */
    uint8_t count;
    bool single;
    struct weir_script_item items[4];
};

static inline void weir_script_say(struct weir_script_reply *reply, enum weir_script_type type,
                                   int64_t number)
{
    reply->items[reply->count++] = (struct weir_script_item){(uint8_t)type, number};
}

/* Writes a reply for a slot, whose flags have the version of the protocol. */
void weir_script_write(struct weir_slot *slot, struct weir_output *output,
                       const struct weir_script_reply *reply);

#endif
