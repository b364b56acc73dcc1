/* SPDX-License-Identifier: Apache-2.0 */
/* A client of a running server's admin listener: what its limits are doing, for `weir top`; topping
 * up a key, for `weir grant`; standing, for `weir standing`, `ban`, `unban` and `allow`.
 *
 * One connection (libcurl) is kept over all questions. Answers are JSON (jansson); a field that is
 * missing or of another type counts as zero or empty, so that an older or newer server can be
 * watched. Nothing is followed but the address that was given: no proxy, no redirect.
 *
 * Threads: one owner.
 */
#ifndef WEIR_CLI_ADMIN_CLIENT_H
#define WEIR_CLI_ADMIN_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#include "feature/score/rules/score.h"

/* An answer may be as large as this: 10,000 limits take about 3 MiB. */
#define ADMIN_ANSWER_MAX ((size_t)16 << 20)

/* How a candidate's verdicts compare with those of its limit. */
struct admin_candidate {
    uint64_t same, stricter, looser, skipped;
};

struct admin_limit {
    char *name, *algorithm;
    char *pool; /* "": it borrows from none */
    bool shadow, tries;
    uint64_t allowed, denied; /* denied: by a shadow limit, what it would have denied */
    uint64_t borrowed;
    uint64_t evictions, overflows;    /* of its keys: see docs/state.md */
    struct admin_candidate candidate; /* where it `tries` one */
    json_t *json;                     /* all that the server says of it */
};

struct admin_key {
    char *limit, *key;
    uint64_t denied, error; /* denied is at most `error` too high */
};

/* What the server said at one moment. */
struct admin_answer {
    struct admin_limit *limits; /* in the order of the rules file */
    size_t limit_count;
    uint64_t evictions, overflows; /* of all keys, those of commands and records too */
    struct admin_key *keys;        /* most denied first, over all limits */
    size_t key_count;
    bool scores;                    /* the rules have `score` */
    uint64_t classes[WEIR_CLASSES]; /* then: requests of each class */
    json_t *refused;                /* requests by the cause of their refusal; NULL: not said */
};

struct admin_client;

/* `address`: "127.0.0.1:9090", "[::1]:9090" or "unix:/path"; `token` may be NULL. Both are copied.
 * Errors: WEIR_ERR_MEMORY. */
int admin_client_open(struct admin_client **client, const char *address, const char *token)
    __attribute__((warn_unused_result));
void admin_client_close(struct admin_client *client);

/* Asks for the limits and the `keys` most denied keys of each that denied anything. The caller
 * frees the answer (admin_answer_free), also after an error.
 * Errors, with `reason`: WEIR_ERR_IO (no connection, no answer in time, another status than 200),
 * WEIR_ERR_TOO_LARGE, WEIR_ERR_SYNTAX (not the JSON of an admin listener), WEIR_ERR_MEMORY. */
int admin_client_ask(struct admin_client *client, uint64_t keys, struct admin_answer *answer,
                     struct weir_reason *reason) __attribute__((warn_unused_result));
void admin_answer_free(struct admin_answer *answer);

/* The real name of a key that an answer has, not fit for a terminal yet: "user=100%" of one whole
 * value, and else the text of the key, which escapes what it joins. The caller frees it; NULL: no
 * memory. */
char *admin_key_name(const json_t *item);

/* Gives units back to one key of a limit. Errors: as above; `reason` is what the server says. */
struct admin_grant {
    const char *limit;
    const char *plan, *user; /* whose rates count; NULL: none is named */
    const char *const *keys; /* values of the limit's key, in its order */
    size_t key_count;
    uint64_t units;
    bool above;          /* above the limit: units that were bought */
    const char *expires; /* then: how long they live; NULL: as the rules say */
};
struct admin_granted {
    bool granted; /* false: it had used nothing */
    uint64_t limit, remaining;
    uint64_t bought, ends_after_ms; /* with `above`: what is left of all that was bought */
};
int admin_client_grant(struct admin_client *client, const struct admin_grant *grant,
                       struct admin_granted *granted, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* A parameter of a query; without a value it is left out. */
struct admin_parameter {
    const char *name, *value;
};

/* Sends a request of any method to a path with parameters, and a body of JSON (NULL: none). *answer
 * is the JSON object that came, the caller's. Errors: as above. */
int admin_client_call(struct admin_client *client, const char *method, const char *path,
                      const struct admin_parameter *parameters, size_t count, const char *body,
                      json_t **answer, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
