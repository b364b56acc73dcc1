/* SPDX-License-Identifier: Apache-2.0 */
/* A request as the rules see it: attributes, a cost, a time. Filled by a front end, as source.h
 * says, and read by the rules.
 *
 * Names are interned when the rules load, so a value has the number of its attribute, and what no
 * rule reads is dropped. Values point into the front end's buffers; only repeated header fields are
 * copied. Derived attributes (path captures, prefixes of the address, user / org / plan) are not in
 * here: the rules make them when a limit that matched needs them.
 */
#ifndef WEIR_RULES_REQUEST_H
#define WEIR_RULES_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <weir/bytes.h>

#include "core/text/address.h"

/* Attributes that one rules file may name, the fixed ones included. */
#define WEIR_ATTRIBUTES_MAX 256

#define WEIR_ATTRIBUTE_WORDS (WEIR_ATTRIBUTES_MAX / 64) /* of a set of attributes */

/* The attributes every rules file has, by fixed numbers; attribute_table.c has a row of each. */
enum weir_attribute {
    WEIR_ATTR_METHOD,
    WEIR_ATTR_PATH,      /* raw, as in the request line; the rules normalise it */
    WEIR_ATTR_HOST,      /* raw; the rules lower-case it and cut the port */
    WEIR_ATTR_CLIENT_IP, /* not in `values`: see `client` */
    WEIR_ATTR_USER,      /* only from trusted requests; goes before what identify finds */
    WEIR_ATTR_ORG,
    WEIR_ATTR_PLAN,
    WEIR_ATTR_STANDING, /* not in `values`: made by the rules; no request can set it */
    WEIR_ATTR_TLS_NAME, /* tls.client.name, tls.client.cn: of the certificate of the connection's
                           peer; no request can set them */
    WEIR_ATTR_TLS_CN,
    WEIR_ATTR_TLS_JA4,   /* of the connection's peer; a trusted sender says that of its client */
    WEIR_ATTR_CHALLENGE, /* not in `values`: made by the rules; no request can set it */
    WEIR_ATTR_SCORE,     /* client.score, client.class: likewise */
    WEIR_ATTR_CLASS,
    WEIR_ATTR_FIRST_NAMED, /* header.*, and any other name: from here on */
};

/* Which header fields a request has values for, if it has them: only then is a field without a
 * value known to be absent. */
enum weir_fields {
    WEIR_FIELDS_NONE, /* none: its front end knows of no fields */
    WEIR_FIELDS_LOG,  /* User-Agent and Referer: a line of an access log */
    WEIR_FIELDS_ALL,
};

struct weir_rules;

struct weir_request {
    const struct weir_rules *rules; /* that its attributes are numbered by; while it is filled */
    struct weir_address client;
    bool once;               /* two attributes of one name are an error */
    bool program;            /* its sender is a program: see `strict_attributes` */
    uint8_t fields;          /* enum weir_fields */
    int8_t error;            /* the first: 0, or an enum weir_err */
    uint64_t cost;           /* 1 unless the request says otherwise; multiplies a limit's `cost` */
    uint16_t count;          /* values[0..count) are set; those beyond are absent */
    struct weir_bytes wrong; /* of `error`: the attribute, if it is about one */
    const char *why;         /* and what is wrong with it */
    char *room;              /* for repeated header fields */
    size_t room_size, room_used;                   /* in bytes */
    uint64_t named[WEIR_ATTRIBUTE_WORDS];          /* attributes that were given by name: a set */
    uint64_t trusted[WEIR_ATTRIBUTE_WORDS];        /* those whose sender may set the class: a set */
    struct weir_bytes values[WEIR_ATTRIBUTES_MAX]; /* data == NULL: absent */
};

/* Makes a request empty: no attribute, no client, cost 1. `count` is that of the rules
 * (weir_rules_attribute_count). For front ends there is weir_request_begin, which calls it. */
static inline void weir_request_clear(struct weir_request *request, uint16_t count)
{
    memset(request, 0, offsetof(struct weir_request, values) + count * sizeof(request->values[0]));
    request->cost = 1;
    request->count = count;
}

/* Whether a value comes from a sender that may set the class of the request. */
static inline bool weir_request_trusts(const struct weir_request *request, uint16_t attribute)
{
    return (request->trusted[attribute / 64] >> attribute % 64 & 1) != 0;
}

#endif
