/* SPDX-License-Identifier: Apache-2.0 */
/* One check, between JavaScript and libweir.
 *
 * A call into the addon costs about as much as a decision, and so does each property of an object
 * that C makes. So a check is one call: numbers go both ways through an array of doubles that both
 * sides see, the values of the request come in as an array of strings, and every text of the answer
 * goes back in one string, parted by NULs. answer.js takes it apart.
 *
 *   numbers in    0 count of values, 1 cost, 2 flags, 3 life of a reservation in ms,
 *                 from 16 on: for each value its handle, or what else it is (enum value_role)
 *   numbers out   0 flags, 1 status, 2 retry_after ms, 3 delay ms, 4 remaining, 5 warning,
 *                 6 count of limits, 7 count of places in queues, from 16 on: LIMIT_NUMBERS each
 *   texts out     fields, denied_by, type, action, standing, reason, class, lease, reservation,
 *                 the name of each limit, body
 *
 * Times are whole milliseconds, rounded up; Infinity: never.
 *
 * Memory: 100 KiB, and the longest request's values. Threads: one owner.
 */
#ifndef WEIR_BINDINGS_NODE_CHECK_H
#define WEIR_BINDINGS_NODE_CHECK_H

#include <node_api.h>

#include <weir/embed.h>

#define CHECK_VALUES_MAX (WEIR_HANDLES_MAX + 16)
#define CHECK_ARRAY_AT 16
#define CHECK_NUMBERS (CHECK_ARRAY_AT + CHECK_VALUES_MAX)
#define CHECK_LIMIT_NUMBERS 9

_Static_assert(WEIR_LIMITS_MAX *CHECK_LIMIT_NUMBERS <= CHECK_VALUES_MAX, "an answer has room");

/* What all values take together: more than any HTTP server accepts. */
#define CHECK_BYTES_MAX (16u << 20)

/* Added to a handle: the value is what the request itself says (WEIR_OF_REQUEST). Of the first, the
 * text has one byte for each character, as Node gives what a client has sent. */
#define CHECK_BYTES_OF_REQUEST WEIR_OF_REQUEST
#define CHECK_TEXT_OF_REQUEST (2 * WEIR_OF_REQUEST)

enum value_role {
    VALUE_FORWARDED_FOR = -1,
    VALUE_FORWARDED = -2,
    VALUE_IDEMPOTENCY_KEY = -3,
};

enum check_flag {
    CHECK_PEEK = 1,
    CHECK_UNTRUSTED = 2,
    CHECK_RESERVE = 4,
    CHECK_RESERVE_DELAYED = 8,
};

enum answer_flag {
    ANSWER_ALLOWED = 1,
    ANSWER_STORE_FAILED = 2,
    ANSWER_REPEATED = 4,
    ANSWER_LEASE = 8,
    ANSWER_RESERVATION = 16,
};

enum limit_flag {
    LIMIT_ALLOWED = 1,
    LIMIT_SHADOW = 2,
    LIMIT_UNLIMITED = 4,
    LIMIT_BORROWED = 8,
    LIMIT_OVERFLOW = 16,
};

struct checker {
    double *numbers; /* CHECK_NUMBERS; JavaScript's memory */
    char *bytes;     /* of the values */
    size_t room;
    size_t starts[CHECK_VALUES_MAX]; /* of values in `bytes`, which moves when it grows */
    struct weir_value values[CHECK_VALUES_MAX];
    struct weir_answer_summary answer;
    struct weir_limit_answer limits[WEIR_LIMITS_MAX];
    struct weir_reservation_token reservation;
    char text[WEIR_FIELDS_MAX + WEIR_BODY_MAX + 8192];
    char body[WEIR_BODY_MAX];
};

/* Decides what `values` (an array of strings, or null) and the numbers say. Returns 0 with *text,
 * or an error of weir_check_full, or WEIR_ERR_TOO_LARGE: CHECK_BYTES_MAX, CHECK_VALUES_MAX. */
int checker_check(struct checker *checker, struct weir *weir, napi_env env, napi_value values,
                  napi_value *text);

/* Reports that the request of `values` and the numbers has ended with this status: weir_outcome.
 * Returns 0, or its error, or WEIR_ERR_TOO_LARGE as above. */
int checker_outcome(struct checker *checker, struct weir *weir, napi_env env, napi_value values,
                    unsigned status);

#endif
