/* SPDX-License-Identifier: Apache-2.0 */
/* see filter.h */
#include "envoy/filter.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[WEIR_EVY_COUNTERS] = {
    [WEIR_EVY_ALLOWED] = "weir_allowed",
    [WEIR_EVY_DELAYED] = "weir_delayed",
    [WEIR_EVY_DENIED] = "weir_denied",
    [WEIR_EVY_DRY_RUN] = "weir_dry_run_denied",
    [WEIR_EVY_ERRORS] = "weir_errors",
    [WEIR_EVY_CANCELLED] = "weir_cancelled",
    [WEIR_EVY_STORE_FAILED] = "weir_store_failed",
    [WEIR_EVY_DENIED_BY] = "weir_denied_by",
};

static bool define(struct weir_evy_filter *filter, void *envoy_config)
{
    struct weir_evy_text label = {"limit", 5};
    for (unsigned i = 0; i < WEIR_EVY_COUNTERS; i++) {
        struct weir_evy_text name = {names[i], strlen(names[i])};
        size_t labels = i == WEIR_EVY_DENIED_BY;
        if (ENVOY(http_filter_config_define_counter)(envoy_config, name, labels ? &label : NULL,
                                                     labels, &filter->counters[i]) != 0)
            return false;
    }
    return true;
}

void weir_evy_count(const struct weir_evy_filter *filter, void *envoy,
                    enum weir_evy_counter counter)
{
    (void)ENVOY(http_filter_increment_counter)(envoy, filter->counters[counter], NULL, 0, 1);
}

void weir_evy_count_limit(const struct weir_evy_filter *filter, void *envoy, const char *limit)
{
    struct weir_evy_text value = {limit, strlen(limit)};
    (void)ENVOY(http_filter_increment_counter)(envoy, filter->counters[WEIR_EVY_DENIED_BY], &value,
                                               1, 1);
}

/* --- Checking --------------------------------------------------------------------------------- */

static void tell_name(void *context, size_t place, const char *message)
{
    const struct weir_evy_settings *settings = context;
    weir_evy_log(WEIR_EVY_WARNING, "weir: attributes: %s: %s", settings->attributes[place].name,
                 message);
}

/* The rules file, without a state. */
static int check(const struct weir_evy_settings *settings, struct weir_reason *reason)
{
    const char *attributes[WEIR_EVY_ATTRIBUTES_MAX];
    int err = weir_rules_check_file(settings->rules, NULL, NULL, reason);
    for (unsigned i = 0; i < settings->attribute_count; i++)
        attributes[i] = settings->attributes[i].name;
    if (err == 0 && settings->attribute_count > 0)
        err = weir_rules_check_names(settings->rules, attributes, settings->attribute_count,
                                     tell_name, (void *)(uintptr_t)settings);
    return err;
}

/* With --mode validate nothing is opened or made. */
static int prepare(struct weir_evy_filter *filter, struct weir_evy_text config,
                   struct weir_reason *reason)
{
    int err = weir_evy_settings_read(&filter->settings, config, false, reason);
    if (err == 0)
        err = check(filter->settings, reason);
    if (err == 0 && !ENVOY(is_validation_mode)())
        err = weir_evy_shared_get(&filter->shared, filter->settings, reason);
    return err;
}

struct weir_evy_filter *weir_evy_filter_new(void *envoy_config, struct weir_evy_text config)
{
    struct weir_reason reason = {""};
    struct weir_evy_filter *filter = calloc(1, sizeof *filter);
    if (!filter)
        return NULL;
    int err = prepare(filter, config, &reason);
    if (err == 0 && define(filter, envoy_config))
        return filter;
    if (reason.text[0] != '\0' || err < 0)
        weir_evy_log(WEIR_EVY_ERROR, "weir: the configuration is refused: %s",
                     reason.text[0] != '\0' ? reason.text : weir_error_text(err));
    else
        weir_evy_log(WEIR_EVY_ERROR, "weir: Envoy takes no counters");
    weir_evy_filter_free(filter);
    return NULL;
}

void weir_evy_filter_free(struct weir_evy_filter *filter)
{
    if (filter->shared)
        weir_evy_shared_put(filter->shared);
    weir_evy_settings_free(filter->settings);
    free(filter);
}
