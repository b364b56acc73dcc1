/* sliding_window with S > 1 segments; see weir/limit.h. */
#ifndef WEIR_CORE_SEGMENTS_H
#define WEIR_CORE_SEGMENTS_H

#include <weir/limit.h>

/* Words before the counters; S + 1 counters follow, two a word. */
#define SEGMENTS_HEADER_WORDS 2

static inline uint32_t segments_words(const struct weir_limit *limit)
{
    return SEGMENTS_HEADER_WORDS + (limit->spec.segments + 2) / 2;
}

#endif
