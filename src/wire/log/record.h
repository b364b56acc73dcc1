/* SPDX-License-Identifier: Apache-2.0 */
/* One request as an access log has it, whatever the log's format.
 *
 * Texts point into the line, which the parsers change in place (they unescape), and are valid as
 * long as it is. `client` is what the server wrote for the client: an address, with or without a
 * port or brackets; a list of them, as X-Forwarded-For has; or the name of a host. A server behind
 * proxies may write its peer there and what the proxies said in `forwarded`. The reader of the
 * record decides which address that makes, as a door does for a request (wire/http/forwarded.h).
 *
 * Two times. `t_ns` is when the request came, `written_ns` when its line was written: the order of
 * a file is that of the second. Formats that have one time only have it twice.
 */
#ifndef WEIR_WIRE_LOG_RECORD_H
#define WEIR_WIRE_LOG_RECORD_H

#include <stdbool.h>

#include <weir/bytes.h>
#include <weir/error.h>

#include "wire/json/check.h"
#include "wire/log/log_time.h"

/* Which header fields a record has values for. */
enum weir_log_fields {
    WEIR_LOG_FIELDS_NONE,
    WEIR_LOG_FIELDS_AGENT, /* User-Agent and Referer */
    WEIR_LOG_FIELDS_ALL,   /* `headers` */
};

/* What follows the size in a line of Apache's formats and their relatives. */
enum weir_log_tail {
    WEIR_LOG_TAIL_NONE,    /* nothing: common */
    WEIR_LOG_TAIL_AGENT,   /* "referer" "agent": combined */
    WEIR_LOG_TAIL_QUOTED,  /* and one more quoted field: nginx's main */
    WEIR_LOG_TAIL_INGRESS, /* and lengths, times and upstreams: ingress-nginx */
    WEIR_LOG_TAIL_TRAEFIK, /* and a count, router, server and duration: Traefik */
    WEIR_LOG_TAIL_OTHER,   /* and anything else */
};

struct weir_log_record {
    struct weir_bytes client;              /* data == NULL: the line says nothing ("-") */
    struct weir_bytes forwarded;           /* X-Forwarded-For; data == NULL: absent */
    struct weir_bytes user;                /* data == NULL: none */
    struct weir_bytes method, target;      /* data == NULL: it was no request ("-", a TLS client) */
    struct weir_bytes host;                /* data == NULL: the format has none */
    struct weir_bytes referer, agent;      /* with FIELDS_AGENT; data == NULL: absent */
    uint64_t t_ns, written_ns;             /* below 2^62 */
    const struct weir_check_json *check;   /* of weir's own JSON lines, which are requests of
                                              /v1/check; then only the times are set. Else NULL */
    const struct weir_check_pair *headers; /* with FIELDS_ALL */
    uint16_t header_count;
    uint16_t status;   /* 0: not known */
    uint8_t fields;    /* enum weir_log_fields */
    uint8_t tail;      /* enum weir_log_tail */
    bool whole_second; /* t_ns has no fraction because the format has none */
    bool resolved;     /* the server has read the proxies' fields: they made its `client` */
};

/* A line that is no request, and is not meant to be one: a server's word about itself. */
#define WEIR_LOG_OTHER 1

/* What parsers keep from one line to the next. All zero bytes are an empty one. A record that
 * points here is valid until the next parse. */
struct weir_log_room {
    char stamp[WEIR_LOG_ZONED_SIZE]; /* the last time that was read: lines of one second have it */
    uint64_t stamp_ns;
    struct weir_check_json check; /* header fields, and weir's own JSON lines */
};

#endif
