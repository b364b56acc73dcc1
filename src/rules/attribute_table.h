/* SPDX-License-Identifier: Apache-2.0 */
/* The table of attributes: all that is particular to a name, in one row.
 *
 * The loader, the evaluation, the doors (source.h), `weir validate`, `weir explain` and the list in
 * docs/rules.md read it. So a new attribute is one row, and, where its value has to be made, one
 * function. A row is an attribute with a fixed number (request.h), a name that front ends supply, a
 * header field that is particular, another spelling of a name, or a family, whose name ends in '.':
 * "header." is all header fields that have no row. What has no row is a name of the file's own.
 *
 * Threads: constants.
 */
#ifndef WEIR_RULES_ATTRIBUTE_TABLE_H
#define WEIR_RULES_ATTRIBUTE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>

struct rules_evaluation;
struct rules_loader;
struct rules_node;

/* How the absence of a value is known. */
enum rules_supplied_by {
    RULES_SUPPLIED_ALWAYS,    /* not from a header field */
    RULES_SUPPLIED_BY_LOG,    /* User-Agent, Referer: also in access logs */
    RULES_SUPPLIED_BY_FIELDS, /* by front ends that supply header fields */
};

/* Attributes that the rules find in others, where the request does not give them itself. */
enum rules_within {
    RULES_WITHIN_NONE,
    RULES_WITHIN_QUERY,   /* query.NAME: of the path */
    RULES_WITHIN_COOKIES, /* cookie.NAME: of header.cookie */
};
#define RULES_HEADER "header."
#define RULES_QUERY "query."
#define RULES_COOKIE "cookie."

/* What several lines of one header field are. */
enum rules_repeated {
    RULES_REPEATED_LIST,    /* one list, with ", " between them (RFC 9110 5.3) */
    RULES_REPEATED_COOKIES, /* one Cookie, with "; " between them (RFC 9113 8.2.3) */
    /* Of credentials (rules->repeated), where lines differ: */
    RULES_REPEATED_UNREADABLE, /* weir cannot know which one the application takes */
    RULES_REPEATED_FIRST,
    RULES_REPEATED_LAST,
};

/* What an attribute may be used for, beside `match` and `key`. */
enum rules_attribute_use {
    RULES_FOR_IDENTIFY = 1, /* a source of `identify` */
    RULES_FOR_TOKEN = 2,    /* a source of `jwt` */
    RULES_FOR_COST = 4,
    RULES_FOR_STANDING = 8, /* a kind of `standing` and `penalties` */
};
#define RULES_FOR_ALL (RULES_FOR_IDENTIFY | RULES_FOR_TOKEN | RULES_FOR_COST | RULES_FOR_STANDING)

/* Of `may_set`: everybody (enum weir_trust of source.h). */
#define RULES_BY_ALL ((1u << (WEIR_TRUST_CONNECTION + 1)) - 1)

enum rules_attribute_flag {
    RULES_MADE = 1,      /* the rules find or make its value; see rules_value */
    RULES_PRESENT = 2,   /* it is never absent */
    RULES_SECRET = 4,    /* shown only as SHA-256 */
    RULES_OWN_FIELD = 8, /* a check request has a field of its own for it: see `field` */
    RULES_FRONTS = 16,   /* front ends supply it */
    RULES_NO_GLOBS = 64, /* its values are words: `allows` checks globs, too */
    RULES_REQUESTS = 32, /* another spelling that requests may use, but no rules file */
};

struct rules_attribute_row {
    const char *name;
    const char *same_as; /* another spelling of this name; then the rest is that of its row */
    int16_t number;      /* fixed, as in enum weir_attribute; -1: none */
    uint8_t may_set;     /* a bit for each enum weir_trust; 0: no request can say it */
    uint8_t within, absence, repeated;
    uint8_t uses, flags;
    /* Its value; NULL: what the request gives. */
    struct weir_bytes (*value)(struct rules_evaluation *evaluation, uint16_t attribute);
    /* Whether the file has what it needs. False after a problem; NULL: it needs nothing. */
    bool (*needs)(struct rules_loader *loader, const struct rules_node *node, uint16_t attribute);
    /* Whether a literal can be its value. False after a problem; NULL: any can. */
    bool (*allows)(struct rules_loader *loader, const struct rules_node *node, uint16_t attribute,
                   struct weir_bytes value);
    /* The inverse of `value`, for a state that is looked at by its key (match/made.h): takes
     * what the key has. Returns what is wrong with it, or NULL. Without it the request has it. */
    const char *(*given)(struct rules_evaluation *evaluation, uint16_t attribute,
                         struct weir_bytes value);
    const char *field; /* of a check request (/v1/check): "ip" */
    const char *from;  /* where its value comes from, for people */
};

#define RULES_ATTRIBUTE_ROWS_MAX 64

/* All rows; the first are those with fixed numbers, in order. */
const struct rules_attribute_row *rules_attribute_rows(uint32_t *count);

/* The row of a name, or of its family; that of names without one has an empty name. Header names
 * are in lower case. */
const struct rules_attribute_row *rules_attribute_row_of(const char *name, size_t size);

/* Whether an attribute may be used for this; a name that a pattern captures never is. */
static inline bool rules_attribute_is_for(struct weir_bytes name, enum rules_attribute_use use)
{
    return (rules_attribute_row_of(name.data, name.size)->uses & use) != 0;
}

/* Whether a row is that of a family. */
bool rules_row_is_family(const struct rules_attribute_row *row);

/* Whether the name has no row: it is a file's own. */
static inline bool rules_row_is_own(const struct rules_attribute_row *row)
{
    return row->name[0] == '\0';
}

#endif
