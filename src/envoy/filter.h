/* SPDX-License-Identifier: Apache-2.0 */
/* One configuration of the filter, and its counters in Envoy's statistics. */
#ifndef WEIR_EVY_FILTER_H
#define WEIR_EVY_FILTER_H

#include "envoy/shared.h"

enum weir_evy_counter {
    WEIR_EVY_ALLOWED,
    WEIR_EVY_DELAYED,
    WEIR_EVY_DENIED,
    WEIR_EVY_DRY_RUN, /* would have been denied */
    WEIR_EVY_ERRORS,
    WEIR_EVY_CANCELLED,    /* waiting, and the client left */
    WEIR_EVY_STORE_FAILED, /* on_store_error decided */
    WEIR_EVY_DENIED_BY,    /* by the label `limit` */
    WEIR_EVY_COUNTERS,
};

struct weir_evy_filter {
    struct weir_evy_settings *settings;
    struct weir_evy_shared *shared; /* NULL: Envoy only validates */
    size_t counters[WEIR_EVY_COUNTERS];
};

/* NULL: it is refused, and Envoy's log says why. */
struct weir_evy_filter *weir_evy_filter_new(void *envoy_config, struct weir_evy_text config);
void weir_evy_filter_free(struct weir_evy_filter *filter);

void weir_evy_count(const struct weir_evy_filter *filter, void *envoy,
                    enum weir_evy_counter counter);
void weir_evy_count_limit(const struct weir_evy_filter *filter, void *envoy, const char *limit);

#endif
