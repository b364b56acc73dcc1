/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of algorithms between C and the scripts: one row of form.c for each, with its name in
 * Lua (the kind of its states), the script that decides a plain check alone, how a check is packed,
 * how its part of a reply is read, and which limits of it Redis cannot keep. pack.h has the
 * layouts.
 *
 * A row and a file of lua/ are what an algorithm needs here; script.c asks the row.
 *
 * Threads: constants.
 */
#ifndef WEIR_STORE_REDIS_SCRIPT_FORM_H
#define WEIR_STORE_REDIS_SCRIPT_FORM_H

#include "store/redis/script/pack.h"

enum { REDIS_MARK_ADMITTED = 1, REDIS_MARK_CHARGED = 2, REDIS_MARK_RETRY = 4, REDIS_MARK_NEXT = 8 };

#define REDIS_TAT_MAX_US (((UINT64_C(1) << 63) - 1) / 1000) /* what a debt reaches */

/* A part of a reply while it is read. The functions return false where it has no such number. */
struct redis_part {
    const char *at;
    size_t left; /* numbers of eight bytes */
    uint8_t mark;
    bool is_state; /* the state itself, of a plain check that was charged */
    uint64_t now_us;
};
bool redis_part_begin(struct redis_part *part, struct weir_bytes text);
bool redis_part_number(struct redis_part *part, uint64_t max, uint64_t *value);
bool redis_part_time(struct redis_part *part, uint64_t *us);
/* What a state says of its limit, which the caller knows. */
bool redis_part_skip(struct redis_part *part, size_t numbers);

struct redis_form {
    uint8_t kind; /* the first byte of its states, as the Lua file registers it in `states` */
    uint8_t size; /* bytes of a packed check, at most, without REDIS_PACKED_MORE */
    const struct redis_script *single; /* decides one plain check; NULL: the mixture does */
    /* Writes a check after its kind and flags; returns where it ended. */
    char *(*pack)(char *out, const struct weir_check *check, const struct weir_lease *lease,
                  uint64_t now_ns);
    bool (*read)(struct redis_part *part, const struct weir_check *check,
                 struct weir_outcome *outcome);
    /* Errors: as redis_script_accepts. NULL: Redis keeps all of them. */
    int (*accepts)(const struct weir_limit *limit, struct weir_reason *reason);
};

const struct redis_form *redis_form_of(const struct weir_limit *limit);

/* `accepts` of the limit's form. */
int redis_form_accepts(const struct weir_limit *limit, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Each returns where it ended: a check with its kind and flags (`now_ns`: of the batch); and what
 * is done to a state, as a lease of a limit that is not known. */
char *redis_pack_check(char *out, const struct weir_check *check, const struct weir_lease *lease,
                       uint64_t now_ns);
char *redis_pack_operation(char *out, const struct weir_lease *lease);

#endif
