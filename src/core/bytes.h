/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for struct weir_bytes (weir/bytes.h). Pure functions, inline. */
#ifndef WEIR_CORE_BYTES_H
#define WEIR_CORE_BYTES_H

#include <stdbool.h>

#include <weir/bytes.h>

#include <string.h>

#include "core/memory.h"

/* Whether both have the same bytes. Absent (`data` is NULL) equals empty. */
static inline bool weir_bytes_equal(struct weir_bytes a, struct weir_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* The bytes of `text`, without the NUL that ends it. */
static inline struct weir_bytes weir_bytes_of(const char *text)
{
    return (struct weir_bytes){text, strlen(text)};
}

/* Whether the bytes are those of `text`, which ends with a NUL. Absent equals "". */
static inline bool weir_bytes_are(struct weir_bytes bytes, const char *text)
{
    return weir_bytes_equal(bytes, weir_bytes_of(text));
}

/* Without the spaces and tabs around it. */
static inline struct weir_bytes weir_bytes_trim(struct weir_bytes text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

#endif
