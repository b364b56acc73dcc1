/* SPDX-License-Identifier: Apache-2.0 */
/* see xds.h */
#include "feature/envoy/cli/xds.h"

#include <stdlib.h>
#include <string.h>

/* --- Without a control plane ------------------------------------------------------------------ */

/* Variables that need CONFIG_TYPE=GRPC_XDS_SOTW. */
static const struct {
    const char *name, *standard;
} of_xds[] = {
    {"CONFIG_GRPC_XDS_NODE_ID", "default"},
    {"CONFIG_GRPC_XDS_NODE_METADATA", ""},
    {"CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000"},
    {"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "3s"},
    {"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", ""},
    {"CONFIG_GRPC_XDS_SERVER_USE_TLS", "false"},
    {"CONFIG_GRPC_XDS_CLIENT_TLS_CERT", ""},
    {"CONFIG_GRPC_XDS_CLIENT_TLS_KEY", ""},
    {"CONFIG_GRPC_XDS_SERVER_TLS_CACERT", ""},
    {"CONFIG_GRPC_XDS_SERVER_TLS_SAN", ""},
    {"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", "10s"},
    {"XDS_CLIENT_BACKOFF_MAX_INTERVAL", "60s"},
    {"XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "0.5"},
    {"XDS_CLIENT_BACKOFF_JITTER", "true"},
    {"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", ""},
    {"WEIR_XDS_CACHE", ""},
};

bool envoy_is_xds(const struct envoy_values *values)
{
    return !strcmp(envoy_text(values, "CONFIG_TYPE", "FILE"), "GRPC_XDS_SOTW");
}

void envoy_name_without_xds(const struct envoy_values *values, FILE *notes)
{
    if (envoy_is_xds(values))
        return;
    for (size_t i = 0; i < sizeof of_xds / sizeof *of_xds; i++)
        if (envoy_is_set(values, of_xds[i].name, of_xds[i].standard))
            fprintf(notes, "weir: %s has no effect: CONFIG_TYPE is not GRPC_XDS_SOTW\n",
                    of_xds[i].name);
}

/* --- With one --------------------------------------------------------------------------------- */

static void put_wait(struct envoy_values *values, FILE *out, const char *key, const char *name,
                     uint64_t standard_s)
{
    uint64_t ms = envoy_duration(values, name, standard_s * UINT64_C(1000000000)) / 1000000;
    if (ms < 1 || ms > 3600000) {
        char text[128];
        snprintf(text, sizeof text, "%.64s is a duration of 1ms to 1h", name);
        envoy_wrong(values, text);
    }
    fprintf(out, "    %s: %llums\n", key, (unsigned long long)ms);
}

/* The original multiplies each wait by a random number; here it is the part of it that is random.
 */
static void put_jitter(struct envoy_values *values, FILE *out)
{
    const char *text = envoy_text(values, "XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "0.5");
    char *end;
    double factor = strtod(text, &end);
    if (*end || !(factor >= 0 && factor <= 1))
        envoy_wrong(values, "XDS_CLIENT_BACKOFF_RANDOM_FACTOR is a number of 0 to 1");
    bool on = envoy_flag(values, "XDS_CLIENT_BACKOFF_JITTER", true);
    fprintf(out, "    jitter: %d%%\n", on ? (int)(factor * 100 + 0.5) : 0);
}

static void put_tls(struct envoy_values *values, FILE *out)
{
    static const struct {
        const char *key, *name;
    } texts[] = {{"cert", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT"},
                 {"key", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY"},
                 {"ca", "CONFIG_GRPC_XDS_SERVER_TLS_CACERT"},
                 {"name", "CONFIG_GRPC_XDS_SERVER_TLS_SAN"}};
    const char *before = "";
    if (!envoy_flag(values, "CONFIG_GRPC_XDS_SERVER_USE_TLS", false))
        return;
    fputs("    tls: { ", out);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = envoy_text(values, texts[i].name, "");
        if (!*text)
            continue;
        fprintf(out, "%s%s: ", before, texts[i].key);
        envoy_put(values, out, text);
        before = ", ";
    }
    fputs(" }\n", out);
}

static void put_pairs(struct envoy_values *values, FILE *out, const char *key, const char *name,
                      char between)
{
    if (envoy_put_pairs(values, out, key, name, between))
        fputs("\n", out);
}

static void put_cache(struct envoy_values *values, FILE *out)
{
    const char *cache = envoy_text(values, "WEIR_XDS_CACHE", "");
    if (!*cache)
        return;
    fputs("    cache: ", out);
    envoy_put(values, out, cache);
    fputs("\n", out);
}

void envoy_put_xds(struct envoy_values *values, FILE *out)
{
    uint64_t most = envoy_number(values, "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", 1 << 30, 0);
    fputs("  xds:\n    server: ", out);
    envoy_put(values, out, envoy_text(values, "CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000"));
    fputs("\n    node: ", out);
    envoy_put(values, out, envoy_text(values, "CONFIG_GRPC_XDS_NODE_ID", "default"));
    fputs("\n", out);
    put_pairs(values, out, "    metadata: ", "CONFIG_GRPC_XDS_NODE_METADATA", '=');
    put_pairs(values, out, "    headers: ", "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", ':');
    put_tls(values, out);
    put_wait(values, out, "retry", "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", 3);
    put_wait(values, out, "backoff", "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", 10);
    put_wait(values, out, "backoff_max", "XDS_CLIENT_BACKOFF_MAX_INTERVAL", 60);
    put_jitter(values, out);
    if (most > 0)
        fprintf(out, "    max_message: %llu\n", (unsigned long long)(most > 1024 ? most : 1024));
    put_cache(values, out);
    if (!envoy_flag(values, "FORCE_START_WITHOUT_INITIAL_CONFIG", false))
        fputs("  healthy_with_config: true\n", out);
}
