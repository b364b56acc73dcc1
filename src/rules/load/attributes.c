/* SPDX-License-Identifier: Apache-2.0 */
/* see attributes.h */
#include "rules/load/attributes.h"

#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "feature/identity/rules/jwt.h"
#include "rules/load/names.h"
#include "rules/load/numbers.h"
#include "rules/match/evaluate.h"

/* Gives an attribute the next number. */
static bool add_attribute(struct rules_loader *loader, const char *name, size_t size)
{
    struct weir_rules *rules = loader->rules;
    uint16_t number = rules->attribute_count;
    if (!rules_keep_word(loader, &rules->attributes, 0, name, size, number))
        return false;
    rules->attribute_names[number] = name;
    rules->rows[number] = rules_attribute_row_of(name, size);
    rules->repeated[number] = rules->rows[number]->repeated;
    rules->attribute_count++;
    return true;
}

/* Makes requests find the field of this name. */
static void read_field(struct weir_rules *rules, const char *name, size_t size)
{
    static const size_t prefix = sizeof(RULES_HEADER) - 1;
    if (size > prefix && memcmp(name, RULES_HEADER, prefix) == 0)
        rules->field_sizes |= UINT64_C(1) << (size - prefix) % 64;
}

bool rules_fixed_attributes(struct rules_loader *loader)
{
    struct rules_string_map *names = &loader->rules->attributes;
    uint32_t count;
    const struct rules_attribute_row *rows = rules_attribute_rows(&count);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = rows[i].name, *same_as = rows[i].same_as;
        size_t size = strlen(name);
        if (rows[i].number >= 0 && !add_attribute(loader, name, size))
            return false;
        if (!same_as)
            continue;
        uint32_t number = (uint32_t)rules_attribute_row_of(same_as, strlen(same_as))->number;
        if (!rules_keep_word(loader, names, 0, name, size, number))
            return false;
        read_field(loader->rules, name, size);
    }
    return true;
}

static bool name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
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
                       struct weir_bytes name)
{
    struct rules_quote quote;
    bool header = begins_with(name, RULES_HEADER);
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
    if (header && name.size == strlen(RULES_HEADER)) {
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
                      "unknown attribute %s; of TLS there are `tls.client.name`, "
                      "`tls.client.cn` and `tls.ja4`",
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

/* The number of a name that the file has used before, or that every file has; -1: there is none. */
static int known_attribute(const struct weir_rules *rules, struct weir_bytes name)
{
    const struct rules_attribute_row *row = rules_attribute_row_of(name.data, name.size);
    uint32_t number = rules_string_map_find(
        &rules->attributes, 0, rules_text_hash(name.data, name.size), name.data, name.size);
    bool mistaken = row->same_as && (row->flags & RULES_REQUESTS) != 0;
    return number == RULES_NONE || mistaken ? -1 : (int)number;
}

/* The field that cookies are in. */
static bool intern_cookies(struct rules_loader *loader, const struct rules_node *node)
{
    static const char field[] = RULES_HEADER "cookie";
    int cookies =
        rules_intern_attribute(loader, node, (struct weir_bytes){field, sizeof(field) - 1});
    if (cookies >= 0)
        loader->rules->cookies = (uint16_t)cookies;
    return cookies >= 0;
}

static bool check_new(struct rules_loader *loader, const struct rules_node *node,
                      struct weir_bytes name, int *claim)
{
    const struct rules_attribute_row *row = rules_attribute_row_of(name.data, name.size);
    *claim = -1;
    if (row->value == rules_claim_value)
        *claim =
            rules_intern_claim(loader, node, (struct weir_bytes){name.data + 4, name.size - 4});
    bool good = row->value == rules_claim_value    ? *claim >= 0
                : row->within != RULES_WITHIN_NONE ? check_within(loader, node, name)
                                                   : check_name(loader, node, name);
    return good && (row->within != RULES_WITHIN_COOKIES || intern_cookies(loader, node));
}

bool rules_check_attribute_name(struct rules_loader *loader, const struct rules_node *node,
                                struct weir_bytes name)
{
    if (begins_with(name, "jwt."))
        return check_claim(loader, node, (struct weir_bytes){name.data + 4, name.size - 4});
    return check_name(loader, node, name);
}

int rules_intern_attribute(struct rules_loader *loader, const struct rules_node *node,
                           struct weir_bytes name)
{
    struct weir_rules *rules = loader->rules;
    char lower[RULES_ATTRIBUTE_NAME_MAX];
    int claim;
    bool header = begins_with(name, RULES_HEADER) && name.size <= sizeof(lower);
    for (size_t i = 0; header && i < name.size; i++) {
        bool upper = name.data[i] >= 'A' && name.data[i] <= 'Z';
        lower[i] = (char)(upper ? name.data[i] | 0x20 : name.data[i]);
    }
    if (header)
        name.data = lower;
    int known = known_attribute(rules, name);
    if (known >= 0) {
        const struct rules_attribute_row *row = rules->rows[known];
        return !row->needs || row->needs(loader, node, (uint16_t)known) ? known : -1;
    }
    if (!check_new(loader, node, name, &claim))
        return -1;
    rules_check_declared(loader, node, name);
    if (rules->attribute_count == WEIR_ATTRIBUTES_MAX) {
        rules_problem(loader, node, "more than %d attributes in one file", WEIR_ATTRIBUTES_MAX);
        return -1;
    }
    const char *kept = rules_keep_text(loader, name.data, name.size);
    if (!kept || !add_attribute(loader, kept, name.size))
        return -1;
    read_field(rules, kept, name.size);
    uint16_t number = (uint16_t)(rules->attribute_count - 1);
    if (claim >= 0)
        rules->jwt->claim_of[number] = (uint8_t)(claim + 1);
    return number;
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

bool rules_identifies(const struct weir_rules *rules, uint16_t attribute)
{
    for (uint32_t i = 0; i < rules->identify_count; i++)
        if (rules->identify[i].kind == RULES_BY_KEY && rules->identify[i].attribute == attribute)
            return true;
    for (uint8_t i = 0; rules->jwt && i < rules->jwt->source_count; i++)
        if (rules->jwt->sources[i] == attribute)
            return true;
    return false;
}

/* What logs must not show: keys that identify looks up, and fields that carry credentials. */
bool rules_is_secret(const struct weir_rules *rules, uint16_t attribute)
{
    return (rules->rows[attribute]->flags & RULES_SECRET) != 0 ||
           rules_identifies(rules, attribute);
}

bool weir_rules_hides(const struct weir_rules *rules, struct weir_bytes attribute)
{
    uint32_t number = rules_string_map_find(&rules->attributes, 0,
                                            rules_text_hash(attribute.data, attribute.size),
                                            attribute.data, attribute.size);
    if (number != RULES_NONE)
        return rules_is_secret(rules, (uint16_t)number);
    return (rules_attribute_row_of(attribute.data, attribute.size)->flags & RULES_SECRET) != 0;
}
