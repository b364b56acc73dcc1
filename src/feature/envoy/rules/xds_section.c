/* SPDX-License-Identifier: Apache-2.0 */
/* see xds_section.h */
#include "feature/envoy/rules/xds_section.h"

#include <string.h>

#include "feature/envoy/rules/pairs.h"
#include "rules/load/fields.h"

#define AT(member) RULES_AT(struct weir_xds_settings, member)

/* --- Names and values ------------------------------------------------------------------------- */

/* A value may be empty. */
static const char *read_pair_text(struct rules_loader *loader, const struct rules_node *node,
                                  const char *what, bool is_name)
{
    struct weir_bytes text;
    if (!rules_read_text(loader, node, what, &text))
        return NULL;
    bool good = text.size >= is_name && text.size <= WEIR_XDS_PAIR_MAX;
    for (size_t i = 0; i < text.size; i++)
        good = good && (unsigned char)text.data[i] >= ' ' && text.data[i] != 0x7F;
    if (good)
        return rules_keep_text(loader, text.data, text.size);
    rules_problem(loader, node,
                  "names and values of `%s` have %d to %d bytes, and no control characters", what,
                  is_name, WEIR_XDS_PAIR_MAX);
    return NULL;
}

static const struct rules_keyword any_pair = {NULL, RULES_TEXT, .doc = "the value of a name"};
static const struct rules_section pairs_section = {.what = "names", .others = &any_pair};

/* --- TLS -------------------------------------------------------------------------------------- */

enum { TLS_CERT, TLS_KEY, TLS_CA, TLS_NAME };

static const struct rules_keyword tls_keywords[] = {
    [TLS_CERT] = {"cert", RULES_FILE, AT(cert), .doc = "the certificate of this client, in PEM"},
    [TLS_KEY] = {"key", RULES_FILE, AT(key), .doc = "its key"},
    [TLS_CA] = {"ca", RULES_FILE, AT(ca), .absent = "the system's",
                .doc = "who may sign the server's certificate"},
    [TLS_NAME] = {"name", RULES_TEXT, AT(server_name), .flags = RULES_FILLED,
                  .absent = "the host of `server`", .doc = "the name in the server's certificate"},
};
static const struct rules_section tls_section = RULES_SECTION("tls", tls_keywords);

static void load_tls(struct rules_loader *loader, const struct rules_node *node,
                     struct weir_xds_settings *xds)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    xds->tls = true;
    if (rules_section_load(loader, &tls_section, node, fields, xds) &&
        !fields[TLS_CERT].value != !fields[TLS_KEY].value)
        rules_problem(loader, node, "`tls` needs both of `cert` and `key`, or neither");
}

/* --- The section ------------------------------------------------------------------------------ */

enum { SERVER, METADATA, HEADERS, TLS };

