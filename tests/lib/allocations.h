/* Counts what our code allocates: the linker sends it (--wrap) through counters. A test that wants
 * them is linked with -Wl,--wrap= of malloc, calloc, realloc, aligned_alloc, posix_memalign and
 * strdup; what shared libraries allocate themselves is not counted. */
#ifndef TESTS_ALLOCATIONS_H
#define TESTS_ALLOCATIONS_H

#include <stdint.h>

extern uint64_t allocations; /* so far */

#endif
