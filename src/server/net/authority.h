/* SPDX-License-Identifier: Apache-2.0 */
/* Whose certificates a transfer of libcurl trusts.
 *
 * CURLOPT_CAINFO alone only adds a file: libcurl may have been built with a folder of the system's
 * authorities, too (Debian's has /etc/ssl/certs), which would go on to count.
 *
 * Threads: no state of its own.
 */
#ifndef WEIR_SERVER_NET_AUTHORITY_H
#define WEIR_SERVER_NET_AUTHORITY_H

#include <stdbool.h>

#include <curl/curl.h>

/* Trusts the authorities of a file in PEM, and no others; NULL: the system's. False: no memory, and
 * the transfer must not be made. */
static inline bool weir_curl_trust(CURL *transfer, const char *file)
{
    if (!file)
        return true;
    if (curl_easy_setopt(transfer, CURLOPT_CAINFO, file) != CURLE_OK)
        return false;
    CURLcode removed = curl_easy_setopt(transfer, CURLOPT_CAPATH, (const char *)NULL);
    return removed == CURLE_OK || removed == CURLE_NOT_BUILT_IN; /* the latter: there is none */
}

#endif
