/* SPDX-License-Identifier: Apache-2.0 */
/* The store's secret: what the nodes on it sign tokens with, so that each takes the others'.
 *
 * Redis has it under <prefix>secret, a text without an expiry. The first node makes it (SET
 * NX), all read it when they connect and every REDIS_SECRET_EVERY_NS, and keep it: where the key is
 * gone (a flush, an eviction, a Redis that has restarted empty), the next node that asks puts it
 * back.
 *
 * Rotation: an operator writes another text. A node that reads it takes tokens of both from then
 * on, but signs with the new one only REDIS_SECRET_ADOPT_NS later, when all others have read it
 * too. One former secret is kept; what was signed with an older one is no longer good.
 *
 * A reader of the key can forge tokens, and with them give back and charge at will: no more than
 * any client that may write to this Redis can do anyway.
 *
 * Memory: some hundred bytes. Threads: one for all workers of a node, so that all know it when one
 * does; locked within, and not on the path of a decision. Time is an argument.
 */
#ifndef WEIR_STORE_REDIS_SECRET_H
#define WEIR_STORE_REDIS_SECRET_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>

#define REDIS_SECRET_TEXT_MIN 16
#define REDIS_SECRET_TEXT_MAX 64
#define REDIS_SECRET_EVERY_NS UINT64_C(2000000000)
#define REDIS_SECRET_ADOPT_NS (2 * REDIS_SECRET_EVERY_NS)
#define REDIS_SECRETS 2 /* the newest, and the one before it */

struct redis_secret {
    pthread_mutex_t lock;
    uint64_t words[REDIS_SECRETS][2];
    uint64_t adopted_at_ns; /* from then on the newest signs */
    uint8_t known;          /* of `words` */
    uint8_t size;
    char text[REDIS_SECRET_TEXT_MAX]; /* the newest; while none is known, what is proposed */
};

/* `seed` is what the proposal is made of: random, from a good source. */
void redis_secret_init(struct redis_secret *secret, const uint64_t seed[2]);
void redis_secret_end(struct redis_secret *secret);

enum redis_secret_result {
    REDIS_SECRET_SAME,
    REDIS_SECRET_FIRST,
    REDIS_SECRET_OTHER, /* it has been replaced */
    REDIS_SECRET_NONE,  /* the text is none: too short, or too long */
};

/* Takes the text that is in Redis. */
enum redis_secret_result redis_secret_take(struct redis_secret *secret, struct weir_bytes text,
                                           uint64_t now_ns);

/* Writes the text to be put into Redis if there is none. Returns its size. */
size_t redis_secret_text(struct redis_secret *secret, char text[REDIS_SECRET_TEXT_MAX]);

/* Takes the `i`-th secret whose tokens are good; 0: the one to sign with. False: there is none. */
bool redis_secret_at(struct redis_secret *secret, unsigned i, uint64_t now_ns, uint64_t words[2]);

#endif
