/* SPDX-License-Identifier: Apache-2.0 */
/* `webhook`; see loader.h
 *
 * Secrets are written as Standard Webhooks serialises them (version 1.0.0, "Signature scheme"):
 * base64 of 24 to 64 bytes, with or without "whsec_" before it. */
#include <openssl/evp.h>
#include <string.h>

#include "rules/load/loader.h"

#define NS_PER_S UINT64_C(1000000000)
#define TIMEOUT_NS (5 * NS_PER_S)
#define TIMEOUT_MIN_NS (NS_PER_S / 10)
#define TIMEOUT_MAX_NS (30 * NS_PER_S) /* what the specification says a receiver may take */
#define URL_MAX 2048
#define BASE64_MAX 88 /* of 64 bytes */

enum webhook_field {
    WEBHOOK_URL,
    WEBHOOK_SECRET,
    WEBHOOK_SECRET_FILE,
    WEBHOOK_TIMEOUT,
    WEBHOOK_CA,
    WEBHOOK_FIELDS,
};

/* A URL may hold a password: it is never quoted. */
static void load_url(struct rules_loader *loader, const struct rules_node *node,
                     struct weir_webhook_settings *webhook)
{
    static const char *const schemes[] = {"http://", "https://"};
    struct weir_bytes url;
    bool plain = true, good = false;
    if (!rules_read_text(loader, node, "url", &url))
        return;
    for (size_t i = 0; i < url.size; i++)
        plain = plain && url.data[i] > ' ' && url.data[i] < 0x7f;
    for (int i = 0; i < 2; i++) {
        size_t size = strlen(schemes[i]);
        good = good || (url.size > size && memcmp(url.data, schemes[i], size) == 0 &&
                        strchr("/?#:@", url.data[size]) == NULL);
    }
    if (!plain || !good || url.size > URL_MAX) {
        rules_problem(loader, node,
                      "the URL of a webhook begins with https:// or http:// and a host, and has at "
                      "most %d bytes of plain ASCII",
                      URL_MAX);
        return;
    }
    webhook->url = rules_keep_text(loader, url.data, url.size);
}

/* False: it is no base64 of the right length. */
static bool decode(const char *text, struct weir_webhook_secret *secret)
{
    static const char prefix[] = "whsec_";
    unsigned char bytes[BASE64_MAX];
    size_t skip = strncmp(text, prefix, sizeof(prefix) - 1) == 0 ? sizeof(prefix) - 1 : 0;
    size_t size = strlen(text + skip), padding = 0;
    if (size == 0 || size > BASE64_MAX || size % 4 != 0)
        return false;
    while (padding < 2 && text[skip + size - 1 - padding] == '=')
        padding++;
    if (strspn(text + skip, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") !=
        size - padding)
        return false;
    int got = EVP_DecodeBlock(bytes, (const unsigned char *)text + skip, (int)size);
    size_t count = got < 0 ? 0 : (size_t)got - padding;
    if (count < WEIR_WEBHOOK_SECRET_MIN || count > WEIR_WEBHOOK_SECRET_MAX)
        return false;
    memcpy(secret->bytes, bytes, count);
    secret->size = (uint8_t)count;
    return true;
}

static const char *read_secret(struct rules_loader *loader, const struct rules_node *node,
                               bool file)
{
    struct weir_bytes text;
    if (file)
        return rules_read_secret_file(loader, node, "secret_file", "a secret");
    return rules_read_text(loader, node, "secret", &text) ? text.data : NULL;
}

static void load_secrets(struct rules_loader *loader, const struct rules_field *field, bool file,
                         struct weir_webhook_settings *webhook)
{
    struct rules_items items = rules_items_of(&field->value);
    if (field->value->kind == RULES_MAP || items.count == 0 ||
        items.count > WEIR_WEBHOOK_SECRETS_MAX) {
        rules_problem(loader, field->value, "`%s` must be one secret%s, or two in a list",
                      field->name, file ? "'s file" : "");
        return;
    }
    for (uint32_t i = 0; i < items.count; i++) {
        const char *text = read_secret(loader, items.items[i], file);
        if (text != NULL && !decode(text, &webhook->secrets[webhook->secret_count++])) {
            rules_problem(loader, items.items[i],
                          "a webhook's secret is base64 of %d to %d bytes, as of `openssl rand "
                          "-base64 32`; `whsec_` may stand before it",
                          WEIR_WEBHOOK_SECRET_MIN, WEIR_WEBHOOK_SECRET_MAX);
        }
    }
}

void rules_load_webhook(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_webhook_settings *webhook = &loader->rules->settings.webhook;
    struct rules_field fields[WEBHOOK_FIELDS] = {
        [WEBHOOK_URL] = {"url", NULL, NULL},
        [WEBHOOK_SECRET] = {"secret", NULL, NULL},
        [WEBHOOK_SECRET_FILE] = {"secret_file", NULL, NULL},
        [WEBHOOK_TIMEOUT] = {"timeout", NULL, NULL},
        [WEBHOOK_CA] = {"ca", NULL, NULL},
    };
    const struct rules_field *secret = &fields[WEBHOOK_SECRET],
                             *file = &fields[WEBHOOK_SECRET_FILE];
    struct weir_bytes ca;
    if (!rules_fields(loader, node, "webhook", fields, WEBHOOK_FIELDS))
        return;
    webhook->timeout_ns = TIMEOUT_NS;
    if (fields[WEBHOOK_URL].value != NULL)
        load_url(loader, fields[WEBHOOK_URL].value, webhook);
    else
        rules_problem(loader, node, "`webhook` needs `url`, where warnings are sent to");
    if (secret->value != NULL && file->value != NULL) {
        rules_problem(loader, file->key, "`secret` and `secret_file` are the same; give one");
    } else if (secret->value == NULL && file->value == NULL) {
        rules_problem(loader, node,
                      "`webhook` needs `secret` or `secret_file`: receivers know by the signature "
                      "who has sent a message");
    } else {
        load_secrets(loader, file->value != NULL ? file : secret, file->value != NULL, webhook);
    }
    if (fields[WEBHOOK_TIMEOUT].value != NULL) {
        rules_read_duration(loader, fields[WEBHOOK_TIMEOUT].value, "timeout", TIMEOUT_MIN_NS,
                            TIMEOUT_MAX_NS, "100ms to 30s", &webhook->timeout_ns);
    }
    if (fields[WEBHOOK_CA].value != NULL &&
        rules_read_text(loader, fields[WEBHOOK_CA].value, "ca", &ca))
        webhook->ca_file = rules_path_of(loader, ca);
}
