/* see ticket.h */
#include "engine/ticket.h"

#include <string.h>

#include "core/siphash.h"

#define HEAD_BYTES 9
#define HASH_BYTES 16

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Tells this use of the secret from the hashing of keys. */
#define LEASE_DOMAIN UINT64_C(0x657361656c726977) /* "wirlease" */

uint64_t weir_lease_draw(const uint64_t secret[2], uint64_t *counter)
{
    const uint64_t key[2] = {secret[0] ^ LEASE_DOMAIN, secret[1]};
    uint64_t hash[2];
    do {
        ++*counter;
        weir_siphash128(key, counter, sizeof *counter, hash);
    } while (hash[0] == 0);
    return hash[0];
}

static void put64(unsigned char *bytes, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (56 - 8 * i));
}

static uint64_t get64(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

static int digit(char c)
{
    const char *at = c != '\0' ? strchr(alphabet, c) : NULL;
    return at != NULL ? (int)(at - alphabet) : -1;
}

size_t weir_ticket_write(const struct weir_ticket *ticket, char *text)
{
    unsigned char bytes[WEIR_TICKET_BYTES_MAX];
    size_t size = HEAD_BYTES, length = 0;
    bytes[0] = ticket->local;
    put64(bytes + 1, ticket->id);
    for (uint16_t i = 0; i < ticket->count; i++, size += HASH_BYTES) {
        put64(bytes + size, ticket->hash[i][0]);
        put64(bytes + size + 8, ticket->hash[i][1]);
    }
    uint32_t bits = 0, held = 0;
    for (size_t i = 0; i < size; i++) {
        bits = bits << 8 | bytes[i];
        for (held += 8; held >= 6; held -= 6)
            text[length++] = alphabet[bits >> (held - 6) & 63];
    }
    if (held > 0)
        text[length++] = alphabet[bits << (6 - held) & 63];
    return length;
}

/* Decodes strictly. Returns the number of bytes, or WEIR_ERR_SYNTAX. */
static int decode(struct weir_bytes text, unsigned char *bytes)
{
    uint32_t bits = 0, held = 0;
    int size = 0;
    for (size_t i = 0; i < text.size; i++) {
        int value = digit(text.data[i]);
        if (value < 0)
            return WEIR_ERR_SYNTAX;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            bytes[size++] = (unsigned char)(bits >> held);
        }
    }
    if (held >= 6 || (bits & ((1U << held) - 1)) != 0)
        return WEIR_ERR_SYNTAX; /* a digit too many, or bits that say nothing */
    return size;
}

static bool has_hash(const struct weir_ticket *ticket, const uint64_t hash[2])
{
    for (uint16_t i = 0; i < ticket->count; i++)
        if (ticket->hash[i][0] == hash[0] && ticket->hash[i][1] == hash[1])
            return true;
    return false;
}

int weir_ticket_read(struct weir_ticket *ticket, struct weir_bytes text)
{
    unsigned char bytes[WEIR_TICKET_BYTES_MAX];
    if (text.size > WEIR_TICKET_TEXT_MAX)
        return WEIR_ERR_SYNTAX;
    int size = decode(text, bytes);
    if (size < HEAD_BYTES + HASH_BYTES || (size - HEAD_BYTES) % HASH_BYTES != 0)
        return WEIR_ERR_SYNTAX;
    ticket->local = bytes[0] == 1;
    ticket->id = get64(bytes + 1);
    ticket->count = 0;
    if (bytes[0] > 1 || ticket->id == 0)
        return WEIR_ERR_SYNTAX;
    for (int at = HEAD_BYTES; at < size; at += HASH_BYTES) {
        uint64_t hash[2] = {get64(bytes + at), get64(bytes + at + 8)};
        if (has_hash(ticket, hash))
            return WEIR_ERR_SYNTAX;
        memcpy(ticket->hash[ticket->count++], hash, sizeof hash);
    }
    return 0;
}
