/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: a rules file, validated, compiled, immutable; and what a request means under it.
 *
 * weir_rules_load reads and checks one file (and the keys file that it names), collecting every
 * error; weir_rules_checks turns a request into 0..WEIR_CHECKS_MAX checks. Limits are found through
 * an index by path, method, host, literals and CIDR tries, so that the cost depends on the limits
 * that match, not on those that don't.
 *
 * Threads: immutable after loading and weir_rules_prepare; shared by all workers. Reference
 * counted: a decision pins its generation.
 */
#ifndef WEIR_RULES_RULES_H
#define WEIR_RULES_RULES_H

#include "core/answer.h"
#include "core/check.h"
#include "rules/request.h"

struct weir_rules;

/* What `weir validate --fix` does about a problem. */
enum weir_fix {
    WEIR_FIX_NONE,
    WEIR_FIX_DECLARE, /* adds the name `fix_text` to `attributes` of the file */
    WEIR_FIX_ESCAPE,  /* puts a backslash before byte `fix_at` of the text at line and column */
};

/* One problem in a file: "file:line:column: message" when printed. */
struct weir_problem {
    char *file; /* owned by the list */
    uint32_t line, column;
    char *message;
    const char *refused_from; /* deprecated: the first version that refuses it; NULL: an error */
    uint8_t fix;              /* enum weir_fix */
    uint32_t fix_at;
    char *fix_text; /* NULL: none */
};

/* All problems of one load, in the order of file and line; grows up to WEIR_PROBLEMS_MAX, then says
 * how many more there are. What is deprecated is a problem that does not keep the rules from being
 * loaded: a load that succeeds may leave some of these. */
#define WEIR_PROBLEMS_MAX 1000
struct weir_problems {
    struct weir_problem *list;
    uint32_t count, dropped;
    uint32_t deprecated;              /* of all, dropped ones included */
    bool strict;                      /* given: what is deprecated is an error now, as it will be */
    bool (*has)(const char *feature); /* given: whether the program has the service that some
                                         keywords need (weir_services_have); NULL: any */
};
void weir_problems_free(struct weir_problems *problems);

/* The `server:` and `state:` part, for the daemon; strings are owned by the rules, NULL when
 * absent. (Fields for listeners, headers dialects, trusted proxies etc.: see struct below.) */
/* `tls:` of a listener; NULL: absent. Without cert_file there is no TLS. */
struct weir_listener_tls {
    const char *cert_file, *key_file; /* PEM */
    const char *client_ca_file;       /* clients must show a certificate that it has signed */
    const char *const *client_names;  /* and one of these names in it; none: any */
    uint32_t client_name_count;
};
struct weir_listener_settings {
    const char *address; /* "127.0.0.1:8080", "[::1]:8080", "unix:/path", "off", NULL when absent */
    bool open, trusted, trusted_set, proxy_protocol;
    const char *token; /* password or token that a caller must give; token_file is read at load */
    struct weir_listener_tls tls;
    const char *const *hosts; /* admin: names that it goes by, normal; host_count of them */
    uint32_t host_count;
    bool hold;         /* http: replies of /v1/auth that a limit delays are held back */
    bool metrics_open; /* admin: /metrics is for anybody */
    uint64_t max_connection_age_ns;       /* grpc: then GOAWAY is sent; 0: never */
    uint64_t max_connection_age_grace_ns; /* and after that long closed */
};
/* Which Redis, and how it is spoken to; what is absent is NULL. */
struct weir_redis_access {
    const char *url;             /* NULL: none */
    const char *user, *password; /* outside the URL; password_file is read at load */
    const char *sentinel_user, *sentinel_password; /* likewise */
    const char *ca_file, *cert_file, *key_file, *server_name;
    bool insecure;
};
/* `store:`, for more than one machine; what is absent is NULL or 0. */
struct weir_store_settings {
    struct weir_redis_access redis; /* without a URL: the embedded table alone */
    const char *prefix;             /* of keys; default "weir:" */
    bool leased;            /* `mode: leased`; a limit may say otherwise (WEIR_CHECK_LEASED) */
    uint64_t lease_ns;      /* the longest life of a share */
    uint64_t remember_ns;   /* how long a denial is remembered, at most 100 ms; default 100 ms */
    uint64_t deadline_ns;   /* of a decision; default 20 ms */
    uint32_t nodes;         /* that share the store; needed by on_store_error: local */
    uint8_t on_store_error; /* of limits that don't say, and of commands: weir_store_failure */
};
/* `sticky:`, for several nodes without a shared store. `store` has its deadline, what happens where
 * a node does not answer, and how many nodes there are. */
