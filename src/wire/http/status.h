/* SPDX-License-Identifier: Apache-2.0 */
/* The status codes that weir answers with. */
#ifndef WEIR_WIRE_HTTP_STATUS_H
#define WEIR_WIRE_HTTP_STATUS_H

/* The reason phrase of a status code (RFC 9110 section 15, RFC 6585); "Unknown" for one that weir
 * does not use. Static. */
const char *weir_http_status_text(unsigned status);

#endif
