/* SPDX-License-Identifier: Apache-2.0 */
/* see string.h */
#ifndef PLAYGROUND_STRINGS_H
#define PLAYGROUND_STRINGS_H

#include <stddef.h>

int strncasecmp(const char *a, const char *b, size_t size);

#endif
