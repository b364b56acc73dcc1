/* SPDX-License-Identifier: Apache-2.0 */
/* see released.h */
#include "server/adaptive/released.h"

#include "engine/lease_token.h"
#include "server/adaptive/controllers.h"

void weir_released_tell(struct weir_worker *worker, const struct weir_decision *decision,
                        uint32_t status)
{
    const struct weir_lease_begun *begun = weir_decision_lease_begun(decision);
    uint64_t now_ns = weir_worker_time(worker);
    uint64_t store_ns = weir_engine_store_time(worker->engine, now_ns);

    if (!worker->controllers || begun->count == 0 || decision->error != 0 ||
        decision->verdict == WEIR_DENIED || store_ns < begun->ns)
        return;
    weir_controllers_released(worker->controllers, begun,
                              (struct weir_ended){.now_ns = now_ns,
                                                  .latency_ns = store_ns - begun->ns,
                                                  .has_latency = true,
                                                  .status = status});
}
