/* SPDX-License-Identifier: Apache-2.0 */
/* What all filters of a process with the same rules file and the same state share: one open
 * `struct weir`, so that each reload of a listener takes no further place of the state.
 *
 * It is opened by the first configuration and closed with the last one. A configuration that comes
 * later reads the rules file anew, as does a change of that file (looked for once a second, taken
 * when it has stood still for a second); rules with errors leave those before in force. A state
 * that cannot be opened is libweir's to retry; meanwhile `on_error` of the filter counts, else
 * on_store_error of the limits.
 *
 * Memory: 20 KiB, and that of libweir. Threads: get, put and the module's own thread exclude each
 * other; the rest is read by any worker.
 */
#ifndef WEIR_EVY_SHARED_H
#define WEIR_EVY_SHARED_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include <weir/embed.h>

#include "envoy/clock.h"
#include "envoy/settings.h"
#include "proxy/reads.h"

/* A lease of a stream, which the module's thread renews. */
struct weir_evy_lease {
    struct weir_evy_lease *before, *after; /* in a ring, by renewed_ns */
    uint64_t life_ns, renewed_ns;
    struct weir_lease_token token;
};

/* What requests run into, and libweir does not log. */
enum weir_evy_news {
    WEIR_EVY_REFUSED,   /* a request got 400 */
    WEIR_EVY_UNDECIDED, /* on_error decided, or a request got an error */
    WEIR_EVY_UNSETTLED, /* a charge stays as it is */
    WEIR_EVY_NEWS,
};

struct weir_evy_shared {
    struct weir_evy_shared *next;
    unsigned users;      /* configurations */
    uint32_t number;     /* of this opening, from 1 on: handles are its */
    char *rules, *state; /* state NULL: the rules file's */
    struct weir *weir;
    struct weir_reads reads;
    bool reads_requests;    /* the rules read connection.requests */
    _Atomic bool usable;    /* the state is open */
    _Atomic int rules_say;  /* enum weir_on_store_error */
    struct stat file, seen; /* the rules file as loaded, and as last seen */
    uint64_t tended_ns;
    _Atomic uint64_t news_ns[WEIR_EVY_NEWS]; /* when each may be logged again */
    pthread_mutex_t mutex;                   /* of the leases */
    struct weir_evy_lease leases;            /* the ring */
};

/* That of a filter's settings. Errors: as weir_open and weir_reload; WEIR_ERR_UNSUPPORTED (the
 * rules read what Envoy does not tell). */
int weir_evy_shared_get(struct weir_evy_shared **shared, const struct weir_evy_settings *settings,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

void weir_evy_shared_put(struct weir_evy_shared *shared);

/* The module's thread. Only between get and put. */
struct weir_evy_clock *weir_evy_clock(void);

/* Keeps a lease alive until it ends. NULL: without memory, and it is ended. */
struct weir_evy_lease *weir_evy_lease_keep(struct weir_evy_shared *shared,
                                           const struct weir_lease_token *token, uint64_t life_ns);
/* NULL is ignored. */
void weir_evy_lease_end(struct weir_evy_shared *shared, struct weir_evy_lease *lease);

/* Envoy's log. */
void weir_evy_log(enum weir_evy_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, once a minute for each kind of news: what clients do does not fill the log. */
void weir_evy_tell(struct weir_evy_shared *shared, enum weir_evy_news news, const char *what,
                   int err);

#endif
