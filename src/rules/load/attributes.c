/* SPDX-License-Identifier: Apache-2.0 */
/* see attributes.h */
#include "rules/load/attributes.h"

#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "rules/challenge/section.h"
#include "rules/identity/jwt.h"
#include "rules/load/names.h"
#include "rules/load/numbers.h"
#include "rules/score/section.h"

static const char *const fixed_names[WEIR_ATTR_FIRST_NAMED] = {
    [WEIR_ATTR_METHOD] = "method",
    [WEIR_ATTR_PATH] = "path",
    [WEIR_ATTR_HOST] = "host",
    [WEIR_ATTR_CLIENT_IP] = "client.ip",
    [WEIR_ATTR_USER] = "user",
    [WEIR_ATTR_ORG] = "org",
    [WEIR_ATTR_PLAN] = "plan",
    [WEIR_ATTR_STANDING] = "standing",
    [WEIR_ATTR_TLS_NAME] = "tls.client.name",
    [WEIR_ATTR_TLS_CN] = "tls.client.cn",
    [WEIR_ATTR_CHALLENGE] = "challenge",
    [WEIR_ATTR_SCORE] = "client.score",
    [WEIR_ATTR_CLASS] = "client.class",
};

bool rules_fixed_attributes(struct rules_loader *loader)
{
    struct weir_rules *rules = loader->rules;
    for (uint32_t i = 0; i < WEIR_ATTR_FIRST_NAMED; i++) {
        const char *name = fixed_names[i];
        rules->attribute_names[i] = name;
        if (!rules_keep_word(loader, &rules->attributes, 0, name, strlen(name), i))
            return false;
    }
    rules->attribute_count = WEIR_ATTR_FIRST_NAMED;
    return true;
}

static bool name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

bool rules_check_standing(struct rules_loader *loader, const struct rules_node *node,
                          uint16_t attribute)
{
    if (attribute != WEIR_ATTR_STANDING || loader->standing)
        return true;
    rules_problem(loader, node,
                  "the attribute `standing` needs the section `standing:`, which says whose "
                  "standing counts");
    return false;
}

/* RFC 9110 5.6.2: what a field name may have beyond name_byte. */
static bool header_byte(char byte)
{
    return name_byte(byte) || (byte != '\0' && strchr("!#$%&'*+^`|~", byte));
}

static bool begins_with(struct weir_bytes name, const char *prefix)
{
    size_t size = strlen(prefix);
    return name.size >= size && memcmp(name.data, prefix, size) == 0;
}

/* Names of parameters may have brackets: "filter[name]". */
static bool check_within(struct rules_loader *loader, const struct rules_node *node,
                         struct weir_bytes name)
{
    bool query = begins_with(name, RULES_QUERY);
    size_t prefix = query ? sizeof(RULES_QUERY) - 1 : sizeof(RULES_COOKIE) - 1;
    struct rules_quote quote;
    if (name.size > RULES_ATTRIBUTE_NAME_MAX) {
        rules_problem(loader, node, "an attribute's name has 1 to %d bytes",
                      RULES_ATTRIBUTE_NAME_MAX);
        return false;
    }
    bool good = name.size > prefix;
    for (size_t i = prefix; good && i < name.size; i++)
        good = header_byte(name.data[i]) || (query && (name.data[i] == '[' || name.data[i] == ']'));
    if (!good)
        rules_problem(loader, node,
                      query ? "%s is not a parameter of a query: write `query.NAME`, with letters, "
                              "digits, `[`, `]` and -._~!#$%%&'*+^`|"
                            : "%s is not a cookie: write `cookie.NAME`, with letters, digits and "
                              "-._~!#$%%&'*+^`|",
                      rules_quote(&quote, name.data, name.size));
    return good;
}

