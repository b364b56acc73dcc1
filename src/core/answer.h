/* SPDX-License-Identifier: Apache-2.0 */
/* An answer: what a client learns of a finished decision. Made by the engine from a decision and
 * its rules, written by the codecs; plain data, so that a codec needs neither. */
#ifndef WEIR_CORE_ANSWER_H
#define WEIR_CORE_ANSWER_H

#include "core/check.h"

/* Dialects of rate-limit headers, bits of a set. */
enum weir_header_dialect {
    WEIR_HEADERS_DRAFT =
        1, /* RateLimit, RateLimit-Policy: draft-ietf-httpapi-ratelimit-headers-08..11 */
    WEIR_HEADERS_DRAFT_03 = 2,   /* RateLimit-Limit, -Remaining, -Reset (seconds) */
    WEIR_HEADERS_X_EPOCH = 4,    /* X-RateLimit-*, reset as seconds since the epoch */
    WEIR_HEADERS_X_DELTA = 8,    /* X-RateLimit-*, reset in seconds */
    WEIR_HEADERS_COST = 16,      /* X-RateLimit-Cost: what the request took of the limit shown */
    WEIR_HEADERS_STANDING = 32,  /* X-RateLimit-Standing: the caller's standing, unless `good` */
    WEIR_HEADERS_DIMENSION = 64, /* X-RateLimit-Dimension: the limit that denies */
};

/* What is done with a request, the strictest last. */
enum weir_action {
    WEIR_ACTION_NONE,
    WEIR_ACTION_MARK,      /* admitted, and the upstream sees the action */
    WEIR_ACTION_DELAY,     /* admitted, after delay_ns */
    WEIR_ACTION_CHALLENGE, /* denied, because it has not passed a challenge */
    WEIR_ACTION_TARPIT,    /* denied, after delay_ns */
    WEIR_ACTION_REJECT,    /* denied */
    WEIR_ACTIONS
};

/* What is used of a limit has reached a soft threshold. */
struct weir_answer_warning {
    uint64_t used, capacity;
    uint8_t percent; /* the highest threshold that is reached; 0: none, or the request is denied */
};

/* One of several rates of a limit, which is a policy of its own in the RateLimit fields. */
struct weir_answer_rate {
    const struct weir_limit *limit;
    struct weir_report report;
    uint64_t next_ns; /* as in struct weir_answer_limit */
    uint8_t scale;    /* as in struct weir_answer_limit */
    bool allowed;
};

/* What is the same in all RateLimit fields of one limit: made once
 * (weir_ratelimit_texts_make of wire/http/ratelimit_headers.h). */
#define WEIR_LIMIT_TEXT_MAX 128
struct weir_limit_texts {
    uint8_t policy_size, quota_size;  /* 0: the limit has none, and fields are written from it */
    char policy[WEIR_LIMIT_TEXT_MAX]; /* its member of RateLimit-Policy: "login";q=5;w=60 */
    char quota[WEIR_LIMIT_TEXT_MAX];  /* of RateLimit, up to its numbers: "login";r= */
};

struct weir_answer_limit {
    struct weir_bytes name;
    const struct weir_limit_texts *texts; /* of `name` and `limit`; NULL: there are none, or not at
                                             this scale */
    const struct weir_limit *limit;       /* NULL: a state-less check (always deny) */
    struct weir_report report;
    uint64_t next_ns; /* until a cost of 1 is admitted: 0 while remaining > 0, WEIR_NEVER when N =
                         0. Filled by the engine; report.retry_after_ns is for the request's own
                         cost and is 0 when it was allowed */
    uint64_t cost;
    struct weir_answer_warning warning;
    uint8_t rate_count; /* several rates: they are rates[first_rate..+rate_count) of the answer, in
                           the order of the rules file, and `limit`, `report` and `allowed` are the
                           tightest one's (weir_decision_tightest); 0: the limit has one rate */
    uint8_t first_rate;
    uint8_t scale; /* percent of the limit's rate that requests like this one have; 0: all of it.
                      `report` is theirs, `limit` at 100 % */
    bool allowed, shadow, unlimited;
    bool borrowed; /* it is the pool of limits that deny, and was charged in their place */
    bool bought;   /* it denies, and what was bought above it was charged: `remaining` is of that */
    bool overflow; /* the table had no room for its key: `report` and `next_ns` are estimates */
};

