/* SPDX-License-Identifier: Apache-2.0 */
/* see pattern.h */
#include "rules/match/pattern.h"

#include <stdio.h>
#include <string.h>

#include "rules/match/path.h"
#include "rules/problems.h"

static int refuse(struct weir_reason *reason, struct weir_bytes text, const char *what)
{
    struct rules_quote quote;
    if (reason) {
        snprintf(reason->text, sizeof(reason->text), "path pattern %.120s: %s",
                 rules_quote(&quote, text.data, text.size), what);
    }
    return WEIR_ERR_SYNTAX;
}

struct compiler {
    struct weir_path_pattern *pattern;
    struct weir_bytes text;
    unsigned options;
    char *room;
    size_t used;
    struct weir_reason *reason;
};

static bool name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '-';
}

static int add_name(struct compiler *compiler, struct weir_path_segment *segment, const char *name,
                    size_t size)
{
    bool valid = size > 0;
    for (size_t i = 0; i < size; i++)
        valid = valid && name_byte(name[i]);
    if (!valid) {
        return refuse(compiler->reason, compiler->text,
                      "a `:` needs a name of letters, digits, `_` or `-`");
    }
    const struct weir_path_pattern *pattern = compiler->pattern;
    for (uint8_t i = 0; i < pattern->count; i++) {
        const struct weir_bytes *other = &pattern->segments[i].text;
        if (pattern->segments[i].kind == WEIR_SEGMENT_ANY && other->size == size &&
            memcmp(other->data, name, size) == 0)
            return refuse(compiler->reason, compiler->text, "a name is given twice");
    }
    if (size > WEIR_PATH_MAX - compiler->used)
        return refuse(compiler->reason, compiler->text, "too long");
    segment->kind = WEIR_SEGMENT_ANY;
    segment->text = (struct weir_bytes){compiler->room + compiler->used, size};
    memcpy(compiler->room + compiler->used, name, size);
    compiler->used += size;
    return 0;
}

/* Whether a segment has parameters: a ";", as it is or encoded. */
static bool has_parameters(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool encoded =
            size - i >= 3 && name[i] == '%' && name[i + 1] == '3' && (name[i + 2] | 0x20) == 'b';
        if (name[i] == ';' || encoded)
            return true;
    }
    return false;
}

/* `slashed` is the segment with the slash before it. */
static int add_literal(struct compiler *compiler, struct weir_path_segment *segment,
                       struct weir_bytes slashed)
{
    const char *name = slashed.data + 1;
    size_t size = slashed.size - 1;
    if (size > 0 && memchr(name, '*', size)) {
        return refuse(compiler->reason, compiler->text,
                      "`*` matches one whole segment; `**`, only at the end, matches the rest");
    }
    if (size > 0 && (memchr(name, '?', size) || memchr(name, '#', size))) {
        return refuse(compiler->reason, compiler->text,
                      "remove the query; queries are cut off before matching");
    }
    if ((compiler->options & WEIR_PATH_KEEP_PARAMETERS) == 0 && has_parameters(name, size)) {
        return refuse(compiler->reason, compiler->text,
                      "path parameters (`;…`) are cut off before matching; remove them, or set "
                      "`paths: { parameters: keep }`");
    }
    if (size > 1 && name[0] == '{' && name[size - 1] == '}')
        return refuse(compiler->reason, compiler->text, "write `:name`, not `{name}`");
    for (size_t i = 0; i < size; i++) { /* in paths they stand encoded only (RFC 3986) */
        if (name[i] != '\0' && strchr("[]{}^|\\", name[i])) {
            return refuse(
                compiler->reason, compiler->text,
                "no regular expressions: `:name` or `*` matches one segment, `**` the rest");
        }
    }
    struct weir_bytes normal;
    int err =
        weir_path_normalise(&normal, slashed, compiler->options, compiler->room + compiler->used,
                            WEIR_PATH_MAX - compiler->used, NULL);
    if (err < 0) {
        return refuse(compiler->reason, compiler->text,
                      err == WEIR_ERR_TOO_LARGE ? "too long" : "a bad percent-encoding");
    }
    if (size > 0 && normal.size == 1)
        return refuse(compiler->reason, compiler->text, "a dot segment; no path has one");
    char *kept = compiler->room + compiler->used;
    if (normal.data != kept) {
        if (normal.size > WEIR_PATH_MAX - compiler->used)
            return refuse(compiler->reason, compiler->text, "too long");
        memcpy(kept, normal.data, normal.size);
    }
    compiler->used += normal.size;
    segment->kind = WEIR_SEGMENT_LITERAL;
    segment->text = (struct weir_bytes){kept + 1, normal.size - 1};
    return 0;
}

static int add_segment(struct compiler *compiler, struct weir_bytes slashed, bool last)
{
    struct weir_path_pattern *pattern = compiler->pattern;
    const char *text = slashed.data + 1;
    size_t size = slashed.size - 1;
    if (pattern->count == WEIR_PATTERN_SEGMENTS_MAX)
        return refuse(compiler->reason, compiler->text, "more than 32 segments");
    if (size == 0 && !last)
        return refuse(compiler->reason, compiler->text, "an empty segment; slashes are merged");
    struct weir_path_segment *segment = &pattern->segments[pattern->count];
    memset(segment, 0, sizeof(*segment));
    int err = 0;
    if (size == 2 && memcmp(text, "**", 2) == 0) {
        segment->kind = WEIR_SEGMENT_REST;
        err =
            last ? 0 : refuse(compiler->reason, compiler->text, "`**` is only allowed at the end");
    } else if (size == 1 && *text == '*') {
        segment->kind = WEIR_SEGMENT_ANY;
    } else if (size > 0 && *text == ':') {
        err = add_name(compiler, segment, text + 1, size - 1);
    } else {
        err = add_literal(compiler, segment, slashed);
    }
    pattern->count++;
    return err;
}

