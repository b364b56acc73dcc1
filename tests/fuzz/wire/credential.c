/* SPDX-License-Identifier: Apache-2.0 */
/* Values of Authorization: their canonical form is no longer than they are, and is its own form;
 * case of the scheme and white space around its end change nothing. */
#include "fuzz.h"

#include <string.h>

#include "core/text/credential.h"

static size_t form_of(const char *value, size_t size, char *out)
{
    struct weir_credential credential;
    weir_credential_read(&credential, (struct weir_bytes){value, size});
    size_t used = weir_credential_write(&credential, out);
    REQUIRE(used <= size);
    REQUIRE(!credential.as_is || used == size || value[0] <= ' ' || value[size - 1] <= ' ');
    return used;
}

/* Each part is within the value, behind the one before, and is not empty. */
static void take_apart(const char *value, size_t size, bool scheme)
{
    struct weir_bytes rest = {value, size}, part;
    const char *end = value;
    while (weir_credential_next(&rest, scheme, &part)) {
        REQUIRE(part.size > 0 && part.data >= end && part.data + part.size <= rest.data);
        REQUIRE(rest.data + rest.size == value + size);
        REQUIRE(scheme || !memchr(part.data, ',', part.size));
        end = part.data + part.size;
    }
    REQUIRE(rest.size == 0 && part.size == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *value = fuzz_copy(data, size);
    char *once = malloc(size + 1), *twice = malloc(size + 1);
    REQUIRE(once && twice);
    size_t first = form_of(value, size, once);
    REQUIRE(form_of(once, first, twice) == first && memcmp(once, twice, first) == 0);

    take_apart(value, size, false);
    take_apart(value, size, true);

    for (size_t i = 0; i < size && value[i] != ' ' && value[i] != '\t'; i++)
        if (memchr(value, ' ', size) && value[i] >= 'a' && value[i] <= 'z')
            value[i] = (char)(value[i] - 'a' + 'A');
    REQUIRE(form_of(value, size, twice) == first);
    if (memchr(once, ' ', first))
        REQUIRE(memcmp(once, twice, first) == 0);
    free(once);
    free(twice);
    free(value);
    return 0;
}
