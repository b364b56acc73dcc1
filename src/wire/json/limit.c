/* SPDX-License-Identifier: Apache-2.0 */
/* See limit.h. */
#include "wire/json/limit.h"

#include "core/bytes.h"
#include "wire/json/scan.h"

#define LIMITS "limits"
#define DRY_RUN "dry_run"

static int key_read(struct json_scan *scan, struct weir_bytes *key)
{
    const char *at = scan->at;
    int err = json_scan_string(scan, key);
    if (err == 0 && key->size == 0)
        return json_scan_fail(scan, WEIR_ERR_SYNTAX, at, "must not be empty");
    return err;
}

static int name_read(struct json_scan *scan, struct weir_bytes *name)
{
    const char *at = scan->at;
    int err = json_scan_string(scan, name);
    if (err == 0 && !weir_limit_name_valid(*name))
        return json_scan_fail(scan, WEIR_ERR_SYNTAX, at, WEIR_LIMIT_NAME_RULE);
    return err;
}

static int field_read(struct json_scan *scan, enum weir_limit_field field,
                      struct weir_given_limit *limit)
{
    switch (field) {
    case WEIR_LIMIT_KEY:
        return key_read(scan, &limit->key);
    case WEIR_LIMIT_NAME:
        return name_read(scan, &limit->name);
    case WEIR_LIMIT_RATE:
        return json_scan_string(scan, &limit->rate);
    case WEIR_LIMIT_ALGORITHM:
        return json_scan_string(scan, &limit->algorithm);
    case WEIR_LIMIT_BURST:
        return json_scan_unsigned(scan, &limit->burst);
    case WEIR_LIMIT_SEGMENTS:
        return json_scan_unsigned(scan, &limit->segments);
    case WEIR_LIMIT_STRICT:
        return json_scan_bool(scan, &limit->strict);
    case WEIR_LIMIT_QUEUE:
        return json_scan_bool(scan, &limit->queue);
    case WEIR_LIMIT_LIMIT:
        return json_scan_unsigned(scan, &limit->limit);
    case WEIR_LIMIT_LIFE:
        return json_scan_string(scan, &limit->life);
    default:
        return json_scan_unsigned(scan, &limit->cost);
    }
}

/* What is wrong with a name that is no field of a limit here. */
static const char *unknown(struct weir_bytes name, bool element)
{
    if (weir_bytes_are(name, "quota"))
        return "for the rules file only:";
    if (weir_bytes_are(name, "idempotency_key"))
        return "not allowed with limits in the request:";
    if (element && weir_bytes_are(name, DRY_RUN))
        return "only allowed beside \"" LIMITS "\":";
    if (element && weir_bytes_are(name, LIMITS))
        return "not allowed within a limit:";
    return "unknown field";
}

/* One member of a limit, whose name has been read. */
static int member_read(struct json_scan *scan, struct weir_bytes name, bool element,
                       struct weir_given_limit *limit)
{
    int field = 0;
    while (field < WEIR_LIMIT_FIELDS &&
           !weir_bytes_are(name, weir_limit_field_name((enum weir_limit_field)field)))
        field++;
    if (field == WEIR_LIMIT_FIELDS)
        return json_scan_fail_name(scan, WEIR_ERR_SYNTAX, name.data - 1, unknown(name, element),
                                   name);
    if (limit->given & 1u << field)
        return json_scan_fail_name(scan, WEIR_ERR_SYNTAX, name.data - 1, "repeated field", name);
    limit->given |= 1u << field;
    scan->field = weir_limit_field_name((enum weir_limit_field)field);
    return field_read(scan, (enum weir_limit_field)field, limit);
}

static void limit_clear(struct weir_given_limit *limit)
{
    *limit = (struct weir_given_limit){.cost = 1};
}

static int key_needed(struct json_scan *scan, const struct weir_given_limit *limit)
{
    scan->field = NULL;
    return limit->key.data ? 0
                           : json_scan_fail(scan, WEIR_ERR_SYNTAX, scan->at, "\"key\" is required");
}