static const struct rules_keyword keywords[] = {
    [SERVER] = {"server", RULES_PLACE, AT(server), .flags = RULES_REQUIRED,
                .doc = "`HOST:PORT` of the control plane"},
    [METADATA] = {"metadata", RULES_MAPPING, .section = &pairs_section, .absent = "none",
                  .doc = "metadata of the node: names to texts"},
    [HEADERS] = {"headers", RULES_MAPPING, .section = &pairs_section, .absent = "none",
                 .doc = "fields of the requests, names to values"},
    [TLS] = {"tls", RULES_MAPPING, .section = &tls_section, .absent = "in clear",
             .doc = "`{cert: FILE, key: FILE, ca: FILE, name: NAME}`, read anew for each "
                    "connection; `{}` is TLS with the system's authorities"},
    {"backoff", RULES_DURATION, AT(backoff_ns), RULES_RANGE(RULES_MS, RULES_HOUR),
     .otherwise = "10s", .doc = "the wait before a stream follows one that has ended"},
    {"backoff_max", RULES_DURATION, AT(backoff_most_ns), RULES_RANGE(RULES_MS, RULES_HOUR),
     .otherwise = "1min",
     .doc = "the longest of these waits, before `jitter`: each stream that brings nothing "
            "doubles it"},
    {"node", RULES_TEXT, AT(node), .flags = RULES_FILLED, .otherwise = "default",
     .doc = "the id of this node"},
    {"retry", RULES_DURATION, AT(retry_ns), RULES_RANGE(RULES_MS, RULES_HOUR), .otherwise = "3s",
     .doc = "the wait between attempts to connect"},
    {"jitter", RULES_PERCENT, AT(jitter), RULES_RANGE(0, 100), .example = 50, .otherwise = "50%",
     .doc = "how much longer or shorter each wait may be, at random"},
    {"max_message", RULES_SIZE, AT(max_message), RULES_RANGE(1024, UINT64_C(1) << 30),
     .otherwise = "16MiB", .doc = "the largest response that is read"},
    {"cache", RULES_FILE, AT(cache), .absent = "none",
     .doc = "a file of the last good response, which counts after a start until the control plane "
            "answers"},
};
const struct rules_section envoy_xds_section = RULES_SECTION("xds", keywords);

static void check_server(struct rules_loader *loader, const struct rules_node *node,
                         const char *server)
{
    const char *colon = strrchr(server, ':');
    bool good = colon && colon > server && colon[1] != '\0' &&
                strspn(colon + 1, "0123456789") == strlen(colon + 1) && strlen(server) <= 256 &&
                !strpbrk(server, "/@?# ");
    if (!good)
        rules_problem(loader, node, "`server` must be HOST:PORT");
}

void envoy_load_xds(struct rules_loader *loader, const struct rules_node *node,
                    struct weir_xds_settings *xds)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (!rules_section_load(loader, &envoy_xds_section, node, fields, xds))
        return;
    if (!fields[SERVER].value)
        rules_problem(loader, node, "`server` is missing: HOST:PORT of the control plane");
    else if (xds->server)
        check_server(loader, fields[SERVER].value, xds->server);
    xds->metadata_count = envoy_load_pairs(loader, &fields[METADATA], WEIR_XDS_PAIRS_MAX,
                                           read_pair_text, xds->metadata);
    xds->headers_count = envoy_load_pairs(loader, &fields[HEADERS], WEIR_XDS_PAIRS_MAX,
                                          read_pair_text, xds->headers);
    if (fields[TLS].value)
        load_tls(loader, fields[TLS].value, xds);
}

/* --- Reloads ---------------------------------------------------------------------------------- */

static bool texts_differ(const char *a, const char *b)
{
    return !a != !b || (a && strcmp(a, b) != 0);
}

static bool pairs_differ(const struct weir_envoy_tag *a, uint32_t a_count,
                         const struct weir_envoy_tag *b, uint32_t b_count)
{
    bool differ = a_count != b_count;
    for (uint32_t i = 0; i < a_count && !differ; i++)
        differ = texts_differ(a[i].name, b[i].name) || texts_differ(a[i].value, b[i].value);
    return differ;
}

bool weir_xds_settings_differ(const struct weir_xds_settings *a, const struct weir_xds_settings *b)
{
    return texts_differ(a->server, b->server) || texts_differ(a->node, b->node) ||
           pairs_differ(a->metadata, a->metadata_count, b->metadata, b->metadata_count) ||
           pairs_differ(a->headers, a->headers_count, b->headers, b->headers_count) ||
           a->tls != b->tls || texts_differ(a->cert, b->cert) || texts_differ(a->key, b->key) ||
           texts_differ(a->ca, b->ca) || texts_differ(a->server_name, b->server_name) ||
           a->retry_ns != b->retry_ns || a->backoff_ns != b->backoff_ns ||
           a->backoff_most_ns != b->backoff_most_ns || a->jitter != b->jitter ||
           a->max_message != b->max_message || texts_differ(a->cache, b->cache);
}
