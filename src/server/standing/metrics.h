/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of standing. Threads: the admin worker's. */
#ifndef WEIR_SERVER_STANDING_METRICS_H
#define WEIR_SERVER_STANDING_METRICS_H

#include "server/admin/exposition.h"

void weir_metrics_of_standing(struct weir_metrics *metrics);

#endif
