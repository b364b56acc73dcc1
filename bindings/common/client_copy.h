/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of what libweir-client lends to its callbacks, for threads of another language.
 *
 * Ownership: the caller frees a copy. Errors: *no_memory is set and the copy is NULL. Threads: any.
 */
#ifndef WEIR_BINDINGS_CLIENT_COPY_H
#define WEIR_BINDINGS_CLIENT_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/client.h>

/* `size` bytes and a NUL; NULL of NULL. */
void *client_copy(const void *from, size_t size, bool *no_memory);

/* An answer whose headers and body are copies. */
struct weir_client_answer client_copy_answer(const struct weir_client_answer *from,
                                             bool *no_memory);

#endif
