/* SPDX-License-Identifier: Apache-2.0 */
/* see list.h: the one list of features. */
#include "server/daemon/services/list.h"

#include <string.h>

#include "feature/adaptive/server/daemon.h"
#include "feature/challenge/server/daemon.h"
#include "feature/dashboard/server/daemon.h"
#include "feature/envoy/server/daemon.h"
#include "feature/identity/server/daemon.h"
#include "feature/kernel/server/daemon.h"
#include "feature/penalties/server/daemon.h"
#include "feature/region/server/daemon.h"
#include "feature/reserve/server/daemon.h"
#include "feature/score/server/daemon.h"
#include "feature/standing/server/daemon.h"
#include "feature/sticky/server/daemon.h"
#include "feature/use/server/daemon.h"
#include "feature/webhook/server/daemon.h"
#include "server/adhoc/daemon.h"
#include "server/admin/daemon.h"
#include "server/daemon/daemon.h"
#include "server/daemon/state/state.h"
#include "server/grpc/daemon.h"
#include "server/http/daemon.h"
#include "server/net/daemon.h"
#include "server/pressure/daemon.h"
#include "server/resp/front.h"
#include "server/stores/daemon.h"

/* Each after those that it needs: the table needs none, penalties need standing and the webhook,
 * the kernel standing, the dashboard use, Envoy's service the limits of requests. */
const struct weir_service *const weir_services[] = {
    &weir_service_http,
    &weir_service_resp,
    &weir_service_grpc,
    &weir_service_admin,
    &weir_service_limits,
    &weir_service_score,
    &weir_service_stores,
    &weir_service_regions,
    &weir_service_sticky,
    &weir_service_state,
    &weir_service_identities,
    &weir_service_webhook,
    &weir_service_standing,
    &weir_service_kernel,
    &weir_service_penalties,
    &weir_service_net,
    &weir_service_adaptive,
    &weir_service_use,
    &weir_service_dashboard,
    &weir_service_pressure,
    &weir_service_reservations,
    &weir_service_adhoc,
    &weir_service_envoy,
    &weir_service_challenge,
    NULL,
};
bool weir_services_have(const char *name)
{
    for (size_t i = 0; weir_services[i]; i++)
        if (strcmp(weir_services[i]->name, name) == 0)
            return !weir_services[i]->needs || weir_services_have(weir_services[i]->needs);
    return false;
}

_Static_assert(sizeof weir_services / sizeof *weir_services <= WEIR_SERVICES_MAX + 1,
               "grow WEIR_SERVICES_MAX");
