/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel drops, in the life of the daemon. */
#ifndef WEIR_FEATURE_KERNEL_SERVER_DAEMON_H
#define WEIR_FEATURE_KERNEL_SERVER_DAEMON_H

#include "server/own.h"
#include "server/service.h"

struct weir_kernel_service;

extern const struct weir_service weir_service_kernel;

/* NULL: it is not open, or keeps nothing. */
static inline struct weir_kernel_service *weir_daemon_kernel(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_KERNEL);
}

#endif
