/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what our code allocates: the linker sends it (--wrap) through counters. A test that wants
 * them is built with counted_sources and counted_link_args (tests/meson.build); what shared
 * libraries allocate themselves is not counted. */
#ifndef TESTS_ALLOCATIONS_H
#define TESTS_ALLOCATIONS_H

#include <stdint.h>

extern uint64_t allocations; /* so far */

#endif