int weir_path_pattern_compile(struct weir_path_pattern *pattern, struct weir_bytes text,
                              unsigned options, char *room, size_t *used,
                              struct weir_reason *reason)
{
    struct compiler compiler = {
        .pattern = pattern, .text = text, .options = options, .room = room, .reason = reason};
    pattern->count = 0;
    *used = 0;
    if (text.size == 0 || text.data[0] != '/')
        return refuse(reason, text, "must begin with `/`");
    if (text.size > WEIR_PATH_MAX)
        return refuse(reason, text, "too long");
    const char *at = text.data, *end = text.data + text.size;
    while (at < end) {
        const char *slash = memchr(at + 1, '/', (size_t)(end - at) - 1);
        const char *stop = slash ? slash : end;
        struct weir_bytes slashed = {at, (size_t)(stop - at)};
        int err = add_segment(&compiler, slashed, !slash);
        if (err < 0)
            return err;
        at = stop;
    }
    const struct weir_path_segment *last = &pattern->segments[pattern->count - 1];
    bool slash = last->kind == WEIR_SEGMENT_LITERAL && last->text.size == 0;
    pattern->count -= slash && pattern->count > 1 && (options & WEIR_PATH_DROP_SLASH) != 0;
    *used = compiler.used;
    return 0;
}

/* --- Globs ------------------------------------------------------------------------------------ */

/* What a glob has between two stars: literal bytes, some of them escaped. */
struct piece {
    const char *at, *end;
};

/* The next byte of a piece that has one. */
static char next_byte(struct piece *piece)
{
    piece->at += *piece->at == '\\' && piece->at + 1 < piece->end;
    return *piece->at++;
}

static size_t size_of(struct piece piece)
{
    size_t size = 0;
    for (; piece.at < piece.end; size++)
        (void)next_byte(&piece);
    return size;
}

/* Up to the next star, or the end. */
static struct piece piece_at(const char *at, const char *end)
{
    struct piece piece = {at, at};
    while (piece.end < end && *piece.end != '*')
        piece.end += *piece.end == '\\' && piece.end + 1 < end ? 2 : 1;
    return piece;
}

/* A byte of the text as globs see it: as it is, or in lower case. `fold` is a constant wherever the
 * compiler has made a copy of these functions for it. */
static inline char seen(char byte, bool fold)
{
    return (char)(fold && byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte);
}

/* Whether a text begins with a piece. */
static inline bool begins_with(const char *text, const char *end, struct piece piece, bool fold)
{
    while (piece.at < piece.end)
        if (text == end || next_byte(&piece) != seen(*text++, fold))
            return false;
    return true;
}

/* As find_piece, in a time that grows with both sizes: for rules of Envoy, which has no bound. */
static const char *find_long_piece(const char *text, const char *end, struct piece piece, bool fold)
{
    size_t size = size_of(piece);
    for (; size <= (size_t)(end - text); text++)
        if (begins_with(text, end, piece, fold))
            return text + size;
    return NULL;
}

/* The end of the first place of a piece in a text, or NULL. Linear: D. Knuth, J. Morris, V. Pratt,
 * "Fast pattern matching in strings" (1977). */
static inline const char *find_piece(const char *text, const char *end, struct piece whole,
                                     bool fold)
{
    struct piece piece = whole;
    char bytes[WEIR_GLOB_PIECE_MAX];
    uint8_t back[WEIR_GLOB_PIECE_MAX]; /* the longest part before it that it also ends in */
    size_t size = 0, same = 0;
    while (piece.at < piece.end && size < sizeof bytes)
        bytes[size++] = next_byte(&piece);
    if (piece.at < piece.end)
        return find_long_piece(text, end, whole, fold);
    back[0] = 0;
    for (size_t i = 1; i < size; i++) {
        while (same > 0 && bytes[same] != bytes[i])
            same = back[same - 1];
        same += bytes[same] == bytes[i];
        back[i] = (uint8_t)same;
    }
    for (same = 0; same < size && text < end; text++) {
        char byte = seen(*text, fold);
        while (same > 0 && bytes[same] != byte)
            same = back[same - 1];
        same += bytes[same] == byte;
    }
    return same == size ? text : NULL;
}

static inline bool match_glob(struct weir_bytes glob, struct weir_bytes text, bool fold)
{
    const char *at = text.data, *end = text.data + text.size, *glob_end = glob.data + glob.size;
    struct piece piece = piece_at(glob.data, glob_end);
    if (!begins_with(at, end, piece, fold))
        return false;
    at += size_of(piece);
    if (piece.end == glob_end)
        return at == end;
    for (;;) { /* at a star: the next piece is anywhere behind, the last one at the end */
        piece = piece_at(piece.end + 1, glob_end);
        if (piece.end == glob_end)
            break;
        at = find_piece(at, end, piece, fold);
        if (!at)
            return false;
    }
    size_t size = size_of(piece);
    return size <= (size_t)(end - at) && begins_with(end - size, end, piece, fold);
}

bool weir_glob_match(struct weir_bytes glob, struct weir_bytes text)
{
    return match_glob(glob, text, false);
}

bool weir_glob_match_folded(struct weir_bytes glob, struct weir_bytes text)
{
    return match_glob(glob, text, true);
}

bool weir_glob_fits(struct weir_bytes glob)
{
    const char *end = glob.data + glob.size;
    struct piece piece = piece_at(glob.data, end);
    while (piece.end < end) {
        piece = piece_at(piece.end + 1, end);
        if (piece.end < end && size_of(piece) > WEIR_GLOB_PIECE_MAX)
            return false;
    }
    return true;
}
