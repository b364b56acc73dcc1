/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel drops, in the life of the daemon. */
#ifndef WEIR_FEATURE_KERNEL_SERVER_DAEMON_H
#define WEIR_FEATURE_KERNEL_SERVER_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_kernel;

#endif
