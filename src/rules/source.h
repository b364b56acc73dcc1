/* SPDX-License-Identifier: Apache-2.0 */
/* How a request gets its attributes: what every door does, written once.
 *
 *     weir_request_begin(&request, rules, WEIR_FIELDS_ALL, room);
 *     weir_request_put_field(&request, name, value, trust);              each header field
 *     weir_request_put(&request, weir_source_fixed(WEIR_ATTR_PATH), path, trust);
 *     weir_request_put_name(&request, name, value, trust);               what is given by name
 *     err = weir_request_end(&request, &reason);
 *
 * A source is what a name means to the rules (attribute_table.h). A door that knows its names ahead
 * finds their sources once for each generation of rules; others give texts.
 *
 * Who says it. Each pair has its own trust. `user`, `org` and `plan` count from a sender that the
 * listener trusts, from the configuration and in a trace; `tls.ja4` from these and the connection;
 * `tls.client.*` from the connection, the configuration and in a trace; `standing`, scores, claims
 * and challenges never. What may not be set is dropped in silence, as if it were not there.
 *
 * What goes first. A value that is given by name ("attribute") goes before what the request itself
 * says (its line and its header fields), in whatever order they come. Lines of one field are one
 * value: see enum rules_repeated. Of two attributes of one name the last counts, or they are an
 * error (weir_request_once).
 *
 * Memory: none but the door's room for joined fields. Threads: a request has one owner.
 */
#ifndef WEIR_RULES_SOURCE_H
#define WEIR_RULES_SOURCE_H

#include <weir/weir.h>

#include "rules/request.h"

struct weir_rules;

/* Who says a value. */
enum weir_trust {
    WEIR_TRUST_CLIENT,        /* the client, or a sender that is not trusted */
    WEIR_TRUST_PROXY,         /* a sender that the listener trusts: a proxy, an application */
    WEIR_TRUST_CONFIGURATION, /* the operator, or the program that links libweir */
    WEIR_TRUST_RECORDED,      /* a trace, where it was true then; a request that is explained */
    WEIR_TRUST_CONNECTION,    /* weir itself, which has seen it: a certificate */
};

/* The trust in a sender by its listener (weir_listener_trusts). */
static inline enum weir_trust weir_trust_of(bool trusted)
{
    return trusted ? WEIR_TRUST_PROXY : WEIR_TRUST_CLIENT;
}

enum weir_name_state {
    WEIR_NAME_READ,    /* some rule reads it */
    WEIR_NAME_UNREAD,  /* built in, or declared; no rule reads it */
    WEIR_NAME_MADE,    /* no request can say it */
    WEIR_NAME_UNKNOWN, /* neither built in nor declared */
};

enum weir_name_flag {
    WEIR_NAME_OF_REQUEST = 1, /* what the request itself says: its line, a header field */
    WEIR_NAME_HEADER = 2,     /* a header field, however it is given */
    WEIR_NAME_OPEN = 4,       /* READ; everybody may say it, and by name it is kept as it is: not
                               client.ip, no header field */
};

/* What a name means to one generation of rules, whose memory `name` is in. */
struct weir_attribute_source {
    const char *name;  /* as the rules call it; NULL unless READ, and where the number is fixed */
    int16_t attribute; /* -1 unless READ */
    uint8_t state, flags;
};

/* An attribute by its name: "user", "header.X-Api-Key" in any case. O(1) for what is read. */
struct weir_attribute_source weir_rules_source(const struct weir_rules *rules, const char *name,
                                               size_t size);

/* A header field by its name in any case, without "header.". O(1). */
struct weir_attribute_source weir_rules_field(const struct weir_rules *rules, const char *name,
                                              size_t size);

/* An attribute that every file has, as the request itself says it. */
static inline struct weir_attribute_source weir_source_fixed(enum weir_attribute attribute)
{
    return (struct weir_attribute_source){NULL, (int16_t)attribute, WEIR_NAME_READ,
                                          WEIR_NAME_OF_REQUEST};
}

