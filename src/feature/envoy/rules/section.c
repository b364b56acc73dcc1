/* SPDX-License-Identifier: Apache-2.0 */
/* see envoy.h */
#include "feature/envoy/rules/section.h"

#include <stdlib.h>
#include <string.h>

#include "rules/load/environment.h"
#include "rules/load/fields.h"

#define NS_PER_S UINT64_C(1000000000)
#define HEADER_MAX 64
#define TAG_MAX 64

enum envoy_field {
    ENVOY_CONFIG,
    ENVOY_MERGE,
    ENVOY_SHADOW,
    ENVOY_QUOTA,
    ENVOY_METADATA,
    ENVOY_CHARGE,
    ENVOY_COUNT_LOCAL,
    ENVOY_HEADERS,
    ENVOY_NEAR,
    ENVOY_ON_STORE_ERROR,
    ENVOY_DOT_FILES,
    ENVOY_FILE_PREFIX,
    ENVOY_NEED_DOMAINS,
    ENVOY_NEED_STORE,
    ENVOY_STATSD,
    ENVOY_PROMETHEUS,
    ENVOY_REDIS_COMPAT,
    ENVOY_REDIS_PREFIX,
    ENVOY_FIELDS,
};

static const char *const envoy_names[ENVOY_FIELDS] = {
    "config",
    "merge_domains",
    "shadow_mode",
    "quota_mode",
    "dynamic_metadata",
    "charge",
    "count_local_cache",
    "response_headers",
    "near_limit_ratio",
    "on_store_error",
    "ignore_dot_files",
    "file_prefix",
    "healthy_with_domains",
    "healthy_with_store",
    "statsd",
    "prometheus",
    "redis_compat",
    "redis_prefix",
};

static void fields_of(struct rules_field *fields, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        fields[i] = (struct rules_field){names[i], NULL, NULL};
}

static void read_flag(struct rules_loader *loader, const struct rules_field *field, bool *flag)
{
    if (field->value)
        rules_read_bool(loader, field->value, field->name, flag);
}

/* A text of 1 to `most` graphic ASCII characters, kept; NULL where it is absent or wrong. */
static const char *read_word(struct rules_loader *loader, const struct rules_field *field,
                             size_t most)
{
    struct weir_bytes text;
    if (!field->value || !rules_read_text(loader, field->value, field->name, &text))
        return NULL;
    bool good = text.size > 0 && text.size <= most;
    for (size_t i = 0; i < text.size; i++)
        good = good && text.data[i] > ' ' && text.data[i] < 0x7F;
    if (!good) {
        rules_problem(loader, field->value, "`%s` must be 1 to %zu graphic ASCII characters",
                      field->name, most);
        return NULL;
    }
    return rules_keep_text(loader, text.data, text.size);
}

/* true, false, or a mapping of the names that the headers have. */
static void load_headers(struct rules_loader *loader, const struct rules_field *field,
                         struct weir_envoy_options *options)
{
    static const char *const names[] = {"limit", "remaining", "reset"};
    struct rules_field fields[3];
    if (!field->value)
        return;
    if (field->value->kind != RULES_MAP) {
        rules_read_bool(loader, field->value, field->name, &options->headers);
        return;
    }
    fields_of(fields, names, 3);
    rules_fields(loader, field->value, field->name, fields, 3);
    options->headers = true;
    options->limit_header = read_word(loader, &fields[0], HEADER_MAX);
    options->remaining_header = read_word(loader, &fields[1], HEADER_MAX);
    options->reset_header = read_word(loader, &fields[2], HEADER_MAX);
}

static void load_ratio(struct rules_loader *loader, const struct rules_field *field,
                       struct weir_envoy_options *options)
{
    struct weir_bytes text;
    if (!field->value || !rules_read_text(loader, field->value, field->name, &text))
        return;
    char *end;
    float ratio = strtof(text.data, &end);
    if (text.size == 0 || *end != '\0' || !(ratio > 0 && ratio <= 1)) {
        rules_problem(loader, field->value, "`%s` must be a number above 0 and at most 1",
                      field->name);
        return;
    }
    options->near_limit_ratio = ratio;
}