/* The caller's standing (`standing:`), where it is another than `good`. Texts belong to the
 * decision and its rules. */
struct weir_answer_standing {
    struct weir_bytes level;  /* "throttled"; data == NULL: good, or the rules keep none */
    struct weir_bytes reason; /* size 0: none is known */
    uint64_t ends_ns;         /* from now_ns; WEIR_NEVER: it has no end */
    bool refused;             /* the request is denied for it, and denied_by is -1 */
    bool unknown;             /* refused, but by `on_unknown: deny`, not for a standing */
    uint16_t status;          /* refused: the HTTP status of the answer to the client */
    struct weir_bytes body,
        content_type; /* refused: of that answer; data == NULL: problem details */
};

/* What the score of a client says of it. */
enum weir_class {
    WEIR_CLASS_LEGITIMATE,
    WEIR_CLASS_SUSPICIOUS,
    WEIR_CLASS_MALICIOUS,
    WEIR_CLASSES
};

/* A signal of `score:`, and what it adds where it holds. */
struct weir_answer_signal {
    struct weir_bytes name;
    uint16_t add;
};
#define WEIR_SIGNALS_MAX 32

/* The caller's score (`score:`). Texts belong to the rules. */
struct weir_answer_score {
    struct weir_bytes class; /* "suspicious"; data == NULL: the rules keep no scores */
    uint16_t score;
    uint32_t held;                            /* signals that hold, a bit each */
    const struct weir_answer_signal *signals; /* with `debug: true`; else NULL */
};

/* What `denied_by` is called where the caller's standing denies. */
#define WEIR_ANSWER_BY_STANDING "standing"
/* And where `on_unknown: deny` does. */
#define WEIR_ANSWER_BY_UNKNOWN "unknown"

/* The URL of the documentation that denials name, at most. */
#define WEIR_DOCUMENTATION_MAX 256

struct weir_reject;

struct weir_answer {
    bool allowed;
    bool repeated;           /* decided before, by its idempotency key: allowed, nothing charged */
    int16_t denied_by;       /* index into limits; -1: none, or the standing (standing.refused) */
    uint64_t retry_after_ns; /* of what denies; 0 when allowed */
    uint64_t delay_ns;       /* how long to hold the request, or its denial (WEIR_ACTION_TARPIT) */
    uint64_t now_ns;         /* the decision's time */
    struct weir_bytes lease; /* the token to release with; data == NULL: none */
    uint8_t source;          /* enum weir_source */
    uint8_t action;          /* enum weir_action; NONE also where no limit of the rules has steps or
                                shapes its denials */
    struct weir_answer_standing standing;
    struct weir_answer_score score;
    uint16_t count;
    const struct weir_reject *reject; /* how the limit to blame, or the file, shapes the denial
                                         (rules/actions/reject.h); NULL: neither does */
    struct weir_answer_limit limits[WEIR_CHECKS_MAX];
    struct weir_answer_rate rates[WEIR_CHECKS_MAX];
};

/* What denies where no limit does (standing.refused). */
static inline struct weir_bytes weir_answer_refuser(bool unknown)
{
    static const char standing[] = WEIR_ANSWER_BY_STANDING, nobody[] = WEIR_ANSWER_BY_UNKNOWN;
    return unknown ? (struct weir_bytes){nobody, sizeof nobody - 1}
                   : (struct weir_bytes){standing, sizeof standing - 1};
}

/* "mark", as answers say it. Not of WEIR_ACTION_NONE. */
static inline const char *weir_action_name(uint8_t action)
{
    static const char *const names[] = {"", "mark", "delay", "challenge", "tarpit", "reject"};
    return names[action];
}

/* Whether delay_ns is a part of the action. */
static inline bool weir_action_holds(uint8_t action)
{
    return action == WEIR_ACTION_DELAY || action == WEIR_ACTION_TARPIT;
}

#endif
