/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/envoy/rules/section.h"

#include <stdlib.h>
#include <string.h>

#include "feature/envoy/rules/pairs.h"
#include "feature/envoy/rules/xds_section.h"
#include "rules/load/environment.h"
#include "rules/load/fields.h"

#define HEADER_MAX 64
#define TAG_MAX 64

/* A text of 1 to `most` graphic ASCII characters, kept; NULL after a problem. */
static const char *read_word(struct rules_loader *loader, const struct rules_node *node,
                             const char *what, size_t most)
{
    struct weir_bytes text;
    if (!rules_read_text(loader, node, what, &text))
        return NULL;
    bool good = text.size > 0 && text.size <= most;
    for (size_t i = 0; i < text.size; i++)
        good = good && text.data[i] > ' ' && text.data[i] < 0x7F;
    if (!good) {
        rules_problem(loader, node, "`%s` must be 1 to %zu graphic ASCII characters", what, most);
        return NULL;
    }
    return rules_keep_text(loader, text.data, text.size);
}

/* `parse` of a row: such a text, of `most` bytes. */
static bool parse_word(struct rules_loader *loader, const struct rules_keyword *keyword,
                       const struct rules_node *node, void *field)
{
    const char **word = field;
    *word = read_word(loader, node, keyword->name, (size_t)keyword->most);
    return *word;
}

#define WORD RULES_TEXT, .parse = parse_word

#define AT(member) RULES_AT(struct weir_envoy_options, member)
static const struct rules_keyword header_keywords[] = {
    {"limit", WORD, AT(limit_header), RULES_RANGE(1, HEADER_MAX), .absent = "`RateLimit-Limit`",
     .doc = "the name of the header with the limit"},
    {"remaining", WORD, AT(remaining_header), RULES_RANGE(1, HEADER_MAX),
     .absent = "`RateLimit-Remaining`", .doc = "of the one with what is left"},
    {"reset", WORD, AT(reset_header), RULES_RANGE(1, HEADER_MAX), .absent = "`RateLimit-Reset`",
     .doc = "of the one with the seconds that remain"},
};
#undef AT
static const struct rules_section headers_section =
    RULES_SECTION("response_headers", header_keywords);

/* true, false, or a mapping of the names that the headers have. */
static void load_headers(struct rules_loader *loader, const struct rules_field *field,
                         struct weir_envoy_options *options)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (field->value->kind != RULES_MAP) {
        rules_read_bool(loader, field->value, field->name, &options->headers);
        return;
    }
    options->headers = true;
    (void)rules_section_load(loader, &headers_section, field->value, fields, options);
}

/* `parse` of a row: a number above 0 and at most 1. */
static bool parse_ratio(struct rules_loader *loader, const struct rules_keyword *keyword,
                        const struct rules_node *node, void *field)
{
    struct weir_bytes text;
    char *end;
    if (!rules_read_text(loader, node, keyword->name, &text))
        return false;
    float ratio = strtof(text.data, &end);
    bool good = text.size > 0 && *end == '\0' && ratio > 0 && ratio <= 1;
    if (good)
        memcpy(field, &ratio, sizeof(ratio));
    else
        rules_problem(loader, node, "`%s` must be a number above 0 and at most 1", keyword->name);
    return good;
}

