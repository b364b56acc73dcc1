/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of envoyproxy/ratelimit as a rules file: defaults, every variable, refusals, and
 * that none is ignored in silence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "feature/envoy/cli/environment.h"
#include "feature/envoy/rules/options.h"
#include "rules/rules.h"
#include "server/daemon/log.h"
#include "test.h"

/* "NAME=value" each, to NULL. */
static const char *lookup(void *context, const char *name)
{
    const char *const *variables = context;
    size_t size = strlen(name);
    for (; *variables; variables++)
        if (!strncmp(*variables, name, size) && (*variables)[size] == '=')
            return *variables + size + 1;
    return NULL;
}

struct result {
    struct cli_envoy envoy;
    struct weir_rules *rules;
    const struct weir_settings *settings;
    struct weir_reason reason;
    char *notes;
    int err;
};

static struct result read_variables(const char *const *variables)
{
    struct result result = {.err = 0};
    size_t size;
    FILE *notes = open_memstream(&result.notes, &size);
    assert_non_null(notes);
    result.err =
        cli_envoy_read(&result.envoy, lookup, (void *)(uintptr_t)variables, notes, &result.reason);
    fclose(notes);
    if (result.err == 0) {
        struct weir_problems problems = {0};
        int err = weir_rules_parse(&result.rules, "test", "", result.envoy.rules,
                                   strlen(result.envoy.rules), &problems);
        if (err < 0)
            print_error("%s\n%s\n", problems.list[0].message, result.envoy.rules);
        assert_int_equal(err, 0);
        result.settings = weir_rules_settings(result.rules);
    }
    return result;
}
#define READ(...) read_variables((const char *const[]){__VA_ARGS__, NULL})

static void result_free(struct result *result)
{
    weir_rules_unref(result->rules);
    free(result->envoy.rules);
    free(result->notes);
}

TEST("without variables all is as in the original")
{
    struct result result = read_variables((const char *const[]){NULL});
    const struct weir_settings *settings = result.settings;
    assert_string_equal(settings->http.address, "0.0.0.0:8080");
    assert_string_equal(settings->admin.address, "0.0.0.0:6070");
    assert_string_equal(settings->grpc.address, "0.0.0.0:8081");
    assert_true(settings->http.open && settings->admin.open && settings->grpc.open);
    assert_true(settings->admin.metrics_open);
    assert_null(settings->admin.token);
    assert_true(settings->grpc.max_connection_age_ns == UINT64_C(86400000000000));
    assert_true(settings->grpc.max_connection_age_grace_ns == UINT64_C(3600000000000));
    assert_null(settings->store.redis.url);
    assert_string_equal(settings->envoy->folder, "/srv/runtime_data/current/config");
    assert_string_equal(settings->envoy->options.name_prefix, "config.");
    assert_false(settings->envoy->options.ignore_dot_files);
    assert_string_equal(settings->envoy->statsd_host, "localhost");
    assert_string_equal(settings->envoy->statsd_port, "8125");
    assert_true(settings->envoy->statsd_tcp && !settings->envoy->statsd_tags);
    assert_null(settings->envoy->prometheus);
    assert_string_equal(result.notes, "");
    assert_false(result.envoy.json_log);
    result_free(&result);
}

TEST("listeners and tls")
{
    struct result result =
        READ("HOST=::1", "PORT=1", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=2", "GRPC_HOST=10.0.0.1",
             "GRPC_PORT=3", "GRPC_MAX_CONNECTION_AGE=1h30m0.5s", "GRPC_MAX_CONNECTION_AGE_GRACE=0",
             "GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=/it's.pem",
             "GRPC_SERVER_TLS_KEY=/key.pem", "GRPC_CLIENT_TLS_CACERT=/ca.pem",
             "GRPC_CLIENT_TLS_SAN=envoy.example", "LOG_FORMAT=json");
    const struct weir_settings *settings = result.settings;
    assert_string_equal(settings->http.address, "[::1]:1");
    assert_string_equal(settings->admin.address, "127.0.0.1:2");
    assert_string_equal(settings->grpc.address, "10.0.0.1:3");
    assert_true(settings->grpc.max_connection_age_ns == UINT64_C(5400000000000));
    assert_true(settings->grpc.max_connection_age_grace_ns == 0);
    assert_string_equal(settings->grpc.tls.cert_file, "/it's.pem");
    assert_string_equal(settings->grpc.tls.key_file, "/key.pem");
    assert_string_equal(settings->grpc.tls.client_ca_file, "/ca.pem");
    assert_string_equal(settings->grpc.tls.client_names[0], "envoy.example");
    assert_null(settings->http.tls.cert_file);
    assert_true(result.envoy.json_log);
    result_free(&result);

    result = READ("GRPC_UDS=/run/ratelimit.sock", "GRPC_PORT=3", "WEIR_ADMIN_TOKEN=it's");
    assert_string_equal(result.settings->admin.token, "it's");
    assert_string_equal(result.settings->grpc.address, "unix:/run/ratelimit.sock");
    result_free(&result);
}

