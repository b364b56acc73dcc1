/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the Redis protocol (RESP2 and RESP3 alike): arrays of bulk strings and inline
 * commands, incremental, in place, without allocation.
 *
 * Source: redis.io/docs/reference/protocol-spec; Redis 7's networking.c for what is refused and in
 * which words. The caller keeps the bytes of a request in one contiguous buffer and calls
 * weir_resp_parse again when more have come, with the same parser and request; the buffer may move
 * between calls. A request that comes byte by byte costs linear time. Arguments point into the
 * buffer; those of an inline command are unquoted in place.
 *
 * Beyond Redis, for what clients of throttlecrab send: an argument may be an integer (":5", its
 * text is the argument) or null ("$-1", data == NULL). Stricter than Redis: lines and bulk strings
 * must end with CR LF, and an array of -2 or less is an error.
 *
 * Nothing nests: an array in an array is "expected '$', got '*'".
 */
#ifndef WEIR_WIRE_RESP_RESP_H
#define WEIR_WIRE_RESP_RESP_H

#include <stdbool.h>
#include <weir/bytes.h>
#include <weir/error.h>

/* Arguments that are kept; those beyond are counted and dropped, so that the command can be refused
 * without closing the connection. 32 limits of 5 arguments, or 64 attributes with values, are well
 * within. */
#define WEIR_RESP_ARGS_MAX 1024
/* Elements that an array may announce, as in Redis before 7. */
#define WEIR_RESP_ARRAY_MAX (1024 * 1024)
/* One request: what a connection buffers at most. A bulk string that announces more is refused at
 * once. (Redis: 512 MB; a key of a limiter is hashed, and a megabyte is more than any needs.) */
#define WEIR_RESP_REQUEST_MAX (1024 * 1024)
/* An inline command, or a line that tells a length: Redis' PROTO_INLINE_MAX_SIZE. */
#define WEIR_RESP_LINE_MAX (64 * 1024)
/* The most bytes of a request, the unfinished line of a length included, that ever have to be kept
 * before the parser takes or refuses it. */
#define WEIR_RESP_BUFFER_MAX (WEIR_RESP_REQUEST_MAX + WEIR_RESP_LINE_MAX)
/* Before AUTH, as in Redis. */
#define WEIR_RESP_UNAUTHENTICATED_ARRAY_MAX 10
#define WEIR_RESP_UNAUTHENTICATED_BULK_MAX 16384

struct weir_resp_request {
    uint32_t count; /* of arguments, the command's name included; may be 0: ignore it */
    struct weir_bytes args[WEIR_RESP_ARGS_MAX]; /* the first min(count, WEIR_RESP_ARGS_MAX) */
};

#define WEIR_RESP_PROBLEM_MAX 64

/* The state of a parser; all zeros is the start of a request, and weir_resp_parse zeros it again at
 * the end of each. */
struct weir_resp_parser {
    const char *base;     /* the buffer that arguments point into */
    size_t used;          /* bytes of the request that are parsed */
    size_t scanned;       /* bytes known to hold no end of the present line */
    uint32_t total, have; /* arguments; total 0: the array's head has not been read */
    bool unauthenticated; /* set by the caller: the lower limits hold */
    char problem[WEIR_RESP_PROBLEM_MAX]; /* after an error, as Redis words it, without "ERR " */
};

/* Parses one request, data[0] being its first byte. Returns the bytes it takes (> 0), 0 when more
 * are needed, or WEIR_ERR_SYNTAX with parser->problem set: "Protocol error: invalid bulk length";
 * the connection must then be closed. */
long weir_resp_parse(struct weir_resp_parser *parser, char *data, size_t size,
                     struct weir_resp_request *request) __attribute__((warn_unused_result));

/* Whether an argument is a word, compared without case; `word` is in upper case. */
bool weir_resp_is(struct weir_bytes arg, const char *word);

#endif
