/* SPDX-License-Identifier: Apache-2.0 */
/* Private copies of the limits among a file's parameters.
 *
 * States of other limits than those of a check are read by the parameters in the file: when room is
 * made, a state is carried over, or leases end. Every process that may write the file can change
 * them there, at any moment, and a divisor of 0 would end this process. So a process computes only
 * with copies of its own: the spec of the parameters, compiled again, whose checksum fits.
 *
 * A copy is used as long as the checksum beside the parameters is that which it was made from, so
 * that an id that was dropped and given to another limit has another copy. A process that changes a
 * checksum in the file makes the copy here anew, or, where it fits nothing, makes the parameters
 * unknown.
 *
 * A reader gets the copy by value, under a sequence lock: it is never changed while it is used, and
 * no reader waits. Making one takes a mutex and about a microsecond.
 *
 * Memory: 208 bytes for each of WEIR_TABLE_PARAMS_MAX parameters, of which the system allocates the
 * pages that are used. Threads: internally locked.
 */
#ifndef WEIR_TABLE_LIMIT_COPY_H
#define WEIR_TABLE_LIMIT_COPY_H

#include "table/layout.h"

struct limit_copies;

/* NULL: no memory. */
struct limit_copies *limit_copies_open(void);
void limit_copies_close(struct limit_copies *copies);

/* Copies the limit of parameters that may change at any moment, of this id, to `limit`; as
 * region_limit returns it. False: they are damaged. */
bool limit_copy_read(struct limit_copies *copies, const struct table_param *param, uint16_t id,
                     struct weir_limit *limit);

/* The limit of parameters, compiled from their spec. False: that is not what they are. */
bool limit_copy_compile(const struct table_param *param, uint16_t id, struct weir_limit *limit);

#endif