static bool check_name(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_bytes name, bool header)
{
    struct rules_quote quote;
    rules_quote(&quote, name.data, name.size);
    if (name.size == 0 || name.size > RULES_ATTRIBUTE_NAME_MAX) {
        rules_problem(loader, node, "an attribute's name has 1 to %d bytes",
                      RULES_ATTRIBUTE_NAME_MAX);
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        if (!(header ? header_byte(name.data[i]) : name_byte(name.data[i]))) {
            rules_problem(
                loader, node,
                "%s is not the name of an attribute: use letters, digits, `.`, `_` and `-`",
                quote.text);
            return false;
        }
    }
    if (header && name.size == strlen("header.")) {
        rules_problem(loader, node, "`header.` needs the name of a header field");
        return false;
    }
    if (weir_bytes_are(name, "path.")) {
        rules_problem(loader, node, "`path.` needs the name of a segment that a pattern captures");
        return false;
    }
    /* Not by likeness: client_id is a good name. */
    static const char *const mistaken[] = {"ip", "client_ip", "client-ip", "clientip",
                                           "remote_addr"};
    bool client = name.size >= 7 && memcmp(name.data, "client.", 7) == 0;
    for (size_t i = 0; i < sizeof(mistaken) / sizeof(mistaken[0]); i++)
        client = client || weir_bytes_are(name, mistaken[i]);
    if (client) {
        rules_problem(loader, node, "unknown attribute %s; did you mean `client.ip`?", quote.text);
        return false;
    }
    bool field = name.size > 2 && strncasecmp(name.data, "x-", 2) == 0;
    static const char *const fields[] = {"authorization", "cookie", "referer", "user-agent"};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        field = field || (name.size == strlen(fields[i]) &&
                          strncasecmp(name.data, fields[i], name.size) == 0);
    }
    if (field) {
        rules_problem(loader, node, "unknown attribute %s; a header field is `header.%.*s`",
                      quote.text, (int)name.size, name.data);
        return false;
    }
    if (name.size >= 4 && memcmp(name.data, "tls.", 4) == 0) {
        rules_problem(loader, node,
                      "unknown attribute %s; of TLS there are `tls.client.name` and "
                      "`tls.client.cn`",
                      quote.text);
        return false;
    }
    return true;
}

/* What a name may have beyond those of other attributes: that of groups in the tokens of AWS has a
 * colon, that of roles in those of Auth0 is a URL. */
static bool claim_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte != '\0' && strchr("._-:/@#~+", byte));
}

static bool check_claim(struct rules_loader *loader, const struct rules_node *node,
                        struct weir_bytes name)
{
    struct rules_quote quote;
    bool good = name.size > 0 && name.size <= RULES_CLAIM_NAME_MAX;
    for (size_t i = 0; good && i < name.size; i++)
        good = claim_byte(name.data[i]);
    if (!good)
        rules_problem(loader, node,
                      "%s is not the name of a claim: use 1 to %d of a-z, A-Z, 0-9, ._-:/@#~+",
                      rules_quote(&quote, name.data, name.size), RULES_CLAIM_NAME_MAX);
    return good;
}

int rules_intern_claim(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_bytes name)
{
    struct rules_jwt *jwt = loader->rules->jwt;
    struct rules_quote quote;
    if (!jwt) {
        rules_problem(loader, node, "the claim %s needs the section `jwt:`, which verifies tokens",
                      rules_quote(&quote, name.data, name.size));
        return -1;
    }
    if (!check_claim(loader, node, name))
        return -1;
    for (uint8_t i = 0; i < jwt->claim_count; i++)
        if (weir_bytes_equal(jwt->claims[i], name))
            return i;
    if (jwt->claim_count == RULES_CLAIMS_MAX) {
        rules_problem(loader, node, "more than %d claims in one file", RULES_CLAIMS_MAX);
        return -1;
    }
    const char *kept = rules_keep_text(loader, name.data, name.size);
    if (!kept)
        return -1;
    jwt->claims[jwt->claim_count] = (struct weir_bytes){kept, name.size};
    return jwt->claim_count++;
}

static uint8_t within_of(struct weir_bytes name)
{
    return begins_with(name, RULES_QUERY)    ? RULES_WITHIN_QUERY
           : begins_with(name, RULES_COOKIE) ? RULES_WITHIN_COOKIES
                                             : RULES_WITHIN_NONE;
}

bool rules_check_attribute_name(struct rules_loader *loader, const struct rules_node *node,
                                struct weir_bytes name)
{
    if (begins_with(name, "jwt."))
        return check_claim(loader, node, (struct weir_bytes){name.data + 4, name.size - 4});
    return check_name(loader, node, name, false);
}

