/* SPDX-License-Identifier: Apache-2.0 */
/* see guesses.h */
#include "server/net/guesses.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "rules/counted.h"
#include "server/daemon/worker.h"
#include "server/net/peers.h"

#define WAYS 8
#define SETS (WEIR_GUESSERS / WAYS)
_Static_assert((SETS & (SETS - 1)) == 0, "a set is chosen by bits");

#define FREE_MS (WEIR_GUESSES_FREE * (uint64_t)WEIR_GUESS_MS)

struct guesser {
    uint64_t hash;     /* of the address */
    uint64_t until_ms; /* when its debt is paid; 0: a free entry */
    uint64_t said_ms;  /* when it was last logged */
    uint32_t wrong;    /* since then */
};

struct weir_guesses {
    pthread_mutex_t mutex;
    uint64_t secret[2];
    _Atomic uint64_t until_ms; /* the latest of all */
    struct guesser guessers[SETS][WAYS];
};

int weir_guesses_open(struct weir_guesses **guesses, const uint64_t secret[2])
{
    struct weir_guesses *g = calloc(1, sizeof *g);
    if (!g)
        return WEIR_ERR_MEMORY;
    pthread_mutex_init(&g->mutex, NULL);
    memcpy(g->secret, secret, sizeof g->secret);
    *guesses = g;
    return 0;
}

void weir_guesses_close(struct weir_guesses *guesses)
{
    if (!guesses)
        return;
    pthread_mutex_destroy(&guesses->mutex);
    free(guesses);
}

/* The entry of an address, or, where it has none, the one that would make room for it. */
static struct guesser *find(struct weir_guesses *g, uint64_t hash)
{
    struct guesser *set = g->guessers[hash & (SETS - 1)], *least = set;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].until_ms && set[i].hash == hash)
            return &set[i];
        if (set[i].until_ms < least->until_ms)
            least = &set[i];
    }
    return least;
}

/* Counts a wrong guess; says when a line of the log is due. */
static void charge(struct weir_guesses *g, struct guesser *guesser, uint64_t hash, uint64_t now_ms,
                   struct weir_guess *guess)
{
    if (!guesser->until_ms || guesser->hash != hash)
        *guesser = (struct guesser){.hash = hash};
    guesser->until_ms = (guesser->until_ms > now_ms ? guesser->until_ms : now_ms) + WEIR_GUESS_MS;
    if (guesser->until_ms > atomic_load_explicit(&g->until_ms, memory_order_relaxed))
        atomic_store_explicit(&g->until_ms, guesser->until_ms, memory_order_relaxed);
    guesser->wrong++;
    if (guesser->said_ms && now_ms < guesser->said_ms + WEIR_LOG_AGAIN_MS)
        return;
    guess->reported = guesser->wrong;
    guesser->wrong = 0;
    guesser->said_ms = now_ms | 1;
}

void weir_guesses_take(struct weir_guesses *g, const struct weir_address *peer, uint64_t now_ms,
                       bool right, struct weir_guess *guess)
{
    *guess = (struct weir_guess){0};
    if (right && atomic_load_explicit(&g->until_ms, memory_order_relaxed) <= now_ms)
        return;
    uint64_t hash = weir_peer_hash(g->secret, peer, WEIR_PEER_HASH_ADDRESS);
    pthread_mutex_lock(&g->mutex);
    struct guesser *guesser = find(g, hash);
    bool known = guesser->until_ms > now_ms && guesser->hash == hash;
    uint64_t debt_ms = known ? guesser->until_ms - now_ms : 0;
    uint64_t wait_ms = debt_ms > FREE_MS ? debt_ms - FREE_MS : 0;
    guess->refused = wait_ms >= WEIR_GUESS_WAIT_MS;
    guess->wait_ms = (uint32_t)(guess->refused ? WEIR_GUESS_WAIT_MS : wait_ms);
    if (!right && !guess->refused)
        charge(g, guesser, hash, now_ms, guess);
    pthread_mutex_unlock(&g->mutex);
}

/* --- For connections -------------------------------------------------------------------------- */

/* Of the lines of a second, so many may be about guesses, from however many addresses. */
#define LINES_PER_SECOND (WEIR_LOG_LINES_PER_SECOND / 10)

static void log_guess(const struct weir_connection *connection, uint32_t count)
{
    char peer[WEIR_ADDRESS_TEXT_MAX] = "unix";
    struct weir_log_line line;
    if (connection->peer.family)
        weir_address_format(&connection->peer, peer);
    weir_log_begin_below(&line, connection->worker->log, WEIR_LOG_WARNING, "auth_failed",
                         LINES_PER_SECOND);
    weir_log_text(&line, "front", connection->listener->front->name);
    weir_log_text(&line, "peer", peer);
    weir_log_number(&line, "count", count);
    weir_log_end(&line);
}

struct weir_guess weir_guess_of(struct weir_connection *connection, bool right)
{
    struct weir_worker *worker = connection->worker;
    struct weir_listener *listener = connection->listener;
    struct weir_guess guess = {0};
    struct weir_address inside;
    if (worker->guesses)
        weir_guesses_take(
            worker->guesses,
            weir_rules_counted_by(weir_worker_rules(worker), &connection->peer, &inside),
            uv_now(worker->loop), right, &guess);
    if (guess.refused) {
        weir_count(&listener->refused_guesses, 1);
        guess.last = true;
    } else if (!right) {
        weir_count(&listener->wrong_guesses, 1);
        guess.last = ++connection->guesses >= WEIR_GUESSES_MAX;
    } else {
        connection->guesses = 0;
    }
    if (guess.reported)
        log_guess(connection, guess.reported);
    return guess;
}
