/* SPDX-License-Identifier: Apache-2.0 */
/* Values between C and JavaScript, as both addons (weir.node, weir-client.node) pass them. Errors
 * are thrown with the name of the enum weir_err as `code`.
 *
 * Threads: each call belongs to the thread of its env.
 */
#ifndef WEIR_BINDINGS_NODE_VALUES_H
#define WEIR_BINDINGS_NODE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <node_api.h>

/* The code that a name of values_fail means; of another name WEIR_ERR_UNSUPPORTED. */
int values_error(const char *name);

/* Throws an error of weir; `reason` NULL or empty: the text of the error. Returns NULL. */
napi_value values_fail(napi_env env, int err, const char *reason);

/* Throws that a method was called in another way than the module does. Returns NULL. */
napi_value values_misused(napi_env env);

/* A string, or null as an empty text. False: it has no room, has a NUL, or is something else. */
bool values_text(napi_env env, napi_value value, char *text, size_t room);

/* A string as a text that the caller frees, or null as NULL. Errors: WEIR_ERR_MEMORY,
 * WEIR_ERR_SYNTAX (it has a NUL, or is something else). */
int values_text_copy(napi_env env, napi_value value, char **text)
    __attribute__((warn_unused_result));

/* A number from 0 on, cut to a whole one; from 2^63 on it is UINT64_MAX. False: it is none. */
bool values_number(napi_env env, napi_value value, uint64_t *result);

#endif
