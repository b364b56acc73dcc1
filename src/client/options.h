/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a client's options: their defaults and their ranges, as weir/client.h has them.
 * Threads: no state. */
#ifndef WEIR_CLIENT_OPTIONS_H
#define WEIR_CLIENT_OPTIONS_H

#include <weir/client.h>

/* Puts defaults where an option is zero. Errors: WEIR_ERR_RANGE (`reason` names the option). */
int weir_client_options_settle(struct weir_client_options *options, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
