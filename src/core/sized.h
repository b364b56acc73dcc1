/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of a public header that may grow at their end while a library keeps its soversion.
 *
 * The header's inline functions hand the size that a program was compiled with to the library, as
 * Linux's openat2 and clone3 take their arguments. A smaller struct has the default, zero, for what
 * it lacks. A larger one must not set what this library does not know. Threads: no state. */
#ifndef WEIR_CORE_SIZED_H
#define WEIR_CORE_SIZED_H

#include <stddef.h>
#include <string.h>

/* The caller's struct of `size` bytes as the library declares it: what is given where the sizes
 * agree, else a copy in `room`, whose size is `room_size`. NULL: it sets what is not known. */
static inline const void *weir_sized(const void *given, size_t size, void *room, size_t room_size)
{
    const unsigned char *bytes = (const unsigned char *)given;
    if (size == room_size)
        return given;
    for (size_t i = room_size; i < size; i++)
        if (bytes[i] != 0)
            return NULL;
    memset(room, 0, room_size);
    memcpy(room, given, size < room_size ? size : room_size);
    return room;
}

/* The other way: what the library answers, `whole`, into the caller's struct of `size` bytes. What
 * a larger one has beyond it is zero. */
static inline void weir_sized_tell(void *to, size_t size, const void *whole, size_t whole_size)
{
    size_t known = size < whole_size ? size : whole_size;
    memcpy(to, whole, known);
    memset((unsigned char *)to + known, 0, size - known);
}

#endif
