/* SPDX-License-Identifier: Apache-2.0 */
/* see failing_memory.h; the linker sends every call here (--wrap) */
#include "failing_memory.h"

#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static long left = -1; /* -1: nothing fails */
static int failed;

void failing_memory_after(long successes)
{
    left = successes;
    failed = 0;
}

int failing_memory_stop(void)
{
    left = -1;
    return failed;
}

static int fails_now(void)
{
    if (left < 0 || left-- > 0)
        return 0;
    failed = 1;
    return 1;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails_now() ? NULL : __real_realloc(memory, size);
}
