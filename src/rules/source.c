/* SPDX-License-Identifier: Apache-2.0 */
/* see source.h */
#include "rules/source.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "core/text/credential.h"
#include "feature/identity/rules/jwt.h"
#include "rules/attribute_table.h"
#include "rules/compiled.h"
#include "rules/known_names.h"
#include "rules/load/attributes.h"
#include "rules/match/query.h"
#include "rules/unknown_names.h"

#define HEADER_SIZE (sizeof(RULES_HEADER) - 1)

/* --- Names ------------------------------------------------------------------------------------ */

static struct weir_attribute_source source_without(enum weir_name_state state, uint8_t flags)
{
    return (struct weir_attribute_source){NULL, -1, (uint8_t)state, flags};
}

/* What is known of a name that no rule reads. Header names are in lower case. */
static struct weir_attribute_source find_unread(const struct weir_rules *rules, const char *name,
                                                size_t size, uint8_t flags)
{
    const struct rules_attribute_row *row = rules_attribute_row_of(name, size);
    if (!rules_row_is_own(row))
        return source_without(row->may_set != 0 ? WEIR_NAME_UNREAD : WEIR_NAME_MADE, flags);
    return source_without(rules_is_declared(rules, (struct weir_bytes){name, size})
                              ? WEIR_NAME_UNREAD
                              : WEIR_NAME_UNKNOWN,
                          flags);
}

static struct weir_attribute_source find(const struct weir_rules *rules, const char *name,
                                         size_t size, uint8_t flags)
{
    uint32_t number =
        rules_string_map_find(&rules->attributes, 0, rules_text_hash(name, size), name, size);
    if (number == RULES_NONE)
        return find_unread(rules, name, size, flags);
    uint8_t may_set = rules->rows[number]->may_set;
    if (may_set == 0)
        return source_without(WEIR_NAME_MADE, flags);
    bool as_it_is = number != WEIR_ATTR_CLIENT_IP && (flags & WEIR_NAME_HEADER) == 0;
    if (may_set == RULES_BY_ALL && as_it_is)
        flags |= WEIR_NAME_OPEN;
    return (struct weir_attribute_source){rules->attribute_names[number], (int16_t)number,
                                          WEIR_NAME_READ, flags};
}

/* "header." and the name in lower case. */
static void write_field(char *full, const char *name, size_t size)
{
    memcpy(full, RULES_HEADER, HEADER_SIZE);
    for (size_t i = 0; i < size; i++) {
        bool upper = name[i] >= 'A' && name[i] <= 'Z';
        full[HEADER_SIZE + i] = (char)(upper ? name[i] | 0x20 : name[i]);
    }
}

struct weir_attribute_source weir_rules_source(const struct weir_rules *rules, const char *name,
                                               size_t size)
{
    char full[HEADER_SIZE + RULES_ATTRIBUTE_NAME_MAX];
    if (size > sizeof full)
        return source_without(WEIR_NAME_UNKNOWN, 0);
    if (size < HEADER_SIZE || strncasecmp(name, RULES_HEADER, HEADER_SIZE) != 0)
        return find(rules, name, size, 0);
    write_field(full, name + HEADER_SIZE, size - HEADER_SIZE);
    struct weir_attribute_source source = find(rules, full, size, WEIR_NAME_HEADER);
    if (source.attribute == WEIR_ATTR_HOST) /* `host` itself goes before it */
        source.flags |= WEIR_NAME_OF_REQUEST;
    return source;
}

struct weir_attribute_source weir_rules_field(const struct weir_rules *rules, const char *name,
                                              size_t size)
{
    char full[HEADER_SIZE + RULES_ATTRIBUTE_NAME_MAX];
    const uint8_t flags = WEIR_NAME_OF_REQUEST | WEIR_NAME_HEADER;
    if (size > RULES_ATTRIBUTE_NAME_MAX || (rules->field_sizes >> size % 64 & 1) == 0)
        return source_without(WEIR_NAME_UNREAD, flags);
    write_field(full, name, size);
    return find(rules, full, HEADER_SIZE + size, flags);
}

const char *weir_source_own_field(const struct weir_rules *rules,
                                  struct weir_attribute_source source)
{
    return source.attribute >= 0 ? rules->rows[source.attribute]->field : NULL;
}

static inline bool allows(const struct weir_rules *rules, struct weir_attribute_source source,
                          enum weir_trust trust)
{
    return source.state == WEIR_NAME_READ &&
           (rules->rows[source.attribute]->may_set >> trust & 1) != 0;
}

bool weir_source_allows(const struct weir_rules *rules, struct weir_attribute_source source,
                        enum weir_trust trust)
{
    return allows(rules, source, trust);
}

/* --- Values ----------------------------------------------------------------------------------- */

