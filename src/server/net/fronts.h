/* SPDX-License-Identifier: Apache-2.0 */
/* The front ends of a server, each with its listener: a list that the services make
 * (server/service.h), and what the settings of the rules say of each. */
#ifndef WEIR_SERVER_NET_FRONTS_H
#define WEIR_SERVER_NET_FRONTS_H

#include "rules/rules.h"
#include "server/net/front.h"

struct weir_fronts {
    const struct weir_front *list[WEIR_FRONTS_MAX];
    unsigned count;
};

/* The part of the settings that describes the listener of a front end. */
const struct weir_listener_settings *weir_front_settings(const struct weir_front *front,
                                                         const struct weir_settings *settings);

/* The address in there, or the default; "off": none. */
const char *weir_front_address(const struct weir_front *front,
                               const struct weir_settings *settings);

#endif
