/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the calls on use, read and checked in one place; and what those calls share.
 *
 * Threads: the admin worker's.
 */
#ifndef WEIR_FEATURE_USE_SERVER_QUERY_H
#define WEIR_FEATURE_USE_SERVER_QUERY_H

#include "feature/use/server/use.h"
#include "server/http/http.h"

enum weir_use_order {
    WEIR_USE_BY_REQUESTS,
    WEIR_USE_BY_COST,
    WEIR_USE_BY_SHARE,
    WEIR_USE_BY_DENIED
};

/* "minute", "hour", "day". */
extern const char *const weir_use_window_names[WEIR_WINDOWS];

/* Which parameters a call takes: a bit each. */
enum weir_use_parameter {
    WEIR_USE_P_LIMIT = 1,
    WEIR_USE_P_KEY = 2,
    WEIR_USE_P_WINDOW = 4,
    WEIR_USE_P_BY = 8,
    WEIR_USE_P_COUNT = 16,
    WEIR_USE_P_ABOVE = 32,
    WEIR_USE_P_SINCE = 64, /* since, until: seconds since the epoch, or "10min": ago */
    WEIR_USE_P_AFTER = 128,
    WEIR_USE_P_WAIT = 256,
    WEIR_USE_P_RESOLUTION = 512,
    WEIR_USE_P_UNTIL = 1024,
    WEIR_USE_P_CALLER = 2048, /* user, org, address: the callers */
    WEIR_USE_P_KIND = 4096,   /* of callers */
    WEIR_USE_P_ROUTE = 8192,
    WEIR_USE_P_CAUSE = 16384, /* enum weir_cause, by name */
    WEIR_USE_P_BEFORE = 32768,
    WEIR_USE_P_FIELDS = 65536, /* of a series, by name */
};

struct json_t;

struct weir_use_query {
    struct weir_bytes limit, key, kind, route;      /* data == NULL: not given */
    struct weir_bytes callers[WEIR_DENIAL_CALLERS]; /* user, org, address: likewise */
    enum weir_window window;
    enum weir_use_order by;
    uint64_t count;
    uint64_t above;              /* percent */
    uint64_t since_ns, until_ns; /* 0: not given */
    uint64_t after, wait_s;
    uint64_t before; /* 0: not given */
    unsigned causes; /* a bit for each; 0: not given */
    uint32_t fields; /* likewise, enum weir_use_whole_field */
    bool after_given, minutes;
};

/* Reads the query of a call that takes the parameters of `takes`. `query` has its defaults.
 * `now_ns` is what "ago" counts from. False: the call was answered with a problem. */
bool weir_use_query_read(struct weir_http_call *call, unsigned takes, uint64_t now_ns,
                         struct weir_use_query *query);

/* The denials that a query asks for; its texts are borrowed. */
struct weir_denial_filter weir_use_query_filter(const struct weir_use_query *query);

/* Adds to an answer whether the rules have the limit that was asked for: "limit_known", and where
 * not, "did_you_mean": one of theirs, or null. Without a limit it is known. */
void weir_use_say_limit(struct json_t *answer, const struct weir_use_service *use,
                        struct weir_bytes limit);

/* The service of a call's daemon. */
struct weir_use_service *weir_use_of(const struct weir_http_call *call);

#endif
