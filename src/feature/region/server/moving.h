/* SPDX-License-Identifier: Apache-2.0 */
/* One line for the begin and the end of a change of homes (feature/region/rules/region.h): an
 * operator has to know when each node has the file with `moving: true`, and how long to wait then.
 */
#ifndef WEIR_FEATURE_REGION_SERVER_MOVING_H
#define WEIR_FEATURE_REGION_SERVER_MOVING_H

#include "rules/rules.h"
#include "server/daemon/log.h"

/* Rules are taken over in the place of others (NULL: at the start). */
void weir_region_log_moving(struct weir_log *log, const struct weir_rules *before,
                            const struct weir_rules *rules);

#endif
