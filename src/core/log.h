#ifndef WEIR_CORE_LOG_H
#define WEIR_CORE_LOG_H

#include <weir/limit.h>

static inline uint32_t log_words(const struct weir_limit *limit)
{
    return 2 + 2 * (uint32_t)(limit->spec.rate > 0 ? limit->spec.rate : 1);
}

#endif
