/* SPDX-License-Identifier: Apache-2.0 */
/* A denial as it is remembered: one denied request, the limit to blame, and its numbers at that
 * moment; its form in JSON; and filters.
 *
 * It says whose key the limit has counted by, and who has asked: they differ where a limit counts
 * by organisation. It holds no secret and no raw path: secrets are shown as SHA-256, and routes are
 * patterns of the rules file.
 *
 *   {"time":"2026-11-23T14:03:07.214Z","time_ns":…,"key":"user=ann",
 *    "values":[{"kind":"user","value":"ann"}],"caller":[{"kind":"user","value":"ann"},…],
 *    "limit":"search","route":"/search","plan":"free","cost":1,"capacity":60,"remaining":0,"retry_after_ms":12000,
 *    "reset_after_ms":60000,"algorithm":"sliding_window","policy":"60;w=60","action":"reject",
 *    "standing":"good","source":"store","cause":"limit","node":"web-1","more":0}
 *
 * Threads: plain data.
 */
#ifndef WEIR_FEATURE_USE_SERVER_DENIAL_H
#define WEIR_FEATURE_USE_SERVER_DENIAL_H

#include <jansson.h>
#include <stdbool.h>

#include <weir/bytes.h>
#include <weir/limit.h>

#include "feature/use/engine/cause.h"
#include "feature/use/server/asked.h"

#define WEIR_DENIAL_LIMIT_MAX 64
#define WEIR_DENIAL_ROUTE_MAX 96
#define WEIR_DENIAL_PLAN_MAX 48
#define WEIR_DENIAL_NODE_MAX 64

struct weir_denial {
    uint64_t sequence; /* given where it is kept: 1, 2, 3, … */
    uint64_t time_ns;  /* of the decision, since the epoch */
    uint64_t cost, capacity, remaining;
    uint64_t retry_after_ns, reset_after_ns; /* WEIR_NEVER: no wait helps */
    uint64_t rate, window_ns;                /* of the policy; window_ns 0: none */
    uint64_t more; /* denials of the same key and limit before it that were not kept */
    uint64_t hash[2];
    int8_t algorithm;       /* enum weir_algorithm; -1: none, as for a standing */
    uint8_t action, source; /* enum weir_action, enum weir_source */
    uint8_t standing;       /* enum weir_standing_level */
    uint8_t limit_size, route_size, plan_size, node_size; /* of the texts, without a NUL */
    struct weir_shown_list key;                           /* of the limit, or of the standing */
    struct weir_shown_list caller; /* user, org and client.ip, as far as they are known */
    char limit[WEIR_DENIAL_LIMIT_MAX], route[WEIR_DENIAL_ROUTE_MAX];
    char plan[WEIR_DENIAL_PLAN_MAX], node[WEIR_DENIAL_NODE_MAX];
};

#define WEIR_DENIAL_CALLERS 3 /* user, org, client.ip */

/* Copies a text into a field, cut between characters. Returns its size. */
uint8_t weir_denial_copy(char *field, size_t max, struct weir_bytes text);

/* "5;w=60": how many in how many seconds. False: it is no such text. */
bool weir_denial_policy_read(const char *text, uint64_t *rate, uint64_t *window_s);

/* Why it was refused, as the counters have it (feature/use/engine/cause.h). */
enum weir_cause weir_denial_cause(const struct weir_denial *denial);

/* As a JSON object; NULL: no memory. With `sequence`, as `id`. */
json_t *weir_denial_json(const struct weir_denial *denial);

/* The most bytes of a line of the denial file, with its end. */
#define WEIR_DENIAL_LINE_MAX 8192

/* Reads one line of a denial file: whatever a file may have. False: it is not a denial. A member
 * that is missing, or not of its type, is empty; a text that is too long is cut. */
bool weir_denial_read(struct weir_denial *denial, const char *line, size_t size);

/* A choice of denials; all of it has to hold. */
struct weir_denial_filter {
    struct weir_asked key;                          /* the key, a value in it, or who has asked */
    struct weir_asked callers[WEIR_DENIAL_CALLERS]; /* who has asked, or a value of the key */
    struct weir_bytes limit, route;                 /* by name; data == NULL: any */
    unsigned causes;                                /* a bit for each; 0: any */
    uint64_t since_ns, until_ns;                    /* until_ns 0: now and later */
};
bool weir_denial_matches(const struct weir_denial *denial, const struct weir_denial_filter *filter);

#endif
