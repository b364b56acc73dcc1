/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a rules file: from a tree of YAML nodes to struct weir_rules.
 *
 * Every function reports what is wrong with its part of the tree and goes on, so that one run names
 * all problems; what it could not read stays at its default. Memory running out is remembered in
 * the loader and ends the load. One loader a load, on one thread.
 */
#ifndef WEIR_RULES_LOAD_LOADER_H
#define WEIR_RULES_LOAD_LOADER_H

#include <string.h>

#include "rules/compiled.h"
#include "rules/load/document.h"
#include "rules/load/problems.h"
#include "rules/load/rate.h"

/* A limit as one plan gives it. */
struct rules_plan_entry {
    const struct rules_node *name, *value;
    bool used; /* some limit takes it */
};

struct rules_plan {
    const struct rules_node *name;
    struct rules_plan_entry *entries;
    uint32_t entry_count;
};

struct rules_loader {
    struct weir_rules *rules;
    struct weir_problems *problems;
    struct rules_arena
        scratch; /* freed at the end of the load: the tree and what only loading needs */
    const char *file, *folder;
    bool no_memory;
    uint32_t wrong; /* problems of this load */

    struct rules_plan *plans;            /* as many as rules->plan_count */
    struct rules_string_map plan_limits; /* (plan, limit) -> entry */
    bool plans_given, default_given, headers_given;
    bool callers;                      /* the file knows callers, who may have rates of their own */
    const struct rules_node *timezone; /* the file's; NULL: UTC */
    const struct rules_node *redis;    /* where the store elsewhere stands; NULL: there is none */
    struct weir_path_pattern *patterns; /* of the limit at hand, borrowed */
    uint32_t pattern_count;
    uint32_t globs_only;            /* limits that only a glob can find */
    uint32_t always;                /* checks that every request gets */
    struct rules_bounds *calendars; /* those of the quotas so far */
};

/* Adds a problem at a node. */
void rules_problem(struct rules_loader *loader, const struct rules_node *node, const char *format,
                   ...) __attribute__((format(printf, 3, 4)));

/* From the arena of the rules, or from scratch; NULL (and remembered) when memory is out. */
void *rules_keep(struct rules_loader *loader, size_t size);
void *rules_borrow(struct rules_loader *loader, size_t size);
const char *rules_keep_text(struct rules_loader *loader, const char *text, size_t size);
bool rules_keep_word(struct rules_loader *loader, struct rules_string_map *words, uint32_t scope,
                     const char *text, size_t size, uint32_t number);

/* A key that a mapping may have, and what it has. */
struct rules_field {
    const char *name;
    const struct rules_node *key, *value; /* NULL: absent */
};

/* Sorts a mapping into fields. Keys that are not among them are problems; `what` is what the
 * mapping is ("a limit"). Returns false when `node` is no mapping, a problem too. */
bool rules_fields(struct rules_loader *loader, const struct rules_node *node, const char *what,
                  struct rules_field *fields, uint32_t count);

/* Readers of scalars: false after a problem. `what` is the key's name. */
bool rules_read_text(struct rules_loader *loader, const struct rules_node *node, const char *what,
                     struct weir_bytes *text);
bool rules_read_bool(struct rules_loader *loader, const struct rules_node *node, const char *what,
                     bool *value);
/* "30s", at least `least_ns` and at most `most_ns`; `range` is how people write that. */
bool rules_read_duration(struct rules_loader *loader, const struct rules_node *node,
                         const char *what, uint64_t least_ns, uint64_t most_ns, const char *range,
                         uint64_t *value_ns);
bool rules_read_number(struct rules_loader *loader, const struct rules_node *node, const char *what,
                       uint64_t least, uint64_t most, uint64_t *value);
/* "80%", between `least` and `most` percent; `example` is what a message shows. */
bool rules_read_percent(struct rules_loader *loader, const struct rules_node *node,
                        const char *what, uint32_t least, uint32_t most, uint32_t example,
                        uint32_t *percent);
/* One of `words`: its index, or -1 after a problem. */
int rules_read_choice(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      const char *const *words, uint32_t count);

/* The items of a list, or the node itself where one value stands for a list of it. */
struct rules_items {
    const struct rules_node *const *items;
    uint32_t count;
};
struct rules_items rules_items_of(const struct rules_node *const *node);

/* Names of limits and plans: 1 to 64 of [a-z0-9._-]; false after a problem. */
bool rules_check_name(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      struct weir_bytes *name);

/* Interns the attributes that every file has; false when memory is out. */
bool rules_fixed_attributes(struct rules_loader *loader);

/* Whether an attribute is shown only as SHA-256: the sources of `identify`, which is read before
 * the limits, and the fields that carry credentials. */
