/* SPDX-License-Identifier: Apache-2.0 */
/* see person.h */
#include "feature/challenge/server/person.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "feature/challenge/language.h"
#include "feature/challenge/server/front.h"
#include "server/http/reply.h"

static bool wants_page(const struct weir_http_call *call)
{
    static const char type[] = "text/html";
    struct weir_bytes accept = weir_http1_field(call->request, "accept");
    for (size_t i = 0; i + sizeof type - 1 <= accept.size; i++)
        if (!strncasecmp(accept.data + i, type, sizeof type - 1))
            return true;
    return false;
}

void weir_person_read(const struct weir_http_call *call, struct weir_person *person)
{
    struct weir_bytes site = weir_http1_field(call->request, "host");
    person->page = wants_page(call);
    person->language =
        (uint8_t)weir_language_choose(weir_http1_field(call->request, "accept-language"),
                                      weir_challenge_languages, weir_challenge_language_count);
    person->site_size = site.size <= WEIR_PERSON_SITE_MAX ? (uint8_t)site.size : 0;
    if (person->site_size > 0)
        memcpy(person->site, site.data, person->site_size);
}

void weir_person_page_fields(const struct weir_person *person, char fields[WEIR_PERSON_FIELDS_MAX])
{
    snprintf(fields, WEIR_PERSON_FIELDS_MAX,
             WEIR_PERSON_FIELDS "Content-Language: %s\r\nReferrer-Policy: same-origin\r\n"
                                "Content-Security-Policy: %s\r\n",
             weir_challenge_languages[person->language], weir_challenge_policy);
}

size_t weir_person_page(const struct weir_person *person, const struct weir_page_part *parts,
                        unsigned count, struct weir_bytes values[WEIR_PAGE_PLACES], char *out)
{
    values[WEIR_PAGE_SITE] = (struct weir_bytes){person->site, person->site_size};
    return weir_page_write(parts, count, person->language, values, out);
}

size_t weir_person_trouble_page(const struct weir_person *person,
                                const struct weir_person_trouble *trouble, char *out)
{
    const char *const *texts = weir_challenge_texts[person->language];
    struct weir_bytes values[WEIR_PAGE_PLACES] = {{NULL, 0}};
    values[WEIR_PAGE_REASON] = weir_bytes_of(texts[trouble->reason]);
    values[WEIR_PAGE_LABEL] = weir_bytes_of(texts[trouble->label]);
    values[WEIR_PAGE_LINK] = trouble->link;
    return weir_person_page(person, weir_refused_parts, weir_refused_part_count, values, out);
}

void weir_person_refuse(struct weir_http_call *call, const struct weir_person *person,
                        const struct weir_person_trouble *trouble)
{
    char fields[WEIR_PERSON_FIELDS_MAX];
    char *page = call->http->challenge->page;
    if (!person->page) {
        weir_http_problem(call, trouble->status, WEIR_PERSON_FIELDS, trouble->detail);
        return;
    }
    weir_person_page_fields(person, fields);
    weir_http_reply(call, trouble->status, fields, WEIR_PERSON_PAGE_TYPE, page,
                    weir_person_trouble_page(person, trouble, page));
}