TEST("every kind of redis")
{
    static const struct {
        const char *variables[6], *url;
    } cases[] = {
        {{"REDIS_URL=/run/redis.sock"}, "unix:/run/redis.sock"},
        {{"REDIS_URL=h:6379", "REDIS_SOCKET_TYPE=tcp"}, "redis://h:6379"},
        {{"REDIS_URL=h:6379", "REDIS_SOCKET_TYPE=tcp", "REDIS_TLS=true"}, "rediss://h:6379"},
        {{"REDIS_URL=redis://h:6379/2", "REDIS_SOCKET_TYPE=tcp"}, "redis://h:6379/2"},
        {{"REDIS_URL=redis://h:6379/2", "REDIS_TLS=true"}, "rediss://h:6379/2"},
        {{"REDIS_URL=m,a:1,b:2", "REDIS_TYPE=SENTINEL"}, "redis-sentinel://a:1,b:2/m"},
        {{"REDIS_URL=a:1,b:2", "REDIS_TYPE=cluster", "REDIS_TLS=1"}, "rediss-cluster://a:1,b:2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result result = read_variables(cases[i].variables);
        assert_string_equal(result.settings->store.redis.url, cases[i].url);
        assert_string_equal(result.settings->store.prefix, "weir:");
        result_free(&result);
    }
    struct result result =
        READ("REDIS_URL=m,a:1", "REDIS_TYPE=SENTINEL", "REDIS_AUTH=user:pass:word",
             "REDIS_SENTINEL_AUTH=secret", "REDIS_TLS=true", "REDIS_TLS_CACERT=/ca",
             "REDIS_TLS_CLIENT_CERT=/cert", "REDIS_TLS_CLIENT_KEY=/key",
             "CACHE_KEY_PREFIX=p:", "WEIR_NODES=3");
    const struct weir_store_settings *store = &result.settings->store;
    assert_string_equal(store->redis.user, "user");
    assert_string_equal(store->redis.password, "pass:word");
    assert_string_equal(store->redis.sentinel_password, "secret");
    assert_string_equal(store->redis.ca_file, "/ca");
    assert_string_equal(store->redis.cert_file, "/cert");
    assert_string_equal(store->redis.key_file, "/key");
    assert_string_equal(store->prefix, "p:");
    assert_int_equal(store->nodes, 3);
    assert_false(result.settings->envoy->options.redis_compat);
    result_free(&result);
}

/* The original has a default for the URL, weir its own memory: a user that relies on that gets a
 * message. */
TEST("what needs redis is named without it")
{
    static const char *const variables[] = {
        "REDIS_TYPE=CLUSTER",
        "REDIS_SOCKET_TYPE=tcp",
        "REDIS_AUTH=x",
        "REDIS_SENTINEL_AUTH=x",
        "REDIS_TLS=true",
        "REDIS_TLS_CACERT=/x",
        "REDIS_TLS_CLIENT_CERT=/x",
        "REDIS_TLS_CLIENT_KEY=/x",
        "CACHE_KEY_PREFIX=x",
        "WEIR_NODES=3",
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        char note[128];
        struct result result = READ(variables[i]);
        snprintf(note, sizeof note,
                 "weir: %.*s has no effect: REDIS_URL is not set, states are in this process\n",
                 (int)strcspn(variables[i], "="), variables[i]);
        assert_string_equal(result.notes, note);
        result_free(&result);
    }
    struct result result = READ("REDIS_SOCKET_TYPE=unix", "REDIS_TLS=false");
    assert_string_equal(result.notes, "");
    result_free(&result);
}

TEST("counters may be those of the original")
{
    struct result result = READ("REDIS_URL=h:6379", "REDIS_SOCKET_TYPE=tcp",
                                "CACHE_KEY_PREFIX=p:", "WEIR_REDIS_COMPAT=true");
    assert_true(result.settings->envoy->options.redis_compat);
    assert_string_equal(result.settings->envoy->options.redis_prefix, "p:");
    result_free(&result);
}

TEST("what the service does")
{
    struct result result =
        READ("RUNTIME_ROOT=/data", "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_APPDIRECTORY=a/b",
             "RUNTIME_IGNOREDOTFILES=true", "MERGE_DOMAIN_CONFIG=true", "SHADOW_MODE=true",
             "QUOTA_MODE=true", "RESPONSE_DYNAMIC_METADATA=true",
             "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true",
             "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true", "REDIS_URL=h:1",
             "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true", "LOCAL_CACHE_SIZE_IN_BYTES=1000",
             "NEAR_LIMIT_RATIO=0.5", "LIMIT_RESPONSE_HEADERS_ENABLED=true", "LIMIT_LIMIT_HEADER=A",
             "LIMIT_REMAINING_HEADER=B", "LIMIT_RESET_HEADER=C",
             "FORCE_START_WITHOUT_INITIAL_CONFIG=true", "CONFIG_TYPE=FILE", "BACKEND_TYPE=redis");
    const struct weir_envoy_settings *envoy = result.settings->envoy;
    const struct weir_envoy_options *options = &envoy->options;
    assert_string_equal(envoy->folder, "/data/ratelimit/a/b");
    assert_string_equal(options->name_prefix, "a.b.");
    assert_true(options->ignore_dot_files && options->merge_domains && options->shadow_mode &&
                options->quota_mode && options->dynamic_metadata && options->charge_if_allowed &&
                options->count_local && options->headers && envoy->need_domains &&
                envoy->need_store);
    assert_true(options->near_limit_ratio == 0.5F);
    assert_string_equal(options->limit_header, "A");
    assert_string_equal(options->remaining_header, "B");
    assert_string_equal(options->reset_header, "C");
    assert_string_equal(result.notes, "");
    result_free(&result);
    /* The spellings of Go's float32. */
    static const struct {
        const char *text;
        float ratio;
    } ratios[] = {{"NEAR_LIMIT_RATIO=8e-1", 0.8F},
                  {"NEAR_LIMIT_RATIO=0x1p-1", 0.5F},
                  {"NEAR_LIMIT_RATIO=+.25", 0.25F},
                  {"NEAR_LIMIT_RATIO=1", 1.0F},
                  {"NEAR_LIMIT_RATIO=0.999999", 0.999999F}};
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
        result = READ(ratios[i].text);
        assert_true(result.settings->envoy->options.near_limit_ratio == ratios[i].ratio);
        result_free(&result);
    }
    result = READ("RUNTIME_WATCH_ROOT=false");
    assert_null(result.settings->envoy->options.name_prefix);
    result_free(&result);
}

