/* SPDX-License-Identifier: Apache-2.0 */
/* see certificates.h */
#include "server/net/certificates.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"

/* Of one part of the settings; several front ends may share it. */
struct context {
    size_t settings; /* as weir_front has it */
    struct weir_tls_context *tls;
};

struct weir_certificates {
    atomic_uint references;
    unsigned count;
    struct context contexts[WEIR_FRONTS_MAX];
};

static int context_load(struct weir_tls_context **context, const struct weir_front *front,
                        const struct weir_listener_tls *tls, struct weir_reason *reason)
{
    struct weir_reason why;
    const struct weir_tls_options options = {
        .cert_file = tls->cert_file,
        .key_file = tls->key_file,
        .ca_file = tls->client_ca_file,
        .names = tls->client_names,
        .name_count = tls->client_name_count,
        .alpn = &front->protocol,
        .alpn_count = front->protocol ? 1 : 0,
    };
    int err = weir_file_check(tls->cert_file, &why);
    if (err == 0)
        err = weir_file_check(tls->key_file, &why);
    if (err == 0 && tls->client_ca_file)
        err = weir_file_check(tls->client_ca_file, &why);
    if (err == 0)
        err = weir_tls_server(context, &options, &why);
    if (err < 0)
        snprintf(reason->text, sizeof reason->text, "%s: tls: %.230s", front->name, why.text);
    return err;
}

static const struct context *context_find(const struct weir_certificates *certificates,
                                          const struct weir_front *front)
{
    for (unsigned i = 0; i < certificates->count; i++)
        if (certificates->contexts[i].settings == front->settings)
            return &certificates->contexts[i];
    return NULL;
}

int weir_certificates_load(struct weir_certificates **out, const struct weir_fronts *fronts,
                           const struct weir_settings *settings, struct weir_reason *reason)
{
    *out = NULL;
    struct weir_certificates *made = calloc(1, sizeof *made);
    if (!made) {
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(WEIR_ERR_MEMORY));
        return WEIR_ERR_MEMORY;
    }
    atomic_init(&made->references, 1);
    for (unsigned i = 0; i < fronts->count; i++) {
        const struct weir_front *front = fronts->list[i];
        const struct weir_listener_tls *tls = &weir_front_settings(front, settings)->tls;
        if (!tls->cert_file || context_find(made, front))
            continue;
        struct context *context = &made->contexts[made->count];
        int err = context_load(&context->tls, front, tls, reason);
        if (err < 0) {
            weir_certificates_unref(made);
            return err;
        }
        context->settings = front->settings;
        made->count++;
    }
    *out = made;
    return 0;
}

struct weir_certificates *weir_certificates_ref(struct weir_certificates *certificates)
{
    atomic_fetch_add_explicit(&certificates->references, 1, memory_order_relaxed);
    return certificates;
}

void weir_certificates_unref(struct weir_certificates *certificates)
{
    if (!certificates || atomic_fetch_sub(&certificates->references, 1) != 1)
        return;
    while (certificates->count > 0)
        weir_tls_unref(certificates->contexts[--certificates->count].tls);
    free(certificates);
}

struct weir_tls_context *weir_certificates_of(const struct weir_certificates *certificates,
                                              const struct weir_front *front)
{
    const struct context *context = certificates ? context_find(certificates, front) : NULL;
    return context ? context->tls : NULL;
}

/* --- Watching --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
}

static uint64_t mix_file(uint64_t hash, const char *path)
{
    struct stat file;
    if (!path)
        return hash;
    if (stat(path, &file) < 0)
        return mix(hash, 1);
    hash = mix(hash, (uint64_t)file.st_ino);
    hash = mix(hash, (uint64_t)file.st_dev);
    hash = mix(hash, (uint64_t)file.st_size);
    hash = mix(hash, (uint64_t)file.st_mtim.tv_sec);
    hash = mix(hash, (uint64_t)file.st_mtim.tv_nsec);
    hash = mix(hash, (uint64_t)file.st_ctim.tv_sec);
    return mix(hash, (uint64_t)file.st_ctim.tv_nsec);
}

/* Another number whenever one of the files is another, or has been written. */
static uint64_t files_stamp(const struct weir_fronts *fronts, const struct weir_settings *settings)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < fronts->count; i++) {
        const struct weir_listener_tls *tls = &weir_front_settings(fronts->list[i], settings)->tls;
        hash = mix_file(hash, tls->cert_file);
        hash = mix_file(hash, tls->key_file);
        hash = mix_file(hash, tls->client_ca_file);
    }
    return hash;
}

void weir_certificate_watch_start(struct weir_certificate_watch *watch,
                                  const struct weir_fronts *fronts,
                                  const struct weir_settings *settings)
{
    watch->loaded = watch->seen = files_stamp(fronts, settings);
}

bool weir_certificate_watch_due(struct weir_certificate_watch *watch,
                                const struct weir_fronts *fronts,
                                const struct weir_settings *settings)
{
    uint64_t now = files_stamp(fronts, settings);
    bool settled = now == watch->seen;
    watch->seen = now;
    if (now == watch->loaded || !settled)
        return false;
    watch->loaded = now;
    return true;
}
