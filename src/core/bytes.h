/* What is asked of struct weir_bytes (weir/bytes.h) in many places. Pure functions, inline. */
#ifndef WEIR_CORE_BYTES_H
#define WEIR_CORE_BYTES_H

#include <stdbool.h>

#include <weir/bytes.h>

#include "core/memory.h"

/* Whether they have the same bytes. Absent is the same as empty here: who tells them apart asks for
 * `data` first. */
static inline bool weir_bytes_equal(struct weir_bytes a, struct weir_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

#endif
