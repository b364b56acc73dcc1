/* SPDX-License-Identifier: Apache-2.0 */
/* see attributes.h */
#include "library/attributes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEADER_PREFIX "header."

void weir_attributes_open(struct weir_attributes *attributes)
{
    memset(attributes, 0, sizeof *attributes);
    pthread_mutex_init(&attributes->mutex, NULL);
}

void weir_attributes_close(struct weir_attributes *attributes)
{
    for (unsigned i = 0; i < attributes->count; i++)
        free(attributes->names[i]);
    pthread_mutex_destroy(&attributes->mutex);
}

/* Header fields have names of any case. */
static char *copy_name(const char *name)
{
    char *copy = strdup(name);
    if (copy && strncasecmp(copy, HEADER_PREFIX, sizeof HEADER_PREFIX - 1) == 0)
        for (char *at = copy; *at; at++)
            *at = (char)tolower((unsigned char)*at);
    return copy;
}

static int find(const struct weir_attributes *attributes, const char *name)
{
    for (unsigned i = 0; i < attributes->count; i++)
        if (strcmp(attributes->names[i], name) == 0)
            return (int)i;
    return -1;
}

int weir_attributes_add(struct weir_attributes *attributes, const char *name)
{
    if (strlen(name) > WEIR_ATTRIBUTE_NAME_MAX)
        return WEIR_ERR_TOO_LARGE;
    char *copy = copy_name(name);
    if (!copy)
        return WEIR_ERR_MEMORY;
    pthread_mutex_lock(&attributes->mutex);
    int handle = find(attributes, copy);
    if (handle < 0 && attributes->count < WEIR_HANDLES_MAX) {
        handle = (int)attributes->count;
        attributes->names[handle] = copy;
        attributes->count++;
        copy = NULL;
    }
    pthread_mutex_unlock(&attributes->mutex);
    free(copy);
    return handle >= 0 ? handle : WEIR_ERR_FULL;
}

/* Whether a program has it to say: all but what the rules make and what a connection shows. */
static bool is_said(const struct weir_rules *rules, const char *name)
{
    return weir_source_allows(rules, weir_rules_source(rules, name, strlen(name)),
                              WEIR_TRUST_PROXY);
}

int weir_attributes_add_rules(struct weir_attributes *attributes, const struct weir_rules *rules)
{
    for (uint16_t i = 0; i < weir_rules_attribute_count(rules); i++) {
        const char *name = weir_rules_attribute_name(rules, i);
        int handle = is_said(rules, name) ? weir_attributes_add(attributes, name) : 0;
        if (handle < 0)
            return handle;
    }
    return 0;
}

void weir_attributes_map(const struct weir_attributes *attributes, const struct weir_rules *rules,
                         uint32_t generation, struct weir_attribute_map *map)
{
    map->count = attributes->count;
    map->generation = generation;
    for (unsigned i = 0; i < map->count; i++) {
        const char *name = attributes->names[i];
        map->sources[i] = weir_rules_source(rules, name, strlen(name));
    }
}
