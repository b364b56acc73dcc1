/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens in a program: given as a header, they are who is calling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "temporary.h"
#include "test.h"
#include "text_file.h"
#include "token_maker.h"

static uint64_t remaining(struct weir *weir, const char *authorization)
{
    struct weir_attribute_value attributes[] = {
        {"Header.Authorization", authorization},
        {"client.ip", "192.0.2.1"},
        {"jwt.sub", "mallory"}, /* which counts for nothing */
    };
    struct weir_answer_summary answer;
    assert_int_equal(weir_check(weir, attributes, 3, 1, &answer), 0);
    return answer.remaining;
}

TEST("a valid token is its user until its key is gone")
{
    char folder[TEMPORARY_MAX], set[TOKEN_SET_MAX];
    char token[TOKEN_TEXT_MAX], header[TOKEN_TEXT_MAX + 8];
    struct token_maker maker, later;
    struct weir_reason reason;
    struct weir *weir;
    token_maker_open(&maker);
    token_maker_open(&later);
    token_maker_set(&maker, 1, set);
    temporary_folder(folder);
    assert_int_equal(chdir(folder), 0);
    text_file_write("keys.json", set);
    text_file_write("rules.yaml", "jwt: {keys: keys.json, audience: any}\n"
                                  "identify: [jwt, client.ip]\n"
                                  "limits: [{name: a, key: [user], algorithm: fixed_window, rate: "
                                  "100/day}]\n");
    assert_int_equal(weir_open(&weir, "rules.yaml", NULL, &reason), 0);
    token_of(&maker, TOKEN_RS256, "{\"sub\":\"alice\",\"exp\":4102444800}", token);
    snprintf(header, sizeof header, "Bearer %s", token);
    assert_int_equal(remaining(weir, header), 99);
    assert_int_equal(remaining(weir, header), 98);
    assert_int_equal(remaining(weir, token), 99); /* no scheme: by the address */
    token_maker_set(&later, 1, set);
    text_file_write("keys.json", set);
    assert_int_equal(weir_reload(weir, &reason), 0);
    assert_int_equal(remaining(weir, header), 98); /* the address's second */
    weir_close(weir);
    assert_int_equal(chdir("/"), 0);
    temporary_remove(folder);
    token_maker_close(&later);
    token_maker_close(&maker);
}

RUN_TESTS()
