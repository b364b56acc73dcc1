/* SPDX-License-Identifier: Apache-2.0 */
/* core/text/credential: one form of each credential. */
#include "../../wire/unit_wire.h"
#include "test.h"

#include "core/text/credential.h"

static void assert_form(const char *value, const char *expected, const char *token)
{
    char out[128];
    struct weir_credential credential;
    weir_credential_read(&credential, (struct weir_bytes){value, strlen(value)});
    size_t size = weir_credential_write(&credential, out);
    out[size] = '\0';
    assert_string_equal(out, expected);
    assert_true(size <= strlen(value));
    assert_int_equal(credential.token.size, strlen(token));
    assert_memory_equal(credential.token.data, token, strlen(token));
    if (credential.as_is)
        assert_non_null(strstr(value, expected));
    if (strcmp(value, expected) == 0)
        assert_true(credential.as_is);
    struct weir_bytes form = weir_credential_form((struct weir_bytes){value, strlen(value)}, out);
    assert_int_equal(form.size, strlen(expected));
    assert_memory_equal(form.data, expected, form.size);
    assert_int_equal(form.data == value, strcmp(value, expected) == 0);
}

TEST("spellings of a credential have one form")
{
    static const char *const spellings[] = {
        "Bearer K1",  "bearer K1",  "BEARER K1",  "bEaReR K1",          "Bearer  K1",
        "Bearer\tK1", " Bearer K1", "Bearer K1 ", "\t bearer \t K1\t ", "bearer      K1"};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        assert_form(spellings[i], "Bearer K1", "K1");
}

TEST("what differs behind the scheme stays different")
{
    assert_form("Bearer k1", "Bearer k1", "k1");
    assert_form("Bearer K1 K2", "Bearer K1 K2", "K1 K2");
    assert_form("Bearer K1  K2", "Bearer K1  K2", "K1  K2");
    assert_form("Bearer K1, Bearer K2", "Bearer K1, Bearer K2", "K1, Bearer K2");
}

TEST("known schemes have their usual spelling and others are lower case")
{
    assert_form("BASIC dTpw", "Basic dTpw", "dTpw");
    assert_form("oauth x", "OAuth x", "x");
    assert_form("dpop x", "DPoP x", "x");
    assert_form("VAPID t=x", "vapid t=x", "t=x");
    assert_form("TOKEN x", "Token x", "x");
    assert_form("apikey x", "ApiKey x", "x");
    assert_form("aws4-hmac-sha256 a", "AWS4-HMAC-SHA256 a", "a");
    assert_form("Acme-Key  K", "acme-key K", "K");
    assert_form("acme-key K", "acme-key K", "K");
    assert_form("Bearerx K", "bearerx K", "K");
}

TEST("without a scheme the value is as it is")
{
    assert_form("", "", "");
    assert_form("  ", "", "");
    assert_form("K", "K", "K");
    assert_form(" K\t", "K", "K");
    assert_form("bearer", "bearer", "bearer");
    assert_form("Bearer ", "Bearer", "Bearer");
}

/* The credentials of a value, with " | " between them. */
static void assert_parts(const char *value, bool scheme, const char *expected)
{
    char out[256] = "";
    struct weir_bytes rest = {value, strlen(value)}, part;
    while (weir_credential_next(&rest, scheme, &part))
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s%.*s", out[0] ? " | " : "",
                 (int)part.size, part.data);
    assert_string_equal(out, expected);
    assert_int_equal(rest.size, 0);
}

TEST("lines that were joined by commas are taken apart")
{
    assert_parts("K,x", false, "K | x");
    assert_parts(" K , x,", false, "K | x");
    assert_parts(",,K,,K", false, "K | K");
    assert_parts("", false, "");
    assert_parts(" , \t,", true, "");
    assert_parts("Bearer K,Bearer x", true, "Bearer K | Bearer x");
    assert_parts("Bearer K,x", true, "Bearer K | x");
    assert_parts("Bearer K,x=y", true, "Bearer K | x=y");
    assert_parts("a=\"b,K\"", false, "a=\"b | K\"");
}

TEST("parameters of one credential stay together, and no other line hides among them")
{
    assert_parts("Digest username=\"a, \\\" b\", uri=\"/?ids=1,2\",nc=00000001", true,
                 "Digest username=\"a, \\\" b\", uri=\"/?ids=1,2\",nc=00000001");
    assert_parts("AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host;date, Signature=0f", true,
                 "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host;date, Signature=0f");
    assert_parts("Digest a=b,Bearer K", true, "Digest a=b | Bearer K");
    assert_parts("Bearer K,Digest a=b,c=d", true, "Bearer K | Digest a=b,c=d");
    assert_parts("Digest a=\",Bearer K", true, "Digest a=\" | Bearer K");
    assert_parts("Digest a=b,Sz==", true, "Digest a=b | Sz==");
    assert_parts("Digest a=b,Sz=", true, "Digest a=b | Sz=");
    assert_parts("Digest a=b,K", true, "Digest a=b | K");
    assert_parts("Bearer Sz=,K=v", true, "Bearer Sz= | K=v");
}

TEST("the form of a form is itself")
{
    static const char alphabet[] = "bBeEaArR  \t,Kk=";
    uint64_t random = 11;
    for (int i = 0; i < 100000; i++) {
        char value[24], once[24], twice[24];
        size_t size = draw_below(&random, sizeof value);
        for (size_t j = 0; j < size; j++)
            value[j] = alphabet[draw_below(&random, sizeof alphabet - 1)];
        struct weir_credential credential;
        weir_credential_read(&credential, (struct weir_bytes){value, size});
        size_t first = weir_credential_write(&credential, once);
        assert_true(first <= size);
        weir_credential_read(&credential, (struct weir_bytes){once, first});
        assert_true(credential.as_is);
        assert_int_equal(weir_credential_write(&credential, twice), first);
        assert_memory_equal(once, twice, first);
    }
}

RUN_TESTS()
