/* SHA-256 (FIPS 180-4): 32 bytes that stand for any number of others. For names that must never
 * collide, and to know a file again; nothing here is kept secret by it.
 *
 *     init -> { add } -> end
 *
 * No state of its own; any thread. */
#ifndef OCT_PIPELINE_BASE_SHA256_H
#define OCT_PIPELINE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define OCT_SHA256_BYTES 32u

struct oct_sha256 {
    uint32_t state[8];
    uint64_t n_bytes; /* added so far */
    unsigned char block[64];
};

void oct_sha256_init(struct oct_sha256 *sha);
void oct_sha256_add(struct oct_sha256 *sha, const void *bytes, size_t n);
void oct_sha256_end(struct oct_sha256 *sha, unsigned char sum[OCT_SHA256_BYTES]);

/* The sum as 64 hexadecimal digits. */
void oct_sha256_hex(const unsigned char sum[OCT_SHA256_BYTES], char hex[2 * OCT_SHA256_BYTES + 1]);

#endif