bool rules_is_secret(const struct weir_rules *rules, uint16_t attribute);

/* The number of an attribute, made when it is new; -1 after a problem. */
int rules_intern_attribute(struct rules_loader *loader, const struct rules_node *node,
                           struct weir_bytes name);

/* The parts of the file; each takes the value of its key. */
void rules_load_server(struct rules_loader *loader, const struct rules_node *node);
void rules_load_state(struct rules_loader *loader, const struct rules_node *node);
/* `tls` of a listener. */
void rules_load_tls(struct rules_loader *loader, const struct rules_node *node,
                    struct weir_listener_tls *tls);
void rules_load_headers(struct rules_loader *loader, const struct rules_node *node);
void rules_load_paths(struct rules_loader *loader, const struct rules_node *node);
void rules_load_store(struct rules_loader *loader, const struct rules_node *node);
void rules_load_identities(struct rules_loader *loader, const struct rules_node *node);
void rules_load_webhook(struct rules_loader *loader, const struct rules_node *node);
void rules_load_envoy(struct rules_loader *loader, const struct rules_node *node);
void rules_load_idempotency(struct rules_loader *loader, const struct rules_node *node);
void rules_load_plans(struct rules_loader *loader, const struct rules_node *plans,
                      const struct rules_node *default_plan);
void rules_load_identify(struct rules_loader *loader, const struct rules_node *identify,
                         bool have_keys);
void rules_load_limits(struct rules_loader *loader, const struct rules_node *node);

/* `jwt`; its `keys` and `algorithms`, which may be NULL. */
void rules_load_jwt(struct rules_loader *loader, const struct rules_node *node);
void rules_load_jwt_keys(struct rules_loader *loader, const struct rules_node *keys,
                         const struct rules_node *algorithms);

/* The number of a claim ("sub", without "jwt."), made when it is new; -1 after a problem. */
int rules_intern_claim(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_bytes name);

/* The keys of a mapping that say which Redis: the first ones of its fields. */
enum rules_redis_field {
    RULES_REDIS_URL,
    RULES_REDIS_USER,
    RULES_REDIS_PASSWORD,
    RULES_REDIS_PASSWORD_FILE,
    RULES_REDIS_SENTINEL_USER,
    RULES_REDIS_SENTINEL_PASSWORD,
    RULES_REDIS_TLS,
    RULES_REDIS_FIELDS,
};

/* Names these fields; `url` is what the one with the URL is called there. */
void rules_name_redis(struct rules_field fields[RULES_REDIS_FIELDS], const char *url);

/* Reads them; `node` is the mapping. */
void rules_load_redis(struct rules_loader *loader, const struct rules_node *node,
                      const struct rules_field fields[RULES_REDIS_FIELDS],
                      struct weir_redis_access *access);

/* What the names of keys in Redis begin with. */
void rules_read_prefix(struct rules_loader *loader, const struct rules_node *node,
                       const char **prefix);

/* `cost` of a limit: a number, a table of routes, or an attribute. */
void rules_load_cost(struct rules_loader *loader, const struct rules_node *node,
                     struct rules_rule *rule);

/* Whether a method is written as methods are; false after a problem. */
bool rules_check_method(struct rules_loader *loader, const struct rules_node *node,
                        struct weir_bytes value);

/* Compiles a pattern of paths, kept, and adds it to the file's: *atom. Errors: as
 * weir_path_pattern_compile; WEIR_ERR_MEMORY, which is remembered. */