static const char *read_tag(struct rules_loader *loader, const struct rules_node *node,
                            const char *what, bool is_name)
{
    (void)is_name;
    return read_word(loader, node, what, TAG_MAX);
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

#define AT(member) RULES_AT(struct weir_envoy_settings, member)

enum { STATSD_ADDRESS, STATSD_TAGS };

static const struct rules_keyword any_tag = {NULL, RULES_TEXT, .doc = "the value of a tag"};
static const struct rules_section tags_section = {.what = "tags", .others = &any_tag};

static const struct rules_keyword statsd_keywords[] = {
    [STATSD_ADDRESS] = {"address", RULES_TEXT, .flags = RULES_REQUIRED,
                        .doc = "`udp://HOST:PORT` or `tcp://HOST:PORT`"},
    [STATSD_TAGS] = {"tags", RULES_MAPPING, .section = &tags_section, .absent = "none",
                     .doc = "tags of every counter, names to values"},
    {"interval", RULES_DURATION, AT(flush_ns), RULES_RANGE(100 * RULES_MS, RULES_HOUR),
     .otherwise = "10s", .doc = "how often counters are sent"},
    {"format", RULES_CHOICE, AT(statsd_tags), RULES_WORDS("statsd", "dogstatsd"),
     .otherwise = "statsd", .doc = "`statsd` or `dogstatsd`"},
};
static const struct rules_section statsd_section = RULES_SECTION("statsd", statsd_keywords);

static void load_statsd(struct rules_loader *loader, const struct rules_field *field,
                        struct weir_envoy_settings *envoy)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (!rules_section_load(loader, &statsd_section, field->value, fields, envoy))
        return;
    if (!fields[STATSD_ADDRESS].value)
        rules_problem(loader, field->value, "`address` is missing");
    else
        load_statsd_address(loader, fields[STATSD_ADDRESS].value, envoy);
    envoy->tag_count =
        envoy_load_pairs(loader, &fields[STATSD_TAGS], WEIR_ENVOY_TAGS_MAX, read_tag, envoy->tags);
}

enum { PROMETHEUS_ADDRESS, PROMETHEUS_PATH };

static const struct rules_keyword prometheus_keywords[] = {
    [PROMETHEUS_ADDRESS] = {"address", WORD, AT(prometheus), RULES_RANGE(1, 128),
                            .flags = RULES_REQUIRED, .doc = "where the listener is"},
    [PROMETHEUS_PATH] = {"path", WORD, AT(prometheus_path), RULES_RANGE(1, 128),
                         .otherwise = "/metrics", .doc = "the path of the metrics"},
};
static const struct rules_section prometheus_section =
    RULES_SECTION("prometheus", prometheus_keywords);

static void load_prometheus(struct rules_loader *loader, const struct rules_field *field,
                            struct weir_envoy_settings *envoy)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (!rules_section_load(loader, &prometheus_section, field->value, fields, envoy))
        return;
    if (!fields[PROMETHEUS_ADDRESS].value)
        rules_problem(loader, field->value, "`address` is missing");
    if (envoy->prometheus_path && envoy->prometheus_path[0] != '/')
        rules_problem(loader, fields[PROMETHEUS_PATH].value, "`path` begins with a slash");
}

/* --- The section ------------------------------------------------------------------------------ */

enum { CONFIG, XDS, HEADERS, STATSD, PROMETHEUS, ON_STORE_ERROR, REDIS_COMPAT };

#define FLAG(name_, member, doc_)                                                                  \
    {                                                                                              \
        name_, RULES_FLAG, AT(member), .otherwise = "false", .doc = (doc_)                         \
    }
