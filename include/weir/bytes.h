/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of memory that belongs to another module: never owned, never NUL-terminated. data == NULL
 * means absent; an empty value has a non-NULL data and size 0. */
#ifndef WEIR_BYTES_H
#define WEIR_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct weir_bytes {
    const char *data;
    size_t size;
};

#endif
