/* Answers as JSON: the body of /v1/check, and problem details (RFC 9457). */
#ifndef WEIR_WIRE_ANSWER_JSON_H
#define WEIR_WIRE_ANSWER_JSON_H

#include "core/answer.h"

/* Room that is always enough for one answer with names of at most 64 bytes. */
#define WEIR_ANSWER_JSON_MAX 16384

/* Writes one answer; `out` has WEIR_ANSWER_JSON_MAX bytes. Returns the length. Milliseconds are
 * rounded up; "never" is null. */
size_t weir_answer_json_write(const struct weir_answer *answer, char *out);

/* The draft's problem types. */
enum weir_problem_type {
    WEIR_PROBLEM_QUOTA_EXCEEDED,   /* 429, with "violated-policies" */
    WEIR_PROBLEM_REDUCED_CAPACITY, /* 503 */
    WEIR_PROBLEM_BLANK,            /* about:blank, the title is the status text */
};
#define WEIR_PROBLEM_JSON_MAX 4096
size_t weir_problem_json_write(enum weir_problem_type type, unsigned status, const char *detail,
                               const struct weir_answer *answer, char *out);

/* Writes `text` as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. Returns the length,
 * at most 6 * size + 2. */
size_t weir_json_string_write(const char *text, size_t size, char *out);

#endif
