/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the wire: cmocka, random numbers, and input whose end is followed by an
 * unmapped page. */
#ifndef UNIT_WIRE_H
#define UNIT_WIRE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <weir/bytes.h>
#include <weir/error.h>

#include "draw.h"

/* Memory for a test; the caller frees it. */
static inline void *memory_new(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL)
        abort();
    return memory;
}

/* A region of memory followed by a page that must not be touched. */
struct guarded {
    char *start, *end;
};

static inline struct guarded guarded_new(size_t room)
{
    size_t page = 4096, size = (room + page - 1) / page * page;
    char *start =
        mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(start != MAP_FAILED);
    assert_int_equal(mprotect(start + size, page, PROT_NONE), 0);
    return (struct guarded){start, start + size};
}

static inline void guarded_free(struct guarded *guarded)
{
    munmap(guarded->start, (size_t)(guarded->end - guarded->start) + 4096);
}

/* Copies `size` bytes so that they end at the guard page. */
static inline char *guarded_put(struct guarded *guarded, const void *data, size_t size)
{
    char *at = guarded->end - size;
    assert_true(at >= guarded->start);
    if (size > 0)
        memcpy(at, data, size);
    return at;
}

static inline void assert_bytes(struct weir_bytes bytes, const char *expected)
{
    if (expected == NULL) {
        assert_null(bytes.data);
        return;
    }
    if (bytes.data == NULL || bytes.size != strlen(expected) ||
        memcmp(bytes.data, expected, bytes.size) != 0) {
        fail_msg("\"%.*s\" is not \"%s\"", (int)bytes.size, bytes.data ? bytes.data : "(absent)",
                 expected);
    }
}

#endif
