/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong passwords and tokens, by the address that they come from: how long the next one waits.
 *
 * Each address has a debt of time (GCRA, as in core/bucket.h): a wrong guess adds WEIR_GUESS_MS to
 * it, and it passes with the time. As long as it is at most WEIR_GUESSES_FREE guesses an answer
 * comes at once; beyond that an answer waits for what lies above; and where that is
 * WEIR_GUESS_WAIT_MS or more, the guess is refused without being looked at, after that time. So an
 * address learns of one guess a second, on however many connections and workers. A right one waits,
 * and is refused, like a wrong one, or the time would tell which it was; it adds nothing. An IPv6
 * address counts by its /64, all peers of Unix sockets as one.
 *
 * That holds for connections that give their password once (Redis). HTTP and gRPC carry a token in
 * every request: a right one is never held back there, so that one who guesses does not shut out
 * all others behind the same address. A wrong one still waits, and the connection is closed after
 * WEIR_GUESSES_MAX of them in a row; but a client that reconnects instead of waiting gets as many
 * guesses as connections. So tokens must be long and random (docs/limits.md).
 *
 * Memory: WEIR_GUESSERS entries of 32 bytes, in sets of 8; the one with the least debt of its set
 * makes room. Threads: locked within; a right guess takes no lock while no address is in debt.
 */
#ifndef WEIR_SERVER_NET_GUESSES_H
#define WEIR_SERVER_NET_GUESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/text/address.h"
#include "server/daemon/limits.h"

struct weir_guesses;
struct weir_connection;

/* What is to be done about a guess. */
struct weir_guess {
    uint32_t wait_ms;  /* before it is answered */
    bool refused;      /* whatever it is: it was not counted */
    bool last;         /* the connection is to be closed after the answer */
    uint32_t reported; /* for the log: wrong ones since the line before; 0: no line is due */
};

/* `secret`: what addresses are hashed with; 2 words, copied. Errors: WEIR_ERR_MEMORY. */
int weir_guesses_open(struct weir_guesses **guesses, const uint64_t secret[2])
    __attribute__((warn_unused_result));
void weir_guesses_close(struct weir_guesses *guesses);

/* Takes a guess from an address. `now_ms` is of any clock that all callers share. Sets all of
 * `guess` but `last`. */
void weir_guesses_take(struct weir_guesses *guesses, const struct weir_address *peer,
                       uint64_t now_ms, bool right, struct weir_guess *guess);

/* The same for a connection of a worker: counts it (weir_listener.wrong_guesses, refused_guesses),
 * logs it, and closes the connection after WEIR_GUESSES_MAX wrong ones in a row. */
struct weir_guess weir_guess_of(struct weir_connection *connection, bool right);

#endif