void weir_request_begin(struct weir_request *request, const struct weir_rules *rules,
                        enum weir_fields fields, struct weir_room room)
{
    weir_request_clear(request, rules->attribute_count);
    request->rules = rules;
    request->fields = (uint8_t)fields;
    request->room = room.data;
    request->room_size = room.size;
}

void weir_request_once(struct weir_request *request)
{
    request->once = true;
}

void weir_request_of_program(struct weir_request *request)
{
    request->program = true;
}

/* The first thing that is wrong with the request. What it says itself has the names of a check. */
__attribute__((noinline)) static void request_fail(struct weir_request *request,
                                                   struct weir_attribute_source source, int err,
                                                   const char *why)
{
    uint32_t count;
    const struct rules_attribute_row *rows = rules_attribute_rows(&count);
    if (request->error != 0)
        return;
    const char *name = source.name                    ? source.name
                       : rows[source.attribute].field ? rows[source.attribute].field
                                                      : rows[source.attribute].name;
    request->error = (int8_t)err;
    request->wrong = weir_bytes_of(name);
    request->why = why;
}

static const char repeated_text[] = ": given more than once, with different values";

/* A second line of a credential. weir and the application would have to take the same one, so
 * unless the rules say which one that is, lines that differ make the request unreadable. */
static void repeat_credential(struct weir_request *request, struct weir_attribute_source source,
                              struct weir_bytes *known, struct weir_bytes value)
{
    uint8_t repeated = request->rules->repeated[source.attribute];
    if (repeated == RULES_REPEATED_LAST)
        *known = value;
    else if (repeated == RULES_REPEATED_UNREADABLE && !weir_bytes_equal(*known, value))
        request_fail(request, source, WEIR_ERR_SYNTAX, repeated_text);
}

/* What comes of a credential. Commas may join the lines of a repeated field (Envoy's
 * ext_authz hands them on so, as RFC 9110 5.2 allows), so each part counts as a line. */
__attribute__((noinline)) static struct weir_bytes
split_credential(struct weir_request *request, struct weir_attribute_source source,
                 struct weir_bytes value)
{
    if (value.size == 0 || !memchr(value.data, ',', value.size))
        return value;
    bool scheme = rules_has_scheme(request->rules->attribute_names[source.attribute]);
    struct weir_bytes line, taken = {value.data, 0};
    if (!weir_credential_next(&value, scheme, &taken))
        return taken;
    while (weir_credential_next(&value, scheme, &line))
        repeat_credential(request, source, &taken, line);
    return taken;
}

/* Puts another line of a header field behind those that came before. What was joined last grows in
 * its place; anything else moves to the end of the room first. */
__attribute__((noinline)) static void join_field(struct weir_request *request,
                                                 struct weir_attribute_source source,
                                                 struct weir_bytes *known, struct weir_bytes value)
{
    uint8_t repeated = request->rules->repeated[source.attribute];
    const char *between = repeated == RULES_REPEATED_COOKIES ? "; " : ", ";
    if (repeated >= RULES_REPEATED_UNREADABLE) {
        repeat_credential(request, source, known, value);
        return;
    }
    char *end = request->room ? request->room + request->room_used : NULL;
    bool last = end && known->data + known->size == end;
    size_t more = (last ? 0 : known->size) + 2 + value.size;
    if (!end || more > request->room_size - request->room_used) {
        request_fail(request, source, WEIR_ERR_TOO_LARGE,
                     ": repeated header fields are too large together");
        return;
    }
    if (!last) {
        memcpy(end, known->data, known->size);
        known->data = end;
        end += known->size;
    }
    memcpy(end, between, 2);
    memcpy(end + 2, value.data, value.size);
    known->size += 2 + value.size;
    request->room_used += more;
}

__attribute__((noinline)) static void put_address(struct weir_request *request,
                                                  struct weir_attribute_source source,
                                                  struct weir_bytes value)
{
    request->client = (struct weir_address){.family = 0};
    if (value.data && weir_address_parse(&request->client, value.data, value.size) < 0)
        request_fail(request, source, WEIR_ERR_SYNTAX, ": not an IP address");
}

