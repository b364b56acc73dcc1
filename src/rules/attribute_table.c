/* SPDX-License-Identifier: Apache-2.0 */
/* see attribute_table.h */
#include "rules/attribute_table.h"

#include <string.h>

#include "rules/load/attribute_checks.h"
#include "rules/match/evaluate.h"
#include "rules/match/made.h"
#include "rules/source.h"

#define BY(trust) (1u << WEIR_TRUST_##trust)
/* Whom a request is from: never what a client says. */
#define BY_TRUSTED (BY(PROXY) | BY(CONFIGURATION) | BY(RECORDED))
/* Of the connection's other end: not even what a trusted sender says. */
#define BY_CONNECTION (BY(CONNECTION) | BY(CONFIGURATION) | BY(RECORDED))

#define CONNECTION_FROM "the certificate of the client that asks weir"
#define SCORE_FROM "the client's score"

static const struct rules_attribute_row rows[] = {
    [WEIR_ATTR_METHOD] = {"method", NULL, WEIR_ATTR_METHOD, RULES_BY_ALL,
                          .flags = RULES_OWN_FIELD | RULES_FRONTS, .allows = rules_allow_method,
                          .field = "method", .from = "the request line"},
    [WEIR_ATTR_PATH] = {"path", NULL, WEIR_ATTR_PATH, RULES_BY_ALL,
                        .flags = RULES_OWN_FIELD | RULES_FRONTS | RULES_MADE,
                        .value = rules_path_value, .given = rules_given_path, .field = "path",
                        .from = "the request line, in normal form"},
    [WEIR_ATTR_HOST] = {"host", NULL, WEIR_ATTR_HOST, RULES_BY_ALL,
                        .flags = RULES_OWN_FIELD | RULES_FRONTS | RULES_MADE,
                        .value = rules_host_value, .given = rules_given_host, .field = "host",
                        .from = "the host of the request, in normal form"},
    [WEIR_ATTR_CLIENT_IP] = {"client.ip", NULL, WEIR_ATTR_CLIENT_IP, RULES_BY_ALL,
                             .uses = RULES_FOR_IDENTIFY | RULES_FOR_STANDING,
                             .flags = RULES_OWN_FIELD | RULES_FRONTS, .field = "ip",
                             .from = "the client's address"},
    [WEIR_ATTR_USER] = {"user", NULL, WEIR_ATTR_USER, BY_TRUSTED, .uses = RULES_FOR_STANDING,
                        .flags = RULES_FRONTS | RULES_MADE, .value = rules_user_value,
                        .given = rules_given_user,
                        .from = "the caller, as identify finds it or a trusted sender says"},
    [WEIR_ATTR_ORG] = {"org", NULL, WEIR_ATTR_ORG, BY_TRUSTED, .uses = RULES_FOR_STANDING,
                       .flags = RULES_FRONTS | RULES_MADE, .value = rules_org_value,
                       .given = rules_given_org, .from = "the caller's organisation, likewise"},
    [WEIR_ATTR_PLAN] = {"plan", NULL, WEIR_ATTR_PLAN, BY_TRUSTED, .uses = RULES_FOR_STANDING,
                        .flags = RULES_FRONTS | RULES_MADE, .value = rules_plan_value,
                        .given = rules_given_plan, .allows = rules_allow_plan,
                        .from = "the caller's plan, likewise"},
    [WEIR_ATTR_STANDING] = {"standing", NULL, WEIR_ATTR_STANDING, 0,
                            .flags = RULES_FRONTS | RULES_MADE | RULES_PRESENT | RULES_NO_GLOBS,
                            .value = rules_standing_value, .given = rules_given_standing,
                            .needs = rules_check_standing, .allows = rules_allow_level,
                            .from = "the caller's standing"},
    [WEIR_ATTR_TLS_NAME] = {"tls.client.name", NULL, WEIR_ATTR_TLS_NAME, BY_CONNECTION,
                            .uses = RULES_FOR_IDENTIFY | RULES_FOR_STANDING, .flags = RULES_FRONTS,
                            .from = CONNECTION_FROM},
    [WEIR_ATTR_TLS_CN] = {"tls.client.cn", NULL, WEIR_ATTR_TLS_CN, BY_CONNECTION,
                          .uses = RULES_FOR_IDENTIFY | RULES_FOR_STANDING, .flags = RULES_FRONTS,
                          .from = CONNECTION_FROM},
    [WEIR_ATTR_TLS_JA4] = {"tls.ja4", NULL, WEIR_ATTR_TLS_JA4, BY_TRUSTED | BY(CONNECTION),
                           .uses = RULES_FOR_STANDING, .flags = RULES_FRONTS,
                           .from = "the fingerprint of the client's TLS hello"},
    [WEIR_ATTR_CHALLENGE] = {"challenge", NULL, WEIR_ATTR_CHALLENGE, 0,
                             .absence = RULES_SUPPLIED_BY_FIELDS, .uses = RULES_FOR_STANDING,
                             .flags = RULES_FRONTS | RULES_MADE, .value = rules_challenge_text,
                             .given = rules_given_challenge, .needs = rules_check_challenge,
                             .allows = rules_allow_challenge,
                             .from = "the token of a solved challenge"},
    [WEIR_ATTR_SCORE] = {"client.score", NULL, WEIR_ATTR_SCORE, 0, .uses = RULES_FOR_STANDING,
                         .flags = RULES_FRONTS | RULES_MADE | RULES_PRESENT,
                         .value = rules_score_text, .given = rules_given_score,
                         .needs = rules_check_score, .allows = rules_check_score_value,
                         .from = SCORE_FROM},
    [WEIR_ATTR_CLASS] = {"client.class", NULL, WEIR_ATTR_CLASS, 0, .uses = RULES_FOR_STANDING,
                         .flags = RULES_FRONTS | RULES_MADE | RULES_PRESENT,
                         .value = rules_score_text, .given = rules_given_score,
                         .needs = rules_check_score, .allows = rules_check_score_value,
                         .from = SCORE_FROM},

    /* Other spellings. */
    {"ip", "client.ip", -1, .flags = RULES_REQUESTS},
    {RULES_HEADER "host", "host", -1, .flags = 0},

    /* What front ends supply under names of their own. */
    {"connection.requests", NULL, -1, RULES_BY_ALL, .uses = RULES_FOR_ALL, .flags = RULES_FRONTS,
     .from = "nginx: the number of the request on its connection"},
    {"source.principal", NULL, -1, RULES_BY_ALL, .uses = RULES_FOR_ALL, .flags = RULES_FRONTS,
     .from = "Envoy's ext_authz: the identity of the peer's certificate"},

    /* Header fields that are particular. */
    {RULES_HEADER "authorization", NULL, -1, RULES_BY_ALL, .absence = RULES_SUPPLIED_BY_FIELDS,
     .uses = RULES_FOR_ALL, .flags = RULES_FRONTS | RULES_SECRET, .value = rules_credential_value,
     .from = "the header field"},
    {RULES_HEADER "proxy-authorization", NULL, -1, RULES_BY_ALL,
     .absence = RULES_SUPPLIED_BY_FIELDS, .uses = RULES_FOR_ALL,
     .flags = RULES_FRONTS | RULES_SECRET, .value = rules_credential_value,
     .from = "the header field"},
    {RULES_HEADER "cookie", NULL, -1, RULES_BY_ALL, .absence = RULES_SUPPLIED_BY_FIELDS,
     .repeated = RULES_REPEATED_COOKIES, .uses = RULES_FOR_ALL,
     .flags = RULES_FRONTS | RULES_SECRET, .from = "the header field; its lines are one"},
    {RULES_HEADER "x-weir-challenge", NULL, -1, RULES_BY_ALL, .absence = RULES_SUPPLIED_BY_FIELDS,
     .uses = RULES_FOR_ALL, .flags = RULES_FRONTS | RULES_SECRET, .from = "the header field"},
    {RULES_HEADER "user-agent", NULL, -1, RULES_BY_ALL, .absence = RULES_SUPPLIED_BY_LOG,
     .uses = RULES_FOR_ALL, .flags = RULES_FRONTS, .value = rules_agent_value,
     .from = "the header field; also in access logs; an empty one is absent"},
    {RULES_HEADER "referer", NULL, -1, RULES_BY_ALL, .absence = RULES_SUPPLIED_BY_LOG,
     .uses = RULES_FOR_ALL, .flags = RULES_FRONTS, .from = "the header field; also in access logs"},

    /* Families. */
    {RULES_HEADER, NULL, -1, RULES_BY_ALL, .absence = RULES_SUPPLIED_BY_FIELDS,
     .uses = RULES_FOR_ALL, .flags = RULES_FRONTS,
     .from = "a header field; repeated lines are joined with `, `"},
    {RULES_QUERY, NULL, -1, RULES_BY_ALL, .within = RULES_WITHIN_QUERY, .uses = RULES_FOR_ALL,
     .flags = RULES_FRONTS, .value = rules_supplied, .from = "a parameter of the query"},
    {RULES_COOKIE, NULL, -1, RULES_BY_ALL, .within = RULES_WITHIN_COOKIES,
     .absence = RULES_SUPPLIED_BY_FIELDS, .uses = RULES_FOR_ALL,
     .flags = RULES_FRONTS | RULES_SECRET, .value = rules_supplied, .from = "a cookie"},
    {"jwt.", NULL, -1, 0, .absence = RULES_SUPPLIED_BY_FIELDS,
     .uses = RULES_FOR_COST | RULES_FOR_STANDING, .flags = RULES_FRONTS | RULES_MADE,
     .value = rules_claim_value, .given = rules_given_claim,
     .from = "a claim of the caller's verified token"},
    {"path.", NULL, -1, 0, .flags = RULES_FRONTS, .from = "captured by a pattern of the path"},

    /* A file's own names. */
    {"", NULL, -1, RULES_BY_ALL, .uses = RULES_FOR_ALL, .from = "`attributes` of requests"},
};

#define COUNT (sizeof rows / sizeof rows[0])
_Static_assert(COUNT <= RULES_ATTRIBUTE_ROWS_MAX, "grow RULES_ATTRIBUTE_ROWS_MAX");

const struct rules_attribute_row *rules_attribute_rows(uint32_t *count)
{
    *count = COUNT;
    return rows;
}

bool rules_row_is_family(const struct rules_attribute_row *row)
{
    size_t size = strlen(row->name);
    return size > 0 && row->name[size - 1] == '.';
}

static bool row_is(const struct rules_attribute_row *row, const char *name, size_t size)
{
    size_t own = strlen(row->name);
    return rules_row_is_family(row) ? size >= own && memcmp(name, row->name, own) == 0
                                    : size == own && memcmp(name, row->name, own) == 0;
}

/* Families, and the row of all other names, come last. */
const struct rules_attribute_row *rules_attribute_row_of(const char *name, size_t size)
{
    size_t i = 0;
    while (i < COUNT - 1 && !row_is(&rows[i], name, size))
        i++;
    return &rows[i];
}
