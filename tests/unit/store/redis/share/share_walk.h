/* SPDX-License-Identifier: Apache-2.0 */
/* Which states a walk through every order of events has met. A state is written as a text of words:
 * all that can make a difference later, and nothing else. The set keeps 63 bits of its hash.
 *
 * Memory: 8 bytes << bits; at most three quarters of them are used. */
#ifndef SHARE_WALK_H
#define SHARE_WALK_H

#include "share_server.h"

#define SHARE_TEXT_WORDS 400

struct share_text {
    uint64_t words[SHARE_TEXT_WORDS];
    uint32_t count;
};

void share_text_put(struct share_text *text, uint64_t word);

/* One holder's share, at its clock's time. */
void share_text_share(struct share_text *text, const struct share *share, uint64_t now_ns);

/* A server whose state is of this limit. */
void share_text_server(struct share_text *text, const struct weir_limit *limit,
                       const struct share_server *server, uint64_t now_ns);

/* Adds a message to a sum: messages are a set, in what place one is does not matter. */
void share_text_add(uint64_t *sum, const void *message, size_t size);

struct share_walk {
    uint64_t *seen, mask, states;
};

void share_walk_open(struct share_walk *walk, unsigned bits);
void share_walk_close(struct share_walk *walk);

/* Whether a state is met for the first time. */
bool share_walk_is_new(struct share_walk *walk, const struct share_text *text);

#endif
