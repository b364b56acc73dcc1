/* SPDX-License-Identifier: Apache-2.0 */
/* A table that is full, in the life of the daemon. */
#ifndef WEIR_SERVER_PRESSURE_DAEMON_H
#define WEIR_SERVER_PRESSURE_DAEMON_H

#include "server/own.h"
#include "server/service.h"

struct weir_pressure;
struct weir_table_account;

struct weir_pressure_run {
    struct weir_pressure *pressure;
    struct weir_table_account *accounts; /* where it reads those of the table */
};

extern const struct weir_service weir_service_pressure;

/* NULL: it is not open. */
static inline struct weir_pressure_run *weir_daemon_pressure(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_PRESSURE);
}

#endif