struct weir_sticky_peer {
    const char *name, *url;
};
struct weir_sticky_settings {
    const char *by;                       /* NULL: there is no such section */
    const char *file;                     /* that `peers` names */
    const struct weir_sticky_peer *peers; /* all nodes, this one included */
    uint32_t count, self;
    struct weir_redis_access access; /* without a URL: how this node speaks to all others */
};
/* `identities:`, callers that are kept in Redis; see docs/identities.md. */
struct weir_identities_settings {
    struct weir_redis_access redis; /* without a URL there are none */
    const char *prefix;             /* of their keys; default "weir:identity:" */
    uint64_t life_ns;               /* of what is known of a caller; default 60 s */
    uint64_t unknown_life_ns;       /* of knowing that a key is unknown; default 10 s */
    uint64_t stale_ns;    /* how long what is older may be used while Redis is away; default 1 h */
    uint64_t deadline_ns; /* of a lookup; default 20 ms */
    uint32_t max_keys;    /* callers known at one time, of each worker; default 100,000 */
    bool deny;            /* `on_error: deny`; else a key that cannot be looked up is unknown */
};
/* `webhook:`, where warnings are sent to; see docs/webhooks.md. */
#define WEIR_WEBHOOK_SECRET_MIN 24 /* bytes, as Standard Webhooks says */
#define WEIR_WEBHOOK_SECRET_MAX 64
#define WEIR_WEBHOOK_SECRETS_MAX 2 /* while one is changed for the next */
struct weir_webhook_secret {
    uint8_t size;
    unsigned char bytes[WEIR_WEBHOOK_SECRET_MAX];
};
struct weir_webhook_settings {
    const char *url; /* NULL: none */
    const char *ca_file;
    struct weir_webhook_secret secrets[WEIR_WEBHOOK_SECRETS_MAX];
    uint32_t secret_count; /* every message is signed with each */
    bool secret_inline;    /* they are in the rules file itself */
    uint64_t timeout_ns;   /* of one attempt; default 5 s */
};
/* `challenge:`, proof of work; see docs/challenge.md. */
struct weir_challenge_keys;
struct weir_challenge_settings {
    struct weir_listener_settings listener; /* its address only; NULL: none */
    const struct weir_challenge_keys
        *keys;                        /* feature/challenge/keys.h; NULL: there is no such section */
    struct weir_bytes cookie;         /* its name; NUL-terminated */
    uint64_t life_ns;                 /* of tokens */
    uint8_t difficulty[WEIR_CLASSES]; /* of puzzles, in bits, by class of the client */
    bool by_class;                    /* it differs, and so asks for the client's score */
    bool secure;                      /* the cookie goes over TLS only */
};
/* `server.connections`: what one address may open (server/net/peers.h). */
struct weir_peer_settings {
    uint32_t per_address, per_prefix; /* connections at one time; 0: any number */
    bool paced;
    struct weir_limit pace; /* gcra: of new connections of one address; only if `paced` */
};
/* `denials:`, what is kept of denied requests; see docs/use.md. */
#define WEIR_DENIALS_SAMPLE_MAX 1000
#define WEIR_DENIALS_SERIES_MAX 100
struct weir_denials_settings {
    const char *file;    /* NULL: they are kept in memory only */
    uint64_t keep_ns;    /* default 7 days */
    uint64_t size_bytes; /* of the file, and of the one before it, together; default 64 MiB */
    uint32_t series;     /* of keys denied most, in the metrics; default 0 */
    uint32_t top;        /* of keys used most, likewise */
    uint32_t sample;     /* of each key and limit in a second, by each worker; default 5; 0: none */
};
/* Settings of which this header need not know more; the loader makes them, all zero without the
 * section. */
