/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/pressure/daemon.h"

#include "server/pressure/pressure_log.h"

const struct weir_service weir_service_pressure = {
    .name = "state",
    .open = weir_daemon_pressure_open,
    .tick = weir_daemon_pressure_tick,
    .close = weir_daemon_pressure_close,
};
