/* SPDX-License-Identifier: Apache-2.0 */
/* The model as a fragment of an OpenAPI 3.1 description, in JSON: paths with their 429 and their
 * limits (`x-rate-limits`), and the header fields and the response as components. Limits of all
 * paths are `x-rate-limits` at the top; `**` and `*` have no form in OpenAPI, and are there, too.
 */
#ifndef WEIR_CLI_DOCUMENT_OPENAPI_H
#define WEIR_CLI_DOCUMENT_OPENAPI_H

#include <jansson.h>

/* NULL: no memory. The caller owns it. */
json_t *document_openapi(const json_t *model);

#endif
