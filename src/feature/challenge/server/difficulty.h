/* SPDX-License-Identifier: Apache-2.0 */
/* How difficult the puzzle of one client is: the one place that decides it. Where the rules have a
 * difficulty for each class, the client's score is found from the request for the puzzle itself,
 * with the behaviour that the client has shown before; that request is no part of it. */
#ifndef WEIR_FEATURE_CHALLENGE_SERVER_DIFFICULTY_H
#define WEIR_FEATURE_CHALLENGE_SERVER_DIFFICULTY_H

#include "server/http/http.h"

/* In bits, 1 to WEIR_CHALLENGE_DIFFICULTY_MAX; `client` asks for a puzzle with this call. */
uint8_t weir_challenge_difficulty(struct weir_http_call *call, const struct weir_address *client);

#endif