struct weir_envoy_settings;    /* feature/envoy/rules/options.h */
struct weir_kernel_settings;   /* feature/kernel/settings.h */
struct weir_standing_settings; /* feature/standing/settings.h */
struct weir_xdp_settings;
/* A file that a secret was read from. */
struct weir_secret_file {
    const char *key;  /* that names it in the rules, such as "token_file" */
    const char *path; /* relative ones from the folder of the rules file */
    const struct weir_secret_file *next;
};
#define WEIR_NAT64_MAX 8 /* each is compared with each IPv6 client */
struct weir_settings {
    struct weir_denials_settings denials;
    struct weir_store_settings store;
    struct weir_sticky_settings sticky;
    struct weir_identities_settings identities;
    struct weir_envoy_settings *envoy; /* never NULL */
    struct weir_webhook_settings webhook;
    struct weir_challenge_settings challenge;
    struct weir_kernel_settings *kernel; /* never NULL */
    const struct weir_xdp_settings
        *xdp; /* `kernel.xdp`, feature/xdp/settings.h; NULL: there is none */
    struct weir_standing_settings *standing; /* never NULL; no kind: there is no such section */
    uint8_t on_store_error;    /* `on_store_error` at the top: enum weir_store_failure */
    bool on_store_error_given; /* it is there; else libweir's users have defaults of their own */
    uint64_t idempotency_ns;   /* life of an idempotency key; default 10 min */
    struct weir_listener_settings http, redis, grpc, admin;
    struct weir_peer_settings connections;
    uint32_t workers; /* 0: auto */
    const struct weir_cidr *trusted_proxies;
    uint32_t trusted_proxy_count;
    bool trust_unix;               /* `unix` in trusted_proxies */
    bool trusted_proxies_given;    /* the file names them */
    const struct weir_cidr *nat64; /* prefixes with IPv4 addresses; default 64:ff9b::/96 */
    uint32_t nat64_count;
    bool nat64_given; /* the file names them: networks with clients behind translators are here */
    const char *state_file; /* NULL: private memory */
    uint64_t state_bytes;
    const char *state_owner, *state_group; /* of a new state file; NULL: the process's own */
    uint32_t state_mode;  /* of a new state file; 0: see access_set of table/file/access.h */
    uint32_t state_spans; /* percent of the state for spans; 0: see weir_rules_span_percent */
    uint32_t headers;   /* enum weir_header_dialect bits (core/answer.h); default DRAFT | X_EPOCH */
    bool headers_given; /* `headers` is in the file */
    const struct weir_secret_file *secret_files; /* all of them, the last first; NULL: none */
};

/* Loads a file. On error returns WEIR_ERR_RULES with `problems` filled (the caller frees them), or
 * WEIR_ERR_MEMORY; *rules is NULL then. A file that cannot be read is a problem too (line 0).
 * On success the caller owns one reference, and `problems` has what is deprecated: a caller that
 * uses the rules tells the operator. */
int weir_rules_load(struct weir_rules **rules, const char *path, struct weir_problems *problems)
    __attribute__((warn_unused_result));

/* The same from memory; `name` is the file's name in messages; relative paths start at `folder`. */
int weir_rules_parse(struct weir_rules **rules, const char *name, const char *folder,
                     const char *text, size_t size, struct weir_problems *problems)
    __attribute__((warn_unused_result));

/* The text that rules were made of; data == NULL where it has more than WEIR_RULES_TEXT_KEPT bytes,
 * or memory was out. It has secrets: see feature/dashboard/rules/shown_rules.h. */
#define WEIR_RULES_TEXT_KEPT ((size_t)512 << 10)
struct weir_bytes weir_rules_text(const struct weir_rules *rules);

/* Whether values of an attribute are shown as SHA-256 only. */
bool weir_rules_hides(const struct weir_rules *rules, struct weir_bytes attribute);

/* How many things in the file are deprecated: problems with `refused_from`. */
uint32_t weir_rules_deprecated(const struct weir_rules *rules);

/* Whether the file has what only `weir serve` can do, because a library waits for nothing and
 * measures nothing: the key at the top, and why. */
bool weir_rules_server_only(const struct weir_rules *rules, const char **key, const char **why);

struct weir_rules *weir_rules_ref(struct weir_rules *rules);
void weir_rules_unref(struct weir_rules *rules);

/* Lets new rules have what those that they replace have learnt: names that no rule knows, and the
 * table of behaviour of `score`. NULL is allowed. For the thread that has just loaded `rules`. */
void weir_rules_inherit(struct weir_rules *rules, const struct weir_rules *before);

/* For a holder that reads settings alone, and so may outlive the limits' places in a table. */
struct weir_rules *weir_rules_ref_settings(struct weir_rules *rules);
void weir_rules_unref_settings(struct weir_rules *rules);

/* Whether the caller's reference is the only one by which limits are used. */
bool weir_rules_unshared(const struct weir_rules *rules);

const struct weir_settings *weir_rules_settings(const struct weir_rules *rules);

/* What to log at a start by a file that does not choose `headers`: X-RateLimit-Reset has changed
 * its meaning. NULL: it chooses, or programs of before are not supported any more. Static. */
const char *weir_rules_reset_warning(const struct weir_rules *rules);

/* What the file changes of the normal form of paths (`paths`): enum weir_path_options. */
unsigned weir_rules_path_options(const struct weir_rules *rules);

/* Makes every limit known to a store, once, before the rules are shared. `prepare` sets limit->id;
 * `name` is the limit's name in the file, for messages. Stops at the first error and returns it. */
typedef int (*weir_rules_prepare_fn)(void *context, struct weir_limit *limit, const char *name);
int weir_rules_prepare(struct weir_rules *rules, weir_rules_prepare_fn prepare, void *context)
    __attribute__((warn_unused_result));

/* Counts the different limits that weir_rules_prepare makes known to the table, with those of
 * plans, keys, candidates, top-ups and records: by name and numbers, and (`specs`) by their numbers
 * alone. Errors: WEIR_ERR_MEMORY. */
