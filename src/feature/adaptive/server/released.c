/* SPDX-License-Identifier: Apache-2.0 */
/* see released.h */
#include "feature/adaptive/server/released.h"

#include "engine/token/lease_token.h"
#include "feature/adaptive/server/controllers.h"

void weir_released_tell(struct weir_worker *worker, const struct weir_decision *decision,
                        uint32_t status)
{
    const struct weir_lease_begun *begun = weir_decision_lease_begun(decision);
    uint64_t now_ns = weir_worker_time(worker);
    uint64_t lasted_ns;

    if (!worker->controllers || decision->error != 0 || decision->verdict == WEIR_DENIED ||
        !weir_engine_lease_lasted(worker->engine, decision, now_ns, &lasted_ns))
        return;
    weir_controllers_released(worker->controllers, begun,
                              (struct weir_ended){.now_ns = now_ns,
                                                  .latency_ns = lasted_ns,
                                                  .has_latency = true,
                                                  .status = status,
                                                  .caller = begun->caller});
}
