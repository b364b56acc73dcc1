/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of weir.
 *
 * Functions return 0 (or a count) on success and a negative enum weir_err otherwise. A denied
 * request is a result, never an error. The table below is the one list of all errors: code, name,
 * text. Where a fixed text is not enough (a file, a line, a field), the function also fills a
 * struct weir_reason that the caller owns.
 */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#define WEIR_ERRORS(X)                                                                             \
    X(-1, WEIR_ERR_MEMORY, "out of memory")                                                        \
    X(-2, WEIR_ERR_RANGE, "a value is out of its range")                                           \
    X(-3, WEIR_ERR_SYNTAX, "malformed input")                                                      \
    X(-4, WEIR_ERR_TOO_LARGE, "input is larger than the stated limit")                             \
    X(-5, WEIR_ERR_IO, "input or output failed")                                                   \
    X(-6, WEIR_ERR_FORMAT, "not a state file of this version")                                     \
    X(-7, WEIR_ERR_DAMAGED, "the state file is damaged")                                           \
    X(-8, WEIR_ERR_BUSY, "in use by another process")                                              \
    X(-9, WEIR_ERR_FULL, "a fixed-size table is full")                                             \
    X(-10, WEIR_ERR_NOT_FOUND, "not found")                                                        \
    X(-11, WEIR_ERR_RULES, "the rules file has errors")                                            \
    X(-12, WEIR_ERR_STORE, "the store did not answer")                                             \
    X(-13, WEIR_ERR_DEADLINE, "the deadline passed")                                               \
    X(-14, WEIR_ERR_CANCELLED, "cancelled")                                                        \
    X(-15, WEIR_ERR_UNSUPPORTED, "not supported")                                                  \
    X(-16, WEIR_ERR_PENDING, "not known yet")

enum weir_err {
#define WEIR_ERROR_ENUM(code, name, text) name = (code),
    WEIR_ERRORS(WEIR_ERROR_ENUM)
#undef WEIR_ERROR_ENUM
};

/* The longest explanation of one error, its terminating NUL included. */
#define WEIR_REASON_MAX 256

/* Says what is wrong and where, in one line without a newline; empty when there is no error. */
struct weir_reason {
    char text[WEIR_REASON_MAX];
};

/* Whose fault an error is. A request is admitted without a decision for no fault but the state's.
 */
enum weir_fault {
    WEIR_FAULT_REQUEST, /* malformed, too large, out of range */
    WEIR_FAULT_PROGRAM, /* rules with errors, a call that is not supported, no memory */
    WEIR_FAULT_STATE,   /* the state or the store does not answer, or cannot be opened */
};

#pragma GCC visibility push(default)

/* The text of an error code; "unknown error" for any other number. Static storage. */
const char *weir_error_text(int err);

/* Any other number is the program's fault. */
enum weir_fault weir_error_fault(int err);

#pragma GCC visibility pop

#endif
