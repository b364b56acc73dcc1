/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for tests: a new authority, and what it signs, in a folder of the test.
 * Keys are P-256, which are made in a moment. Whatever fails ends the program. */
#ifndef WEIR_TESTS_TLS_CERTIFICATES_H
#define WEIR_TESTS_TLS_CERTIFICATES_H

#include <stdbool.h>

struct certificate_options {
    const char *common_name;
    const char *names;   /* SAN as OpenSSL writes it: "DNS:a.example,IP:127.0.0.1"; NULL: none */
    bool authority;      /* may sign others */
    const char *signer;  /* base of the authority's files; NULL: signs itself */
    long valid_s;        /* from now; negative: it has expired that long ago; 0: an hour */
    const char *cn_tail; /* more bytes of the common name, after a NUL; NULL: none */
};

/* Writes `folder`/`base`.pem and `folder`/`base`.key. */
void certificate_make(const char *folder, const char *base,
                      const struct certificate_options *options);

/* A temporary folder, and its removal with the files in it. */
char *certificate_folder_make(void);
void certificate_folder_remove(char *folder);

#endif
