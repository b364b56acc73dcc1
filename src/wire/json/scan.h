/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON (RFC 8259) of a known shape, in place: the pieces of a fixed-schema parser.
 *
 * There is no tree and no recursion: the caller asks for the value that its schema has at this
 * place, and anything else is an error. So nesting costs nothing and cannot run deep. Strings are
 * unescaped in place (the text only shrinks), must be well-formed UTF-8 and hold no NUL.
 * An error fills the reason with the field that the caller has named and the offset in the text:
 * "[3].cost: not an unsigned integer, at byte 31"; "limits[3].cost: ..." where the array is a
 * field.
 */
#ifndef WEIR_WIRE_JSON_SCAN_H
#define WEIR_WIRE_JSON_SCAN_H

#include <stdbool.h>
#include <weir/bytes.h>
#include <weir/error.h>

struct json_scan {
    char *text, *at, *end;
    const char *field;          /* being read, for messages; NULL: the text as a whole */
    int32_t index;              /* of the array's element, for messages; -1: no array */
    const char *list;           /* the field that is the array, for messages; NULL: the text is */
    struct weir_reason *reason; /* may be NULL */
};

/* Fills the reason with `what` is wrong `at` a place of the text; returns `err`. */
int json_scan_fail(const struct json_scan *scan, int err, const char *at, const char *what);

/* The same for a name, which the message repeats, its unprintable bytes as '?': `what` "name". */
int json_scan_fail_name(const struct json_scan *scan, int err, const char *at, const char *what,
                        struct weir_bytes name);

/* Skips white space; returns the byte that follows, 0 at the end (a NUL in a text is no JSON). */
char json_scan_peek_far(struct json_scan *scan);
static inline char json_scan_peek(struct json_scan *scan)
{
    bool near = scan->at < scan->end && (unsigned char)*scan->at > ' '; /* as nearly always */
    return __builtin_expect(near, 1) ? *scan->at : json_scan_peek_far(scan);
}

/* Each reads one value after white space. Returns 0, or WEIR_ERR_SYNTAX or WEIR_ERR_RANGE. */
int json_scan_string(struct json_scan *scan, struct weir_bytes *value)
    __attribute__((warn_unused_result));
int json_scan_bool(struct json_scan *scan, bool *value) __attribute__((warn_unused_result));
/* An unsigned integer, without fraction and exponent. Errors: WEIR_ERR_RANGE above 2^64 - 1. */
int json_scan_unsigned(struct json_scan *scan, uint64_t *value) __attribute__((warn_unused_result));
/* The same in any spelling that protobuf's JSON has for it: 2, 2.0, 20e-1, -0, or a string of one.
 * Errors: WEIR_ERR_SYNTAX for what is no whole number, WEIR_ERR_RANGE above 2^64 - 1. */
int json_scan_integer(struct json_scan *scan, uint64_t *value) __attribute__((warn_unused_result));
/* Seconds, a number or a string of one, as nanoseconds below 2^62; what is below a nanosecond is
 * cut off. Errors: WEIR_ERR_RANGE beyond. */
int json_scan_seconds(struct json_scan *scan, uint64_t *ns) __attribute__((warn_unused_result));
/* A string, an integer or a boolean; of the latter two the value is their text. */
int json_scan_scalar(struct json_scan *scan, struct weir_bytes *value)
    __attribute__((warn_unused_result));

/* Passes over one value of any kind, which is looked at only as far as its end needs: strings and
 * brackets. Nothing is unescaped. Errors: WEIR_ERR_SYNTAX: it has no end, or there is none. */
int json_scan_skip(struct json_scan *scan) __attribute__((warn_unused_result));

/* Opens an array, and says whether it has a next element; `count` have been read before. */
int json_scan_array(struct json_scan *scan) __attribute__((warn_unused_result));
int json_scan_element(struct json_scan *scan, uint32_t count) __attribute__((warn_unused_result));

/* Opens an object. */
int json_scan_object(struct json_scan *scan) __attribute__((warn_unused_result));
/* The next member's name, its colon read: 1; 0 after the closing brace; or an error. `count`
 * members have been read before. */
int json_scan_member(struct json_scan *scan, uint32_t count, struct weir_bytes *name)
    __attribute__((warn_unused_result));

/* Nothing but white space may follow. */
int json_scan_end(struct json_scan *scan) __attribute__((warn_unused_result));

#endif
