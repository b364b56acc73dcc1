/* SPDX-License-Identifier: Apache-2.0 */
/* Loading Envoy's configuration, and its life; see envoy.h */
#include "feature/envoy/rules/envoy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/envoy/rules/compile.h"
#include "feature/envoy/rules/folder.h"

#define NEAR_LIMIT_RATIO 0.8F

struct weir_envoy *weir_envoy_ref(struct weir_envoy *envoy)
{
    atomic_fetch_add_explicit(&envoy->references, 1, memory_order_relaxed);
    return envoy;
}

void weir_envoy_unref(struct weir_envoy *envoy)
{
    /* Release what this holder did, acquire what all others did, before anything is freed. */
    if (!envoy || atomic_fetch_sub_explicit(&envoy->references, 1, memory_order_acq_rel) != 1)
        return;
    rules_string_map_free(&envoy->domains);
    rules_string_map_free(&envoy->words);
    rules_string_map_free(&envoy->names);
    free(envoy->nodes);
    free(envoy->rules);
    rules_arena_free(&envoy->arena);
    free(envoy);
}

/* --- Loading ---------------------------------------------------------------------------------- */

/* The options live as long as the configuration. */
static bool keep_options(struct weir_envoy *envoy, const struct weir_envoy_options *options)
{
    const char **texts[] = {&envoy->options.limit_header, &envoy->options.remaining_header,
                            &envoy->options.reset_header, &envoy->options.name_prefix,
                            &envoy->options.redis_prefix};
    envoy->options = *options;
    if (envoy->options.near_limit_ratio <= 0)
        envoy->options.near_limit_ratio = NEAR_LIMIT_RATIO;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (*texts[i]) {
            *texts[i] = rules_arena_copy(&envoy->arena, *texts[i], strlen(*texts[i]));
            if (!*texts[i])
                return false;
        }
    }
    return true;
}

/* All files are read before the first one is compiled: the problems of a file's YAML are
 * reported before the problems of another's limits. */
static void load_files(struct envoy_loader *loader, const struct weir_envoy_file *files,
                       uint32_t count)
{
    const char *prefix = count > 0 && !files[0].tree ? loader->envoy->options.name_prefix : NULL;
    struct envoy_source_file *sources = envoy_borrow(loader, (count + 1) * sizeof(*sources));
    for (uint32_t i = 0; i < count && !loader->failed && !loader->no_memory; i++) {
        size_t size = strlen(files[i].name) + (prefix ? strlen(prefix) : 0) + 1;
        char *name = envoy_borrow(loader, size);
        if (!name)
            return;
        snprintf(name, size, "%s%s", prefix ? prefix : "", files[i].name);
        loader->file = sources[i].name = name;
        if (loader->envoy->options.opening)
            loader->envoy->options.opening(name);
        envoy_decode(loader, &files[i], &sources[i]);
    }
    for (uint32_t i = 0; i < count && !loader->failed && !loader->no_memory; i++)
        envoy_compile(loader, &sources[i]);
}

int weir_envoy_parse(struct weir_envoy **out, const struct weir_envoy_file *files, uint32_t count,
                     const struct weir_envoy_options *options, struct weir_envoy_error *error)
{
    *out = NULL;
    error->text[0] = '\0';
    struct weir_envoy *envoy = calloc(1, sizeof(*envoy));
    if (!envoy)
        return WEIR_ERR_MEMORY;
    atomic_init(&envoy->references, 1);
    struct envoy_loader loader = {.envoy = envoy, .error = error};
    if (keep_options(envoy, options))
        load_files(&loader, files, count);
    else
        loader.no_memory = true;
    rules_arena_free(&loader.scratch);
    if (loader.no_memory || loader.failed) {
        weir_envoy_unref(envoy);
        return loader.no_memory ? WEIR_ERR_MEMORY : WEIR_ERR_RULES;
    }
    *out = envoy;
    return 0;
}

int weir_envoy_load(struct weir_envoy **envoy, const char *path,
                    const struct weir_envoy_options *options, struct weir_envoy_error *error)
{
    struct envoy_folder folder;
    *envoy = NULL;
    error->text[0] = '\0';
    int err = envoy_folder_read(&folder, path, options->ignore_dot_files, error);
    if (err == 0)
        err = weir_envoy_parse(envoy, folder.files, folder.count, options, error);
    envoy_folder_free(&folder);
    return err;
}

int weir_envoy_prepare(struct weir_envoy *envoy, weir_rules_prepare_fn prepare, void *context)
{
    for (uint32_t i = 0; i < envoy->rule_count; i++) {
        struct weir_envoy_rule *rule = envoy->rules[i];
        for (uint32_t j = 0; j < rule->limit_count; j++) {
            int err = prepare(context, &rule->limits[j].limit, rule->stat.data);
            if (err < 0)
                return err;
        }
    }
    return 0;
}

/* --- What others ask -------------------------------------------------------------------------- */

uint32_t weir_envoy_domain_count(const struct weir_envoy *envoy)
{
    return envoy->domain_count;
}

static bool fails(uint8_t on_store_error)
{
    return on_store_error == WEIR_ENVOY_STORE_FAIL || on_store_error == WEIR_ENVOY_STORE_CLOSED;
}

bool weir_envoy_fails_without_store(const struct weir_envoy *envoy)
{
    bool any = envoy->domain_count > 0 && fails(envoy->options.on_store_error);
    for (uint32_t i = 0; i < envoy->rule_count; i++)
        any = any || (!envoy->rules[i]->unlimited && fails(envoy->rules[i]->on_store_error));
    return any;
}

uint32_t weir_envoy_limit_count(const struct weir_envoy *envoy)
{
    return envoy->rule_count;
}

const char *weir_envoy_warning(const struct weir_envoy *envoy, uint32_t index)
{
    return index < envoy->warning_count ? envoy->warnings[index] : NULL;
}

const struct weir_envoy_options *weir_envoy_options(const struct weir_envoy *envoy)
{
    return &envoy->options;
}

uint32_t weir_envoy_rule_number(const struct weir_envoy_rule *rule)
{
    return rule->number;
}

size_t weir_envoy_dump(const struct weir_envoy *envoy, char *out, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0; i < envoy->rule_count; i++) {
        const struct weir_envoy_rule *rule = envoy->rules[i];
        char *at = used < size ? out + used : NULL;
        int more = snprintf(at, at ? size - used : 0,
                            "%s: unit=%s requests_per_unit=%u, shadow_mode: %s, quota_mode: %s\n",
                            rule->stat.data, envoy_unit_name(rule->unit), rule->requests,
                            rule->shadow ? "true" : "false", rule->quota ? "true" : "false");
        used += more > 0 ? (size_t)more : 0;
    }
    return used;
}

uint32_t weir_envoy_limits_max(const struct weir_envoy *envoy)
{
    return envoy->limits_max > 1 ? envoy->limits_max : 1;
}