TEST("where counters go")
{
    struct result result = READ("USE_DOG_STATSD=true", "STATSD_HOST=h", "STATSD_PORT=1",
                                "STATS_FLUSH_INTERVAL=1500ms", "EXTRA_TAGS=foo:bar,a:b");
    const struct weir_envoy_settings *envoy = result.settings->envoy;
    assert_true(envoy->statsd_tags && !envoy->statsd_tcp);
    assert_string_equal(envoy->statsd_host, "h");
    assert_true(envoy->flush_ns == UINT64_C(1500000000));
    assert_int_equal(envoy->tag_count, 2);
    assert_string_equal(envoy->tags[1].name, "a");
    assert_string_equal(envoy->tags[1].value, "b");
    result_free(&result);
    result = READ("USE_PROMETHEUS=true", "PROMETHEUS_ADDR=:9102", "PROMETHEUS_PATH=/m");
    assert_string_equal(result.settings->envoy->prometheus, "0.0.0.0:9102");
    assert_string_equal(result.settings->envoy->prometheus_path, "/m");
    assert_null(result.settings->envoy->statsd_host);
    assert_string_equal(result.notes, "");
    result_free(&result);
    result = READ("USE_PROMETHEUS=true", "EXTRA_TAGS=a:b");
    assert_non_null(strstr(result.notes, "weir: EXTRA_TAGS has no effect: "));
    result_free(&result);
    result = READ("DISABLE_STATS=true");
    assert_null(result.settings->envoy->statsd_host);
    result_free(&result);
}