void weir_request_take(struct weir_request *request, struct weir_attribute_source source,
                       struct weir_bytes value, enum weir_trust trust)
{
    uint16_t attribute = (uint16_t)source.attribute;
    uint64_t bit = UINT64_C(1) << attribute % 64, *named = &request->named[attribute / 64];
    bool of_request = (source.flags & WEIR_NAME_OF_REQUEST) != 0;
    struct weir_bytes *known = &request->values[attribute];
    if (!allows(request->rules, source, trust))
        return;
    if (of_request && (!value.data || (*named & bit) != 0))
        return; /* it says nothing; what is given by name goes before it */
    if (!of_request && request->once && (*named & bit) != 0)
        request_fail(request, source, WEIR_ERR_SYNTAX, " is given twice");
    if (__builtin_expect((source.flags & WEIR_NAME_HEADER) != 0, 0) &&
        request->rules->repeated[attribute] >= RULES_REPEATED_UNREADABLE)
        value = split_credential(request, source, value);
    if (!of_request && attribute != WEIR_ATTR_CLIENT_IP) {
        weir_request_set(request, attribute, value, trust);
        return;
    }
    *named |= of_request ? 0 : bit;
    weir_request_trust(request, attribute, trust);
    if (attribute == WEIR_ATTR_CLIENT_IP)
        put_address(request, source, value);
    else if (known->data && attribute >= WEIR_ATTR_FIRST_NAMED)
        join_field(request, source, known, value);
    else
        *known = value;
}

void weir_request_put_name(struct weir_request *request, struct weir_bytes name,
                           struct weir_bytes value, enum weir_trust trust)
{
    struct weir_attribute_source source = weir_rules_source(request->rules, name.data, name.size);
    bool good = request->error == 0;
    if (source.state == WEIR_NAME_UNKNOWN)
        weir_request_unknown(request, name, trust);
    else
        weir_request_put(request, source, value, trust);
    if (good && request->error != 0)
        request->wrong = name; /* as its sender spells it */
}

void weir_request_put_field(struct weir_request *request, struct weir_bytes name,
                            struct weir_bytes value, enum weir_trust trust)
{
    struct weir_attribute_source source = weir_rules_field(request->rules, name.data, name.size);
    weir_request_put(request, source, value, trust);
}

void weir_request_put_cost(struct weir_request *request, uint16_t attribute,
                           struct weir_bytes digits)
{
    request->values[attribute] = digits;
    request->named[attribute / 64] |= UINT64_C(1) << attribute % 64;
}

void weir_request_unknown(struct weir_request *request, struct weir_bytes name,
                          enum weir_trust trust)
{
    if (trust != WEIR_TRUST_RECORDED)
        rules_unknown_name(request->rules, name.data, name.size);
    if (!request->program || !request->rules->strict_attributes || request->error != 0)
        return;
    request->error = WEIR_ERR_SYNTAX;
    request->wrong = name;
    request->why = ": unknown attribute; it is neither built in nor in `attributes` of the rules";
}

void weir_request_put_client(struct weir_request *request, const struct weir_address *client)
{
    request->named[0] |= UINT64_C(1) << WEIR_ATTR_CLIENT_IP;
    request->client = *client;
}

/* Whether the query has a credential twice, as two lines of a header field would have it. */
static bool repeats_in_query(const struct weir_request *request, uint16_t attribute)
{
    const struct weir_rules *rules = request->rules;
    struct weir_bytes name = weir_bytes_of(rules->attribute_names[attribute]);
    if (rules->repeated[attribute] != RULES_REPEATED_UNREADABLE ||
        rules->rows[attribute]->within != RULES_WITHIN_QUERY || request->values[attribute].data)
        return false;
    name.data += sizeof(RULES_QUERY) - 1;
    name.size -= sizeof(RULES_QUERY) - 1;
    return weir_query_differs(request->values[WEIR_ATTR_PATH], name);
}

/* The attribute of a credential that the query has twice; -1: there is none. */
__attribute__((noinline)) static int find_repeated(const struct weir_request *request)
{
    const struct weir_rules *rules = request->rules;
    for (uint32_t i = 0; i < rules->identify_count; i++)
        if (rules->identify[i].kind == RULES_BY_KEY &&
            repeats_in_query(request, rules->identify[i].attribute))
            return rules->identify[i].attribute;
    for (uint8_t i = 0; rules->jwt && i < rules->jwt->source_count; i++)
        if (repeats_in_query(request, rules->jwt->sources[i]))
            return rules->jwt->sources[i];
    return -1;
}

int weir_request_end(const struct weir_request *request, struct weir_reason *reason)
{
    const struct weir_rules *rules = request->rules;
    bool identified = rules->identify_count > 0 || rules->jwt;
    int repeated = identified && request->error == 0 ? find_repeated(request) : -1;
    if (repeated >= 0) {
        if (reason)
            snprintf(reason->text, sizeof reason->text, "%s%s", rules->attribute_names[repeated],
                     repeated_text);
        return WEIR_ERR_SYNTAX;
    }
    if (request->error != 0 && reason)
        snprintf(reason->text, sizeof reason->text, "%.*s%s",
                 (int)(request->wrong.size < RULES_ATTRIBUTE_NAME_MAX ? request->wrong.size
                                                                      : RULES_ATTRIBUTE_NAME_MAX),
                 request->wrong.data, request->why);
    return request->error;
}
