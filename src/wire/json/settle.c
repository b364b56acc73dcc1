/* SPDX-License-Identifier: Apache-2.0 */
/* See settle.h. */
#include "wire/json/settle.h"

#include <string.h>

#include "core/bytes.h"
#include "wire/json/scan.h"

int weir_status_parse(struct weir_bytes text, uint32_t *status)
{
    if (text.size != 3 || text.data[0] < '1' || text.data[0] > '5')
        return WEIR_ERR_SYNTAX;
    *status = (uint32_t)(text.data[0] - '0') * 100;
    if (text.data[1] == 'x' && text.data[2] == 'x')
        return 0;
    for (int i = 1; i < 3; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return WEIR_ERR_SYNTAX;
    *status += (uint32_t)(text.data[1] - '0') * 10 + (uint32_t)(text.data[2] - '0');
    return 0;
}

/* Where the string that begins at `at` ends, its closing quote included; `end` where it does not.
 */
static const char *skip_string(const char *at, const char *end)
{
    at++;
    while (at < end && *at != '"')
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at < end ? at + 1 : end;
}

bool weir_settle_json_has_reservation(const char *text, size_t size)
{
    static const char name[] = "\"reservation\"";
    const char *at = text, *end = text + size;
    int depth = 0;

    while (at < end) {
        if (*at == '"') {
            const char *next = skip_string(at, end);
            bool is_it =
                (size_t)(next - at) == sizeof name - 1 && memcmp(at, name, sizeof name - 1) == 0;

            for (at = next; at < end && strchr(" \t\r\n", *at) && *at != '\0';)
                at++;
            if (is_it && depth == 1 && at < end && *at == ':')
                return true;
            continue;
        }
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at++;
    }
    return false;
}

enum field { RESERVATION, COST, COSTS, STATUS, OUTCOME, LATENCY, FIELDS };

static const char *const field_names[FIELDS] = {"reservation", "cost",    "costs",
                                                "status",      "outcome", "latency_ms"};

/* Of the same kind as one that was given: each at most once. */
static const uint8_t excludes[FIELDS] = {
    [RESERVATION] = 1 << RESERVATION,       [COST] = 1 << COST | 1 << COSTS,
    [COSTS] = 1 << COST | 1 << COSTS,       [STATUS] = 1 << STATUS | 1 << OUTCOME,
    [OUTCOME] = 1 << STATUS | 1 << OUTCOME, [LATENCY] = 1 << LATENCY,
};

static int status_read(struct json_scan *scan, struct weir_settle_json *settle)
{
    const char *at = scan->at;
    struct weir_bytes text;
    int err = json_scan_scalar(scan, &text);
    if (err == 0 && weir_status_parse(text, &settle->status) < 0) {
        return json_scan_fail(scan, WEIR_ERR_SYNTAX, at,
                              "not a status of 100 to 599, nor a class like \"5xx\"");
    }
    return err;
}

static int value_read(struct json_scan *scan, enum field field, struct weir_settle_json *settle)
{
    switch (field) {
    case RESERVATION:
        return json_scan_string(scan, &settle->reservation);
    case COST:
        settle->has_cost = true;
        return json_scan_unsigned(scan, &settle->cost);
    case COSTS:
        settle->has_costs = true;
        return weir_json_costs_read(scan, &settle->costs);
    case LATENCY:
        settle->has_latency = true;
        return json_scan_unsigned(scan, &settle->latency_ms);
    default:
        return status_read(scan, settle);
    }
}

static int field_read(struct json_scan *scan, struct weir_bytes name,
                      struct weir_settle_json *settle, unsigned *seen)
{
    unsigned field = 0;
    while (field < FIELDS && !weir_bytes_are(name, field_names[field]))
        field++;
    if (field == FIELDS)
        return json_scan_fail(scan, WEIR_ERR_SYNTAX, name.data - 1, "unknown field");
    if ((*seen & excludes[field]) != 0) {
        bool repeated = (*seen >> field & 1) != 0;
        return json_scan_fail(scan, WEIR_ERR_SYNTAX, name.data - 1,
                              repeated ? "repeated field"
                              : field == COST || field == COSTS
                                  ? "one of cost and costs is enough"
                                  : "status and outcome are the same");
    }
    *seen |= 1U << field;
    scan->field = field == OUTCOME ? "status" : field_names[field];
    return value_read(scan, (enum field)field, settle);
}

int weir_settle_json_parse(char *text, size_t size, struct weir_settle_json *settle,
                           struct weir_reason *reason)
{
    struct json_scan scan = {
        .text = text, .at = text, .end = text + size, .index = -1, .reason = reason};
    struct weir_bytes name;
    uint32_t count = 0;
    unsigned seen = 0;
    int more = json_scan_object(&scan);

    *settle = (struct weir_settle_json){0};
    while (more == 0) {
        scan.field = NULL;
        more = json_scan_member(&scan, count++, &name);
        if (more <= 0)
            break;
        more = field_read(&scan, name, settle, &seen);
    }
    scan.field = NULL;
    bool told = settle->has_cost || settle->has_costs || settle->status != 0;
    if (more == 0 && (!settle->reservation.data || !told)) {
        return json_scan_fail(&scan, WEIR_ERR_SYNTAX, scan.at,
                              !settle->reservation.data
                                  ? "\"reservation\" is required"
                                  : "\"cost\", \"costs\" or \"status\" is required");
    }
    return more < 0 ? more : json_scan_end(&scan);
}
