/* SPDX-License-Identifier: Apache-2.0 */
/* see list.h: the one file that knows which features there are. */
#include "server/daemon/services/list.h"

#include "server/adaptive/daemon.h"
#include "server/adhoc/daemon.h"
#include "server/admin/daemon.h"
#include "server/daemon/daemon.h"
#include "server/daemon/state/state.h"
#include "server/dashboard/daemon.h"
#include "server/envoy/daemon.h"
#include "server/identity/daemon.h"
#include "server/kernel/daemon.h"
#include "server/net/daemon.h"
#include "server/penalties/daemon.h"
#include "server/pressure/daemon.h"
#include "server/region/daemon.h"
#include "server/reserve/daemon.h"
#include "server/standing/daemon.h"
#include "server/sticky/daemon.h"
#include "server/stores/daemon.h"
#include "server/use/daemon.h"
#include "server/webhook/daemon.h"

/* Each after those that it needs: the table needs none, penalties need standing and the webhook,
 * the kernel standing, the dashboard use, Envoy's service the limits of requests. */
const struct weir_service *const weir_services[] = {
    &weir_service_admin,
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
    NULL,
};
_Static_assert(sizeof weir_services / sizeof *weir_services <= WEIR_SERVICES_MAX + 1,
               "grow WEIR_SERVICES_MAX");
