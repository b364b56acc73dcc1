/* SPDX-License-Identifier: Apache-2.0 */
/* Whose request it was, as a number: what tells callers apart for limits that follow health.
 *
 *   | 32 bits of a keyed hash of the user, else of the address (of IPv6 the /64) | 32 bits of MAC |
 *
 * Tokens of leases carry it and clients hold them, so it has a MAC: a client with one token
 * can pass for the caller that it was given to, and for no other. The number says nothing of the
 * caller to those without the secret.
 *
 * Threads: pure.
 */
#ifndef WEIR_ENGINE_TOKEN_CALLER_H
#define WEIR_ENGINE_TOKEN_CALLER_H

#include "core/text/address.h"
#include <weir/bytes.h>

/* 0: neither is known. user.data NULL: nobody has said who it is. */
uint64_t weir_caller_number(const uint64_t secret[2], struct weir_bytes user,
                            const struct weir_address *client);

/* Whether this secret has made the number. */
bool weir_caller_number_holds(const uint64_t secret[2], uint64_t number);

#endif
