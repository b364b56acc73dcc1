/* SPDX-License-Identifier: Apache-2.0 */
/* see loader.h */
#include "feature/envoy/rules/loader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rules/problems.h"

void envoy_fail(struct envoy_loader *loader, const char *format, ...)
{
    if (loader->failed)
        return;
    loader->failed = true;
    char *out = loader->error->text;
    int used = snprintf(out, WEIR_ENVOY_ERROR_MAX, "%s: ", loader->file);
    if (used < 0 || used >= WEIR_ENVOY_ERROR_MAX)
        return;
    va_list values;
    va_start(values, format);
    vsnprintf(out + used, WEIR_ENVOY_ERROR_MAX - (size_t)used, format, values);
    va_end(values);
}

void *envoy_keep(struct envoy_loader *loader, size_t size)
{
    void *memory = rules_arena_alloc(&loader->envoy->arena, size);
    loader->no_memory |= memory == NULL;
    return memory;
}

void *envoy_borrow(struct envoy_loader *loader, size_t size)
{
    void *memory = rules_arena_alloc(&loader->scratch, size);
    loader->no_memory |= memory == NULL;
    return memory;
}

struct weir_bytes envoy_keep_text(struct envoy_loader *loader, struct weir_bytes text)
{
    const char *copy = rules_arena_copy(&loader->envoy->arena, text.data, text.size);
    loader->no_memory |= copy == NULL;
    return copy ? (struct weir_bytes){copy, text.size} : (struct weir_bytes){"", 0};
}

void envoy_resolve_or_fail(struct envoy_loader *loader, const struct rules_node *node,
                           struct envoy_resolved *value)
{
    if (envoy_resolve(node, value))
        return;
    struct rules_quote quote;
    envoy_fail(loader, "error loading config file: yaml: cannot decode %s %s as a !!%s", value->tag,
               rules_quote(&quote, node->text, node->size),
               strrchr(node->tag, ':') ? strrchr(node->tag, ':') + 1 : node->tag);
}
