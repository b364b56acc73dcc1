/* SPDX-License-Identifier: Apache-2.0 */
/* see jwt_claims.h */
#include "feature/identity/rules/jwt_claims.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)
#define SECONDS_MAX (UINT64_MAX / NS_PER_S) /* of the timeline: the year 2554 */

/* --- When a token is valid -------------------------------------------------------------------- */

enum presence { ABSENT, PRESENT, BAD };

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* A NumericDate (RFC 7519 section 2): seconds since the epoch, which may have a fraction. It is
 * rounded to whole seconds, so that the token is valid for a shorter time rather than a longer one.
 * Before the epoch is the epoch. */
static enum presence read_date(const json_t *payload, const char *name, bool up, uint64_t *ns)
{
    const json_t *value = json_object_get(payload, name);
    double seconds;
    if (!value)
        return ABSENT;
    if (json_is_integer(value)) {
        json_int_t whole = json_integer_value(value);
        uint64_t positive = whole < 0 ? 0 : (uint64_t)whole;
        *ns = positive > SECONDS_MAX ? UINT64_MAX : positive * NS_PER_S;
        return PRESENT;
    }
    if (!json_is_real(value))
        return BAD;
    seconds = json_real_value(value);
    if (seconds < 0 || seconds >= (double)SECONDS_MAX) {
        *ns = seconds < 0 ? 0 : UINT64_MAX;
        return PRESENT;
    }
    uint64_t floored = (uint64_t)seconds;
    *ns = (floored + (up && (double)floored < seconds)) * NS_PER_S;
    return PRESENT;
}

/* Errors in what it says: MALFORMED. A token without an end that needs one is EXPIRED for ever. */
static enum weir_token judge_time(const struct rules_jwt *jwt, const json_t *payload,
                                  uint64_t now_ns, struct rules_claims *claims)
{
    uint64_t end_ns = UINT64_MAX, begin_ns = 0, issued_ns = 0;
    enum presence end = read_date(payload, "exp", false, &end_ns);
    enum presence begin = read_date(payload, "nbf", true, &begin_ns);
    enum presence issued = read_date(payload, "iat", false, &issued_ns);
    if (end == BAD || begin == BAD || issued == BAD)
        return WEIR_TOKEN_MALFORMED;
    claims->from_ns = difference(begin_ns, jwt->leeway_ns);
    claims->until_ns = sum(end_ns, jwt->leeway_ns);
    if (end == ABSENT && jwt->require_exp)
        claims->until_ns = 0;
    if (jwt->max_age_ns > 0) {
        uint64_t oldest_ns = sum(sum(issued_ns, jwt->max_age_ns), jwt->leeway_ns);
        if (issued == ABSENT)
            oldest_ns = 0;
        claims->until_ns = oldest_ns < claims->until_ns ? oldest_ns : claims->until_ns;
        /* Else a token from the future would be young for longer. */
        uint64_t issue_ns = difference(issued_ns, jwt->leeway_ns);
        claims->from_ns = issue_ns > claims->from_ns ? issue_ns : claims->from_ns;
    }
    bool valid = now_ns >= claims->from_ns && now_ns < claims->until_ns;
    return valid ? WEIR_TOKEN_VALID : WEIR_TOKEN_EXPIRED;
}

/* --- Whose it is, and for whom ---------------------------------------------------------------- */

static bool is_listed(const json_t *value, const struct weir_bytes *list, uint8_t count)
{
    for (uint8_t i = 0; json_is_string(value) && i < count; i++)
        if (json_string_length(value) == list[i].size &&
            memcmp(json_string_value(value), list[i].data, list[i].size) == 0)
            return true;
    return false;
}

/* `aud` is a text or a list of them; one of the rules' has to be among them. */
static bool has_audience(const struct rules_jwt *jwt, const json_t *audience)
{
    bool found = is_listed(audience, jwt->audiences, jwt->audience_count);
    for (size_t i = 0; i < json_array_size(audience); i++) {
        found =
            found || is_listed(json_array_get(audience, i), jwt->audiences, jwt->audience_count);
    }
    return found;
}

