/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of people who have given the admin token on the dashboard's login page: which random ids
 * stand for it, and until when.
 *
 * A session ends after WEIR_SESSION_NS, when its owner logs out, or when the admin token is another
 * one: each session has a keyed hash (SipHash) of the token that it was begun with. There are at
 * most WEIR_SESSIONS_MAX; a further one takes the place of the one that would end first. Only who
 * has the token can begin one, so that nobody else can end sessions in that way.
 *
 * An id is 16 random bytes (RFC 6265 calls it a session identifier; OWASP asks for 64 bits of
 * entropy), and is looked for in time that does not depend on its bytes.
 *
 * A session may have the name of a person, as that person gave it: all who have the token may give
 * any. It says who did what, in the history and the log.
 *
 * Memory: 8 KiB. Threads: one owner, the main thread.
 */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_SESSIONS_H
#define WEIR_FEATURE_DASHBOARD_SERVER_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>

#define WEIR_SESSIONS_MAX 64
#define WEIR_SESSION_ID_BYTES 16
#define WEIR_SESSION_NAME_MAX 64 /* as long as `by` of the history */
#define WEIR_SESSION_S 43200     /* 12 hours: a working day */
#define WEIR_SESSION_NS (WEIR_SESSION_S * UINT64_C(1000000000))

struct weir_session {
    uint64_t token[2]; /* hash of the admin token */
    uint64_t until_ns; /* 0: a free place */
    unsigned char id[WEIR_SESSION_ID_BYTES];
    uint8_t name_size; /* 0: none */
    char name[WEIR_SESSION_NAME_MAX];
};

struct weir_sessions {
    uint64_t secret[2]; /* of the hashes */
    struct weir_session list[WEIR_SESSIONS_MAX];
};

/* Begins without any. `secret` is random. */
void weir_sessions_init(struct weir_sessions *sessions, const uint64_t secret[2]);

/* Whether a text may name a person: up to WEIR_SESSION_NAME_MAX bytes of UTF-8, without controls
 * and what hides or turns characters. Empty: no name. */
bool weir_session_name_is_fine(struct weir_bytes name);

/* Begins a session with a random id. `name` is fine. `now_ns` is of one clock for all calls. */
void weir_sessions_begin(struct weir_sessions *sessions,
                         const unsigned char id[WEIR_SESSION_ID_BYTES], const char *token,
                         struct weir_bytes name, uint64_t now_ns);

/* Whether an id stands for this token now. */
bool weir_sessions_has(const struct weir_sessions *sessions,
                       const unsigned char id[WEIR_SESSION_ID_BYTES], const char *token,
                       uint64_t now_ns);

/* The name of a session, until it ends; empty: it has none, or there is no such session. */
struct weir_bytes weir_sessions_name(const struct weir_sessions *sessions,
                                     const unsigned char id[WEIR_SESSION_ID_BYTES]);

/* Ends a session. False: there is none of this id. */
bool weir_sessions_end(struct weir_sessions *sessions,
                       const unsigned char id[WEIR_SESSION_ID_BYTES]);

/* Those that have not ended. */
unsigned weir_sessions_count(const struct weir_sessions *sessions, uint64_t now_ns);

#endif
