/* SPDX-License-Identifier: Apache-2.0 */
/* see environment.h */
#include "feature/envoy/cli/environment.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "feature/envoy/cli/values.h"
#include "feature/envoy/cli/xds.h"
#include "server/daemon/log.h"

/* --- What has no effect ----------------------------------------------------------------------- */

#define POOL "a worker has one connection to Redis, and pipelines"
#define MEMCACHE "memcached is not supported"
#define TRACING "tracing is not supported"
#define UNREAD "the original does not read it either"
#define PERSECOND "limits per second are in the same Redis as the others"

/* Variables that are reported where they have another value than `standard`. */
static const struct {
    const char *name, *standard, *why;
} without_effect[] = {
    {"USE_DOG_STATSD_MOGRIFIERS", "", "names of counters are not rewritten"},
    {"PROMETHEUS_MAPPER_YAML", "", "the mapping of names is the original's own"},
    {"PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", "false", "times are in seconds"},
    {"EXPIRATION_JITTER_MAX_SECONDS", "300", "states expire when they equal fresh ones"},
    {"REDIS_POOL_SIZE", "10", POOL},
    {"REDIS_PIPELINE_WINDOW", "0", POOL},
    {"REDIS_PIPELINE_LIMIT", "0", POOL},
    {"REDIS_CLUSTER_PIPELINE_PARALLELISM", "1", POOL},
    {"REDIS_POOL_ON_EMPTY_BEHAVIOR", "WAIT", POOL},
    {"REDIS_TIMEOUT", "10s", "a decision has 20 ms"},
    {"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "false", "the name in the certificate is verified"},
    {"REDIS_STARTUP_INITIAL_INTERVAL", "1s", "weir starts without Redis, and connects by itself"},
    {"REDIS_STARTUP_MAX_INTERVAL", "30s", "weir starts without Redis, and connects by itself"},
    {"REDIS_STARTUP_MAX_ELAPSED_TIME", "0", "weir starts without Redis, and connects by itself"},
    {"REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR", "false", "that is always done"},
    {"REDIS_PERSECOND", "false", PERSECOND},
    {"REDIS_PERSECOND_SOCKET_TYPE", "unix", PERSECOND},
    {"REDIS_PERSECOND_TYPE", "SINGLE", PERSECOND},
    {"REDIS_PERSECOND_URL", "/var/run/nutcracker/ratelimitpersecond.sock", PERSECOND},
    {"REDIS_PERSECOND_POOL_SIZE", "10", PERSECOND},
    {"REDIS_PERSECOND_AUTH", "", PERSECOND},
    {"REDIS_PERSECOND_SENTINEL_AUTH", "", PERSECOND},
    {"REDIS_PERSECOND_TLS", "false", PERSECOND},
    {"REDIS_PERSECOND_PIPELINE_WINDOW", "0", PERSECOND},
    {"REDIS_PERSECOND_PIPELINE_LIMIT", "0", PERSECOND},
    {"REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM", "1", PERSECOND},
    {"REDIS_PERSECOND_TIMEOUT", "10s", PERSECOND},
    {"REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", "WAIT", PERSECOND},
    {"MEMCACHE_HOST_PORT", "", MEMCACHE},
    {"MEMCACHE_MAX_IDLE_CONNS", "2", MEMCACHE},
    {"MEMCACHE_SRV", "", MEMCACHE},
    {"MEMCACHE_SRV_REFRESH", "0", MEMCACHE},
    {"MEMCACHE_TLS", "false", MEMCACHE},
    {"MEMCACHE_TLS_CLIENT_CERT", "", MEMCACHE},
    {"MEMCACHE_TLS_CLIENT_KEY", "", MEMCACHE},
    {"MEMCACHE_TLS_CACERT", "", MEMCACHE},
    {"MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", "false", MEMCACHE},
    {"TRACING_ENABLED", "false", TRACING},
    {"TRACING_EXPORTER_PROTOCOL", "http", TRACING},
    {"TRACING_SERVICE_NAME", "RateLimit", TRACING},
    {"TRACING_SERVICE_NAMESPACE", "", TRACING},
    {"TRACING_SERVICE_INSTANCE_ID", "", TRACING},
    {"TRACING_SAMPLING_RATE", "1", TRACING},
    {"OTEL_EXPORTER_OTLP_ENDPOINT", "", TRACING},
    {"PROTO", "tcp", UNREAD},
    {"GRPC_SERVER_TLS_CA_CERT", "", UNREAD ": GRPC_CLIENT_TLS_CACERT asks for certificates"},
};

/* Variables that need REDIS_URL. The original has a default for it, so there they have an effect.
 */
static const struct {
    const char *name, *standard;
} of_redis[] = {
    {"REDIS_TYPE", "SINGLE"},
    {"REDIS_SOCKET_TYPE", "unix"},
    {"REDIS_AUTH", ""},
    {"REDIS_SENTINEL_AUTH", ""},
    {"REDIS_TLS", "false"},
    {"REDIS_TLS_CACERT", ""},
    {"REDIS_TLS_CLIENT_CERT", ""},
    {"REDIS_TLS_CLIENT_KEY", ""},
    {"CACHE_KEY_PREFIX", ""},
    {"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", "false"},
    {"WEIR_NODES", "0"},
};

/* Envoy Gateway has to name a Redis; WEIR_REDIS=ignore is for who wants none. */
static const char *redis_url(const struct envoy_values *values)
{
    bool ignored = !strcmp(envoy_text(values, "WEIR_REDIS", ""), "ignore");
    return ignored ? "" : envoy_text(values, "REDIS_URL", "");
}

static void name_without_redis(const struct envoy_values *values, FILE *notes)
{
    if (*redis_url(values))
        return;
    if (envoy_is_set(values, "REDIS_URL", "")) {
        fputs("weir: REDIS_* have no effect: WEIR_REDIS is ignore, states are in this process\n",
              notes);
        return;
    }
    for (size_t i = 0; i < sizeof of_redis / sizeof *of_redis; i++) {
        if (envoy_is_set(values, of_redis[i].name, of_redis[i].standard))
            fprintf(notes,
                    "weir: %s has no effect: REDIS_URL is not set, states are in this process\n",
                    of_redis[i].name);
    }
}

/* Values may be secrets: only names are printed. */
static void name_without_effect(struct envoy_values *values, FILE *notes)
{
    for (size_t i = 0; i < sizeof without_effect / sizeof *without_effect; i++) {
        if (envoy_is_set(values, without_effect[i].name, without_effect[i].standard))
            fprintf(notes, "weir: %s has no effect: %s\n", without_effect[i].name,
                    without_effect[i].why);
    }
    envoy_name_without_xds(values, notes);
    name_without_redis(values, notes);
    if (envoy_is_set(values, "EXTRA_TAGS", "") && envoy_flag(values, "USE_PROMETHEUS", false))
        fputs("weir: EXTRA_TAGS has no effect: Prometheus adds labels to what it scrapes\n", notes);
}

/* --- Listeners -------------------------------------------------------------------------------- */

/* HOST and PORT as an address; Go listens on all where there is no host. */
static void put_address(struct envoy_values *values, FILE *out, const char *host_name,
                        const char *port_name, unsigned port)
{
    char text[300];
    const char *host = envoy_text(values, host_name, "0.0.0.0");
    bool v6 = strchr(host, ':') && *host != '[';
    snprintf(text, sizeof text, "%s%.256s%s:%llu", v6 ? "[" : "", host, v6 ? "]" : "",
             (unsigned long long)envoy_number(values, port_name, 65535, port));
    envoy_put(values, out, text);
}

static void put_tls(struct envoy_values *values, FILE *out)
{
    if (!envoy_flag(values, "GRPC_SERVER_USE_TLS", false))
        return;
    const char *certificate = envoy_text(values, "GRPC_SERVER_TLS_CERT", "");
    const char *key = envoy_text(values, "GRPC_SERVER_TLS_KEY", "");
    const char *authority = envoy_text(values, "GRPC_CLIENT_TLS_CACERT", "");
    const char *name = envoy_text(values, "GRPC_CLIENT_TLS_SAN", "");
    if (!*certificate || !*key)
        envoy_wrong(values,
                    "GRPC_SERVER_USE_TLS needs GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY");
    if (*name && !*authority)
        envoy_wrong(values, "GRPC_CLIENT_TLS_SAN needs GRPC_CLIENT_TLS_CACERT");
    fputs(", tls: { cert: ", out);
    envoy_put(values, out, certificate);
    fputs(", key: ", out);
    envoy_put(values, out, key);
    if (*authority) {
        fputs(", client_ca: ", out);
        envoy_put(values, out, authority);
    }
    if (*name) {
        fputs(", client_names: ", out);
        envoy_put(values, out, name);
    }
    fputs(" }", out);
}

static void put_age(struct envoy_values *values, FILE *out, const char *key, const char *name,
                    uint64_t standard_s)
{
    uint64_t ns = envoy_duration(values, name, standard_s * UINT64_C(1000000000));
    if (ns >= UINT64_C(1000000000))
        fprintf(out, ", %s: %llus", key, (unsigned long long)(ns / 1000000000));
}

/* All listeners are open to others, as the original's are; of the admin listener, health and
 * metrics, and the rest with a token. */
static void put_server(struct envoy_values *values, FILE *out)
{
    const char *path = envoy_text(values, "GRPC_UDS", "");
    const char *token = envoy_text(values, "WEIR_ADMIN_TOKEN", "");
    fputs("server:\n  http: { open: true, address: ", out);
    put_address(values, out, "HOST", "PORT", 8080);
    fputs(" }\n  admin: { open: true, metrics_open: true, address: ", out);
    put_address(values, out, "DEBUG_HOST", "DEBUG_PORT", 6070);
    if (*token) {
        fputs(", token: ", out);
        envoy_put(values, out, token);
    }
    fputs(" }\n  grpc: { open: true, address: ", out);
    if (*path) {
        char text[300];
        snprintf(text, sizeof text, "unix:%.256s", path);
        envoy_put(values, out, text);
    } else {
        put_address(values, out, "GRPC_HOST", "GRPC_PORT", 8081);
    }
    put_tls(values, out);
    put_age(values, out, "max_connection_age", "GRPC_MAX_CONNECTION_AGE", 24 * 3600);
    put_age(values, out, "max_connection_age_grace", "GRPC_MAX_CONNECTION_AGE_GRACE", 3600);
    fputs(" }\n", out);
}

/* --- The store -------------------------------------------------------------------------------- */

/* "password" or "user:password" of a variable, as two keys. */
static void put_secret(struct envoy_values *values, FILE *out, const char *name,
                       const char *user_key, const char *password_key)
{
    char user[256];
    const char *secret = envoy_text(values, name, "");
    const char *colon = strchr(secret, ':');
    if (!*secret)
        return;
    if (colon && (size_t)(colon - secret) < sizeof user) {
        snprintf(user, sizeof user, "%.*s", (int)(colon - secret), secret);
        fprintf(out, ", %s: ", user_key);
        envoy_put(values, out, user);
        secret = colon + 1;
    }
    fprintf(out, ", %s: ", password_key);
    envoy_put(values, out, secret);
}

/* The text before and behind the host list of a URL, for each REDIS_TYPE. */
static void put_url(struct envoy_values *values, FILE *out)
{
    char url[2048];
    const char *given = redis_url(values);
    const char *type = envoy_text(values, "REDIS_TYPE", "SINGLE");
    const char *s = envoy_flag(values, "REDIS_TLS", false) ? "s" : "";
    bool socket = !strcasecmp(envoy_text(values, "REDIS_SOCKET_TYPE", "unix"), "unix");
    if (!strcasecmp(type, "SENTINEL")) {
        const char *comma = strchr(given, ',');
        if (!comma || !comma[1]) {
            envoy_wrong(values, "Expected master name and a list of urls for the sentinels, in the "
                                "format: <redis master name>,<sentinel1>,...,<sentineln>");
            comma = "";
        }
        snprintf(url, sizeof url, "redis%s-sentinel://%s/%.*s", s, *comma ? comma + 1 : "",
                 (int)(comma > given ? comma - given : 0), given);
    } else if (!strcasecmp(type, "CLUSTER")) {
        snprintf(url, sizeof url, "redis%s-cluster://%s", s, given);
    } else if (strcasecmp(type, "SINGLE") != 0) {
        char text[128];
        snprintf(text, sizeof text, "Unrecognized redis type %.64s", type);
        envoy_wrong(values, text);
        return;
    } else if (*s && !strncmp(given, "redis://", 8)) { /* never a password in the clear */
        snprintf(url, sizeof url, "rediss://%s", given + 8);
    } else if (strstr(given, "://")) {
        snprintf(url, sizeof url, "%s", given);
    } else if (socket && *given == '/') {
        snprintf(url, sizeof url, "unix:%s", given);
    } else {
        snprintf(url, sizeof url, "redis%s://%s", s, given);
    }
    envoy_put(values, out, url);
}

/* Only where REDIS_URL is set: without it, states are in weir's own memory. */
static void put_store(struct envoy_values *values, FILE *out)
{
    static const struct {
        const char *key, *name;
    } files[] = {{"ca", "REDIS_TLS_CACERT"},
                 {"cert", "REDIS_TLS_CLIENT_CERT"},
                 {"key", "REDIS_TLS_CLIENT_KEY"}};
    bool any = false;
    if (!*redis_url(values))
        return;
    fputs("store:\n  redis: { url: ", out);
    put_url(values, out);
    put_secret(values, out, "REDIS_AUTH", "user", "password");
    put_secret(values, out, "REDIS_SENTINEL_AUTH", "sentinel_user", "sentinel_password");
    const char *prefix = envoy_text(values, "CACHE_KEY_PREFIX", "");
    if (*prefix) {
        fputs(", prefix: ", out);
        envoy_put(values, out, prefix);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *file = envoy_text(values, files[i].name, "");
        if (!*file || !envoy_flag(values, "REDIS_TLS", false))
            continue;
        fprintf(out, "%s%s: ", any ? ", " : ", tls: { ", files[i].key);
        envoy_put(values, out, file);
        any = true;
    }
    fprintf(out, "%s }\n", any ? " }" : "");
    uint64_t nodes = envoy_number(values, "WEIR_NODES", 1000, 0);
    if (nodes > 0)
        fprintf(out, "  nodes: %llu\n", (unsigned long long)nodes);
}

/* --- The service ------------------------------------------------------------------------------ */

static void put_flag(struct envoy_values *values, FILE *out, const char *key, const char *name)
{
    if (envoy_flag(values, name, false))
        fprintf(out, "  %s: true\n", key);
}

/* Where the configuration is: <root>/<subdirectory>/<appdirectory>. Files are called by their path
 * below the subdirectory where the root is watched, else by that below the last. */
static void put_folder(struct envoy_values *values, FILE *out)
{
    char path[2048], prefix[300];
    const char *sub = envoy_text(values, "RUNTIME_SUBDIRECTORY", "");
    const char *app = envoy_text(values, "RUNTIME_APPDIRECTORY", "config");
    snprintf(path, sizeof path, "%s%s%s/%s",
             envoy_text(values, "RUNTIME_ROOT", "/srv/runtime_data/current"), *sub ? "/" : "", sub,
             app);
    fputs("  config: ", out);
    envoy_put(values, out, path);
    fputs("\n", out);
    if (envoy_flag(values, "RUNTIME_WATCH_ROOT", true)) {
        snprintf(prefix, sizeof prefix, "%.128s.", app);
        for (char *slash = prefix; (slash = strchr(slash, '/'));)
            *slash = '.';
        fputs("  file_prefix: ", out);
        envoy_put(values, out, prefix);
        fputs("\n", out);
    }
    fprintf(out, "  ignore_dot_files: %s\n",
            envoy_flag(values, "RUNTIME_IGNOREDOTFILES", false) ? "true" : "false");
}

static void put_headers(struct envoy_values *values, FILE *out)
{
    if (!envoy_flag(values, "LIMIT_RESPONSE_HEADERS_ENABLED", false))
        return;
    fputs("  response_headers: { limit: ", out);
    envoy_put(values, out, envoy_text(values, "LIMIT_LIMIT_HEADER", "RateLimit-Limit"));
    fputs(", remaining: ", out);
    envoy_put(values, out, envoy_text(values, "LIMIT_REMAINING_HEADER", "RateLimit-Remaining"));
    fputs(", reset: ", out);
    envoy_put(values, out, envoy_text(values, "LIMIT_RESET_HEADER", "RateLimit-Reset"));
    fputs(" }\n", out);
}

static void put_prometheus(struct envoy_values *values, FILE *out)
{
    char address[300];
    const char *given = envoy_text(values, "PROMETHEUS_ADDR", ":9090");
    snprintf(address, sizeof address, "%s%.256s", *given == ':' ? "0.0.0.0" : "", given);
    fputs("  prometheus: { address: ", out);
    envoy_put(values, out, address);
    fputs(", path: ", out);
    envoy_put(values, out, envoy_text(values, "PROMETHEUS_PATH", "/metrics"));
    fputs(" }\n", out);
}

static void put_statsd(struct envoy_values *values, FILE *out, bool dog, uint64_t port,
                       uint64_t interval_ns)
{
    char address[400];
    const char *host = envoy_text(values, "STATSD_HOST", "localhost");
    bool v6 = strchr(host, ':') && *host != '[';
    snprintf(address, sizeof address, "%s://%s%.256s%s:%llu", dog ? "udp" : "tcp", v6 ? "[" : "",
             host, v6 ? "]" : "", (unsigned long long)port);
    fputs("  statsd: { address: ", out);
    envoy_put(values, out, address);
    fprintf(out, ", format: %s, interval: %llums", dog ? "dogstatsd" : "statsd",
            (unsigned long long)(interval_ns / 1000000));
    envoy_put_pairs(values, out, ", tags: ", "EXTRA_TAGS", ':');
    fputs(" }\n", out);
}

/* One sink at most, as in the original; USE_STATSD is on where nothing else is said. What is wrong
 * with a variable is an error also where its sink is not on. */
static void put_sinks(struct envoy_values *values, FILE *out)
{
    static const uint64_t ms_ns = 1000000;
    bool dog = envoy_flag(values, "USE_DOG_STATSD", false);
    bool prometheus = envoy_flag(values, "USE_PROMETHEUS", false);
    bool statsd = envoy_flag(values, "USE_STATSD", !dog && !prometheus);
    uint64_t port = envoy_number(values, "STATSD_PORT", 65535, 8125);
    uint64_t interval_ns = envoy_duration(values, "STATS_FLUSH_INTERVAL", 10000 * ms_ns);
    if (interval_ns < 100 * ms_ns || interval_ns > 3600000 * ms_ns)
        envoy_wrong(values, "STATS_FLUSH_INTERVAL is a duration of 100ms to 1h");
    (void)envoy_check_pairs(values, "EXTRA_TAGS", ':');
    if (envoy_flag(values, "DISABLE_STATS", false))
        return;
    if (statsd + dog + prometheus > 1)
        envoy_wrong(values, "USE_STATSD, USE_DOG_STATSD and USE_PROMETHEUS exclude each other");
    if (prometheus)
        put_prometheus(values, out);
    else if (statsd || dog)
        put_statsd(values, out, dog, port, interval_ns);
}

static void put_ratio(struct envoy_values *values, FILE *out)
{
    const char *ratio = envoy_text(values, "NEAR_LIMIT_RATIO", "");
    char *end;
    float number = strtof(ratio, &end);
    if (!*ratio)
        return;
    if (*end || !(number > 0 && number <= 1)) {
        char text[128];
        snprintf(text, sizeof text,
                 "NEAR_LIMIT_RATIO is a number above 0 and at most 1, not '%.32s'", ratio);
        envoy_wrong(values, text);
    }
    fputs("  near_limit_ratio: ", out);
    envoy_put(values, out, ratio);
    fputs("\n", out);
}

static void put_envoy(struct envoy_values *values, FILE *out)
{
    fputs("envoy:\n", out);
    if (envoy_is_xds(values))
        envoy_put_xds(values, out);
    else
        put_folder(values, out);
    put_flag(values, out, "merge_domains", "MERGE_DOMAIN_CONFIG");
    put_flag(values, out, "shadow_mode", "SHADOW_MODE");
    put_flag(values, out, "quota_mode", "QUOTA_MODE");
    put_flag(values, out, "dynamic_metadata", "RESPONSE_DYNAMIC_METADATA");
    put_flag(values, out, "healthy_with_domains", "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED");
    put_flag(values, out, "healthy_with_store", "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION");
    if (envoy_flag(values, "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", false))
        fputs("  charge: if_all_allow\n", out);
    if (envoy_number(values, "LOCAL_CACHE_SIZE_IN_BYTES", INT64_MAX, 0) > 0)
        fputs("  count_local_cache: true\n", out);
    if (envoy_flag(values, "WEIR_REDIS_COMPAT", false)) {
        if (!*redis_url(values))
            envoy_wrong(values, "WEIR_REDIS_COMPAT needs REDIS_URL");
        const char *prefix = envoy_text(values, "CACHE_KEY_PREFIX", "");
        fputs("  redis_compat: true\n", out);
        if (*prefix) {
            fputs("  redis_prefix: ", out);
            envoy_put(values, out, prefix);
            fputs("\n", out);
        }
    }
    put_ratio(values, out);
    put_headers(values, out);
    put_sinks(values, out);
}

/* --- All of it -------------------------------------------------------------------------------- */

/* What weir does not have, and what it therefore cannot start as; and what is not read below where
 * other variables are as they are. */
static void check_kinds(struct envoy_values *values)
{
    const char *config = envoy_text(values, "CONFIG_TYPE", "FILE");
    const char *backend = envoy_text(values, "BACKEND_TYPE", "redis");
    const char *redis = envoy_text(values, "WEIR_REDIS", "");
    if (strcmp(config, "FILE") != 0 && !envoy_is_xds(values))
        envoy_wrong(values, "CONFIG_TYPE is FILE or GRPC_XDS_SOTW");
    if (*redis && strcmp(redis, "ignore") != 0)
        envoy_wrong(values, "WEIR_REDIS is ignore, or not set");
    if (strcmp(backend, "redis") != 0)
        envoy_wrong(values, "BACKEND_TYPE: only redis is supported (and no Redis at all, where "
                            "REDIS_URL is not set), no memcached");
    /* With files it never waits for a configuration, so this says nothing new; but it has to be a
     * flag. */
    (void)envoy_flag(values, "FORCE_START_WITHOUT_INITIAL_CONFIG", false);
    (void)envoy_flag(values, "REDIS_TLS", false);
    (void)envoy_number(values, "GRPC_PORT", 65535, 8081);
    (void)envoy_number(values, "WEIR_NODES", 1000, 0);
}

/* The levels of the original's logger, as weir has three. Without the variable all lines are
 * written: the original's default, WARN, would hide when a configuration came into force. */
static uint8_t read_log_level(struct envoy_values *values)
{
    static const struct {
        const char *name;
        uint8_t level;
    } levels[] = {{"trace", WEIR_LOG_INFO},      {"debug", WEIR_LOG_INFO},
                  {"info", WEIR_LOG_INFO},       {"warn", WEIR_LOG_WARNING},
                  {"warning", WEIR_LOG_WARNING}, {"error", WEIR_LOG_ERROR},
                  {"fatal", WEIR_LOG_ERROR},     {"panic", WEIR_LOG_ERROR}};
    const char *text = envoy_text(values, "LOG_LEVEL", "info");
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (!strcasecmp(text, levels[i].name))
            return levels[i].level;
    envoy_wrong(values, "LOG_LEVEL is one of trace, debug, info, warn, error, fatal, panic");
    return WEIR_LOG_INFO;
}

int cli_envoy_read(struct cli_envoy *envoy, cli_environment environment, void *context, FILE *notes,
                   struct weir_reason *reason)
{
    struct envoy_values values = {.environment = environment, .context = context, .reason = reason};
    size_t size;
    *envoy = (struct cli_envoy){NULL, false, 0};
    reason->text[0] = '\0';
    FILE *out = open_memstream(&envoy->rules, &size);
    if (!out)
        return WEIR_ERR_MEMORY;
    const char *format = envoy_text(&values, "LOG_FORMAT", "text");
    envoy->json_log = !strcmp(format, "json");
    if (!envoy->json_log && strcmp(format, "text") != 0)
        envoy_wrong(&values, "LOG_FORMAT is text or json");
    envoy->log_level = read_log_level(&values);
    check_kinds(&values);
    fputs("version: 1\n", out);
    put_server(&values, out);
    put_store(&values, out);
    put_envoy(&values, out);
    fputs("limits: []\n", out);
    bool written = fclose(out) == 0;
    if (written && !reason->text[0]) {
        name_without_effect(&values, notes);
        return 0;
    }
    free(envoy->rules);
    envoy->rules = NULL;
    return written ? WEIR_ERR_RANGE : WEIR_ERR_MEMORY;
}
