/* SPDX-License-Identifier: Apache-2.0 */
/* See check.h. */
#include "wire/json/check.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/check.h"
#include "wire/json/scan.h"

static bool equals(struct weir_bytes bytes, const char *text, size_t size)
{
    return bytes.size == size && memcmp(bytes.data, text, size) == 0;
}

/* Whether one of the pairs has this name. */
static bool pairs_hold(const struct weir_check_pair *pairs, uint16_t count, struct weir_bytes name,
                       bool fold_case)
{
    for (uint16_t i = 0; i < count; i++)
        if (pairs[i].name.size == name.size &&
            (fold_case ? strncasecmp(pairs[i].name.data, name.data, name.size)
                       : memcmp(pairs[i].name.data, name.data, name.size)) == 0)
            return true;
    return false;
}

/* The object of headers, whose values are strings, or of attributes. */
static int pairs_read(struct json_scan *scan, struct weir_check_pair *pairs, uint16_t *count,
                      bool headers)
{
    struct weir_bytes name;
    uint16_t read = 0;
    int more = json_scan_object(scan);

    while (more == 0) {
        more = json_scan_member(scan, read, &name);
        if (more <= 0)
            break;
        if (read == WEIR_CHECK_JSON_PAIRS_MAX)
            return json_scan_fail(scan, WEIR_ERR_TOO_LARGE, name.data - 1, "more than 64");
        if (name.size == 0 || pairs_hold(pairs, read, name, headers)) {
            return json_scan_fail_name(scan, WEIR_ERR_SYNTAX, name.data - 1,
                                       name.size == 0 ? "empty name" : "repeated name", name);
        }
        pairs[read].name = name;
        more = headers ? json_scan_string(scan, &pairs[read].value)
                       : json_scan_scalar(scan, &pairs[read].value);
        read++;
    }
    *count = read;
    return more;
}

enum field {
    FIELD_METHOD,
    FIELD_PATH,
    FIELD_HOST,
    FIELD_IP,
    FIELD_HEADERS,
    FIELD_ATTRIBUTES,
    FIELD_COST,
    FIELD_COSTS,
    FIELD_DRY_RUN,
    FIELD_IDEMPOTENCY_KEY,
    FIELD_T,
    FIELD_LIFE,
    FIELD_STATUS,
    FIELD_LATENCY,
    FIELDS,
};

#define NAME(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
static const struct weir_bytes field_names[FIELDS] = {
    NAME("method"),     NAME("path"), NAME("host"),   NAME("ip"),        NAME("headers"),
    NAME("attributes"), NAME("cost"), NAME("costs"),  NAME("dry_run"),   NAME("idempotency_key"),
    NAME("t"),          NAME("life"), NAME("status"), NAME("latency_ms")};
#undef NAME

/* By size and first letter, which differ for all but a few. */
static enum field field_find(struct weir_bytes name)
{
    for (int field = 0; name.size > 0 && field < FIELDS; field++) {
        const struct weir_bytes *known = &field_names[field];
        if (known->size == name.size && known->data[0] == name.data[0] &&
            memcmp(known->data, name.data, name.size) == 0)
            return (enum field)field;
    }
    return FIELDS;
}

static int key_read(struct json_scan *scan, struct weir_bytes *key)
{
    const char *at = scan->at;
    int err = json_scan_string(scan, key);
    if (err == 0 && (key->size == 0 || key->size > WEIR_IDEMPOTENCY_KEY_MAX))
        return json_scan_fail(scan, WEIR_ERR_SYNTAX, at, "not 1 to 255 bytes");
    return err;
}

static int life_read(struct json_scan *scan, uint64_t *life_ns)
{
    (void)json_scan_peek(scan); /* past spaces */
    const char *at = scan->at;
    int err = json_scan_seconds(scan, life_ns);
    return err == WEIR_ERR_SYNTAX ? json_scan_fail(scan, err, at, "not seconds, as in 60") : err;
}

static int status_read(struct json_scan *scan, uint64_t *status)
{
    const char *at = scan->at;
    int err = json_scan_unsigned(scan, status);
    if (err == 0 && (*status < 100 || *status > 599))
        return json_scan_fail(scan, WEIR_ERR_RANGE, at, "not a status of 100 to 599");
    return err;
}

static int field_read(struct json_scan *scan, enum field field, struct weir_check_json *check)
{
    switch (field) {
    case FIELD_METHOD:
        return json_scan_string(scan, &check->method);
    case FIELD_PATH:
        return json_scan_string(scan, &check->path);
    case FIELD_HOST:
        return json_scan_string(scan, &check->host);
    case FIELD_IP:
        return json_scan_string(scan, &check->ip);
    case FIELD_HEADERS:
        check->has_headers = true;
        return pairs_read(scan, check->headers, &check->header_count, true);
    case FIELD_ATTRIBUTES:
        return pairs_read(scan, check->attributes, &check->attribute_count, false);
    case FIELD_COST:
        return json_scan_unsigned(scan, &check->cost);
    case FIELD_COSTS:
        return weir_json_costs_read(scan, &check->costs);
    case FIELD_DRY_RUN:
        return json_scan_bool(scan, &check->dry_run);
    case FIELD_IDEMPOTENCY_KEY:
        return key_read(scan, &check->idempotency_key);
    case FIELD_LIFE:
        check->has_life = true;
        return life_read(scan, &check->life_ns);
    case FIELD_STATUS:
        return status_read(scan, &check->status);
    case FIELD_LATENCY:
        return json_scan_unsigned(scan, &check->latency_ms);
    default:
        check->has_t = true;
        return json_scan_seconds(scan, &check->t_ns);
    }
}

