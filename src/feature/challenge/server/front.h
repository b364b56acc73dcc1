/* SPDX-License-Identifier: Apache-2.0 */
/* The listener of the challenge: hands out puzzles, takes solutions, sets the cookie. It serves one
 * path; at all others it says that there is nothing. See docs/challenge.md and
 * feature/challenge/puzzle.h.
 *
 *   GET /.weir/challenge?to=/path   a page that solves a puzzle; a problem document with the puzzle
 *                                   for clients whose Accept does not name text/html
 *   POST /.weir/challenge           puzzle, solution and to as a form: 303 to the path, with the
 *                                   cookie; or 200 with the token as JSON
 *
 * A person gets pages in a language of Accept-Language, also for what goes wrong (person.h).
 *
 * A solution is taken once: its record goes to the store, and the reply waits for that.
 *
 * Threads: a workspace belongs to one worker.
 */
#ifndef WEIR_FEATURE_CHALLENGE_SERVER_FRONT_H
#define WEIR_FEATURE_CHALLENGE_SERVER_FRONT_H

#include "feature/challenge/server/refusal.h"

/* What the listener of one worker has beside struct weir_http. */
struct weir_challenge_work {
    _Atomic uint64_t served, solved;
    _Atomic uint64_t refused[WEIR_CHALLENGE_REFUSALS];
    char page[WEIR_PAGE_MAX]; /* while it is written */
};

#define WEIR_CHALLENGE_ROUTES 2
extern const struct weir_http_route weir_challenge_routes[WEIR_CHALLENGE_ROUTES];

#endif
