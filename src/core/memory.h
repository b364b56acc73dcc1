/* SPDX-License-Identifier: Apache-2.0 */
/* memcpy and its kin, the only functions that the core calls and does not define. <string.h> is not
 * there on the freestanding targets (wasm32, BPF) that the core also compiles for. */
#ifndef WEIR_CORE_MEMORY_H
#define WEIR_CORE_MEMORY_H

#if __STDC_HOSTED__
#include <string.h>
#else
#include <stddef.h>
void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
#endif

#endif
