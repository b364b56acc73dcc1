/* SPDX-License-Identifier: Apache-2.0 */
/* see file_name.h */
#include "cli/fetch/file_name.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"

#define READABLE_MAX 100
#define EXTENSION_MAX 8

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Mixed, so that similar URLs differ in all digits. */
static uint64_t hash(const char *text)
{
    return weir_mix(weir_fnv(WEIR_FNV_BASIS, text, strlen(text)));
}

/* ".json" at the end of a path; the number of its bytes, 0: there is none that is short and plain.
 */
static size_t extension(const char *text, size_t size)
{
    size_t count = 0;

    while (count < size && count < EXTENSION_MAX && is_alnum(text[size - 1 - count]))
        count++;
    return count > 0 && count < size && text[size - 1 - count] == '.' ? count + 1 : 0;
}

void fetch_file_name(const char *url, char name[FETCH_NAME_MAX])
{
    const char *start = strstr(url, "://");
    start = start ? start + 3 : url;
    size_t size = strcspn(start, "?#"), host = strcspn(start, "/?#");
    const char *at = memchr(start, '@', host);
    if (at) {
        size -= (size_t)(at + 1 - start);
        host -= (size_t)(at + 1 - start);
        start = at + 1;
    }
    size_t tail = extension(start + host, size - host), length = 0;
    for (size_t i = 0; i < size - tail && length < READABLE_MAX; i++) {
        char c = start[i];
        bool plain = is_alnum(c) || ((c == '.' || c == '-' || c == '=') && length > 0);
        name[length++] = plain ? c : '_';
    }
    while (length > 0 && name[length - 1] == '_')
        length--;
    snprintf(name + length, FETCH_NAME_MAX - length, "%s%016" PRIx64 "%.*s", length > 0 ? "-" : "",
             hash(url), (int)tail, start + size - tail);
}
