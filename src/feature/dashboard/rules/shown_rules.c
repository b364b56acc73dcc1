/* SPDX-License-Identifier: Apache-2.0 */
/* see shown_rules.h */
#include "feature/dashboard/rules/shown_rules.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "core/bytes.h"
#include "core/text/utf8.h"
#include "rules/rules.h"

#define DEPTH_MAX 64    /* deeper than the loader reads: RULES_DEPTH_MAX */
#define ANCHORS_MAX 256 /* more are not YAML that people write: nothing is shown */

/* A scalar, in characters, which is what libyaml counts. */
struct scalar {
    size_t begin, end;
    bool hidden, url, webhook;
};

struct anchor {
    char *name;
    size_t first, end; /* scalars of it */
    unsigned depth;    /* of the collection that is open; 0: it has ended */
};

struct level {
    bool map, at_value; /* at_value: the next node is the value of a key */
    bool hidden;        /* all below it */
    bool webhook;
    bool value_hidden, value_webhook; /* of the key before */
};

struct reader {
    const struct weir_rules *rules;
    struct scalar *scalars;
    size_t count, room;
    struct level levels[DEPTH_MAX + 1];
    unsigned depth;
    struct anchor anchors[ANCHORS_MAX];
    unsigned anchor_count;
};

/* --- Names ------------------------------------------------------------------------------------ */

static bool has_word(struct weir_bytes text, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= text.size; i++)
        if (strncasecmp(text.data + i, word, size) == 0)
            return true;
    return false;
}

static bool is_secret_name(struct weir_bytes name)
{
    static const char *const words[] = {"token",   "secret",    "passw",  "authorization",
                                        "cookie",  "bearer",    "apikey", "api-key",
                                        "api_key", "credential"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_word(name, words[i]))
            return true;
    return false;
}

/* `identify: [header.authorization]` names attributes; what is below a name is its value. */
static bool hides(const struct weir_rules *rules, struct weir_bytes name)
{
    return is_secret_name(name) || weir_rules_hides(rules, name);
}

/* --- Events ----------------------------------------------------------------------------------- */

/* Whether a node that begins now is secret, or in a webhook. */
static void place_of(const struct reader *reader, bool *hidden, bool *webhook)
{
    const struct level *level = &reader->levels[reader->depth];
    bool value = level->map && level->at_value;
    *hidden = level->hidden || (value && level->value_hidden);
    *webhook = level->webhook || (value && level->value_webhook);
}

/* A node has ended: after a key comes its value, and after a value a key. */
static void step(struct reader *reader)
{
    struct level *level = &reader->levels[reader->depth];
    if (level->map)
        level->at_value = !level->at_value;
}

static bool keep_anchor(struct reader *reader, const yaml_char_t *name, size_t first,
                        unsigned depth)
{
    struct anchor *anchor = &reader->anchors[reader->anchor_count];
    if (!name)
        return true;
    if (reader->anchor_count == ANCHORS_MAX || !(anchor->name = strdup((const char *)name)))
        return false;
    anchor->first = first;
    anchor->end = reader->count;
    anchor->depth = depth;
    reader->anchor_count++;
    return true;
}

static bool add_scalar(struct reader *reader, const yaml_event_t *event)
{
    struct level *level = &reader->levels[reader->depth];
    struct weir_bytes text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    struct scalar scalar = {event->start_mark.index, event->end_mark.index, false, false, false};
    if (reader->count == reader->room) {
        size_t room = 2 * reader->room + 256;
        struct scalar *grown = realloc(reader->scalars, room * sizeof *grown);
        if (!grown)
            return false;
        reader->scalars = grown;
        reader->room = room;
    }
    place_of(reader, &scalar.hidden, &scalar.webhook);
    scalar.url = memmem(text.data, text.size, "://", 3) != NULL;
    if (level->map && !level->at_value) {
        scalar.hidden = level->hidden;
        level->value_hidden = hides(reader->rules, text);
        level->value_webhook = has_word(text, "webhook") || has_word(text, "warn");
    }
    reader->scalars[reader->count++] = scalar;
    if (!keep_anchor(reader, event->data.scalar.anchor, reader->count - 1, 0))
        return false;
    step(reader);
    return true;
}

static bool open_node(struct reader *reader, const yaml_char_t *anchor, bool map)
{
    bool hidden, webhook;
    place_of(reader, &hidden, &webhook);
    if (reader->depth == DEPTH_MAX ||
        !keep_anchor(reader, anchor, reader->count, reader->depth + 1))
        return false;
    reader->levels[++reader->depth] =
        (struct level){.map = map, .hidden = hidden, .webhook = webhook};
    return true;
}

static void close_node(struct reader *reader)
{
    for (unsigned i = 0; i < reader->anchor_count; i++)
        if (reader->anchors[i].depth == reader->depth) {
            reader->anchors[i].end = reader->count;
            reader->anchors[i].depth = 0;
        }
    reader->depth--;
    step(reader);
}

/* What an alias brings to a secret place is secret where it stands, too. */
static void use_alias(struct reader *reader, const yaml_char_t *name)
{
    bool hidden, webhook;
    place_of(reader, &hidden, &webhook);
    for (unsigned i = reader->anchor_count; hidden && i-- > 0;)
        if (!strcmp(reader->anchors[i].name, (const char *)name))
            for (size_t s = reader->anchors[i].first; s < reader->anchors[i].end; s++)
                reader->scalars[s].hidden = true;
    step(reader);
}

static bool take(struct reader *reader, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return add_scalar(reader, event);
    case YAML_ALIAS_EVENT:
        use_alias(reader, event->data.alias.anchor);
        return true;
    case YAML_SEQUENCE_START_EVENT:
        return open_node(reader, event->data.sequence_start.anchor, false);
    case YAML_MAPPING_START_EVENT:
        return open_node(reader, event->data.mapping_start.anchor, true);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_node(reader);
        return true;
    default:
        return true;
    }
}

