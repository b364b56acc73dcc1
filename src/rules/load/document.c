/* SPDX-License-Identifier: Apache-2.0 */
/* see document.h */
#include "rules/load/document.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "rules/problems.h"

struct anchor {
    char *name;
    struct rules_node *node; /* NULL while it is being built */
};

struct frame {
    struct rules_node *node;
    uint32_t start;  /* of its items on the stack */
    uint32_t anchor; /* index + 1; 0: none */
};

struct builder {
    struct rules_arena *arena;
    const char *file;
    struct weir_problems *problems;
    struct rules_node *root;
    struct rules_node **stack; /* finished items of all open nodes */
    uint32_t stack_size, stack_room;
    struct frame frames[RULES_FIRST_DEPTH_MAX];
    uint32_t depth, depth_max;
    uint64_t nodes, aliased;
    struct anchor *anchors;
    uint32_t anchor_count;
    bool bad_keys;
    bool first; /* rules_document_first */
    bool more;  /* then: another document follows */
};

static int fail(struct builder *builder, const yaml_mark_t *mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(struct builder *builder, const yaml_mark_t *mark, const char *format, ...)
{
    char message[512];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof(message), format, values);
    va_end(values);
    bool kept = rules_problem_add(builder->problems, builder->file, (uint32_t)mark->line + 1,
                                  (uint32_t)mark->column + 1, message);
    return kept ? WEIR_ERR_RULES : WEIR_ERR_MEMORY;
}

static int push(struct builder *builder, struct rules_node *node)
{
    if (builder->depth == 0) {
        builder->root = node;
        return 0;
    }
    if (builder->stack_size == builder->stack_room) {
        uint32_t room = builder->stack_room == 0 ? 256 : builder->stack_room * 2;
        struct rules_node **stack = realloc(builder->stack, room * sizeof(*stack));
        if (!stack)
            return WEIR_ERR_MEMORY;
        builder->stack = stack;
        builder->stack_room = room;
    }
    builder->stack[builder->stack_size++] = node;
    return 0;
}

static struct rules_node *new_node(struct builder *builder, uint8_t kind, const yaml_mark_t *mark)
{
    struct rules_node *node = rules_arena_alloc(builder->arena, sizeof(*node));
    if (node) {
        node->kind = kind;
        node->line = (uint32_t)mark->line + 1;
        node->column = (uint32_t)mark->column + 1;
        node->weight = 1;
    }
    builder->nodes++;
    return node;
}

/* Remembers an anchor; *index is its number from 1, 0 without a name. */
static int add_anchor(struct builder *builder, const yaml_char_t *name, const yaml_mark_t *mark,
                      uint32_t *index)
{
    *index = 0;
    if (!name)
        return 0;
    if (builder->anchor_count == RULES_ANCHORS_MAX)
        return fail(builder, mark, "more than %d anchors", RULES_ANCHORS_MAX);
    if (!builder->anchors) {
        builder->anchors = calloc(RULES_ANCHORS_MAX, sizeof(*builder->anchors));
        if (!builder->anchors)
            return WEIR_ERR_MEMORY;
    }
    char *copy = rules_arena_copy(builder->arena, (const char *)name, strlen((const char *)name));
    if (!copy)
        return WEIR_ERR_MEMORY;
    builder->anchors[builder->anchor_count].name = copy;
    *index = ++builder->anchor_count;
    return 0;
}

static int add_alias(struct builder *builder, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    struct rules_quote quote;
    for (uint32_t i = builder->anchor_count; i > 0; i--) {
        struct anchor *anchor = &builder->anchors[i - 1];
        if (strcmp(anchor->name, name) != 0)
            continue;
        if (!anchor->node) {
            return builder->first
                       ? fail(builder, &event->start_mark,
                              "yaml: anchor '%s' value contains itself", name)
                       : fail(builder, &event->start_mark, "alias %s is inside its own anchor",
                              rules_quote(&quote, name, strlen(name)));
        }
        builder->aliased += anchor->node->weight;
        if (builder->aliased > RULES_ALIASED_MAX && builder->first)
            return fail(builder, &event->start_mark, "yaml: document contains excessive aliasing");
        if (builder->aliased > RULES_ALIASED_MAX) {
            return fail(builder, &event->start_mark, "aliases expand to more than %d values",
                        RULES_ALIASED_MAX);
        }
        return push(builder, anchor->node);
    }
    return builder->first
               ? fail(builder, &event->start_mark, "yaml: unknown anchor '%s' referenced", name)
               : fail(builder, &event->start_mark, "alias %s has no anchor before it",
                      rules_quote(&quote, name, strlen(name)));
}

static int check_tag(struct builder *builder, const yaml_char_t *tag, const yaml_mark_t *mark)
{
    if (!tag || builder->first)
        return 0;
    struct rules_quote quote;
    return fail(builder, mark, "tag %s: a rules file has no tags",
                rules_quote(&quote, (const char *)tag, strlen((const char *)tag)));
}

