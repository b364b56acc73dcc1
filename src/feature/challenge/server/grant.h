/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/challenge/grant: a program that has convinced itself of a client by other means (a
 * CAPTCHA, a check of the device) has the token made that a solved puzzle earns. See
 * docs/challenge.md.
 *
 *   {"client": "192.0.2.7", "class": "suspicious"}
 *   {"token": "...", "expires_in": 3600, "set_cookie": "__Host-weir=...; Path=/; ..."}
 *
 * It is a route of the listener of requests, for callers whom the listener trusts. The token holds
 * for the client's network, as long as a solved one, and for the class (legitimate, where it is not
 * given): it has the difficulty of that class.
 *
 * Threads: a call is of one worker.
 */
#ifndef WEIR_FEATURE_CHALLENGE_SERVER_GRANT_H
#define WEIR_FEATURE_CHALLENGE_SERVER_GRANT_H

#include "feature/challenge/token.h"
#include "rules/rules.h"
#include "server/http/http.h"

void weir_challenge_grant_handle(struct weir_http_call *call);

/* The cookie with a token, as Set-Cookie has it: NUL-terminated. */
struct weir_challenge_cookie {
    char text[512];
};
const char *weir_challenge_cookie_text(struct weir_challenge_cookie *cookie,
                                       const struct weir_challenge_settings *settings,
                                       const char token[WEIR_CHALLENGE_TOKEN_SIZE]);

#endif
