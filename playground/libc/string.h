/* SPDX-License-Identifier: Apache-2.0 */
/* What the codecs call of libc, for the module of the page, which has none (reader.c defines it).
 */
#ifndef PLAYGROUND_STRING_H
#define PLAYGROUND_STRING_H

#include <stddef.h>

void *memchr(const void *block, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
char *strchr(const char *text, int wanted);
size_t strlen(const char *text);

#endif