TEST("wrong values are refused")
{
    static const struct {
        const char *variables[5], *reason;
    } cases[] = {
        {{"PORT=x"}, "PORT is a number of 0 to 65535, not 'x'"},
        {{"PORT=65536"}, "PORT is a number of 0 to 65535, not '65536'"},
        {{"SHADOW_MODE=maybe"}, "SHADOW_MODE is true or false, not 'maybe'"},
        {{"STATS_FLUSH_INTERVAL=10"},
         "STATS_FLUSH_INTERVAL is a duration as 1h30m, 10s or 100ms, not '10'"},
        /* Also where its sink is not on. */
        {{"STATS_FLUSH_INTERVAL=10", "USE_PROMETHEUS=true"},
         "STATS_FLUSH_INTERVAL is a duration as 1h30m, 10s or 100ms, not '10'"},
        {{"STATS_FLUSH_INTERVAL=10", "DISABLE_STATS=true"},
         "STATS_FLUSH_INTERVAL is a duration as 1h30m, 10s or 100ms, not '10'"},
        {{"STATS_FLUSH_INTERVAL=0"}, "STATS_FLUSH_INTERVAL is a duration of 100ms to 1h"},
        {{"STATS_FLUSH_INTERVAL=99ms"}, "STATS_FLUSH_INTERVAL is a duration of 100ms to 1h"},
        {{"STATS_FLUSH_INTERVAL=61m"}, "STATS_FLUSH_INTERVAL is a duration of 100ms to 1h"},
        {{"STATSD_PORT=x", "DISABLE_STATS=true"}, "STATSD_PORT is a number of 0 to 65535, not 'x'"},
        {{"EXTRA_TAGS=a:b,foo", "USE_PROMETHEUS=true"}, "EXTRA_TAGS is no list of name:value"},
        {{"GRPC_UDS=/x", "GRPC_PORT=x"}, "GRPC_PORT is a number of 0 to 65535, not 'x'"},
        {{"REDIS_TLS=maybe"}, "REDIS_TLS is true or false, not 'maybe'"},
        {{"NEAR_LIMIT_RATIO=x"}, "NEAR_LIMIT_RATIO is a number above 0 and at most 1, not 'x'"},
        {{"NEAR_LIMIT_RATIO=0"}, "NEAR_LIMIT_RATIO is a number above 0 and at most 1, not '0'"},
        {{"NEAR_LIMIT_RATIO=1.1"}, "NEAR_LIMIT_RATIO is a number above 0 and at most 1, not '1.1'"},
        {{"NEAR_LIMIT_RATIO=nan"}, "NEAR_LIMIT_RATIO is a number above 0 and at most 1, not 'nan'"},
        {{"NEAR_LIMIT_RATIO=0.5x"},
         "NEAR_LIMIT_RATIO is a number above 0 and at most 1, not '0.5x'"},
        {{"GRPC_MAX_CONNECTION_AGE=-1s"},
         "GRPC_MAX_CONNECTION_AGE is a duration as 1h30m, 10s or 100ms, not '-1s'"},
        {{"BACKEND_TYPE=memcache"},
         "BACKEND_TYPE: only redis is supported (and no Redis at all, where REDIS_URL is not set), "
         "no memcached"},
        {{"CONFIG_TYPE=CIRCUS"}, "CONFIG_TYPE is FILE or GRPC_XDS_SOTW"},
        {{"WEIR_REDIS=maybe"}, "WEIR_REDIS is ignore, or not set"},
        {{"LOG_LEVEL=loud"}, "LOG_LEVEL is one of trace, debug, info, warn, error, fatal, panic"},
        {{"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_NODE_METADATA=a"},
         "CONFIG_GRPC_XDS_NODE_METADATA is no list of name=value"},
        {{"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=:x"},
         "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS is no list of name:value"},
        {{"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=0"},
         "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL is a duration of 1ms to 1h"},
        {{"CONFIG_TYPE=GRPC_XDS_SOTW", "XDS_CLIENT_BACKOFF_RANDOM_FACTOR=2"},
         "XDS_CLIENT_BACKOFF_RANDOM_FACTOR is a number of 0 to 1"},
        {{"REDIS_URL=a:1", "REDIS_TYPE=CIRCUS"}, "Unrecognized redis type CIRCUS"},
        {{"REDIS_URL=a:1", "REDIS_TYPE=SENTINEL"},
         "Expected master name and a list of urls for the sentinels, in the format: <redis master "
         "name>,<sentinel1>,...,<sentineln>"},
        {{"USE_STATSD=true", "USE_PROMETHEUS=true"},
         "USE_STATSD, USE_DOG_STATSD and USE_PROMETHEUS exclude each other"},
        {{"EXTRA_TAGS=foo"}, "EXTRA_TAGS is no list of name:value"},
        {{"EXTRA_TAGS=:v"}, "EXTRA_TAGS is no list of name:value"},
        {{"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_KEY=/k"},
         "GRPC_SERVER_USE_TLS needs GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY"},
        {{"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=/c", "GRPC_SERVER_TLS_KEY=/k",
          "GRPC_CLIENT_TLS_SAN=x"},
         "GRPC_CLIENT_TLS_SAN needs GRPC_CLIENT_TLS_CACERT"},
        {{"WEIR_REDIS_COMPAT=true"}, "WEIR_REDIS_COMPAT needs REDIS_URL"},
        {{"LOG_FORMAT=xml"}, "LOG_FORMAT is text or json"},
        {{"RUNTIME_ROOT=/a\nb"}, "a variable has a control character in its value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result result = read_variables(cases[i].variables);
        assert_int_equal(result.err, WEIR_ERR_RANGE);
        assert_string_equal(result.reason.text, cases[i].reason);
        free(result.notes);
    }
}

TEST("a control plane as Envoy Gateway names it")
{
    struct result result = READ(
        "CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL=envoy-gateway:18001",
        "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit", "CONFIG_GRPC_XDS_NODE_METADATA=a=b,c=d=e",
        "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=x-token:t:u",
        "CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/certs/tls.crt",
        "CONFIG_GRPC_XDS_CLIENT_TLS_KEY=/certs/tls.key",
        "CONFIG_GRPC_XDS_SERVER_TLS_CACERT=/certs/ca.crt",
        "CONFIG_GRPC_XDS_SERVER_TLS_SAN=envoy-gateway.example",
        "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=500ms",
        "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=2s", "XDS_CLIENT_BACKOFF_MAX_INTERVAL=20s",
        "XDS_CLIENT_BACKOFF_RANDOM_FACTOR=0.25", "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=5000",
        "WEIR_XDS_CACHE=/var/xds", "FORCE_START_WITHOUT_INITIAL_CONFIG=true",
        "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=localhost:6379", "WEIR_REDIS=ignore",
        "LOG_LEVEL=error");
    const struct weir_xds_settings *xds = &result.settings->envoy->xds;
    assert_null(result.settings->envoy->folder);
    assert_string_equal(xds->server, "envoy-gateway:18001");
    assert_string_equal(xds->node, "envoy-ratelimit");
    assert_int_equal(xds->metadata_count, 2);
    assert_string_equal(xds->metadata[1].name, "c");
    assert_string_equal(xds->metadata[1].value, "d=e");
    assert_int_equal(xds->headers_count, 1);
    assert_string_equal(xds->headers[0].name, "x-token");
    assert_string_equal(xds->headers[0].value, "t:u");
    assert_true(xds->tls);
    assert_string_equal(xds->cert, "/certs/tls.crt");
    assert_string_equal(xds->key, "/certs/tls.key");
    assert_string_equal(xds->ca, "/certs/ca.crt");
    assert_string_equal(xds->server_name, "envoy-gateway.example");
    assert_true(xds->retry_ns == 500000000 && xds->backoff_ns == 2000000000);
    assert_true(xds->backoff_most_ns == UINT64_C(20000000000));
    assert_int_equal(xds->jitter, 25);
    assert_true(xds->max_message == 5000);
    assert_string_equal(xds->cache, "/var/xds");
    assert_false(result.settings->envoy->need_config);
    assert_null(result.settings->store.redis.url);
    assert_int_equal(result.envoy.log_level, WEIR_LOG_ERROR);
    assert_string_equal(
        result.notes,
        "weir: REDIS_* have no effect: WEIR_REDIS is ignore, states are in this process\n");
    result_free(&result);
    result = READ("CONFIG_TYPE=GRPC_XDS_SOTW", "XDS_CLIENT_BACKOFF_JITTER=false");
    xds = &result.settings->envoy->xds;
    assert_string_equal(xds->server, "localhost:18000");
    assert_string_equal(xds->node, "default");
    assert_true(!xds->tls && xds->metadata_count == 0 && xds->headers_count == 0);
    assert_true(xds->retry_ns == 3000000000 && xds->backoff_ns == UINT64_C(10000000000));
    assert_int_equal(xds->jitter, 0);
    assert_true(result.settings->envoy->need_config);
    result_free(&result);
}

TEST("a name and a value of a control plane may be as long as the rules take")
{
    static const char name[] = "CONFIG_GRPC_XDS_NODE_METADATA=";
    char text[sizeof name + 2 * WEIR_XDS_PAIR_MAX + 1];
    memset(text, 'x', sizeof text);
    memcpy(text, name, sizeof name - 1);
    text[sizeof name - 1 + WEIR_XDS_PAIR_MAX] = '=';
    text[sizeof text - 1] = '\0';
    struct result result = READ("CONFIG_TYPE=GRPC_XDS_SOTW", text);
    assert_int_equal(result.err, 0);
    const struct weir_xds_settings *xds = &result.settings->envoy->xds;
    assert_int_equal(strlen(xds->metadata[0].name), WEIR_XDS_PAIR_MAX);
    assert_int_equal(strlen(xds->metadata[0].value), WEIR_XDS_PAIR_MAX);
    result_free(&result);
}

/* Every variable of the original, with a value that is not its default. What it changes shows in
 * the rules file, or it is named. */
TEST("no variable is skipped")
{
    static const char *const base[] = {
        "REDIS_URL=m,h:1",          "REDIS_TYPE=SENTINEL",
        "REDIS_TLS=true",           "LIMIT_RESPONSE_HEADERS_ENABLED=true",
        "GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=/c",
        "GRPC_SERVER_TLS_KEY=/k",   "GRPC_CLIENT_TLS_CACERT=/a",
        "REDIS_TLS_CLIENT_CERT=/c", "REDIS_TLS_CLIENT_KEY=/k"};
    static const char *const variables[] = {
        "HOST=10.0.0.1",
        "PORT=1",
        "DEBUG_HOST=10.0.0.1",
        "DEBUG_PORT=1",
        "GRPC_UDS=/x",
        "GRPC_HOST=10.0.0.1",
        "GRPC_PORT=1",
        "GRPC_MAX_CONNECTION_AGE=1h",
        "GRPC_MAX_CONNECTION_AGE_GRACE=2h",
        "GRPC_SERVER_TLS_CERT=/x",
        "GRPC_SERVER_TLS_KEY=/x",
        "GRPC_CLIENT_TLS_CACERT=/x",
        "GRPC_CLIENT_TLS_SAN=x",
        "MERGE_DOMAIN_CONFIG=true",
        "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true",
        "RUNTIME_ROOT=/x",
        "RUNTIME_SUBDIRECTORY=x",
        "RUNTIME_APPDIRECTORY=x",
        "RUNTIME_IGNOREDOTFILES=true",
        "RUNTIME_WATCH_ROOT=false",
        "CONFIG_GRPC_XDS_NODE_ID=x",
        "CONFIG_GRPC_XDS_NODE_METADATA=x=y",
        "CONFIG_GRPC_XDS_SERVER_URL=x",
        "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=1s",
        "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=x",
        "CONFIG_GRPC_XDS_SERVER_USE_TLS=true",
        "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=x",
        "CONFIG_GRPC_XDS_CLIENT_TLS_KEY=x",
        "CONFIG_GRPC_XDS_SERVER_TLS_CACERT=x",
        "CONFIG_GRPC_XDS_SERVER_TLS_SAN=x",
        "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=1s",
        "XDS_CLIENT_BACKOFF_MAX_INTERVAL=1s",
        "XDS_CLIENT_BACKOFF_RANDOM_FACTOR=1",
        "XDS_CLIENT_BACKOFF_JITTER=false",
        "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=1",
        "USE_DOG_STATSD=true",
        "USE_DOG_STATSD_MOGRIFIERS=A",
        "USE_STATSD=false",
        "STATSD_HOST=x",
        "STATSD_PORT=1",
        "EXTRA_TAGS=a:b",
        "STATS_FLUSH_INTERVAL=1s",
        "DISABLE_STATS=true",
        "USE_PROMETHEUS=true",
        "PROMETHEUS_MAPPER_YAML=x",
        "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS=true",
        "EXPIRATION_JITTER_MAX_SECONDS=1",
        "LOCAL_CACHE_SIZE_IN_BYTES=1",
        "NEAR_LIMIT_RATIO=0.5",
        "CACHE_KEY_PREFIX=x",
        "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true",
        "SHADOW_MODE=true",
        "QUOTA_MODE=true",
        "RESPONSE_DYNAMIC_METADATA=true",
        "LIMIT_LIMIT_HEADER=x",
        "LIMIT_REMAINING_HEADER=x",
        "LIMIT_RESET_HEADER=x",
        "REDIS_POOL_SIZE=1",
        "REDIS_AUTH=x",
        "REDIS_SENTINEL_AUTH=x",
        "REDIS_TLS_CLIENT_CERT=/x",
        "REDIS_TLS_CLIENT_KEY=/x",
        "REDIS_TLS_CACERT=/x",
        "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true",
        "REDIS_PIPELINE_WINDOW=1s",
        "REDIS_PIPELINE_LIMIT=1",
        "REDIS_CLUSTER_PIPELINE_PARALLELISM=2",
        "REDIS_TIMEOUT=1s",
        "REDIS_POOL_ON_EMPTY_BEHAVIOR=ERROR",
        "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true",
        "REDIS_STARTUP_INITIAL_INTERVAL=2s",
        "REDIS_STARTUP_MAX_INTERVAL=2s",
        "REDIS_STARTUP_MAX_ELAPSED_TIME=2s",
        "REDIS_PERSECOND=true",
        "REDIS_PERSECOND_SOCKET_TYPE=tcp",
        "REDIS_PERSECOND_TYPE=CLUSTER",
        "REDIS_PERSECOND_URL=x",
        "REDIS_PERSECOND_POOL_SIZE=1",
        "REDIS_PERSECOND_AUTH=x",
        "REDIS_PERSECOND_SENTINEL_AUTH=x",
        "REDIS_PERSECOND_TLS=true",
        "REDIS_PERSECOND_PIPELINE_WINDOW=1s",
        "REDIS_PERSECOND_PIPELINE_LIMIT=1",
        "REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM=2",
        "REDIS_PERSECOND_TIMEOUT=1s",
        "REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR=ERROR",
        "MEMCACHE_HOST_PORT=x",
        "MEMCACHE_MAX_IDLE_CONNS=1",
        "MEMCACHE_SRV=x",
        "MEMCACHE_SRV_REFRESH=1s",
        "MEMCACHE_TLS=true",
        "MEMCACHE_TLS_CLIENT_CERT=x",
        "MEMCACHE_TLS_CLIENT_KEY=x",
        "MEMCACHE_TLS_CACERT=x",
        "MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION=true",
        "TRACING_ENABLED=true",
        "TRACING_EXPORTER_PROTOCOL=grpc",
        "TRACING_SERVICE_NAME=x",
        "TRACING_SERVICE_NAMESPACE=x",
        "TRACING_SERVICE_INSTANCE_ID=x",
        "TRACING_SAMPLING_RATE=0.5",
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://x",
        "PROTO=udp",
        "GRPC_SERVER_TLS_CA_CERT=/x",
    };
    const char *all[16] = {NULL};
    memcpy(all, base, sizeof base);
    struct result before = read_variables(all);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s ", (int)strcspn(variables[i], "="), variables[i]);
        all[0] = variables[i]; /* goes before what is given again */
        memcpy(all + 1, base, sizeof base);
        struct result after = read_variables(all);
        bool named = strstr(after.notes, name) != NULL;
        bool changed = strcmp(after.envoy.rules, before.envoy.rules) != 0;
        if (named == changed)
            print_error("%s\n", variables[i]);
        assert_true(named != changed);
        result_free(&after);
    }
    result_free(&before);
}

RUN_TESTS()