/* Keeps a tag where tags mean something; false when memory is out. */
static bool keep_tag(struct builder *builder, struct rules_node *node, const yaml_char_t *tag)
{
    if (!tag)
        return true;
    node->tag = rules_arena_copy(builder->arena, (const char *)tag, strlen((const char *)tag));
    return node->tag;
}

static int add_scalar(struct builder *builder, const yaml_event_t *event)
{
    int err = check_tag(builder, event->data.scalar.tag, &event->start_mark);
    uint32_t anchor = 0;
    if (err == 0)
        err = add_anchor(builder, event->data.scalar.anchor, &event->start_mark, &anchor);
    if (err < 0)
        return err;
    struct rules_node *node = new_node(builder, RULES_SCALAR, &event->start_mark);
    if (!node)
        return WEIR_ERR_MEMORY;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->size = (uint32_t)event->data.scalar.length;
    node->text = rules_arena_copy(builder->arena, (const char *)event->data.scalar.value,
                                  event->data.scalar.length);
    if (!node->text || !keep_tag(builder, node, event->data.scalar.tag))
        return WEIR_ERR_MEMORY;
    if (anchor > 0)
        builder->anchors[anchor - 1].node = node;
    return push(builder, node);
}

static int open_node(struct builder *builder, const yaml_event_t *event, uint8_t kind)
{
    bool list = kind == RULES_LIST;
    const yaml_char_t *tag = list ? event->data.sequence_start.tag : event->data.mapping_start.tag;
    const yaml_char_t *name =
        list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor;
    int err = check_tag(builder, tag, &event->start_mark);
    if (err < 0)
        return err;
    if (builder->depth == builder->depth_max)
        return fail(builder, &event->start_mark, "nested deeper than %u", builder->depth_max);
    struct frame *frame = &builder->frames[builder->depth];
    err = add_anchor(builder, name, &event->start_mark, &frame->anchor);
    if (err < 0)
        return err;
    frame->node = new_node(builder, kind, &event->start_mark);
    if (!frame->node || !keep_tag(builder, frame->node, tag))
        return WEIR_ERR_MEMORY;
    frame->start = builder->stack_size;
    builder->depth++;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct rules_node *x = *(struct rules_node *const *)a;
    const struct rules_node *y = *(struct rules_node *const *)b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    int order = memcmp(x->text, y->text, x->size);
    if (order != 0)
        return order;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

static int key_problem(struct builder *builder, const struct rules_node *key, const char *message)
{
    builder->bad_keys = true;
    bool kept =
        rules_problem_add(builder->problems, builder->file, key->line, key->column, message);
    return kept ? 0 : WEIR_ERR_MEMORY;
}

/* Keys must be scalars, each once: sorted, equal ones stand side by side. */
static int check_keys(struct builder *builder, const struct rules_node *map)
{
    uint32_t count = map->size / 2, scalars = 0;
    struct rules_node **keys = malloc((count + 1) * sizeof(struct rules_node *));
    if (!keys)
        return WEIR_ERR_MEMORY;
    int err = 0;
    for (uint32_t i = 0; i < count && err == 0; i++)
        if (map->items[2 * i]->kind == RULES_SCALAR)
            keys[scalars++] = map->items[2 * i];
        else
            err = key_problem(builder, map->items[2 * i], "a key must be a word");
    qsort(keys, scalars, sizeof(struct rules_node *), compare_keys);
    for (uint32_t i = 1; i < scalars && err == 0; i++) {
        const struct rules_node *a = keys[i - 1], *b = keys[i];
        if (a->size == b->size && memcmp(a->text, b->text, a->size) == 0) {
            char message[RULES_QUOTE_MAX + 64];
            struct rules_quote quote;
            snprintf(message, sizeof(message), "%s is given twice; first in line %u",
                     rules_quote(&quote, b->text, b->size), a->line);
            err = key_problem(builder, b, message);
        }
    }
    free(keys);
    return err;
}

static int close_node(struct builder *builder)
{
    struct frame *frame = &builder->frames[--builder->depth];
    struct rules_node *node = frame->node;
    assert(node); /* libyaml gives an end for each start */
    uint32_t count = builder->stack_size - frame->start;
    node->size = count;
    node->items = rules_arena_alloc(builder->arena, (count + 1) * sizeof(struct rules_node *));
    if (!node->items)
        return WEIR_ERR_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        node->items[i] = builder->stack[frame->start + i];
        node->weight += node->items[i]->weight;
    }
    builder->stack_size = frame->start;
    if (frame->anchor > 0)
        builder->anchors[frame->anchor - 1].node = node;
    if (node->kind == RULES_MAP && !builder->first) {
        int err = check_keys(builder, node);
        if (err < 0)
            return err;
    }
    return push(builder, node);
}