static void check_clear(struct weir_check_json *check)
{
    check->method = check->path = check->host = check->ip = (struct weir_bytes){0};
    check->idempotency_key = (struct weir_bytes){0};
    check->cost = 1;
    check->t_ns = 0;
    check->dry_run = check->has_t = check->has_life = false;
    check->life_ns = check->status = check->latency_ms = 0;
    check->header_count = check->attribute_count = check->costs.count = 0;
    check->has_headers = false;
}

static const char *wrong_field(enum field field, struct weir_bytes name)
{
    if (field != FIELDS)
        return "repeated field";
    bool attribute = equals(name, "user", 4) || equals(name, "org", 3) || equals(name, "plan", 4);
    return attribute ? "only allowed in \"attributes\":" : "unknown field";
}

/* One object. */
static int check_read(struct json_scan *scan, struct weir_check_json *check)
{
    struct weir_bytes name;
    uint32_t seen = 0, count = 0;
    int more = json_scan_object(scan);

    check_clear(check);
    while (more == 0) {
        scan->field = NULL;
        more = json_scan_member(scan, count++, &name);
        if (more <= 0)
            break;
        enum field field = field_find(name);
        if (field == FIELDS || (seen & 1u << field) != 0) {
            return json_scan_fail_name(scan, WEIR_ERR_SYNTAX, name.data - 1,
                                       wrong_field(field, name), name);
        }
        seen |= 1u << field;
        scan->field = field_names[field].data;
        more = field_read(scan, field, check);
    }
    return more;
}

void weir_check_cursor_init(struct weir_check_cursor *cursor, char *text, size_t size)
{
    *cursor = (struct weir_check_cursor){.text = text, .at = text, .end = text + size};
}

bool weir_check_cursor_is_array(const struct weir_check_cursor *cursor)
{
    struct json_scan scan = {.text = cursor->text, .at = cursor->text, .end = cursor->end};
    return json_scan_peek(&scan) == '[';
}

void weir_check_cursor_move(struct weir_check_cursor *cursor, char *copy)
{
    cursor->at = copy + (cursor->at - cursor->text);
    cursor->end = copy + (cursor->end - cursor->text);
    cursor->text = copy;
}

/* To the next element of an array. Returns 1 when there is one, 0 at the end, or an error. */
static int element_next(struct weir_check_cursor *cursor, struct json_scan *scan)
{
    char next = json_scan_peek(scan);
    if (next == ']') {
        scan->at++;
        scan->index = -1;
        cursor->done = true;
        return json_scan_end(scan);
    }
    if (cursor->index > 0) {
        if (next != ',') {
            scan->index = -1;
            return json_scan_fail(scan, WEIR_ERR_SYNTAX, scan->at,
                                  "missing comma or closing bracket");
        }
        scan->at++;
    }
    if (cursor->index == WEIR_CHECK_JSON_BATCH_MAX) {
        scan->index = -1;
        return json_scan_fail(scan, WEIR_ERR_TOO_LARGE, scan->at, "more than 1000 checks");
    }
    return 1;
}

int weir_check_cursor_next(struct weir_check_cursor *cursor, struct weir_check_json *check,
                           struct weir_reason *reason)
{
    struct json_scan scan = {
        .text = cursor->text, .at = cursor->at, .end = cursor->end, .index = -1, .reason = reason};
    int more = 1;

    if (cursor->done)
        return 0;
    if (!cursor->started) {
        cursor->started = true;
        cursor->array = json_scan_peek(&scan) == '[';
        scan.at += cursor->array;
    }
    if (cursor->array) {
        scan.index = (int32_t)cursor->index;
        more = element_next(cursor, &scan);
    }
    if (more > 0) {
        int err = check_read(&scan, check);
        scan.field = NULL;
        if (err == 0 && !cursor->array) {
            cursor->done = true;
            err = json_scan_end(&scan);
        }
        more = err < 0 ? err : 1;
        cursor->index++;
    }
    cursor->at = scan.at;
    return more;
}

static int release_member(struct json_scan *scan, struct weir_bytes name,
                          struct weir_release_json *release)
{
    bool lease = equals(name, "lease", 5), status = equals(name, "status", 6);

    if (!lease && !status)
        return json_scan_fail_name(scan, WEIR_ERR_SYNTAX, name.data - 1, "unknown field", name);
    if (lease ? release->lease.data != NULL : release->status != 0)
        return json_scan_fail_name(scan, WEIR_ERR_SYNTAX, name.data - 1, "given twice:", name);
    scan->field = lease ? "lease" : "status";
    return lease ? json_scan_string(scan, &release->lease) : status_read(scan, &release->status);
}

int weir_release_json_parse(char *text, size_t size, struct weir_release_json *release,
                            struct weir_reason *reason)
{
    struct json_scan scan = {
        .text = text, .at = text, .end = text + size, .index = -1, .reason = reason};
    struct weir_bytes name;
    uint32_t count = 0;
    int more = json_scan_object(&scan);

    *release = (struct weir_release_json){.status = 0};
    while (more == 0) {
        scan.field = NULL;
        more = json_scan_member(&scan, count++, &name);
        if (more <= 0)
            break;
        more = release_member(&scan, name, release);
    }
    if (more == 0 && !release->lease.data)
        return json_scan_fail(&scan, WEIR_ERR_SYNTAX, scan.at, "\"lease\" is required");
    return more < 0 ? more : json_scan_end(&scan);
}
