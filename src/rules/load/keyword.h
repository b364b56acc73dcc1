/* SPDX-License-Identifier: Apache-2.0 */
/* Keywords of the rules file: a table for each mapping (section) of the grammar.
 *
 *   { "keep", RULES_DURATION, AT(keep_ns), RULES_RANGE(RULES_MINUTE, 366 * RULES_DAY),
 *     .otherwise = "7d", .doc = "how long a denial is kept",
 *     .why = "long enough for a complaint of last week" }
 *
 * A row is all that the loader, the JSON Schema (`weir validate --schema`, see schema.h) and the
 * tables of the documentation know about a keyword. A section reads itself in three steps:
 *
 *   rules_section_find      which keywords a mapping has; unknown ones are problems
 *   rules_section_defaults  puts `otherwise` where rows say `at`
 *   rules_section_read      reads the values of these rows
 *
 * and rules_section_load is all three. What no row can say (two keywords that exclude each other, a
 * file that is read) is code of the section, which looks at the fields that were found. The tables
 * of features are in their folders; the table of the whole file (load.c) names them.
 *
 * Threads: the tables are constant; the functions are of the loader's thread.
 */
#ifndef WEIR_RULES_LOAD_KEYWORD_H
#define WEIR_RULES_LOAD_KEYWORD_H

#include "rules/load/fields.h"

/* What a value is. Comments say what type the field of `at` has. */
enum rules_kind {
    RULES_ANY,      /* anything; the section's code reads it */
    RULES_MAPPING,  /* no scalar: only what `section` describes */
    RULES_TEXT,     /* const char *, kept */
    RULES_PLACE,    /* likewise, with variables of the environment: an address, a URL */
    RULES_FILE,     /* likewise, a path that starts at the folder of the rules file */
    RULES_NAME,     /* 1 to 64 of a-z, 0-9, `.`, `_`, `-` */
    RULES_FLAG,     /* bool */
    RULES_NUMBER,   /* an unsigned integer of any size, from `least` to `most` */
    RULES_DURATION, /* uint64_t, nanoseconds, likewise */
    RULES_SIZE,     /* uint64_t, bytes, likewise */
    RULES_PERCENT,  /* an unsigned integer, likewise */
    RULES_CHOICE,   /* an unsigned integer or bool: the index of one of `words` */
    RULES_RATE,     /* "100/min burst 20"; the section's code reads it */
    RULES_STATUS,   /* "404", "5xx"; likewise */
};

/* How many values a keyword has. */
enum rules_many {
    RULES_ONE,
    RULES_SEVERAL, /* one, or a list */
    RULES_LISTED,  /* a list only */
};

enum rules_keyword_flag {
    RULES_REQUIRED = 1 << 0,
    RULES_FILLED = 1 << 1, /* a text may not be empty */
    /* Of a limit: */
    RULES_NOT_GLOBAL = 1 << 2,  /* it does not work with `global` */
    RULES_NOT_STICKY = 1 << 3,  /* nor with `sticky`, except in limits with `per_node` */
    RULES_SCALES = 1 << 4,      /* it scales the limit for a request, or acts on what is used of
                                   it: nodes cannot decide such a limit from shares */
    RULES_TRIED = 1 << 5,       /* a candidate may have another one */
    RULES_OF_NUMBERS = 1 << 6,  /* it says nothing about another algorithm */
    RULES_OF_CALENDAR = 1 << 7, /* nor about a limit that has no calendar */
};

struct rules_section;

