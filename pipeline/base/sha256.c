#include "pipeline/base/sha256.h"

#include <string.h>

/* The fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void take_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (unsigned i = 0; i < 16; i++)
        w[i] = big_endian(block + 4 * i);
    for (unsigned i = 16; i < 64; i++) {
        const uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (turn(x, 7) ^ turn(x, 18) ^ x >> 3) +
               (turn(y, 17) ^ turn(y, 19) ^ y >> 10);
    }
#pragma GCC unroll 8 /* the letters change places without a copy */
    for (unsigned i = 0; i < 64; i++) {
        const uint32_t one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) +
                             round_constants[i] + w[i];
        const uint32_t two =
            (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + one;
        d = c, c = b, b = a, a = one + two;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void oct_sha256_init(struct oct_sha256 *sha)
{
    *sha = (struct oct_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                         0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void oct_sha256_add(struct oct_sha256 *sha, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    const size_t filled = sha->n_bytes % 64;
    sha->n_bytes += n;
    if (filled) {
        const size_t now = n < 64 - filled ? n : 64 - filled;
        memcpy(sha->block + filled, at, now);
        if (filled + now < 64)
            return;
        take_block(sha->state, sha->block);
        at += now;
        n -= now;
    }
    for (; n >= 64; at += 64, n -= 64)
        take_block(sha->state, at);
    if (n)
        memcpy(sha->block, at, n);
}

void oct_sha256_end(struct oct_sha256 *sha, unsigned char sum[OCT_SHA256_BYTES])
{
    static const unsigned char padding[64] = {0x80};
    const uint64_t n_bits = sha->n_bytes * 8;
    const size_t filled = sha->n_bytes % 64;
    unsigned char length[8];
    for (unsigned i = 0; i < 8; i++)
        length[i] = (unsigned char)(n_bits >> (56 - 8 * i));
    oct_sha256_add(sha, padding, (filled < 56 ? 56 : 120) - filled);
    oct_sha256_add(sha, length, sizeof(length));
    for (unsigned i = 0; i < OCT_SHA256_BYTES; i++)
        sum[i] = (unsigned char)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

void oct_sha256_hex(const unsigned char sum[OCT_SHA256_BYTES], char hex[2 * OCT_SHA256_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < OCT_SHA256_BYTES; i++) {
        hex[2 * i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    hex[2 * OCT_SHA256_BYTES] = '\0';
}