/* The field of a check request for this attribute ("ip"), which is not to be given by name; NULL:
 * it has none. */
const char *weir_source_own_field(const struct weir_rules *rules,
                                  struct weir_attribute_source source);

/* Whether some rule reads it, and a sender of this trust may say it. */
bool weir_source_allows(const struct weir_rules *rules, struct weir_attribute_source source,
                        enum weir_trust trust);

/* Where repeated fields are joined; {NULL, 0}: nowhere, they are too large. */
struct weir_room {
    char *data;
    size_t size;
};

/* Makes a request empty; `fields` is which header fields it has values for. `room` and the values
 * are borrowed as long as the request is read. */
void weir_request_begin(struct weir_request *request, const struct weir_rules *rules,
                        enum weir_fields fields, struct weir_room room);

/* Two attributes of one name are an error from now on. */
void weir_request_once(struct weir_request *request);

/* A program asks, which can correct its names: with `strict_attributes` an unknown one is an error.
 */
void weir_request_of_program(struct weir_request *request);

/* Notes whether the sender of a value is to be trusted (weir_request_trusts). */
static inline void weir_request_trust(struct weir_request *request, uint16_t attribute,
                                      enum weir_trust trust)
{
    const uint64_t bit = UINT64_C(1) << attribute % 64;
    uint64_t *trusted = &request->trusted[attribute / 64];
    *trusted = trust != WEIR_TRUST_CLIENT ? *trusted | bit : *trusted & ~bit;
}

/* Keeps a value that is given by name, and tests nothing. Doors may call it in place of
 * weir_request_put where the source is OPEN, and names may come twice. */
static inline void weir_request_set(struct weir_request *request, uint16_t attribute,
                                    struct weir_bytes value, enum weir_trust trust)
{
    request->named[attribute / 64] |= UINT64_C(1) << attribute % 64;
    weir_request_trust(request, attribute, trust);
    request->values[attribute] = value;
}

/* Gives a value; data == NULL: the sender says that there is none. An address of `client.ip` is
 * parsed. What cannot be read is kept for weir_request_end. Most header fields are not read, so
 * that little is done for them. */
void weir_request_take(struct weir_request *request, struct weir_attribute_source source,
                       struct weir_bytes value, enum weir_trust trust);
static inline void weir_request_put(struct weir_request *request,
                                    struct weir_attribute_source source, struct weir_bytes value,
                                    enum weir_trust trust)
{
    if ((source.flags & WEIR_NAME_HEADER) != 0 && request->fields == WEIR_FIELDS_NONE)
        request->fields = WEIR_FIELDS_ALL; /* one says that the sender knows them */
    if (source.state == WEIR_NAME_READ)
        weir_request_take(request, source, value, trust);
}

/* The same by text. For a name that is neither built in nor declared, as weir_request_unknown. */
void weir_request_put_name(struct weir_request *request, struct weir_bytes name,
                           struct weir_bytes value, enum weir_trust trust);
void weir_request_put_field(struct weir_request *request, struct weir_bytes name,
                            struct weir_bytes value, enum weir_trust trust);

/* A name of a request that is neither built in nor declared, from a door that keeps sources. What
 * is WEIR_TRUST_RECORDED is not counted: nobody sends it now. */
void weir_request_unknown(struct weir_request *request, struct weir_bytes name,
                          enum weir_trust trust);

/* Gives a cost by name, in place of any value of the attribute, which weir_rules_cost_source finds.
 * Called after weir_request_end. */
void weir_request_put_cost(struct weir_request *request, uint16_t attribute,
                           struct weir_bytes digits);

/* The client's address, which goes before any `client.ip`. */
void weir_request_put_client(struct weir_request *request, const struct weir_address *client);

/* All is given. Errors, of the first value that cannot be read, which `reason` (NULL: nobody asks)
 * names: WEIR_ERR_SYNTAX (no address, given twice), WEIR_ERR_TOO_LARGE (no room to join fields).
 * The door then answers as it answers requests that it cannot read. */
int weir_request_end(const struct weir_request *request, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
