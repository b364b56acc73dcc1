/* SPDX-License-Identifier: Apache-2.0 */
/* The leaf of the loader: its context, reading YAML nodes, reporting problems.
 *
 * Every function of the loader reports what is wrong with its part of the file and continues, so
 * that one run finds all problems. A value that cannot be read keeps its default. Running out of
 * memory is remembered in the loader and ends the load.
 *
 * Threads: one loader per load, used by one thread.
 */
#ifndef WEIR_RULES_LOAD_FIELDS_H
#define WEIR_RULES_LOAD_FIELDS_H

#include "rules/compiled.h"
#include "rules/load/document.h"
#include "rules/problems.h"

/* The rate of one limit in one plan. */
struct rules_plan_entry {
    const struct rules_node *name, *value;
    bool used; /* a limit takes its rate from here */
};

struct rules_plan {
    const struct rules_node *name;
    struct rules_plan_entry *entries;
    uint32_t entry_count;
};

struct rules_bounds;

struct rules_loader {
    struct weir_rules *rules;
    struct weir_problems *problems;
    struct rules_arena scratch; /* the tree, and what only the load needs */
    const char *file, *folder;
    bool no_memory;
    uint32_t wrong; /* problems of this load */

    struct rules_plan *plans;            /* as many as rules->plan_count */
    struct rules_string_map plan_limits; /* (plan, limit) -> entry */
    bool plans_given, default_given, headers_given;
    bool standing;       /* the file has the section `standing` */
    bool classes_ranked; /* the classes of `priority` are given from more to less important */
    bool callers;        /* the file has callers, who may have overrides */
    bool challenge;      /* the file has the section `challenge` */
    bool score;          /* the file has the section `score` */
    bool sticky;         /* the file has the section `sticky` */
    const struct rules_key_part *home; /* `by` of `sticky` in the first limit that has a home */
    bool scoring; /* the section `score` is being loaded: its signals cannot read the score */
    const struct rules_node *difficulty; /* of `challenge`, where it is one for each class */
    const struct rules_node *timezone;   /* of the file; NULL: UTC */
    const struct rules_node *redis;      /* the key `redis` of `store`; NULL: no shared store */
    struct weir_path_pattern *patterns;  /* of the limit that is being loaded, in scratch */
    uint32_t pattern_count;
    uint32_t globs_only;            /* limits that only a glob can find */
    uint32_t always;                /* checks that every request gets */
    struct rules_bounds *calendars; /* of the quotas loaded so far */
};

/* Adds a problem at a node. */
void rules_problem(struct rules_loader *loader, const struct rules_node *node, const char *format,
                   ...) __attribute__((format(printf, 3, 4)));

/* The same for what is deprecated: an error from the next but one release on (WEIR_REFUSED_FROM),
 * taken until then. Returns whether it is refused now. */
bool rules_deprecated(struct rules_loader *loader, const struct rules_node *node,
                      const char *format, ...) __attribute__((format(printf, 3, 4)));

/* How the problem that was reported last can be fixed. */
void rules_fix(struct rules_loader *loader, enum weir_fix fix, struct weir_bytes text, uint32_t at);

/* --- Memory ----------------------------------------------------------------------------------- */

/* Zeroed memory from the arena of the rules (keep), or from scratch (borrow). NULL when memory is
 * out, which is remembered. */
void *rules_keep(struct rules_loader *loader, size_t size);
void *rules_borrow(struct rules_loader *loader, size_t size);

/* A NUL-terminated copy in the arena of the rules. */
const char *rules_keep_text(struct rules_loader *loader, const char *text, size_t size);

/* Adds a word to a map; false when memory is out. */
bool rules_keep_word(struct rules_loader *loader, struct rules_string_map *words, uint32_t scope,
                     const char *text, size_t size, uint32_t number);

/* --- Mappings and lists ----------------------------------------------------------------------- */

#define RULES_KEYWORDS_MAX 64 /* more than any mapping of the grammar has */

/* A key that a mapping may have, and its value. */
struct rules_field {
    const char *name;
    const struct rules_node *key, *value; /* NULL: absent */
};

/* Finds the fields of a mapping. Unknown keys are problems; `what` names the mapping in them ("a
 * limit"). Returns false, after a problem, when `node` is not a mapping. */
bool rules_fields(struct rules_loader *loader, const struct rules_node *node, const char *what,
                  struct rules_field *fields, uint32_t count);

/* The items of a list; a scalar counts as a list of one item. */
struct rules_items {
    const struct rules_node *const *items;
    uint32_t count;
};
struct rules_items rules_items_of(const struct rules_node *const *node);

/* --- Scalars ---------------------------------------------------------------------------------- */

/* All return false after a problem; `what` is the name of the key. */
bool rules_read_text(struct rules_loader *loader, const struct rules_node *node, const char *what,
                     struct weir_bytes *text);
bool rules_read_bool(struct rules_loader *loader, const struct rules_node *node, const char *what,
                     bool *value);
/* "30s", from `least_ns` to `most_ns`; `range` is that range as the message shows it. */
bool rules_read_duration(struct rules_loader *loader, const struct rules_node *node,
                         const char *what, uint64_t least_ns, uint64_t most_ns, const char *range,
                         uint64_t *value_ns);
bool rules_read_number(struct rules_loader *loader, const struct rules_node *node, const char *what,
                       uint64_t least, uint64_t most, uint64_t *value);
/* "80%", from `least` to `most` percent; `example` is the percentage that the message shows. */
bool rules_read_percent(struct rules_loader *loader, const struct rules_node *node,
                        const char *what, uint32_t least, uint32_t most, uint32_t example,
                        uint32_t *percent);
/* The index of one of `words`; -1 after a problem. */
int rules_read_choice(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      const char *const *words, uint32_t count);

/* "404", or "5xx" for a class: adds them to a set of statuses, a bit for each of 100 to 599. */
#define RULES_STATUSES_BYTES 63
bool rules_read_status(struct rules_loader *loader, const struct rules_node *node, const char *what,
                       uint8_t statuses[RULES_STATUSES_BYTES]);

/* False after a problem: an address where a zone (`%eth0`) would say more than weir can tell apart,
 * so that cutting it off would trust, exempt or listen more widely than is written. */
bool rules_check_zone(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      struct weir_bytes address);

/* The name of a limit or a plan: 1 to RULES_NAME_MAX of [a-z0-9._-]. */
bool rules_check_name(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      struct weir_bytes *name);

/* --- Files that the rules name ---------------------------------------------------------------- */

/* The path of a file; a relative one starts at the folder of the rules file. Kept; NULL when memory
 * is out. */
const char *rules_path_of(struct rules_loader *loader, struct weir_bytes name);

/* The same for a file that earlier versions looked for in the working directory: one that is there,
 * and not in the folder of the rules file, is deprecated and still used. `what` is the key. */
const char *rules_moved_path_of(struct rules_loader *loader, const struct rules_node *node,
                                const char *what, struct weir_bytes name);

/* The secret in a file, without its line end: 1 to RULES_SECRET_MAX bytes. `what` is the key,
 * `kind` the content of the file ("a password"). Kept; NULL after a problem. */
#define RULES_SECRET_MAX                                                                           \
    512 /* the most that the client's URL can hold: store/redis/client/url.h                       \
         */
const char *rules_read_secret_file(struct rules_loader *loader, const struct rules_node *node,
                                   const char *what, const char *kind);

/* Adds a file that a secret was read from to the settings' `secret_files`; both texts stay. */
void rules_note_secret_file(struct rules_loader *loader, const char *key, const char *path);

#endif
