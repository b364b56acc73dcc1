/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a path is in a pattern, the slow and obvious way; the trie has to find the same. */
#ifndef PATH_PATTERN_H
#define PATH_PATTERN_H

#include <string.h>

#include "rules/match/pattern.h"

/* `path` is in normal form. */
static inline bool path_pattern_match(const struct weir_path_pattern *pattern,
                                      struct weir_bytes path)
{
    if (path.size == 0 || path.data[0] != '/')
        return false;
    const char *at = path.data, *end = path.data + path.size;
    for (uint8_t i = 0; i < pattern->count; i++) {
        const struct weir_path_segment *segment = &pattern->segments[i];
        if (segment->kind == WEIR_SEGMENT_REST)
            return true;
        if (at == end)
            return false;
        const char *text = at + 1;
        const char *slash = memchr(text, '/', (size_t)(end - text));
        size_t size = (size_t)((slash != NULL ? slash : end) - text);
        bool same = segment->kind == WEIR_SEGMENT_ANY
                        ? size > 0
                        : size == segment->text.size && memcmp(text, segment->text.data, size) == 0;
        if (!same)
            return false;
        at = text + size;
    }
    return at == end;
}

#endif