enum weir_token rules_jwt_judge(const struct rules_jwt *jwt, const json_t *payload, uint64_t now_ns,
                                struct rules_claims *claims)
{
    if (jwt->issuer_count > 0 &&
        !is_listed(json_object_get(payload, "iss"), jwt->issuers, jwt->issuer_count))
        return WEIR_TOKEN_ISSUER;
    if (jwt->audience_count > 0 && !has_audience(jwt, json_object_get(payload, "aud")))
        return WEIR_TOKEN_AUDIENCE;
    return judge_time(jwt, payload, now_ns, claims);
}

/* --- Texts ------------------------------------------------------------------------------------ */

static bool put(struct rules_claims *claims, const char *text, size_t size)
{
    if (size > sizeof(claims->texts) - claims->used)
        return false;
    memcpy(claims->texts + claims->used, text, size);
    claims->used += (uint32_t)size;
    return true;
}

static bool put_element(struct rules_claims *claims, const json_t *element)
{
    const char *text = json_string_value(element);
    size_t size = json_string_length(element);
    bool fits = true;
    for (size_t i = 0; fits && i < size; i++) {
        bool mark = text[i] == ',' || text[i] == '%';
        fits = mark ? put(claims, text[i] == ',' ? "%2C" : "%25", 3) : put(claims, text + i, 1);
    }
    return fits;
}

static bool are_texts(const json_t *list)
{
    bool texts = true;
    for (size_t i = 0; i < json_array_size(list); i++)
        texts = texts && json_is_string(json_array_get(list, i));
    return texts;
}

static bool put_list(struct rules_claims *claims, const json_t *list)
{
    bool fits = true;
    for (size_t i = 0; fits && i < json_array_size(list); i++)
        fits = (i == 0 || put(claims, ",", 1)) && put_element(claims, json_array_get(list, i));
    return fits;
}

/* False: it does not fit. */
static bool put_value(struct rules_claims *claims, const json_t *value)
{
    char digits[24];
    if (json_is_string(value))
        return put(claims, json_string_value(value), json_string_length(value));
    if (json_is_integer(value)) {
        int size =
            snprintf(digits, sizeof(digits), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return put(claims, digits, (size_t)size);
    }
    if (json_is_boolean(value)) {
        const char *word = json_is_true(value) ? "true" : "false";
        return put(claims, word, strlen(word));
    }
    return put_list(claims, value);
}

static bool has_text(const json_t *value)
{
    return json_is_string(value) || json_is_integer(value) || json_is_boolean(value) ||
           (json_is_array(value) && are_texts(value));
}

/* The whole name first, then its first part; names are NUL-terminated at load. */
static const json_t *find(const json_t *object, struct weir_bytes name)
{
    char part[RULES_CLAIM_NAME_MAX + 1];
    for (;;) {
        const json_t *whole = json_object_get(object, name.data);
        const char *dot = memchr(name.data, '.', name.size);
        if (whole || !dot)
            return whole;
        size_t size = (size_t)(dot - name.data);
        memcpy(part, name.data, size);
        part[size] = '\0';
        object = json_object_get(object, part);
        name = (struct weir_bytes){dot + 1, name.size - size - 1};
    }
}

bool rules_jwt_claims(const struct rules_jwt *jwt, const json_t *payload,
                      struct rules_claims *claims)
{
    claims->used = 0;
    for (uint8_t i = 0; i < jwt->claim_count; i++) {
        const json_t *value = find(payload, jwt->claims[i]);
        uint32_t begin = claims->used;
        claims->values[i] = (struct weir_bytes){NULL, 0};
        if (!has_text(value))
            continue;
        if (!put_value(claims, value))
            return false;
        claims->values[i] = (struct weir_bytes){claims->texts + begin, claims->used - begin};
    }
    return true;
}
