/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as JSON: the body of /v1/check, and problem details (RFC 9457).
 *
 *   {"allowed":false,"denied_by":"login","retry_after_ms":12000,"delay_ms":0,"lease":"...",
 *    "limits":[{"name":"login","algorithm":"sliding_log","allowed":false,"shadow":false,"cost":1,
 *               "limit":5,"remaining":0,"retry_after_ms":12000,"reset_after_ms":60000}]}
 *
 * Milliseconds are rounded up, so that waiting that long is enough; "never" is null. "lease" is
 * there only where the answer has one, "action":"mark" (weir_action_name) only where there is an
 * action, "repeated":true only where a request was decided before, and
 * "standing":{"level":"suspended","reason":"listed network","ends_after_ms":600000} only where the
 * caller's standing is another than good; "denied_by":"standing" where that is what denies.
 * "score":{"score":45,"class":"suspicious","signals":{"no-agent":30,"unproven":15}} is there where
 * the rules keep scores, its signals with `debug: true`. A
 * limit that is unlimited has null for limit and remaining; one that is no limit of an algorithm
 * has null for that. Only a limit that has reached a threshold (`warn_at`) has
 * "warning":{"threshold":80,"used":8512,"limit":10000}; only a pool that was charged in place of
 * limits that deny has "borrowed":true; only a limit that was charged to what a key has bought
 * above it has "bought":true, and what remains is that; only a limit whose key has no state of its
 * own, since the table is full, has "overflow":true, and its numbers are estimates. Limits are in
 * the order of the answer.
 */
#ifndef WEIR_WIRE_JSON_ANSWER_H
#define WEIR_WIRE_JSON_ANSWER_H

#include "core/answer.h"
#include "wire/json/string.h"

/* What the rules loader admits as a name; a longer one is a programmer's error here. */
#define WEIR_ANSWER_NAME_MAX 64

/* The reason of a standing; a longer one is a programmer's error here. */
#define WEIR_ANSWER_REASON_MAX 255

/* Room that is always enough for one answer: WEIR_CHECKS_MAX limits of 778 bytes (a name of 64
 * bytes, all escaped, is 386; the rest at most 392), and 7 KiB for denied_by, a lease of 1 KiB, and
 * a standing of 2 KiB; and 75 bytes for each signal of a score, whose names need no escapes. */
#define WEIR_ANSWER_JSON_MAX (32768 + 75 * WEIR_SIGNALS_MAX)

/* Writes one answer; `out` has WEIR_ANSWER_JSON_MAX bytes. Returns the length. */
size_t weir_answer_json_write(const struct weir_answer *answer, char *out);

/* The problem types of draft-ietf-httpapi-ratelimit-headers-11, section 6, and one of weir's own.
 */
enum weir_problem_type {
    WEIR_PROBLEM_QUOTA_EXCEEDED,   /* 429, with "violated-policies" */
    WEIR_PROBLEM_REDUCED_CAPACITY, /* 503 */
    WEIR_PROBLEM_BLANK,            /* about:blank, the title is the status text */
    WEIR_PROBLEM_COST_ABOVE_LIMIT, /* a cost that the limit can never admit: waiting does not help;
                                      with "violated-policies" */
};

/* Room that is always enough: 32 names, a detail of WEIR_REASON_MAX and a URL, all escaped, and 1
 * KiB for the rest. */
#define WEIR_PROBLEM_JSON_MAX 18432

/* What a client learns of a denial or an error. */
struct weir_problem_json {
    enum weir_problem_type type;
    unsigned status;
    const char *detail;               /* NULL: none; cut at WEIR_REASON_MAX - 1 bytes */
    const struct weir_answer *answer; /* of types with limits; NULL: none */
    struct weir_bytes documentation;  /* a URL; data == NULL: none */
};

/* The type of a denial: by a limit, by a cost above it, or because a store does not answer. */
enum weir_problem_type weir_problem_of(const struct weir_answer *answer);

/* Writes problem details; `out` has WEIR_PROBLEM_JSON_MAX bytes. Where they are known,
 * "retry_after" (seconds), "limit", "remaining" and "cost" of the limit to blame are members, and
 * "documentation". Returns the length. */
size_t weir_problem_write(const struct weir_problem_json *problem, char *out);

/* Writes the same in the form that many guides give: {"error":"Too Many Requests",
 * "code":"RATE_LIMIT_EXCEEDED","message":"Rate limit exceeded for api. Retry after 7 seconds.",
 * "retryAfter":7,"limit":10,"remaining":0,"cost":1,"documentation":"https://..."}. What is not
 * known is left out. `out` and length as above. */
size_t weir_error_json_write(const struct weir_problem_json *problem, char *out);

/* weir_problem_write of these members. */
size_t weir_problem_json_write(enum weir_problem_type type, unsigned status, const char *detail,
                               const struct weir_answer *answer, char *out);

#endif