static bool read_scalars(struct reader *reader, const char *text, size_t size)
{
    yaml_parser_t parser;
    bool fine = yaml_parser_initialize(&parser), ends = false;
    if (!fine)
        return false;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    while (fine && !ends) {
        yaml_event_t event;
        fine = yaml_parser_parse(&parser, &event);
        if (!fine)
            break;
        ends = event.type == YAML_STREAM_END_EVENT;
        fine = take(reader, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return fine;
}

/* --- The text --------------------------------------------------------------------------------- */

struct writer {
    const char *text; /* all of it, from character `at` on */
    size_t at;
    char *out;
    size_t used;
};

static void put(struct writer *writer, const char *data, size_t size)
{
    memcpy(writer->out + writer->used, data, size);
    writer->used += size;
}

/* The bytes of the characters from where the writer is to `until`. */
static struct weir_bytes next(struct writer *writer, size_t until)
{
    const char *begin = writer->text;
    for (; writer->at < until && *writer->text; writer->at++)
        do
            writer->text++;
        while (((unsigned char)*writer->text & 0xc0) == 0x80);
    return (struct weir_bytes){begin, (size_t)(writer->text - begin)};
}

/* Line breaks stay. */
static void put_hidden(struct writer *writer, struct weir_bytes from)
{
    put(writer, "(hidden)", 8);
    for (size_t i = 0; i < from.size; i++)
        if (from.data[i] == '\n')
            put(writer, "\n", 1);
}

/* What is between scalars: syntax and comments. */
static void put_between(struct writer *writer, struct weir_bytes text)
{
    while (text.size > 0) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t line = end ? (size_t)(end - text.data) : text.size;
        const char *hash = memchr(text.data, '#', line);
        size_t before = hash ? (size_t)(hash - text.data) : line;
        struct weir_bytes comment = {text.data + before, line - before};
        put(writer, text.data, before);
        if (is_secret_name(comment) || memmem(comment.data, comment.size, "://", 3))
            put(writer, "# (hidden)", 10);
        else
            put(writer, comment.data, comment.size);
        if (end)
            put(writer, "\n", 1);
        text.data += line + (end != NULL);
        text.size -= line + (end != NULL);
    }
}

static void put_url(struct writer *writer, struct weir_bytes text, bool webhook)
{
    const char *host = (const char *)memmem(text.data, text.size, "://", 3) + 3;
    const char *end = text.data + text.size, *stop = host;
    while (stop < end && !strchr("/?#\"' \n", *stop))
        stop++;
    /* Several, or a password with such a character. */
    if (memmem(stop, (size_t)(end - stop), "://", 3) || memchr(stop, '@', (size_t)(end - stop))) {
        put_hidden(writer, text);
        return;
    }
    const char *at = memrchr(host, '@', (size_t)(stop - host));
    const char *rest = webhook ? stop : memchr(stop, '?', (size_t)(end - stop));
    put(writer, text.data, (size_t)(host - text.data));
    if (at)
        put_hidden(writer, (struct weir_bytes){host, (size_t)(at - host)});
    put(writer, at ? at : host, (size_t)((rest ? rest : end) - (at ? at : host)));
    if (rest && rest < end && *rest != '"' && *rest != '\'')
        put_hidden(writer, (struct weir_bytes){rest, (size_t)(end - rest)});
    else if (rest)
        put(writer, rest, (size_t)(end - rest));
}

/* Where a scalar is not written as it reads, its parts are not plain: "redis:\/\/:password\x40h".
 */
static bool has_escapes(struct weir_bytes text)
{
    return text.size > 0 && text.data[0] == '"' && memchr(text.data, '\\', text.size);
}

static void put_scalar(struct writer *writer, const struct scalar *scalar, struct weir_bytes text)
{
    if (scalar->hidden || (scalar->url && has_escapes(text)))
        put_hidden(writer, text);
    else if (scalar->url && memmem(text.data, text.size, "://", 3))
        put_url(writer, text, scalar->webhook);
    else
        put(writer, text.data, text.size);
}

/* Each scalar becomes at most two replacements longer, and each line a comment's. */
static size_t room_for(const char *text, size_t size, size_t scalars)
{
    size_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    return size + 16 * scalars + 16 * lines + 1;
}

static char *write_all(const struct reader *reader, const char *text, size_t size)
{
    struct writer writer = {.text = text, .out = malloc(room_for(text, size, reader->count))};
    if (!writer.out)
        return NULL;
    for (size_t i = 0; i < reader->count; i++) {
        put_between(&writer, next(&writer, reader->scalars[i].begin));
        put_scalar(&writer, &reader->scalars[i], next(&writer, reader->scalars[i].end));
    }
    put_between(&writer, next(&writer, SIZE_MAX));
    writer.out[writer.used] = '\0';
    return writer.out;
}

char *weir_shown_rules(const struct weir_rules *rules, const char *text, size_t size)
{
    struct reader *reader = NULL;
    char *shown = NULL;
    if (size <= WEIR_SHOWN_RULES_MAX && !memchr(text, '\0', size) && weir_utf8_valid(text, size))
        reader = calloc(1, sizeof *reader);
    char *copy = reader ? malloc(size + 1) : NULL;
    if (copy) {
        memcpy(copy, text, size);
        copy[size] = '\0';
        reader->rules = rules;
        if (read_scalars(reader, copy, size))
            shown = write_all(reader, copy, size);
    }
    free(copy);
    for (unsigned i = 0; reader && i < reader->anchor_count; i++)
        free(reader->anchors[i].name);
    if (reader)
        free(reader->scalars);
    free(reader);
    return shown;
}
