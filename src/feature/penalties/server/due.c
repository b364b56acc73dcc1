/* SPDX-License-Identifier: Apache-2.0 */
/* see due.h */
#include "feature/penalties/server/due.h"

#include <stdlib.h>

#define ROOM_MIN 64

struct weir_due_term {
    uint64_t at_ns;
    struct weir_packed_strike *strike;
};

static bool grow(struct weir_due_terms *due)
{
    uint32_t room = due->room ? 2 * due->room : ROOM_MIN;
    struct weir_due_term *terms;

    if (due->count < due->room)
        return true;
    if (due->count == WEIR_DUE_TERMS_MAX)
        return false;
    terms = realloc(due->terms, room * sizeof *terms);
    if (!terms)
        return false;
    due->terms = terms;
    due->room = room;
    return true;
}

bool weir_due_terms_add(struct weir_due_terms *due, const struct weir_queued_strike *strike,
                        uint64_t at_ns)
{
    struct weir_packed_strike *packed = grow(due) ? weir_queued_strike_pack(strike) : NULL;
    uint32_t at;

    if (!packed)
        return false;
    at = due->count++;
    for (; at > 0 && due->terms[(at - 1) / 2].at_ns > at_ns; at = (at - 1) / 2)
        due->terms[at] = due->terms[(at - 1) / 2];
    due->terms[at] = (struct weir_due_term){at_ns, packed};
    return true;
}

/* Puts the last term where the first one was, and down to its place. */
static void close_gap(struct weir_due_terms *due)
{
    struct weir_due_term last = due->terms[--due->count];
    uint32_t at = 0, child;

    for (; (child = 2 * at + 1) < due->count; at = child) {
        if (child + 1 < due->count && due->terms[child + 1].at_ns < due->terms[child].at_ns)
            child++;
        if (due->terms[child].at_ns >= last.at_ns)
            break;
        due->terms[at] = due->terms[child];
    }
    due->terms[at] = last;
}

bool weir_due_terms_take(struct weir_due_terms *due, uint64_t now_ns,
                         struct weir_queued_strike *strike)
{
    if (due->count == 0 || due->terms[0].at_ns > now_ns)
        return false;
    weir_queued_strike_unpack(due->terms[0].strike, strike);
    free(due->terms[0].strike);
    close_gap(due);
    return true;
}

void weir_due_terms_free(struct weir_due_terms *due)
{
    for (uint32_t i = 0; i < due->count; i++)
        free(due->terms[i].strike);
    free(due->terms);
    *due = (struct weir_due_terms){.count = 0};
}
