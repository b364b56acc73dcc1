/* SPDX-License-Identifier: Apache-2.0 */
/* see attributes.h */
#include "library/attributes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEADER_PREFIX "header."
#define NAME_MAX_BYTES 128 /* as names of attributes in a rules file */

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
    if (strlen(name) > NAME_MAX_BYTES)
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

/* Whether a request can say it: these are made by the rules, or by a certificate. */
static bool is_said(const char *name)
{
    return strcmp(name, "standing") != 0 && strcmp(name, "challenge") != 0 &&
           strcmp(name, "client.score") != 0 && strcmp(name, "client.class") != 0 &&
           strncmp(name, "jwt.", 4) != 0 && strncmp(name, "tls.client.", 11) != 0;
}

int weir_attributes_add_rules(struct weir_attributes *attributes, const struct weir_rules *rules)
{
    for (uint16_t i = 0; i < weir_rules_attribute_count(rules); i++) {
        const char *name = weir_rules_attribute_name(rules, i);
        int handle = is_said(name) ? weir_attributes_add(attributes, name) : 0;
        if (handle < 0)
            return handle;
    }
    return 0;
}

int weir_attributes_find(const struct weir_rules *rules, const char *name)
{
    size_t prefix = sizeof HEADER_PREFIX - 1;
    if (strncasecmp(name, HEADER_PREFIX, prefix) == 0)
        return weir_rules_header(rules, name + prefix, strlen(name + prefix));
    return weir_rules_attribute(rules, name, strlen(name));
}

void weir_attributes_map(const struct weir_attributes *attributes, const struct weir_rules *rules,
                         uint32_t generation, struct weir_attribute_map *map)
{
    map->count = attributes->count;
    map->generation = generation;
    for (unsigned i = 0; i < map->count; i++) {
        const char *name = attributes->names[i];
        map->attribute[i] = (int16_t)weir_attributes_find(rules, name);
        map->field[i] = strncmp(name, HEADER_PREFIX, sizeof HEADER_PREFIX - 1) == 0;
    }
}
