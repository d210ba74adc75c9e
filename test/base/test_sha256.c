/* SHA-256 against the examples of FIPS 180-4 and of NIST's CAVP, and in pieces of every size. */
#include "test/rig/tap.h"

#include "pipeline/base/sha256.h"

#include <stdlib.h>
#include <string.h>

static void sum_of(const void *bytes, size_t n, char hex[65])
{
    struct oct_sha256 sha;
    unsigned char sum[OCT_SHA256_BYTES];
    oct_sha256_init(&sha);
    oct_sha256_add(&sha, bytes, n);
    oct_sha256_end(&sha, sum);
    oct_sha256_hex(sum, hex);
}

TEST(the_examples_of_the_standard_have_their_sums)
{
    static const struct {
        const char *text, *sum;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
         "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char hex[65];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sum_of(cases[i].text, strlen(cases[i].text), hex);
        assert_string_equal(hex, cases[i].sum);
    }
}

TEST(a_million_letters_have_their_sum)
{
    char hex[65], *letters = malloc(1000000);
    assert_non_null(letters);
    memset(letters, 'a', 1000000);
    sum_of(letters, 1000000, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(letters);
}

/* Every length around the ends of blocks, in pieces of every size. */
TEST(pieces_have_the_sum_of_the_whole)
{
    unsigned char bytes[200];
    char whole[65], hex[65];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 7 + 1);
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        sum_of(bytes, n, whole);
        for (size_t piece = 1; piece <= 130; piece += 3) {
            struct oct_sha256 sha;
            unsigned char sum[OCT_SHA256_BYTES];
            oct_sha256_init(&sha);
            for (size_t at = 0; at < n; at += piece)
                oct_sha256_add(&sha, bytes + at, n - at < piece ? n - at : piece);
            oct_sha256_end(&sha, sum);
            oct_sha256_hex(sum, hex);
            assert_string_equal(hex, whole);
        }
    }
}