static void load_tags(struct rules_loader *loader, const struct rules_node *node,
                      struct weir_envoy_settings *envoy)
{
    if (node->kind != RULES_MAP || node->size / 2 > WEIR_ENVOY_TAGS_MAX) {
        rules_problem(loader, node, "`tags` must be a mapping of at most %d names to values",
                      WEIR_ENVOY_TAGS_MAX);
        return;
    }
    for (uint32_t i = 0; i < node->size; i += 2) {
        const struct rules_field name = {"tags", node->items[i], node->items[i]};
        const struct rules_field value = {"tags", node->items[i], node->items[i + 1]};
        struct weir_envoy_tag tag = {read_word(loader, &name, TAG_MAX),
                                     read_word(loader, &value, TAG_MAX)};
        if (tag.name && tag.value)
            envoy->tags[envoy->tag_count++] = tag;
    }
}

/* "tcp://HOST:PORT" or "udp://HOST:PORT". */
static void load_statsd_address(struct rules_loader *loader, const struct rules_node *node,
                                struct weir_envoy_settings *envoy)
{
    struct weir_bytes text;
    if (!rules_read_text(loader, node, "address", &text))
        return;
    bool tcp = strncmp(text.data, "tcp://", 6) == 0, udp = strncmp(text.data, "udp://", 6) == 0;
    const char *host = text.data + 6, *colon = strrchr(text.data, ':');
    bool good = (tcp || udp) && colon > host && colon[1] != '\0';
    if (!good) {
        rules_problem(loader, node, "`address` must be tcp://HOST:PORT or udp://HOST:PORT");
        return;
    }
    size_t size = (size_t)(colon - host);
    if (*host == '[' && host[size - 1] == ']') {
        host++;
        size -= 2;
    }
    envoy->statsd_tcp = tcp;
    envoy->statsd_host = rules_keep_text(loader, host, size);
    envoy->statsd_port = rules_keep_text(loader, colon + 1, strlen(colon + 1));
}

static void load_statsd(struct rules_loader *loader, const struct rules_field *field,
                        struct weir_envoy_settings *envoy)
{
    enum { ADDRESS, INTERVAL, TAGS, FORMAT, COUNT };
    static const char *const names[COUNT] = {"address", "interval", "tags", "format"};
    static const char *const formats[] = {"statsd", "dogstatsd"};
    struct rules_field fields[COUNT];
    if (!field->value)
        return;
    fields_of(fields, names, COUNT);
    if (!rules_fields(loader, field->value, field->name, fields, COUNT))
        return;
    if (!fields[ADDRESS].value)
        rules_problem(loader, field->value, "`address` is missing");
    else
        load_statsd_address(loader, fields[ADDRESS].value, envoy);
    if (fields[INTERVAL].value) {
        rules_read_duration(loader, fields[INTERVAL].value, "interval", NS_PER_S / 10,
                            3600 * NS_PER_S, "100ms to 1h", &envoy->flush_ns);
    }
    if (fields[TAGS].value)
        load_tags(loader, fields[TAGS].value, envoy);
    if (fields[FORMAT].value) {
        envoy->statsd_tags =
            rules_read_choice(loader, fields[FORMAT].value, "format", formats, 2) == 1;
    }
}

static void load_prometheus(struct rules_loader *loader, const struct rules_field *field,
                            struct weir_envoy_settings *envoy)
{
    static const char *const names[] = {"address", "path"};
    struct rules_field fields[2];
    if (!field->value)
        return;
    fields_of(fields, names, 2);
    if (!rules_fields(loader, field->value, field->name, fields, 2))
        return;
    envoy->prometheus = read_word(loader, &fields[0], 128);
    envoy->prometheus_path = read_word(loader, &fields[1], 128);
    if (!fields[0].value)
        rules_problem(loader, field->value, "`address` is missing");
    if (envoy->prometheus_path && envoy->prometheus_path[0] != '/')
        rules_problem(loader, fields[1].value, "`path` begins with a slash");
}

