/* SPDX-License-Identifier: Apache-2.0 */
/* `envoy:` of the rules file: what envoyproxy/ratelimit takes from its environment. docs/envoy.md
 * has the table. Strings are owned by the rules. */
#ifndef WEIR_FEATURE_ENVOY_RULES_OPTIONS_H
#define WEIR_FEATURE_ENVOY_RULES_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum weir_envoy_store_failure {
    WEIR_ENVOY_STORE_FAIL, /* the call fails, and Envoy's failure_mode_deny decides */
    WEIR_ENVOY_STORE_LOCAL,
    WEIR_ENVOY_STORE_OPEN,
    WEIR_ENVOY_STORE_CLOSED,
};

/* What a configuration is read and answered with. All zero: the original's defaults. */
struct weir_envoy_options {
    bool merge_domains;       /* MERGE_DOMAIN_CONFIG */
    bool shadow_mode;         /* SHADOW_MODE: overall_code is always OK */
    bool quota_mode;          /* QUOTA_MODE: as if every descriptor had quota_mode */
    bool dynamic_metadata;    /* RESPONSE_DYNAMIC_METADATA */
    bool charge_if_allowed;   /* STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: a request that is over
                                 limit charges nothing */
    bool count_local;         /* LOCAL_CACHE_SIZE_IN_BYTES > 0: over_limit_with_local_cache */
    bool headers;             /* LIMIT_RESPONSE_HEADERS_ENABLED */
    bool ignore_dot_files;    /* RUNTIME_IGNOREDOTFILES */
    bool redis_compat;        /* counters are the original's own: its keys, INCRBY, EXPIRE */
    const char *redis_prefix; /* of those keys: CACHE_KEY_PREFIX; NULL: none */
    bool shared;              /* states are in a shared store */
    bool leased;              /* and are leased */
    uint8_t on_store_error;   /* enum weir_envoy_store_failure */
    uint32_t nodes;           /* that share the store; WEIR_ENVOY_STORE_LOCAL needs it */
    float near_limit_ratio;   /* NEAR_LIMIT_RATIO; 0: 0.8 */
    const char *limit_header, *remaining_header, *reset_header; /* NULL: RateLimit-Limit, … */
    const char *name_prefix; /* of files in messages: "config." where the original has it; or "" */
    void (*opening)(const char *name); /* called before each file is read; or NULL */
};

/* At most so many, of at most 64 bytes each, so that a name and its tags fit a packet. */
#define WEIR_ENVOY_TAGS_MAX 16

struct weir_envoy_tag {
    const char *name, *value;
};

#define WEIR_XDS_PAIRS_MAX 32
#define WEIR_XDS_PAIR_MAX 512 /* bytes of a name, and of a value */

/* `xds` of it: a control plane in place of a folder. */
struct weir_xds_settings {
    const char *server;                                 /* HOST:PORT; NULL: there is none */
    const char *node;                                   /* CONFIG_GRPC_XDS_NODE_ID */
    struct weir_envoy_tag metadata[WEIR_XDS_PAIRS_MAX]; /* CONFIG_GRPC_XDS_NODE_METADATA */
    struct weir_envoy_tag headers[WEIR_XDS_PAIRS_MAX];  /* …_XDS_CLIENT_ADDITIONAL_HEADERS */
    uint32_t metadata_count, headers_count;
    bool tls;                    /* CONFIG_GRPC_XDS_SERVER_USE_TLS */
    const char *cert, *key, *ca; /* of the client; of the server. NULL: none; the system's */
    const char *server_name;     /* in the server's certificate; NULL: HOST */
    uint64_t retry_ns;           /* between attempts to connect */
    uint64_t backoff_ns, backoff_most_ns; /* before a stream follows one that has ended */
    uint8_t jitter;                       /* percent of these waits that are random */
    uint64_t max_message;                 /* bytes of a response */
    const char *cache;                    /* file of the last good response; NULL: none */
};

struct weir_envoy_settings {
    const char *folder;           /* of the configuration; NULL: see xds */
    struct weir_xds_settings xds; /* without both there is no such service */
    struct weir_envoy_options options;
    bool need_domains; /* HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED */
    bool need_config;  /* unhealthy until there is one; not FORCE_START_WITHOUT_INITIAL_CONFIG */
    bool
        need_store; /* REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: unhealthy while no worker reaches it */
    /* Counters by statsd. */
    const char *statsd_host; /* NULL: none */
    const char *statsd_port;
    bool statsd_tcp, statsd_tags;                    /* statsd_tags: DogStatsD's "|#name:value" */
    uint64_t flush_ns;                               /* STATS_FLUSH_INTERVAL */
    struct weir_envoy_tag tags[WEIR_ENVOY_TAGS_MAX]; /* EXTRA_TAGS */
    uint32_t tag_count;
    /* The original's own Prometheus listener, beside the admin listener's /metrics. */
    const char *prometheus, *prometheus_path; /* NULL: none */
};

#endif