int weir_rules_distinct(struct weir_rules *rules, uint32_t *limits, uint32_t *specs)
    __attribute__((warn_unused_result));

/* Attributes of these rules, the fixed ones included. Numbers of names: see source.h. */
uint16_t weir_rules_attribute_count(const struct weir_rules *rules);
/* The name of attribute `attribute` < weir_rules_attribute_count. */
const char *weir_rules_attribute_name(const struct weir_rules *rules, uint16_t attribute);

/* Whether some limit gives back by outcome (`refund_on`). */
bool weir_rules_refunds(const struct weir_rules *rules);

/* How many limits follow the health of a backend (`adaptive`). */
uint32_t weir_rules_adaptive_count(const struct weir_rules *rules);

/* What one limit of the file is, for reports; index = order in the file. */
struct weir_rule_info {
    const char *name;
    const struct weir_limit *limit; /* NULL when it comes from the caller's plan (`rate: plan`) */
    uint32_t limit_count;   /* of several rates: limit[0..limit_count); 0 with `limit` NULL */
    const char *const *key; /* attribute names, key_count of them */
    uint32_t key_count;
    enum weir_algorithm algorithm;
    bool shadow;
    bool by_plan;           /* `rate: plan` */
    bool unlimited;         /* `rate: unlimited`; limit is NULL */
    uint8_t on_store_error; /* enum weir_store_failure */
    bool leased;            /* in a shared store: decided from shares */
    const char *const *tag; /* `hash_tag`: names of attributes, tag_count of them */
    uint32_t tag_count;
    const char *when; /* NULL: always */
    uint8_t enforce;  /* percent of the keys that it may deny: 100 without `enforce` */
    const struct weir_limit *candidate; /* candidate[0..candidate_count); NULL: none */
    uint32_t candidate_count;
    const char *pool;   /* the limit's name that it borrows from; NULL: none */
    bool lends;         /* `borrow: true` */
    uint64_t top_up_ns; /* how long units of top-ups live; 0: it takes none */
    uint32_t overrides; /* keys of the keys file whose owner has other rates */
};
uint32_t weir_rules_count(const struct weir_rules *rules);

/* The share of a new region that suits these limits, in percent: WEIR_RULES_SPAN_PERCENT_MIN where
 * no state of theirs needs a span, 50 where all do, and between these in proportion to the states
 * of a key. The strikes of a penalty are such a state. */
#define WEIR_RULES_SPAN_PERCENT_MIN 2
uint32_t weir_rules_span_percent(const struct weir_rules *rules);
/* The name of a limit, by its number. */
const char *weir_rules_name(const struct weir_rules *rules, uint32_t index);
void weir_rules_info(const struct weir_rules *rules, uint32_t index, struct weir_rule_info *info);
/* The limit of a rule that has one rate; NULL: it has several, or none. */
const struct weir_limit *weir_rules_only_limit(const struct weir_rules *rules, uint32_t rule);

int weir_rules_find(const struct weir_rules *rules, const char *name,
                    size_t size); /* index or -1 */

/* The rates of limit `index`, of which a key has a state each: its own (`set` 0), or those of the
 * plans (`set` 0, 1, …). *count is 0 where it is unlimited. False: there is no such set. */
bool weir_rules_rates(const struct weir_rules *rules, uint32_t index, uint32_t set,
                      const struct weir_limit **limits, uint32_t *count);

/* Whether the file has a plan of this name; true where it has none at all. */
bool weir_rules_has_plan(const struct weir_rules *rules, struct weir_bytes name);

/* Which schedules (`when`) are at rest, a bit each: limits under them do not apply. It stays so
 * from from_ns until until_ns, so that a caller may keep it instead of reading a calendar for each
 * request. */
struct weir_moment {
    uint64_t from_ns, until_ns;
    uint64_t resting;
};
void weir_rules_moment(const struct weir_rules *rules, uint64_t now_ns, struct weir_moment *moment);

/* Whether a limit has a schedule, tokens are read (`jwt`, `challenge`), standing is looked up, or
 * clients have scores: else a request's time plays no part. */
bool weir_rules_timed(const struct weir_rules *rules);

/* Whether tokens are read (`jwt`): then requests had better have a memory of them
 * (feature/identity/rules/tokens.h). */
bool weir_rules_reads_tokens(const struct weir_rules *rules);

/* The attribute of this name, if a limit's `cost` is taken from it; negative: none is. */
int weir_rules_cost_source(const struct weir_rules *rules, struct weir_bytes name);

/* Whether this limit's `cost` is taken from an attribute, and from that one. */
bool weir_rules_cost_is_named(const struct weir_rules *rules, uint32_t rule);
bool weir_rules_cost_is_from(const struct weir_rules *rules, uint32_t rule, uint16_t attribute);

#endif
