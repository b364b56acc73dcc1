/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of attributes: numbers by which a program gives values, whatever the rules of the moment
 * call them.
 *
 * A handle is the place of a name in a list that only grows. Each lane keeps which attribute of its
 * rules a handle is, and looks that up again after a change of rules or of the list.
 *
 * Memory: a name each; 72 KiB a lane, of which requests without repeated header
 * fields touch 8. Threads: the list is internally locked; a map belongs to its
 * lane.
 */
#ifndef WEIR_LIBRARY_ATTRIBUTES_H
#define WEIR_LIBRARY_ATTRIBUTES_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/embed.h>

#include "rules/rules.h"
#include "rules/source.h"

struct weir_attributes {
    pthread_mutex_t mutex;
    atomic_uint count;
    char *names[WEIR_HANDLES_MAX]; /* those below `count` do not change any more */
};

#define WEIR_ATTRIBUTE_NAME_MAX 128 /* bytes, as names of attributes in a rules file */

/* More than any server takes by its own defaults. */
#define WEIR_LIBRARY_JOINED_MAX (64 * 1024)

/* What handles mean under one generation of rules. */
struct weir_attribute_map {
    uint32_t generation, count;
    struct weir_attribute_source sources[WEIR_HANDLES_MAX];
    char joined[WEIR_LIBRARY_JOINED_MAX]; /* repeated header fields of the request at hand */
};

void weir_attributes_open(struct weir_attributes *attributes);
void weir_attributes_close(struct weir_attributes *attributes);

/* The handle of a name, which is added if it is new. Errors: as weir_attribute. */
int weir_attributes_add(struct weir_attributes *attributes, const char *name)
    __attribute__((warn_unused_result));

/* Adds what the rules read and a request can say. Errors: as weir_attribute. */
int weir_attributes_add_rules(struct weir_attributes *attributes, const struct weir_rules *rules)
    __attribute__((warn_unused_result));

/* Fills the map anew. */
void weir_attributes_map(const struct weir_attributes *attributes, const struct weir_rules *rules,
                         uint32_t generation, struct weir_attribute_map *map);

#endif
