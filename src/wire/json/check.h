/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of /v1/check and of replayed traces: a parser for one fixed schema (RFC 8259), in place.
 *
 *   {"method","path","host","ip","headers":{},"attributes":{},"cost","costs":{},"dry_run",
 *    "idempotency_key","t","life","status","latency_ms"}
 *
 * All optional, in any order; an unknown or repeated key is an error, so that a typing mistake
 * never turns a limit off. Strings are unescaped in place (so `text` is written to); they must be
 * valid UTF-8 and hold no NUL. Values of attributes may be strings, integers or booleans (their
 * JSON text is the value). Names of headers are compared without case when looking for repeats.
 * `life` is seconds, written as `t`.
 * `t` is seconds since the epoch, a number or a string of one, exact to the nanosecond; digits
 * beyond it are cut off, towards the past. `cost` is an integer up to 2^64 - 1, written as one: 1.0
 * and 1e3 are errors. null is a value like any other wrong one.
 *
 * Memory: none but the caller's. Strings point into the text. A batch is read check by check; an
 * error may come after many good ones, so decide nothing before the end has been seen.
 */
#ifndef WEIR_WIRE_JSON_CHECK_H
#define WEIR_WIRE_JSON_CHECK_H

#include <stdbool.h>
#include <weir/bytes.h>
#include <weir/error.h>

#include "wire/json/costs.h"

#define WEIR_CHECK_JSON_PAIRS_MAX 64 /* headers, and attributes, of one check */
#define WEIR_CHECK_JSON_BATCH_MAX                                                                  \
    1000 /* checks of one array; with http/http1.h's body, 1 KiB each */

struct weir_check_pair {
    struct weir_bytes name, value;
};

struct weir_check_json {
    struct weir_bytes method, path, host, ip; /* data == NULL: absent */
    struct weir_bytes idempotency_key;        /* 1..WEIR_IDEMPOTENCY_KEY_MAX bytes, or absent */
    uint64_t cost;                            /* 1 when absent */
    uint64_t t_ns;                            /* with has_t */
    uint64_t life_ns;                         /* of a reservation, with has_life */
    uint64_t status, latency_ms;              /* of a trace: how it ended; 0 when absent */
    bool dry_run, has_t, has_life;
    bool has_headers; /* it says which headers there are, be it none */
    uint16_t header_count, attribute_count;
    struct weir_json_costs costs; /* costs.h */
    struct weir_check_pair headers[WEIR_CHECK_JSON_PAIRS_MAX];
    struct weir_check_pair attributes[WEIR_CHECK_JSON_PAIRS_MAX];
};

/* A cursor over a text that is one check or an array of them. */
struct weir_check_cursor {
    char *text, *at, *end;
    bool array, started, done;
    uint32_t index;
};
void weir_check_cursor_init(struct weir_check_cursor *cursor, char *text, size_t size);

/* Whether it is an array; looks at nothing else. */
bool weir_check_cursor_is_array(const struct weir_check_cursor *cursor);

/* Moves a cursor to a copy of its text. */
void weir_check_cursor_move(struct weir_check_cursor *cursor, char *copy);

/* Reads the next check. Returns 1, 0 at the (well-formed) end, or WEIR_ERR_SYNTAX / WEIR_ERR_RANGE
 * (a number) / WEIR_ERR_TOO_LARGE (pairs or checks) with `reason` (may be NULL) naming the field
 * and the byte, counted from 0: "cost: not an unsigned integer, at byte 31"; in an array "[3].cost:
 * ...". An empty array is legal. */
int weir_check_cursor_next(struct weir_check_cursor *cursor, struct weir_check_json *check,
                           struct weir_reason *reason) __attribute__((warn_unused_result));

struct weir_release_json {
    struct weir_bytes lease;
    uint64_t status; /* 100 to 599; 0: none is given */
};

/* {"lease":"...","status":200} of /v1/release, where the status may be absent. Returns 0 or an
 * error as above. */
int weir_release_json_parse(char *text, size_t size, struct weir_release_json *release,
                            struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
