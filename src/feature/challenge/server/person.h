/* SPDX-License-Identifier: Apache-2.0 */
/* Who reads a reply of the challenge: a person with a browser, in a language and on a site, or a
 * program. What goes wrong becomes a page that says what to do, or a problem document.
 *
 * Threads: pure, except weir_person_refuse, which works with the call's worker.
 */
#ifndef WEIR_FEATURE_CHALLENGE_SERVER_PERSON_H
#define WEIR_FEATURE_CHALLENGE_SERVER_PERSON_H

#include <stdbool.h>
#include <stdint.h>

#include "feature/challenge/server/page.h"
#include "server/http/http.h"

#define WEIR_PERSON_SITE_MAX 255 /* bytes: a DNS name with its port */

struct weir_person {
    bool page; /* a browser: those name text/html in Accept, and programs do not */
    uint8_t language;
    uint8_t site_size; /* 0: not known */
    char site[WEIR_PERSON_SITE_MAX];
};

/* What went wrong, in both forms. */
struct weir_person_trouble {
    enum weir_http_status status;
    enum weir_page_words reason, label; /* why, and what the link does */
    const char *detail;                 /* for programs */
    struct weir_bytes link;             /* a path of this site */
};

/* Nothing of this may be kept by a cache or a search engine. */
#define WEIR_PERSON_FIELDS                                                                         \
    "Cache-Control: no-store\r\nVary: Accept, Accept-Language\r\nX-Robots-Tag: noindex\r\n"        \
    "X-Content-Type-Options: nosniff\r\n"
#define WEIR_PERSON_FIELDS_MAX 768 /* the longest of a page's fields, with the policy */
#define WEIR_PERSON_PAGE_TYPE "text/html; charset=utf-8"

void weir_person_read(const struct weir_http_call *call, struct weir_person *person);

/* The header fields of a page. */
void weir_person_page_fields(const struct weir_person *person, char fields[WEIR_PERSON_FIELDS_MAX]);

/* Writes a page with the person's language and site; see weir_page_write. */
size_t weir_person_page(const struct weir_person *person, const struct weir_page_part *parts,
                        unsigned count, struct weir_bytes values[WEIR_PAGE_PLACES], char *out);

/* Writes the page of a trouble; `out` has WEIR_PAGE_MAX bytes. */
size_t weir_person_trouble_page(const struct weir_person *person,
                                const struct weir_person_trouble *trouble, char *out);

/* Answers a call with a trouble. */
void weir_person_refuse(struct weir_http_call *call, const struct weir_person *person,
                        const struct weir_person_trouble *trouble);

#endif
