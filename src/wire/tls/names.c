/* SPDX-License-Identifier: Apache-2.0 */
/* see names.h */
#include "wire/tls/names.h"
#include "core/bytes.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <strings.h>

static struct weir_bytes string_bytes(const ASN1_STRING *string)
{
    const char *data = (const char *)ASN1_STRING_get0_data(string);
    size_t size = (size_t)ASN1_STRING_length(string);
    if (!size || memchr(data, 0, size))
        return (struct weir_bytes){NULL, 0};
    return (struct weir_bytes){data, size};
}

struct weir_bytes weir_tls_common_name(const X509 *certificate)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int last = -1, at;
    while ((at = X509_NAME_get_index_by_NID(subject, NID_commonName, last)) >= 0)
        last = at;
    if (last < 0)
        return (struct weir_bytes){NULL, 0};
    return string_bytes(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, last)));
}

/* Reads one SAN entry. Returns whether it is of a kind that has a text; that may be absent. */
static bool entry_read(const GENERAL_NAME *entry, struct weir_tls_name *name,
                       char address[INET6_ADDRSTRLEN])
{
    const ASN1_STRING *string = entry->d.ia5;
    *name = (struct weir_tls_name){.kind = entry->type};
    if (entry->type == GEN_DNS || entry->type == GEN_URI || entry->type == GEN_EMAIL) {
        name->text = string_bytes(string);
        return true;
    }
    if (entry->type != GEN_IPADD)
        return false;
    string = entry->d.iPAddress;
    int size = ASN1_STRING_length(string);
    if ((size == 4 || size == 16) &&
        inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(string), address,
                  INET6_ADDRSTRLEN))
        name->text = weir_bytes_of(address);
    return true;
}

bool weir_tls_each_name(const X509 *certificate,
                        bool (*each)(void *context, const struct weir_tls_name *name),
                        void *context)
{
    GENERAL_NAMES *entries = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    bool found = false, any = false;
    for (int i = 0; i < sk_GENERAL_NAME_num(entries) && !found; i++) {
        struct weir_tls_name name;
        char address[INET6_ADDRSTRLEN];
        if (!entry_read(sk_GENERAL_NAME_value(entries, i), &name, address))
            continue;
        any = true;
        found = name.text.data && each(context, &name);
    }
    GENERAL_NAMES_free(entries);
    if (any)
        return found;
    struct weir_tls_name name = {.text = weir_tls_common_name(certificate)};
    return name.text.data && each(context, &name);
}

/* --- Allowed names ---------------------------------------------------------------------------- */

/* "*.example.com" matches exactly one more label. */
static bool host_matches(struct weir_bytes host, const char *pattern)
{
    size_t size = strlen(pattern);
    if (size > 2 && pattern[0] == '*' && pattern[1] == '.') {
        const char *dot = memchr(host.data, '.', host.size);
        if (!dot || dot == host.data)
            return false;
        host.size -= (size_t)(dot - host.data);
        host.data = dot;
        pattern++;
        size--;
    }
    return host.size == size && !strncasecmp(host.data, pattern, size);
}

/* The part before the last "@" keeps its case (RFC 5321 2.4), the host behind it has none. */
static bool email_matches(struct weir_bytes email, const char *pattern)
{
    const char *at = memrchr(email.data, '@', email.size), *pattern_at = strrchr(pattern, '@');
    if (!at || !pattern_at || at - email.data != pattern_at - pattern ||
        memcmp(email.data, pattern, (size_t)(at - email.data)))
        return false;
    size_t rest = email.size - (size_t)(at - email.data);
    return rest == strlen(pattern_at) && !strncasecmp(at, pattern_at, rest);
}

static bool address_matches(struct weir_bytes text, const char *pattern)
{
    unsigned char allowed[16];
    char normal[INET6_ADDRSTRLEN];
    int family = strchr(pattern, ':') ? AF_INET6 : AF_INET;
    return inet_pton(family, pattern, allowed) == 1 &&
           inet_ntop(family, allowed, normal, sizeof normal) && strlen(normal) == text.size &&
           !memcmp(normal, text.data, text.size);
}

struct allowed {
    char *const *names;
    unsigned count;
};

static bool is_allowed(void *context, const struct weir_tls_name *name)
{
    const struct allowed *allowed = context;
    for (unsigned i = 0; i < allowed->count; i++) {
        const char *pattern = allowed->names[i];
        bool matches;
        if (name->kind == GEN_URI)
            matches = strlen(pattern) == name->text.size &&
                      !memcmp(pattern, name->text.data, name->text.size);
        else if (name->kind == GEN_EMAIL)
            matches = email_matches(name->text, pattern);
        else if (name->kind == GEN_IPADD)
            matches = address_matches(name->text, pattern);
        else
            matches = host_matches(name->text, pattern);
        if (matches)
            return true;
    }
    return false;
}

bool weir_tls_name_allowed(const X509 *certificate, char *const *allowed, unsigned count)
{
    struct allowed context = {allowed, count};
    return weir_tls_each_name(certificate, is_allowed, &context);
}