/* One element of a list. */
static int element_read(struct json_scan *scan, struct weir_given_limit *limit)
{
    struct weir_bytes name;
    uint32_t count = 0;
    int more = json_scan_object(scan);
    limit_clear(limit);
    while (more == 0) {
        scan->field = NULL;
        more = json_scan_member(scan, count++, &name);
        if (more <= 0)
            break;
        more = member_read(scan, name, true, limit);
    }
    return more < 0 ? more : key_needed(scan, limit);
}

static int list_read(struct json_scan *scan, struct weir_given_limits *limits)
{
    limits->listed = true;
    limits->count = 0;
    if (json_scan_peek(scan) != '[')
        return json_scan_fail(scan, WEIR_ERR_SYNTAX, scan->at, "not an array of limits");
    scan->at++;
    for (;;) {
        char next = json_scan_peek(scan);
        scan->index = -1;
        scan->field = limits->list;
        if (next == ']' && limits->count > 0)
            break;
        if (limits->count > 0 && next != ',')
            return json_scan_fail(scan, WEIR_ERR_SYNTAX, scan->at,
                                  "missing comma or closing bracket");
        if (limits->count == 0 && next == ']')
            return json_scan_fail(scan, WEIR_ERR_SYNTAX, scan->at, "no limit");
        if (limits->count == WEIR_CHECKS_MAX)
            return json_scan_fail(scan, WEIR_ERR_TOO_LARGE, scan->at, "more than 32 limits");
        scan->at += limits->count > 0;
        scan->index = limits->count;
        scan->list = limits->list;
        scan->field = NULL;
        int err = element_read(scan, &limits->limits[limits->count]);
        if (err < 0)
            return err;
        limits->count++;
    }
    scan->field = NULL;
    scan->at++;
    return 0;
}

/* A member of the object that is the whole text: of the one limit, or of the request. */
static int request_member(struct json_scan *scan, struct weir_bytes name,
                          struct weir_given_limits *limits, bool *dry_run_given)
{
    struct weir_given_limit *only = &limits->limits[0];
    bool list = weir_bytes_are(name, LIMITS), dry_run = weir_bytes_are(name, DRY_RUN);
    if (dry_run ? *dry_run_given : list && limits->listed)
        return json_scan_fail_name(scan, WEIR_ERR_SYNTAX, name.data - 1, "repeated field", name);
    if (dry_run) {
        *dry_run_given = true;
        scan->field = DRY_RUN;
        return json_scan_bool(scan, &limits->dry_run);
    }
    if (list ? only->given != 0 : limits->listed)
        return json_scan_fail(scan, WEIR_ERR_SYNTAX, name.data - 1,
                              "either \"" LIMITS "\" or the fields of one limit");
    if (!list)
        return member_read(scan, name, false, only);
    scan->field = limits->list = LIMITS;
    return list_read(scan, limits);
}

static int request_read(struct json_scan *scan, struct weir_given_limits *limits)
{
    struct weir_bytes name;
    uint32_t count = 0;
    bool dry_run_given = false;
    int more = json_scan_object(scan);
    while (more == 0) {
        scan->field = NULL;
        more = json_scan_member(scan, count++, &name);
        if (more <= 0)
            break;
        more = request_member(scan, name, limits, &dry_run_given);
    }
    if (more < 0 || limits->listed)
        return more;
    return key_needed(scan, &limits->limits[0]);
}

int weir_limits_json_parse(char *text, size_t size, struct weir_given_limits *limits,
                           struct weir_reason *reason)
{
    struct json_scan scan = {
        .text = text, .at = text, .end = text + size, .index = -1, .reason = reason};
    limits->count = 1;
    limits->listed = limits->dry_run = false;
    limits->list = NULL;
    limit_clear(&limits->limits[0]);
    int err = json_scan_peek(&scan) == '[' ? list_read(&scan, limits) : request_read(&scan, limits);
    scan.field = NULL;
    return err < 0 ? err : json_scan_end(&scan);
}