struct rules_keyword {
    const char *name;
    uint8_t kind;       /* enum rules_kind; of each value */
    uint16_t at, width; /* its field in the struct that the section fills (RULES_AT); width 0:
                           the section's code reads the value */
    uint8_t many;       /* enum rules_many */
    uint32_t flags;     /* enum rules_keyword_flag, and those of the section */
    uint64_t least, most;
    /* Reads a value in place of the kind, into the field. False after a problem. */
    bool (*parse)(struct rules_loader *loader, const struct rules_keyword *keyword,
                  const struct rules_node *node, void *field);
    const char *const *words;            /* CHOICE: what it may be, up to a NULL */
    const char *word;                    /* another value that is allowed, "off"; NULL: none */
    uint64_t word_value;                 /* and what it means */
    uint32_t example;                    /* PERCENT: what a message shows */
    const struct rules_section *section; /* what a mapping in its place has; NULL: none */
    uint32_t algorithms; /* of a limit: with which it goes, a bit each; 0: with all */
    const char *belongs; /* these algorithms, in words */
    void (*load)(struct rules_loader *loader, const struct rules_node *node); /* at the top: reads
                            the section; NULL: load.c does */
    const char *server_only; /* at the top: why only `weir serve` can do that; NULL: all can */
    const char *feature;     /* the service of the daemon (server/service.h) without which it does
                                nothing, also all that is below it; NULL: it needs none */
    const char *otherwise;   /* what counts without it, as one would write it; NULL:
                                nothing that one could write */
    const char *absent;      /* the same in words, in the documentation; NULL: `otherwise` */
    const char *doc;         /* one line of Markdown, with links from docs/ */
    const char *why; /* why it is the default, for docs/operations/defaults.md; NULL: it is not
                        there */
};

struct rules_section {
    const char *what; /* as problems name such a mapping: "a limit" */
    const struct rules_keyword *keywords;
    uint32_t count;
    const struct rules_keyword *others; /* what every other key is; NULL: there is no other one */
    const char *other_keys; /* what such a key is like, as an expression of ECMA; NULL: any text */
    uint32_t only;          /* rows with this flag alone, in their places; 0: all */
    const struct rules_section *or_else; /* another table that may describe the mapping; NULL */
};

#define RULES_AT(type, member) .at = offsetof(type, member), .width = sizeof(((type *)NULL)->member)
#define RULES_RANGE(least_, most_) .least = (least_), .most = (most_)
#define RULES_WORDS(...)                                                                           \
    .words = (const char *const[])                                                                 \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define RULES_SECTION(what_, table)                                                                \
    {                                                                                              \
        .what = (what_), .keywords = (table), .count = sizeof(table) / sizeof(*(table))            \
    }

#define RULES_MS UINT64_C(1000000)
#define RULES_S (1000 * RULES_MS)
#define RULES_MINUTE (60 * RULES_S)
#define RULES_HOUR (60 * RULES_MINUTE)
#define RULES_DAY (24 * RULES_HOUR)

/* Fills fields[0..section->count). A keyword of a feature that the program lacks is a problem
 * (weir_problems.has). False, after a problem, where `node` is not a mapping. */
bool rules_section_find(struct rules_loader *loader, const struct rules_section *section,
                        const struct rules_node *node, struct rules_field *fields);

/* Whether the section has this row of its table. */
bool rules_section_has(const struct rules_section *section, uint32_t row);

/* Names the fields only: none is there. */
void rules_section_name(const struct rules_section *section, struct rules_field *fields);

/* Puts the defaults of rows with a place into `into`. */
void rules_section_defaults(const struct rules_section *section, void *into);

/* Reads the values of rows with a place into `into`. A wrong one leaves its field as it is. */
void rules_section_read(struct rules_loader *loader, const struct rules_section *section,
                        const struct rules_field *fields, void *into);

/* Reads one value of a row whose kind is a number, within its bounds. False after a problem. */
bool rules_keyword_number(struct rules_loader *loader, const struct rules_keyword *keyword,
                          const struct rules_node *node, uint64_t *value);

/* The same for a value that may be absent: NULL, or one with a problem, gives the default of the
 * row, which has one (`otherwise`). */
uint64_t rules_keyword_number_or_default(struct rules_loader *loader,
                                         const struct rules_keyword *keyword,
                                         const struct rules_node *node);

/* Reads one value into the row's field of `into`. False after a problem. */
bool rules_keyword_read(struct rules_loader *loader, const struct rules_keyword *keyword,
                        const struct rules_node *node, void *into);

/* All of it. False, after a problem, where `node` is not a mapping. */
bool rules_section_load(struct rules_loader *loader, const struct rules_section *section,
                        const struct rules_node *node, struct rules_field *fields, void *into);

/* The bounds of a row, as people write them: "1min to 366d, or off". */
struct rules_range {
    char text[96];
};
const char *rules_range_text(struct rules_range *range, const struct rules_keyword *keyword);

#endif
