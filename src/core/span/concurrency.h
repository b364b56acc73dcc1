/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency: leases in flight, ended by their id, their owner's end, or their expiry; see
 * expiry_list.h for the layout.
 *
 * A lease expires at its admission + life. A limit that is reloaded with a shorter life takes
 * leases that expire before older ones, so the list is kept in the order of expiry, not of
 * admission. Where time goes backwards a lease is simply further from its expiry.
 *
 * Memory: 32 * N + 16 bytes, N at most WEIR_LEASES_MAX. Edits of a charge: at most 10.
 */
#ifndef WEIR_CORE_SPAN_CONCURRENCY_H
#define WEIR_CORE_SPAN_CONCURRENCY_H

#include "core/span/span_change.h"

bool concurrency_test(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
                      uint64_t cost);
void concurrency_charge(const struct weir_limit *limit, const struct span_change *change,
                        const struct weir_use *use);
void concurrency_refund(const struct weir_limit *limit, const struct span_change *change,
                        const struct weir_use *use);
uint32_t concurrency_release(const struct weir_limit *limit, const struct span_change *change,
                             uint64_t lease_id);
uint32_t concurrency_end_owner(const struct weir_limit *limit, const struct span_change *change,
                               uint64_t owner);
uint32_t concurrency_end_dead(const struct weir_limit *limit, const struct span_change *change,
                              const struct weir_lease_owners *alive);
uint32_t concurrency_renew(const struct weir_limit *limit, const struct span_change *change,
                           const struct weir_use *use);

/* Compiles what is a list of leases' own of a limit: see struct algorithm_row. */
int concurrency_init(struct weir_limit *limit, struct weir_reason *reason);

#endif
