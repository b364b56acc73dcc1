/* SPDX-License-Identifier: Apache-2.0 */
/* What listeners know of their callers, in the life of the daemon: guesses and overlooked names. */
#ifndef WEIR_SERVER_NET_DAEMON_H
#define WEIR_SERVER_NET_DAEMON_H

#include "server/net/guesses.h"
#include "server/net/overlooked.h"
#include "server/net/peers.h"
#include "server/own.h"
#include "server/service.h"

struct weir_net {
    struct weir_guesses *guesses;
    struct weir_overlooked overlooked;
    struct weir_peers *peers; /* opened when the listeners are planned */
};

extern const struct weir_service weir_service_net;

/* NULL: it is not open. */
static inline struct weir_net *weir_daemon_net(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_NET);
}

#endif
