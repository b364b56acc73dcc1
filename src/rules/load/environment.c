/* SPDX-License-Identifier: Apache-2.0 */
/* see environment.h */
#include "rules/load/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_SIZE 128 /* longer than any that is in use */

struct place {
    struct rules_loader *loader;
    const struct rules_node *node;
    const char *what;
    char *room; /* RULES_PLACE_MAX + 1 bytes */
    size_t used;
};

/* A problem at byte `at` of the value. A quoted value begins a column later; where it has several
 * lines, the place is its beginning. */
static bool refuse(const struct place *place, size_t at, const char *message)
{
    struct rules_node where = *place->node;
    if (!memchr(where.text, '\n', where.size))
        where.column += (uint32_t)at + !where.plain;
    rules_problem(place->loader, &where, "`%s`: %s", place->what, message);
    return false;
}

static bool append(struct place *place, const char *text, size_t size)
{
    if (size > RULES_PLACE_MAX - place->used) {
        rules_problem(place->loader, place->node, "`%s` has more than %d bytes with its variables",
                      place->what, RULES_PLACE_MAX);
        return false;
    }
    memcpy(place->room + place->used, text, size);
    place->used += size;
    return true;
}

static size_t name_size(const char *text, size_t size)
{
    size_t end = 0;
    while (end < size && (text[end] == '_' || (text[end] >= 'A' && text[end] <= 'Z') ||
                          (text[end] >= 'a' && text[end] <= 'z') ||
                          (end > 0 && text[end] >= '0' && text[end] <= '9')))
        end++;
    return end;
}

/* The variable whose `${` is at *at; *at becomes the end of its `}`. */
static bool expand_one(struct place *place, size_t *at)
{
    const char *text = place->node->text + *at + 2, *end;
    size_t left = place->node->size - *at - 2, size = name_size(text, left);
    const char *close = memchr(text, '}', left);
    char name[NAME_MAX_SIZE + 1], message[NAME_MAX_SIZE * 2 + 128];
    if (!close)
        return refuse(place, *at, "`${` has no `}`; for these characters alone write `$${`");
    bool given = size + 2 <= left && text[size] == ':' && text[size + 1] == '-';
    if (size == 0 || size > NAME_MAX_SIZE || (!given && text + size != close))
        return refuse(place, *at, "a variable is `${NAME}` or `${NAME:-default}`");
    memcpy(name, text, size);
    name[size] = '\0';
    const char *value = getenv(name);
    *at += 2 + (size_t)(close - text) + 1;
    if (value && *value)
        return append(place, value, strlen(value));
    end = text + size + 2;
    if (given)
        return append(place, end, (size_t)(close - end));
    snprintf(message, sizeof(message),
             "the environment has no variable %s; set it, or give a default: `${%s:-...}`", name,
             name);
    return refuse(place, *at - (size_t)(close - text) - 3, message);
}

bool rules_read_place(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      struct weir_bytes *text)
{
    struct place place = {loader, node, what, NULL, 0};
    if (!rules_read_text(loader, node, what, text))
        return false;
    if (!strstr(node->text, "${"))
        return true;
    place.room = rules_borrow(loader, RULES_PLACE_MAX + 1);
    if (!place.room)
        return false;
    for (size_t at = 0; at < node->size;) {
        const char *from = node->text + at;
        if (strncmp(from, "$${", 3) == 0) {
            if (!append(&place, "${", 2))
                return false;
            at += 3;
        } else if (strncmp(from, "${", 2) == 0) {
            if (!expand_one(&place, &at))
                return false;
        } else if (append(&place, from, 1)) {
            at++;
        } else {
            return false;
        }
    }
    place.room[place.used] = '\0';
    *text = (struct weir_bytes){place.room, place.used};
    return true;
}