void rules_load_envoy(struct rules_loader *loader, const struct rules_node *node)
{
    static const char *const charges[] = {"always", "if_all_allow"};
    static const char *const failures[] = {"fail", "local", "open", "closed"};
    struct weir_envoy_settings *envoy = &loader->rules->settings.envoy;
    struct weir_envoy_options *options = &envoy->options;
    struct rules_field fields[ENVOY_FIELDS];
    struct weir_bytes text;
    fields_of(fields, envoy_names, ENVOY_FIELDS);
    envoy->flush_ns = 10 * NS_PER_S;
    envoy->prometheus_path = "/metrics";
    options->ignore_dot_files = true;
    if (!rules_fields(loader, node, "envoy", fields, ENVOY_FIELDS))
        return;
    if (!fields[ENVOY_CONFIG].value)
        rules_problem(loader, node, "`config` is missing: the folder of the configuration");
    else if (rules_read_place(loader, fields[ENVOY_CONFIG].value, "config", &text))
        envoy->folder = rules_path_of(loader, text);
    read_flag(loader, &fields[ENVOY_MERGE], &options->merge_domains);
    read_flag(loader, &fields[ENVOY_SHADOW], &options->shadow_mode);
    read_flag(loader, &fields[ENVOY_QUOTA], &options->quota_mode);
    read_flag(loader, &fields[ENVOY_METADATA], &options->dynamic_metadata);
    read_flag(loader, &fields[ENVOY_COUNT_LOCAL], &options->count_local);
    read_flag(loader, &fields[ENVOY_DOT_FILES], &options->ignore_dot_files);
    read_flag(loader, &fields[ENVOY_NEED_DOMAINS], &envoy->need_domains);
    read_flag(loader, &fields[ENVOY_NEED_STORE], &envoy->need_store);
    load_headers(loader, &fields[ENVOY_HEADERS], options);
    load_ratio(loader, &fields[ENVOY_NEAR], options);
    if (fields[ENVOY_CHARGE].value) {
        options->charge_if_allowed =
            rules_read_choice(loader, fields[ENVOY_CHARGE].value, "charge", charges, 2) == 1;
    }
    if (fields[ENVOY_ON_STORE_ERROR].value) {
        int choice = rules_read_choice(loader, fields[ENVOY_ON_STORE_ERROR].value, "on_store_error",
                                       failures, 4);
        options->on_store_error = choice > 0 ? (uint8_t)choice : WEIR_ENVOY_STORE_FAIL;
    }
    read_flag(loader, &fields[ENVOY_REDIS_COMPAT], &options->redis_compat);
    options->redis_prefix = read_word(loader, &fields[ENVOY_REDIS_PREFIX], 128);
    if (options->redis_compat && !loader->rules->settings.store.redis.url) {
        rules_problem(loader, fields[ENVOY_REDIS_COMPAT].key,
                      "`redis_compat` needs counters in Redis: add `store: {redis: …}`");
    }
    if (options->redis_compat && options->charge_if_allowed) {
        rules_problem(
            loader, fields[ENVOY_REDIS_COMPAT].key,
            "`redis_compat` counts every hit; it cannot be combined with `charge: if_all_allow`");
    }
    options->name_prefix = read_word(loader, &fields[ENVOY_FILE_PREFIX], 128);
    load_statsd(loader, &fields[ENVOY_STATSD], envoy);
    load_prometheus(loader, &fields[ENVOY_PROMETHEUS], envoy);
    options->nodes = loader->rules->settings.store.nodes;
    options->leased = loader->rules->settings.store.leased;
    options->shared = loader->rules->settings.store.redis.url;
    if (options->on_store_error == WEIR_ENVOY_STORE_LOCAL && options->shared &&
        options->nodes == 0) {
        rules_problem(loader, fields[ENVOY_ON_STORE_ERROR].key,
                      "`on_store_error: local` needs `store: {nodes: …}`: a node decides its part "
                      "of a limit");
    }
}