int rules_read_pattern(struct rules_loader *loader, struct weir_bytes text,
                       struct weir_path_pattern *pattern, uint32_t *atom,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

/* Parts of a limit. */
void rules_load_match(struct rules_loader *loader, const struct rules_node *node,
                      struct rules_rule *rule);
void rules_load_key(struct rules_loader *loader, const struct rules_node *key,
                    const struct rules_node *on_missing, struct rules_rule *rule);
void rules_load_rate(struct rules_loader *loader, const struct rules_node *limit,
                     struct rules_field *fields, struct rules_rule *rule);

/* `rollover`, in units at most `most`; false after a problem. */
struct rules_rollover;
bool rules_read_rollover(struct rules_loader *loader, const struct rules_node *node, uint64_t most,
                         struct rules_rollover *rollover);

/* The calendar and the rollover of a quota of spec->rate into `spec`; false after a problem. */
bool rules_load_quota(struct rules_loader *loader, const struct rules_field *fields, uint8_t unit,
                      struct weir_limit_spec *spec);

/* `candidate` of a limit, once its numbers are there. */
void rules_load_candidate(struct rules_loader *loader, const struct rules_field *fields,
                          struct rules_rule *rule);

/* `borrow`, `reserve` and `pool` of all limits, once they are there; `fields` has
 * RULES_LIMIT_FIELDS for each, `names` are for likenesses. */
void rules_load_loans(struct rules_loader *loader, const struct rules_field *fields,
                      const char *const *names, uint32_t name_count);

/* `mode`, `hash_tag` and `on_store_error` of a limit, once its key and its numbers are there; with
 * a store elsewhere, what its node decides alone. */
void rules_load_sharing(struct rules_loader *loader, const struct rules_field *fields,
                        struct rules_rule *rule);

/* `refund_on`, `refund_cap` and `debt` of a limit, once its numbers are there. */
void rules_load_settle(struct rules_loader *loader, const struct rules_field *fields,
                       struct rules_rule *rule);
/* `warn_at` of a limit, once its numbers and `shadow` are there. */
void rules_load_warn(struct rules_loader *loader, const struct rules_field *fields,
                     struct rules_rule *rule);
/* Compiles the limits of the records of warnings. Errors: none for the ranges that they have. */
int rules_make_warned(struct weir_rules *rules) __attribute__((warn_unused_result));

/* `timezone` of the file: of quotas and schedules that name none. */
void rules_load_timezone(struct rules_loader *loader, const struct rules_node *node);

/* `when` of a limit. */
void rules_load_when(struct rules_loader *loader, const struct rules_field *field,
                     struct rules_rule *rule);

/* What on_store_error: local needs, once all limits are there. */
void rules_check_nodes(struct rules_loader *loader);

/* `local`, `open` or `closed`: enum weir_store_failure. */
uint8_t rules_read_failure(struct rules_loader *loader, const struct rules_node *node);

/* The secret that a file holds, without the end of its line: 1 to RULES_SECRET_MAX bytes. `what` is
 * the key, `kind` what it holds ("a password"). Kept; NULL after a problem. */
#define RULES_SECRET_MAX 512 /* what the client's URL can hold: store/redis/client/url.h */
const char *rules_read_secret_file(struct rules_loader *loader, const struct rules_node *node,
                                   const char *what, const char *kind);

/* A file that the rules name: relative to their folder. Kept; NULL when memory is out. */
const char *rules_path_of(struct rules_loader *loader, struct weir_bytes name);

/* Reads a regular file from its beginning, `room` bytes at most. Returns how many, or -1, and
 * `reason` says why. */
long rules_read_file(const char *path, char *bytes, size_t room, struct weir_reason *reason);

/* "client.ip", "client.ip/64", "client.ip/64/24": 1 and the prefix lengths; 0: another attribute;
 * -1 after a problem. */
int rules_read_address_name(struct rules_loader *loader, const struct rules_node *node,
                            struct weir_bytes name, uint8_t *bits4, uint8_t *bits6);

/* Where the segment of a capture stands in each pattern of a limit's path; NULL after a problem. */
const int8_t *rules_capture(struct rules_loader *loader, const struct rules_node *node,
                            struct weir_bytes name);

/* The keys of a limit, in the order of rules_field arrays. */
enum rules_limit_field {
    RULES_LIMIT_NAME,
    RULES_LIMIT_MATCH,
    RULES_LIMIT_UNLESS,
    RULES_LIMIT_KEY,
    RULES_LIMIT_ALGORITHM,
    RULES_LIMIT_RATE,
    RULES_LIMIT_QUOTA,
    RULES_LIMIT_TIMEZONE,
    RULES_LIMIT_ANCHOR,
    RULES_LIMIT_ROLLOVER,
    RULES_LIMIT_BURST,
    RULES_LIMIT_LIMIT,
    RULES_LIMIT_LIFE,
    RULES_LIMIT_SEGMENTS,
    RULES_LIMIT_STRICT,
    RULES_LIMIT_QUEUE,
    RULES_LIMIT_COST,
    RULES_LIMIT_ON_MISSING,
    RULES_LIMIT_ON_DENY,
    RULES_LIMIT_ON_STORE_ERROR,
    RULES_LIMIT_SHADOW,
    RULES_LIMIT_MODE,
    RULES_LIMIT_HASH_TAG,
    RULES_LIMIT_REFUND_ON,
    RULES_LIMIT_REFUND_CAP,
    RULES_LIMIT_DEBT,
    RULES_LIMIT_WHEN,
    RULES_LIMIT_ENFORCE,
    RULES_LIMIT_WARN_AT,
    RULES_LIMIT_CANDIDATE,
    RULES_LIMIT_BORROW,
    RULES_LIMIT_RESERVE,
    RULES_LIMIT_POOL,
    RULES_LIMIT_FIELDS,
};

#endif
