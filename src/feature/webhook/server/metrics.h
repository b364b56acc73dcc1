/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the webhook. */
#ifndef WEIR_FEATURE_WEBHOOK_SERVER_METRICS_H
#define WEIR_FEATURE_WEBHOOK_SERVER_METRICS_H

#include "server/admin/exposition.h"

/* Writes nothing without a webhook. */
void weir_metrics_of_webhook(struct weir_metrics *metrics);

#endif
