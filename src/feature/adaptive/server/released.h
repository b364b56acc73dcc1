/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of leases as results for controllers: how long each lasted. See docs/adaptive.md. */
#ifndef WEIR_FEATURE_ADAPTIVE_SERVER_RELEASED_H
#define WEIR_FEATURE_ADAPTIVE_SERVER_RELEASED_H

#include "server/daemon/worker.h"

/* A decision that ends a lease by its token is done. `status`: of the request that held it, 100 to
 * 599; 0: not known. Nothing happens where the lease had ended before. */
void weir_released_tell(struct weir_worker *worker, const struct weir_decision *decision,
                        uint32_t status);

#endif