int rules_intern_attribute(struct rules_loader *loader, const struct rules_node *node,
                           struct weir_bytes name)
{
    struct weir_rules *rules = loader->rules;
    bool header = name.size >= 7 && memcmp(name.data, "header.", 7) == 0;
    char lower[RULES_ATTRIBUTE_NAME_MAX];
    for (size_t i = 0; header && i < name.size && i < sizeof(lower); i++) {
        bool upper = name.data[i] >= 'A' && name.data[i] <= 'Z';
        lower[i] = (char)(upper ? name.data[i] | 0x20 : name.data[i]);
    }
    if (header && name.size <= sizeof(lower))
        name.data = lower;
    uint32_t known = rules_string_map_find(
        &rules->attributes, 0, rules_text_hash(name.data, name.size), name.data, name.size);
    if (known != RULES_NONE) {
        bool may = rules_check_challenge(loader, node, (uint16_t)known) &&
                   rules_check_score(loader, node, (uint16_t)known);
        return may ? (int)known : -1;
    }
    bool of_token = name.size >= 4 && memcmp(name.data, "jwt.", 4) == 0;
    int claim = -1;
    if (of_token)
        claim = rules_intern_claim(loader, node, (struct weir_bytes){name.data + 4, name.size - 4});
    bool good = of_token                               ? claim >= 0
                : within_of(name) != RULES_WITHIN_NONE ? check_within(loader, node, name)
                                                       : check_name(loader, node, name, header);
    if (!good)
        return -1;
    rules_check_declared(loader, node, name);
    if (begins_with(name, RULES_COOKIE)) {
        static const char field[] = "header.cookie";
        int cookies =
            rules_intern_attribute(loader, node, (struct weir_bytes){field, sizeof(field) - 1});
        if (cookies < 0)
            return -1;
        rules->cookies = (uint16_t)cookies;
    }
    if (rules->attribute_count == WEIR_ATTRIBUTES_MAX) {
        rules_problem(loader, node, "more than %d attributes in one file", WEIR_ATTRIBUTES_MAX);
        return -1;
    }
    uint16_t number = rules->attribute_count;
    const char *kept = rules_keep_text(loader, name.data, name.size);
    if (!kept || !rules_keep_word(loader, &rules->attributes, 0, kept, name.size, number))
        return -1;
    rules->attribute_names[number] = kept;
    rules->within[number] = within_of(name);
    if (of_token)
        rules->jwt->claim_of[number] = (uint8_t)(claim + 1);
    return rules->attribute_count++;
}

int rules_read_address_name(struct rules_loader *loader, const struct rules_node *node,
                            struct weir_bytes name, uint8_t *bits4, uint8_t *bits6)
{
    static const char base[] = "client.ip";
    size_t at = strlen(base);
    if (name.size < at || memcmp(name.data, base, at) != 0 ||
        (name.size > at && name.data[at] != '/'))
        return 0;
    uint64_t bits[2] = {128, 32};
    for (int i = 0; i < 2 && at < name.size; i++) {
        uint64_t most = bits[i];
        int digits = name.data[at] == '/'
                         ? weir_digits_parse(&bits[i], name.data + at + 1, name.size - at - 1)
                         : 0;
        if (digits <= 0 || bits[i] > most) {
            at = 0;
            break;
        }
        at += 1 + (size_t)digits;
    }
    if (at != name.size) {
        struct rules_quote quote;
        rules_problem(loader, node,
                      "%s: prefix lengths are `client.ip/64` (IPv6, 0 to 128) or "
                      "`client.ip/64/24` (IPv6, and IPv4, 0 to 32)",
                      rules_quote(&quote, name.data, name.size));
        return -1;
    }
    *bits6 = (uint8_t)bits[0];
    *bits4 = (uint8_t)bits[1];
    return 1;
}

bool rules_has_scheme(const char *name)
{
    return strcmp(name, "header.authorization") == 0 ||
           strcmp(name, "header.proxy-authorization") == 0;
}

/* What logs must not show: keys that identify looks up, and fields that carry credentials. */
bool rules_is_secret(const struct weir_rules *rules, uint16_t attribute)
{
    static const char *const fields[] = {"header.authorization", "header.proxy-authorization",
                                         "header.cookie", "header.x-weir-challenge"};
    if (rules->within[attribute] == RULES_WITHIN_COOKIES)
        return true; /* mostly a session */
    for (uint32_t i = 0; i < rules->identify_count; i++)
        if (rules->identify[i].kind == RULES_BY_KEY && rules->identify[i].attribute == attribute)
            return true;
    for (uint8_t i = 0; rules->jwt && i < rules->jwt->source_count; i++)
        if (rules->jwt->sources[i] == attribute)
            return true;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (strcmp(rules->attribute_names[attribute], fields[i]) == 0)
            return true;
    return false;
}
