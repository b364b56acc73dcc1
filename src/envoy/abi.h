/* SPDX-License-Identifier: Apache-2.0 */
/* The part of Envoy's interface for dynamic modules (ABI v0.1 of Envoy 1.38 and 1.39, v0.2 of 1.40)
 * that the HTTP filter uses: what Envoy calls (`_on_`), and what it offers (`_callback_`). Names
 * and layouts are Envoy's; see its documentation of dynamic modules.
 *
 * Texts of Envoy are valid until the hook returns, or until it calls a function that sets
 * something. Hooks of a filter run on the worker that has its stream. Configurations are made on
 * the main thread, and end on any: their last stream keeps them. Everything here is in 1.38, so
 * that one file loads into all later versions.
 */
#ifndef WEIR_EVY_ABI_H
#define WEIR_EVY_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By value in arguments. */
struct weir_evy_text {
    const char *data;
    size_t size;
};

struct weir_evy_header {
    struct weir_evy_text name, value;
};

enum weir_evy_status {
    WEIR_EVY_CONTINUE = 0,
    WEIR_EVY_STOP = 1,     /* the answer has been sent */
    WEIR_EVY_WAIT_ALL = 4, /* also the body waits, up to the high watermark */
};

enum weir_evy_headers { WEIR_EVY_REQUEST = 0, WEIR_EVY_RESPONSE = 2 };
enum weir_evy_attribute_id { WEIR_EVY_RESPONSE_CODE = 15, WEIR_EVY_SOURCE_ADDRESS = 24 };
enum weir_evy_metadata { WEIR_EVY_DYNAMIC = 0 };
enum weir_evy_level {
    WEIR_EVY_INFO = 2,
    WEIR_EVY_WARNING = 3,
    WEIR_EVY_ERROR = 4,
    WEIR_EVY_CRITICAL = 5,
};

/* Envoy's names are longer than a line. */
#define ENVOY(name) envoy_dynamic_module_callback_##name

/* --- What Envoy offers ------------------------------------------------------------------------ */

void ENVOY(log)(int level, struct weir_evy_text text);
uint32_t ENVOY(get_concurrency)(void);
bool ENVOY(is_validation_mode)(void);

/* Counters can be defined only while a configuration is made. 0: it is done. */
int ENVOY(http_filter_config_define_counter)(void *envoy_config, struct weir_evy_text name,
                                             struct weir_evy_text *labels, size_t label_count,
                                             size_t *id);
int ENVOY(http_filter_increment_counter)(void *envoy, size_t id, struct weir_evy_text *values,
                                         size_t value_count, uint64_t by);

/* The line `index` of a header field, and how many it has (`count`, or NULL). */
bool ENVOY(http_get_header)(void *envoy, int type, struct weir_evy_text name,
                            struct weir_evy_text *value, size_t index, size_t *count);
bool ENVOY(http_add_header)(void *envoy, int type, struct weir_evy_text name,
                            struct weir_evy_text value);
bool ENVOY(http_filter_get_attribute_string)(void *envoy, int attribute,
                                             struct weir_evy_text *value);
bool ENVOY(http_filter_get_attribute_int)(void *envoy, int attribute, uint64_t *value);
bool ENVOY(http_get_metadata_number)(void *envoy, int source, struct weir_evy_text space,
                                     struct weir_evy_text key, double *value);
bool ENVOY(http_get_metadata_string)(void *envoy, int source, struct weir_evy_text space,
                                     struct weir_evy_text key, struct weir_evy_text *value);
const void *ENVOY(get_most_specific_route_config)(void *envoy);

void ENVOY(http_send_response)(void *envoy, uint32_t status, struct weir_evy_header *headers,
                               size_t count, struct weir_evy_text body,
                               struct weir_evy_text details);
void ENVOY(http_send_response_headers)(void *envoy, struct weir_evy_header *headers, size_t count,
                                       bool end);
void ENVOY(http_filter_continue_decoding)(void *envoy);

/* A scheduler lets any thread call the stream's `scheduled` hook, on its worker. */
void *ENVOY(http_filter_scheduler_new)(void *envoy);
void ENVOY(http_filter_scheduler_commit)(void *scheduler, uint64_t event);
void ENVOY(http_filter_scheduler_delete)(void *scheduler);

#endif
