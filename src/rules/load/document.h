/* SPDX-License-Identifier: Apache-2.0 */
/* A YAML document as a tree whose every node knows its line and column.
 *
 * libyaml reads the events; this builds the tree, because checking a file as a whole needs it
 * whole. Only what a rules file needs: one document of scalars, lists and mappings with scalar
 * keys. Anchors and aliases work (shared nodes, not copies); tags, merge keys and several documents
 * do not.
 *
 * Limits, against hostile files (a few aliases can expand to 10^9 nodes): the size of the
 * file, the depth, the number of nodes and the number of nodes that aliases expand to.
 */
#ifndef WEIR_RULES_LOAD_DOCUMENT_H
#define WEIR_RULES_LOAD_DOCUMENT_H

#include "rules/arena.h"
#include "rules/rules.h"

#define RULES_FILE_MAX (16 * 1024 * 1024) /* 100,000 limits of 160 bytes */
#define RULES_DEPTH_MAX 32                /* the grammar needs 6 */
#define RULES_FIRST_DEPTH_MAX 128         /* of rules_document_first: whatever others nest */
#define RULES_NODES_MAX 4000000           /* of a file of that size */
#define RULES_ALIASED_MAX 100000          /* nodes that all aliases together expand to */
#define RULES_ANCHORS_MAX 1000

enum rules_node_kind { RULES_SCALAR, RULES_LIST, RULES_MAP };

struct rules_node {
    uint8_t kind;
    bool plain;            /* a scalar that is not quoted */
    uint32_t line, column; /* from 1 */
    uint32_t weight;       /* nodes in it, itself included, aliases followed */
    const char *tag;       /* rules_document_first only: as written, resolved; NULL: none */
    uint32_t size;         /* SCALAR: bytes of text; LIST: items; MAP: keys and values, 2 each */
    union {
        const char *text;          /* NUL-terminated, may hold NULs */
        struct rules_node **items; /* MAP: key, value, key, value, … */
    };
};

/* Parses one document; *root and all below belong to `arena`. Returns 0, WEIR_ERR_RULES with at
 * least one problem added (*root is NULL, or the tree where only keys are given twice), or
 * WEIR_ERR_MEMORY. An empty document is a problem. */
int rules_document_parse(struct rules_node **root, struct rules_arena *arena, const char *file,
                         const char *text, size_t size, struct weir_problems *problems)
    __attribute__((warn_unused_result));

/* The same for files of others, which are written for a laxer reader: only the first document
 * counts, whatever follows it (*more: another document); tags stay with their nodes; keys may be
 * given twice or be no words; an empty text is no problem (*root is NULL). Problems are worded as
 * gopkg.in/yaml.v2 does. */
int rules_document_first(struct rules_node **root, struct rules_arena *arena, const char *file,
                         const char *text, size_t size, bool *more, struct weir_problems *problems)
    __attribute__((warn_unused_result));

/* Where and why libyaml stopped, as a problem. */
struct yaml_parser_s;
int rules_document_syntax(const struct yaml_parser_s *parser, const char *file, const char *text,
                          size_t size, struct weir_problems *problems);

#endif
