/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a rules file about one request, as often as told:
 *
 *     cc check.c $(pkg-config --cflags --libs weir) -o check
 *     ./check weir.yaml 5 method=POST path=/login client.ip=192.0.2.1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

int main(int argc, char **argv)
{
    struct weir *weir;
    struct weir_reason reason;
    struct weir_attribute_value request[16];
    size_t count = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: check RULES TIMES [NAME=VALUE...]\n");
        return 2;
    }
    for (int i = 3; i < argc && count < 16; i++) {
        char *equals = strchr(argv[i], '=');
        if (equals != NULL)
            *equals++ = '\0';
        request[count++] = (struct weir_attribute_value){argv[i], equals};
    }
    if (weir_open(&weir, argv[1], NULL, &reason) < 0) {
        fprintf(stderr, "check: %s\n", reason.text);
        return 1;
    }
    for (long times = strtol(argv[2], NULL, 10); times > 0; times--) {
        struct weir_answer_summary answer;
        int err = weir_check(weir, request, count, 1, &answer);
        if (err < 0)
            printf("error: %s\n", weir_error_text(err));
        else if (answer.allowed)
            printf("allowed, %llu remaining\n", (unsigned long long)answer.remaining);
        else
            printf("denied by %s\n", answer.denied_by);
    }
    weir_close(weir);
    return 0;
}
