#ifndef WEIR_CORE_CONCURRENCY_H
#define WEIR_CORE_CONCURRENCY_H

#include <weir/limit.h>

static inline uint32_t concurrency_words(const struct weir_limit *limit)
{
    return 2 + 4 * (uint32_t)(limit->spec.rate > 0 ? limit->spec.rate : 1);
}

#endif