static const struct rules_keyword keywords[] = {
    [CONFIG] = {"config", RULES_FILE, AT(folder), .absent = "`xds`",
                .doc = "the folder; all files in it and below it"},
    [XDS] = {"xds", RULES_MAPPING, .section = &envoy_xds_section, .absent = "`config`",
             .doc = "[a control plane](envoy.md#xds) in place of a folder"},
    [HEADERS] = {"response_headers", RULES_FLAG, .section = &headers_section, .otherwise = "false",
                 .doc = "`true`, or names: `{limit: …, remaining: …, reset: …}`"},
    [STATSD] = {"statsd", RULES_MAPPING, .section = &statsd_section, .absent = "none",
                .doc = "`{address: udp://… or tcp://…, interval: 10s, format: statsd or dogstatsd, "
                       "tags: {…}}`"},
    [PROMETHEUS] = {"prometheus", RULES_MAPPING, .section = &prometheus_section, .absent = "none",
                    .doc = "`{address: …, path: /metrics}`: a listener with the original's names "
                           "alone"},
    [ON_STORE_ERROR] = {"on_store_error", RULES_CHOICE, AT(options.on_store_error),
                        RULES_WORDS("fail", "local", "open", "closed"), .otherwise = "fail",
                        .doc = "`fail`, `local`, `open`, `closed`"},
    [REDIS_COMPAT] = FLAG("redis_compat", options.redis_compat,
                          "counts in [the original's own keys](envoy.md#beside-the-original)"),
    {"redis_prefix", WORD, AT(options.redis_prefix), RULES_RANGE(1, 128), .absent = "none",
     .doc = "the prefix of these keys"},
    FLAG("merge_domains", options.merge_domains, "files may share a domain"),
    FLAG("shadow_mode", options.shadow_mode, "`overall_code` is always OK"),
    FLAG("quota_mode", options.quota_mode, "every descriptor has it"),
    FLAG("dynamic_metadata", options.dynamic_metadata, "answers carry it"),
    FLAG("count_local_cache", options.count_local, "counts `over_limit_with_local_cache`"),
    {"ignore_dot_files", RULES_FLAG, AT(options.ignore_dot_files), .otherwise = "true",
     .doc = "whether names that begin with a dot are left out"},
    FLAG("healthy_with_domains", need_domains, "unhealthy without a domain"),
    FLAG("healthy_with_config", need_config, "unhealthy until a configuration is in force"),
    FLAG("healthy_with_store", need_store, "unhealthy while no worker reaches the store"),
    {"near_limit_ratio", RULES_TEXT, AT(options.near_limit_ratio), .parse = parse_ratio,
     .absent = "`0.8`", .doc = "above 0, at most 1"},
    {"charge", RULES_CHOICE, AT(options.charge_if_allowed), RULES_WORDS("always", "if_all_allow"),
     .otherwise = "always", .doc = "`always`, `if_all_allow`"},
    {"file_prefix", WORD, AT(options.name_prefix), RULES_RANGE(1, 128), .absent = "none",
     .doc = "before the names of files in messages"},
};
const struct rules_section rules_section_envoy = RULES_SECTION("envoy", keywords);

/* What goes only with a store. */
static void check_store(struct rules_loader *loader, const struct rules_field *fields,
                        struct weir_envoy_options *options)
{
    const struct weir_store_settings *store = &loader->rules->settings.store;
    const struct rules_node *compat = fields[REDIS_COMPAT].key;
    options->nodes = store->nodes;
    options->leased = store->leased;
    options->shared = store->redis.url;
    if (options->redis_compat && !store->redis.url)
        rules_problem(loader, compat,
                      "`redis_compat` needs counters in Redis: add `store: {redis: …}`");
    if (options->redis_compat && options->charge_if_allowed)
        rules_problem(
            loader, compat,
            "`redis_compat` counts every hit; it cannot be combined with `charge: if_all_allow`");
    if (options->on_store_error == WEIR_ENVOY_STORE_LOCAL && options->shared && options->nodes == 0)
        rules_problem(loader, fields[ON_STORE_ERROR].key,
                      "`on_store_error: local` needs `store: {nodes: …}`: a node decides its part "
                      "of a limit");
}

void rules_load_envoy(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_envoy_settings *envoy = loader->rules->settings.envoy;
    struct rules_field fields[RULES_KEYWORDS_MAX];
    rules_section_defaults(&statsd_section, envoy);
    rules_section_defaults(&prometheus_section, envoy);
    if (!rules_section_load(loader, &rules_section_envoy, node, fields, envoy))
        return;
    if (!fields[CONFIG].value == !fields[XDS].value)
        rules_problem(loader, node,
                      "`envoy` needs one of `config`, the folder of the configuration, and `xds`");
    if (fields[XDS].value)
        envoy_load_xds(loader, fields[XDS].value, &envoy->xds);
    if (fields[HEADERS].value)
        load_headers(loader, &fields[HEADERS], &envoy->options);
    if (fields[STATSD].value)
        load_statsd(loader, &fields[STATSD], envoy);
    if (fields[PROMETHEUS].value)
        load_prometheus(loader, &fields[PROMETHEUS], envoy);
    check_store(loader, fields, &envoy->options);
}
