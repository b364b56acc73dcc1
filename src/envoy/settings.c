/* SPDX-License-Identifier: Apache-2.0 */
/* see settings.h */
#include "envoy/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json/scan.h"

static bool is(struct weir_bytes name, const char *wanted)
{
    return name.size == strlen(wanted) && memcmp(name.data, wanted, name.size) == 0;
}

/* A text that ends with a NUL: over its quote, which has been read. */
static int read_text(struct json_scan *scan, const char **text)
{
    struct weir_bytes value;
    char *before = scan->at;
    int err = json_scan_string(scan, &value);
    if (err < 0)
        return err;
    if (value.size == 0)
        return json_scan_fail(scan, WEIR_ERR_RANGE, before, "is empty");
    char *start = scan->text + ((const char *)value.data - scan->text);
    start[value.size] = '\0';
    *text = start;
    return 0;
}

static int read_flag(struct json_scan *scan, enum weir_evy_flag *flag)
{
    bool value;
    int err = json_scan_bool(scan, &value);
    if (err == 0)
        *flag = value ? WEIR_EVY_YES : WEIR_EVY_NO;
    return err;
}

/* One of `count` words; *choice is its place. */
static int read_word(struct json_scan *scan, const char *const *words, unsigned count,
                     unsigned *choice)
{
    struct weir_bytes value;
    char *before = scan->at;
    int err = json_scan_string(scan, &value);
    if (err < 0)
        return err;
    for (*choice = 0; *choice < count; ++*choice)
        if (is(value, words[*choice]))
            return 0;
    return json_scan_fail_name(scan, WEIR_ERR_SYNTAX, before, "unknown word", value);
}

static int read_place(struct json_scan *scan, struct weir_evy_place *place)
{
    struct weir_bytes name;
    uint32_t count = 0;
    char *before = scan->at;
    int more, err = json_scan_object(scan);
    if (err < 0)
        return err;
    while ((more = json_scan_member(scan, count++, &name)) == 1) {
        bool space = is(name, "namespace");
        struct weir_evy_text *to = space ? &place->space : &place->key;
        if (!space && !is(name, "key"))
            return json_scan_fail_name(scan, WEIR_ERR_SYNTAX, scan->at, "unknown key", name);
        err = read_text(scan, &to->data);
        if (err < 0)
            return err;
        to->size = strlen(to->data);
    }
    if (more == 0 && (!place->space.data || !place->key.data))
        return json_scan_fail(scan, WEIR_ERR_SYNTAX, before, "needs `namespace` and `key`");
    return more;
}

static int read_cost(struct json_scan *scan, struct weir_evy_settings *settings)
{
    settings->has_cost = true;
    return json_scan_peek(scan) == '{' ? read_place(scan, &settings->cost_of)
                                       : json_scan_integer(scan, &settings->cost);
}

static int read_attributes(struct json_scan *scan, struct weir_evy_settings *settings)
{
    struct weir_bytes name;
    uint32_t count = 0;
    int more, err = json_scan_object(scan);
    settings->has_attributes = true;
    if (err < 0)
        return err;
    while ((more = json_scan_member(scan, count, &name)) == 1) {
        struct weir_evy_attribute *attribute = &settings->attributes[count];
        if (count++ == WEIR_EVY_ATTRIBUTES_MAX)
            return json_scan_fail(scan, WEIR_ERR_RANGE, scan->at, "has more than 64 members");
        if (name.size == 0)
            return json_scan_fail(scan, WEIR_ERR_SYNTAX, scan->at, "an attribute has no name");
        char *start = scan->text + ((const char *)name.data - scan->text);
        bool nested = json_scan_peek(scan) == '{';
        struct weir_bytes value = {0};
        err = nested ? read_place(scan, &attribute->of) : json_scan_string(scan, &value);
        if (err < 0)
            return err;
        start[name.size] = '\0'; /* its colon has been read */
        attribute->name = start;
        attribute->text = (struct weir_evy_text){(const char *)value.data, value.size};
        settings->attribute_count = count;
    }
    return more;
}

static int read_shared(struct json_scan *scan, struct weir_evy_settings *settings,
                       struct weir_bytes name)
{
    if (is(name, "dry_run"))
        return read_flag(scan, &settings->dry_run);
    if (is(name, "trusted"))
        return read_flag(scan, &settings->trusted);
    if (is(name, "cost"))
        return read_cost(scan, settings);
    if (is(name, "settle"))
        return read_place(scan, &settings->settle);
    if (is(name, "attributes"))
        return read_attributes(scan, settings);
    return json_scan_fail_name(scan, WEIR_ERR_SYNTAX, scan->at, "unknown key", name);
}

