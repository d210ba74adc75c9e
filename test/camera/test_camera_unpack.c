/* Pixels of GenICam cameras against bytes written by hand from the standard's pictures. */
#include "test/rig/tap.h"
#include "tools/genicam/unpack.h"

#include <stdlib.h>
#include <string.h>

#define MONO8 0x01080001u
#define MONO12 0x01100005u
#define MONO16 0x01100007u
#define MONO12P 0x010c0047u
#define MONO12_PACKED 0x010c0006u

/* Two samples, 0xABC and 0x123, and one more, 0xF0E, in each format. */
TEST(known_bytes)
{
    static const struct {
        uint32_t pfnc;
        unsigned n_bytes;
        uint8_t bytes[6];
        uint16_t samples[3];
    } cases[] = {
        {MONO8, 3, {0xbc, 0x23, 0x0e}, {0xbc, 0x23, 0x0e}},
        {MONO12, 6, {0xbc, 0x0a, 0x23, 0x01, 0x0e, 0x0f}, {0xabc, 0x123, 0xf0e}},
        {MONO16, 6, {0xbc, 0xfa, 0x23, 0x01, 0x00, 0x80}, {0xfabc, 0x123, 0x8000}},
        {MONO12P, 5, {0xbc, 0x3a, 0x12, 0x0e, 0x0f}, {0xabc, 0x123, 0xf0e}},
        {MONO12_PACKED, 5, {0xab, 0x3c, 0x12, 0xf0, 0x0e}, {0xabc, 0x123, 0xf0e}},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const enum oct_pixel_format format = oct_pixel_format_of(cases[i].pfnc);
        uint16_t got[3];
        assert_int_equal(oct_pixel_bytes(format, 1, 3, 0), cases[i].n_bytes);
        uint8_t *exact = malloc(cases[i].n_bytes); /* a byte beyond it is seen by a sanitizer */
        assert_non_null(exact);
        memcpy(exact, cases[i].bytes, cases[i].n_bytes);
        oct_pixel_lines(format, exact, 0, 1, 3, 0, got);
        if (oct_pixel_lines_format(format, 3) == OCT_LINES_U8)
            assert_memory_equal(got, exact, 3);
        else
            assert_memory_equal(got, cases[i].samples, sizeof(got));
        free(exact);
    }
}

/* Three samples a row: without padding the second row begins within a byte, with padding it begins
 * with one of its own. */
TEST(rows_run_on_or_are_padded)
{
    static const uint8_t on[9] = {0x01, 0x20, 0x00, 0x03, 0x40, 0x00, 0x05, 0x60, 0x00};
    static const uint8_t padded[14] = {0x01, 0x20, 0x00, 0x03, 0x00, 0xee, 0xee,
                                       0x04, 0x50, 0x00, 0x06, 0x00, 0xee, 0xee};
    static const uint16_t wanted[6] = {1, 2, 3, 4, 5, 6};
    uint16_t got[6];
    assert_int_equal(oct_pixel_bytes(OCT_PIXEL_MONO12P, 2, 3, 0), sizeof(on));
    assert_int_equal(oct_pixel_bytes(OCT_PIXEL_MONO12P, 2, 3, 2), sizeof(padded));
    oct_pixel_lines(OCT_PIXEL_MONO12P, on, 0, 2, 3, 0, got);
    assert_memory_equal(got, wanted, sizeof(got));
    oct_pixel_lines(OCT_PIXEL_MONO12P, padded, 0, 2, 3, 2, got);
    assert_memory_equal(got, wanted, sizeof(got));
    oct_pixel_lines(OCT_PIXEL_MONO12P, on, 1, 1, 3, 0, got);
    assert_memory_equal(got, wanted + 3, 3 * sizeof(*got));
    oct_pixel_lines(OCT_PIXEL_MONO12P, padded, 1, 1, 3, 2, got);
    assert_memory_equal(got, wanted + 3, 3 * sizeof(*got));
}

/* Mono12p of an even width goes as it is, row by row. */
TEST(packed_rows_of_whole_bytes_stay_packed)
{
    static const uint8_t padded[8] = {0x01, 0x20, 0x00, 0xee, 0x03, 0x40, 0x00, 0xee};
    static const uint8_t on[6] = {0x01, 0x20, 0x00, 0x03, 0x40, 0x00};
    uint8_t got[6];
    assert_int_equal(oct_pixel_lines_format(OCT_PIXEL_MONO12P, 2), OCT_LINES_12P);
    assert_int_equal(oct_pixel_lines_format(OCT_PIXEL_MONO12P, 3), OCT_LINES_U16);
    assert_int_equal(oct_pixel_lines_format(OCT_PIXEL_MONO12_PACKED, 2), OCT_LINES_U16);
    oct_pixel_lines(OCT_PIXEL_MONO12P, on, 0, 2, 2, 0, got);
    assert_memory_equal(got, on, sizeof(on));
    oct_pixel_lines(OCT_PIXEL_MONO12P, padded, 0, 2, 2, 1, got);
    assert_memory_equal(got, on, sizeof(on));
    oct_pixel_lines(OCT_PIXEL_MONO12P, on, 1, 1, 2, 0, got);
    assert_memory_equal(got, on + 3, 3);
}

TEST(formats_are_those_of_the_convention)
{
    assert_int_equal(oct_pixel_format_of(0x01100003), OCT_PIXEL_MONO10);
    assert_int_equal(oct_pixel_format_of(0x01100025), OCT_PIXEL_MONO14);
    assert_int_equal(oct_pixel_format_of(0x02180014), OCT_PIXEL_NONE); /* RGB8 */
    assert_int_equal(oct_pixel_format_of(0), OCT_PIXEL_NONE);
    assert_string_equal(oct_pixel_format_name(OCT_PIXEL_MONO12P), "Mono12p");
    assert_int_equal(oct_pixel_format_bits(OCT_PIXEL_MONO12_PACKED), 12);
    assert_int_equal(oct_pixel_format_bits(OCT_PIXEL_NONE), 0);
}

TEST(sizes_do_not_overflow)
{
    assert_int_equal(oct_pixel_bytes(OCT_PIXEL_MONO16, UINT32_MAX, UINT32_MAX, 0), 0);
    assert_int_equal(oct_pixel_bytes(OCT_PIXEL_MONO8, UINT32_MAX, UINT32_MAX, UINT32_MAX), 0);
    assert_true(oct_pixel_bytes(OCT_PIXEL_MONO16, 1u << 20, 1u << 20, 0) == (size_t)1 << 41);
}