static int take_event(struct builder *builder, const yaml_event_t *event)
{
    if (builder->nodes > RULES_NODES_MAX)
        return fail(builder, &event->start_mark, "more than %d values", RULES_NODES_MAX);
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return !builder->root
                   ? 0
                   : fail(builder, &event->start_mark, "a second document; a file has one");
    case YAML_ALIAS_EVENT:
        return add_alias(builder, event);
    case YAML_SCALAR_EVENT:
        return add_scalar(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(builder, event, RULES_LIST);
    case YAML_MAPPING_START_EVENT:
        return open_node(builder, event, RULES_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_node(builder);
    default:
        return 0;
    }
}

int rules_document_syntax(const struct yaml_parser_s *parser, const char *file, const char *text,
                          size_t size, struct weir_problems *problems)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return WEIR_ERR_MEMORY;
    size_t line = parser->problem_mark.line + 1, column = parser->problem_mark.column + 1;
    if (parser->error == YAML_READER_ERROR) {
        /* The reader runs ahead of the marks and tells only a byte. */
        line = column = 1;
        for (size_t i = 0; i < size && i < parser->problem_offset; i++) {
            column = text[i] == '\n' ? 1 : column + 1;
            line += text[i] == '\n';
        }
    }
    char message[256];
    snprintf(message, sizeof(message), "not valid YAML: %s%s%s",
             parser->problem ? parser->problem : "unreadable", parser->context ? ", " : "",
             parser->context ? parser->context : "");
    bool kept = rules_problem_add(problems, file, (uint32_t)line, (uint32_t)column, message);
    return kept ? WEIR_ERR_RULES : WEIR_ERR_MEMORY;
}

/* The same in the words of gopkg.in/yaml.v2, whose lines are those of the scanner's position. */
static int first_syntax(struct builder *builder, const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return WEIR_ERR_MEMORY;
    const char *problem =
        parser->problem ? parser->problem : "unknown problem parsing YAML content";
    size_t line = parser->problem_mark.line;
    if (line != 0)
        line += parser->error == YAML_SCANNER_ERROR;
    else
        line = parser->context_mark.line;
    return line != 0 ? fail(builder, &parser->problem_mark, "yaml: line %zu: %s", line, problem)
                     : fail(builder, &parser->problem_mark, "yaml: %s", problem);
}

/* Whether a document follows; what cannot be read is none. */
static bool begins_document(yaml_parser_t *parser)
{
    yaml_event_t event;
    if (!yaml_parser_parse(parser, &event))
        return false;
    bool begins = event.type == YAML_DOCUMENT_START_EVENT;
    yaml_event_delete(&event);
    return begins;
}

static int read_events(struct builder *builder, yaml_parser_t *parser, const char *text,
                       size_t size)
{
    for (bool done = false; !done;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            return builder->first ? first_syntax(builder, parser)
                                  : rules_document_syntax(parser, builder->file, text, size,
                                                          builder->problems);
        }
        int err = take_event(builder, &event);
        done = event.type == YAML_STREAM_END_EVENT ||
               (builder->first && event.type == YAML_DOCUMENT_END_EVENT);
        yaml_event_delete(&event);
        if (err < 0)
            return err;
    }
    if (builder->first)
        builder->more = begins_document(parser);
    return 0;
}

static int build(struct builder *builder, const char *text, size_t size)
{
    yaml_mark_t start = {0};
    if (size > RULES_FILE_MAX)
        return fail(builder, &start, "the file is larger than %d MiB", RULES_FILE_MAX >> 20);
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return WEIR_ERR_MEMORY;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    int err = read_events(builder, &parser, text, size);
    yaml_parser_delete(&parser);
    free(builder->stack);
    free(builder->anchors);
    return err;
}

int rules_document_parse(struct rules_node **root, struct rules_arena *arena, const char *file,
                         const char *text, size_t size, struct weir_problems *problems)
{
    *root = NULL;
    struct builder builder = {
        .arena = arena, .file = file, .problems = problems, .depth_max = RULES_DEPTH_MAX};
    int err = build(&builder, text, size);
    if (err < 0)
        return err;
    if (!builder.root)
        return fail(&builder, &(yaml_mark_t){0}, "the file is empty");
    *root = builder.root;
    return builder.bad_keys ? WEIR_ERR_RULES : 0;
}

int rules_document_first(struct rules_node **root, struct rules_arena *arena, const char *file,
                         const char *text, size_t size, bool *more, struct weir_problems *problems)
{
    *root = NULL;
    struct builder builder = {.arena = arena,
                              .file = file,
                              .problems = problems,
                              .depth_max = RULES_FIRST_DEPTH_MAX,
                              .first = true};
    int err = build(&builder, text, size);
    *more = builder.more;
    if (err == 0)
        *root = builder.root;
    return err;
}
