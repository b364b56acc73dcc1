/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/webhook/rules/section.h"

#include <openssl/evp.h>
#include <string.h>

#include "core/bytes.h"
#include "rules/load/environment.h"

#define URL_MAX 2048
#define BASE64_MAX 88 /* of 64 bytes */

/* A URL may hold a password: it is never quoted. */
static void load_url(struct rules_loader *loader, const struct rules_node *node,
                     struct weir_webhook_settings *webhook)
{
    static const char *const schemes[] = {"http://", "https://"};
    struct weir_bytes url;
    bool plain = true, good = false;
    if (!rules_read_place(loader, node, "url", &url))
        return;
    for (size_t i = 0; i < url.size; i++)
        plain = plain && url.data[i] > ' ' && url.data[i] < 0x7f;
    for (int i = 0; i < 2; i++) {
        size_t size = strlen(schemes[i]);
        good = good || (url.size > size && memcmp(url.data, schemes[i], size) == 0 &&
                        !strchr("/?#:@", url.data[size]));
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
        if (text && !decode(text, &webhook->secrets[webhook->secret_count++])) {
            rules_problem(loader, items.items[i],
                          "a webhook's secret is base64 of %d to %d bytes, as `openssl rand "
                          "-base64 32` prints it, with or without `whsec_` before it",
                          WEIR_WEBHOOK_SECRET_MIN, WEIR_WEBHOOK_SECRET_MAX);
        }
    }
}

enum { URL, SECRET, SECRET_FILE };

#define AT(member) RULES_AT(struct weir_webhook_settings, member)
static const struct rules_keyword keywords[] = {
    [URL] = {"url", RULES_PLACE, .flags = RULES_REQUIRED,
             .doc = "`https://…` or `http://…`; may contain a user and a password, which are never "
                    "logged"},
    [SECRET] = {"secret", RULES_TEXT, .many = RULES_SEVERAL,
                .absent = "required without `secret_file`",
                .doc = "`whsec_` (optional) and base64 of 24 to 64 bytes; two in a list while one "
                       "is replaced by the next"},
    [SECRET_FILE] = {"secret_file", RULES_FILE, .many = RULES_SEVERAL,
                     .doc = "a file with one of them, or two files in a list"},
    {"timeout", RULES_DURATION, AT(timeout_ns),
     RULES_RANGE(100 * RULES_MS, 30 * RULES_S), /* Standard Webhooks: what a receiver may take */
     .otherwise = "5s", .doc = "of one attempt, 100ms to 30s",
     .why = "a receiver should only store the message"},
    {"ca", RULES_FILE, AT(ca_file), .absent = "the system's",
     .doc = "PEM of the authorities that verify the receiver's certificate"},
};
const struct rules_section rules_section_webhook = RULES_SECTION("webhook", keywords);

void rules_load_webhook(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_webhook_settings *webhook = &loader->rules->settings.webhook;
    struct rules_field fields[RULES_KEYWORDS_MAX];
    const struct rules_field *secret = &fields[SECRET], *file = &fields[SECRET_FILE];
    if (!rules_section_load(loader, &rules_section_webhook, node, fields, webhook))
        return;
    if (fields[URL].value)
        load_url(loader, fields[URL].value, webhook);
    else
        rules_problem(loader, node, "`webhook` needs `url`, where warnings are sent to");
    if (secret->value && file->value) {
        rules_problem(loader, file->key, "`secret` and `secret_file` are the same; give one");
    } else if (!secret->value && !file->value) {
        rules_problem(loader, node,
                      "`webhook` needs `secret` or `secret_file`: receivers verify the signature "
                      "of a message");
    } else {
        webhook->secret_inline = secret->value;
        load_secrets(loader, file->value ? file : secret, file->value, webhook);
    }
}
