/* SPDX-License-Identifier: Apache-2.0 */
/* see own.h */
#include "server/own.h"

#include "server/daemon/daemon.h"

void *weir_own(const struct weir_daemon *daemon, enum weir_own what)
{
    return daemon->own[what];
}

void weir_own_set(struct weir_daemon *daemon, enum weir_own what, void *own)
{
    daemon->own[what] = own;
}