static int read_route(struct json_scan *scan, struct weir_evy_settings *settings,
                      struct weir_bytes name)
{
    static const char *const filters[] = {"rules", "state", "on_error", "fields",
                                          "trusted_proxies"};
    for (unsigned i = 0; i < sizeof filters / sizeof *filters; i++)
        if (is(name, filters[i]))
            return json_scan_fail(scan, WEIR_ERR_SYNTAX, scan->at,
                                  "belongs to the filter, not to a route");
    if (is(name, "off"))
        return read_flag(scan, &settings->off);
    return read_shared(scan, settings, name);
}

static int read_filter(struct json_scan *scan, struct weir_evy_settings *settings,
                       struct weir_bytes name)
{
    static const char *const errors[] = {"rules", "open", "closed"};
    static const char *const fields[] = {"all", "denials", "none"};
    unsigned choice = 0;
    int err;
    if (is(name, "rules"))
        return read_text(scan, &settings->rules);
    if (is(name, "state"))
        return read_text(scan, &settings->state);
    if (is(name, "trusted_proxies"))
        return json_scan_bool(scan, &settings->trusted_proxies);
    if (is(name, "on_error")) {
        err = read_word(scan, errors, 3, &choice);
        settings->on_error = (enum weir_evy_on_error)choice;
        return err;
    }
    if (is(name, "fields")) {
        err = read_word(scan, fields, 3, &choice);
        settings->fields = (enum weir_evy_fields)choice;
        return err;
    }
    return read_shared(scan, settings, name);
}

static int read_json(struct weir_evy_settings *settings, size_t size, bool route,
                     struct weir_reason *reason)
{
    struct json_scan scan = {.text = settings->text,
                             .at = settings->text,
                             .end = settings->text + size,
                             .index = -1,
                             .reason = reason};
    struct weir_bytes name;
    char field[64];
    uint32_t count = 0;
    int more, err = json_scan_object(&scan);
    if (err < 0)
        return err;
    while ((more = json_scan_member(&scan, count++, &name)) == 1) {
        snprintf(field, sizeof field, "%.*s", (int)(name.size < 63 ? name.size : 63),
                 (const char *)name.data);
        scan.field = field;
        err = (route ? read_route : read_filter)(&scan, settings, name);
        if (err < 0)
            return err;
        scan.field = NULL;
    }
    return more < 0 ? more : json_scan_end(&scan);
}

static int read_word_alone(struct weir_evy_settings *settings, bool route,
                           struct weir_reason *reason)
{
    if (!route)
        settings->rules = settings->text;
    else if (strcmp(settings->text, "off") == 0)
        settings->off = WEIR_EVY_YES;
    else {
        snprintf(reason->text, sizeof reason->text,
                 "a route has JSON, {\"cost\": 2}, or the word off; with Envoy 1.38 as a "
                 "StringValue, since it does not read a Struct of a route");
        return WEIR_ERR_SYNTAX;
    }
    return 0;
}

static bool is_json(const char *text, size_t size)
{
    size_t blanks = strspn(text, " \t\r\n");
    return blanks < size && text[blanks] == '{';
}

static int read_all(struct weir_evy_settings *settings, size_t size, bool route,
                    struct weir_reason *reason)
{
    int err = is_json(settings->text, size) ? read_json(settings, size, route, reason)
                                            : read_word_alone(settings, route, reason);
    if (err == 0 && !route && (!settings->rules || settings->rules[0] == '\0')) {
        snprintf(reason->text, sizeof reason->text,
                 "the configuration names no rules file: {\"rules\": \"/etc/weir/weir.yaml\"}");
        return WEIR_ERR_SYNTAX;
    }
    return err;
}

int weir_evy_settings_read(struct weir_evy_settings **settings, struct weir_evy_text config,
                           bool route, struct weir_reason *reason)
{
    *settings = NULL;
    reason->text[0] = '\0';
    if (config.size > WEIR_EVY_CONFIG_MAX) {
        snprintf(reason->text, sizeof reason->text, "the configuration is larger than 64 KiB");
        return WEIR_ERR_TOO_LARGE;
    }
    struct weir_evy_settings *made = calloc(1, sizeof *made + config.size + 1);
    if (!made) {
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(WEIR_ERR_MEMORY));
        return WEIR_ERR_MEMORY;
    }
    if (config.size > 0)
        memcpy(made->text, config.data, config.size);
    atomic_init(&made->users, 1);
    made->off = made->dry_run = made->trusted = WEIR_EVY_UNSAID;
    int err = read_all(made, config.size, route, reason);
    if (err < 0)
        free(made);
    else
        *settings = made;
    return err;
}

void weir_evy_settings_keep(struct weir_evy_settings *settings)
{
    if (settings)
        atomic_fetch_add_explicit(&settings->users, 1, memory_order_relaxed);
}

void weir_evy_settings_free(struct weir_evy_settings *settings)
{
    if (settings && atomic_fetch_sub_explicit(&settings->users, 1, memory_order_acq_rel) == 1)
        free(settings);
}
