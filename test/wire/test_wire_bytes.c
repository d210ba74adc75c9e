/* The bytes on the wire, written out by hand from the contract. */
#include "octd/client.h"
#include "pipeline/base/crc32c.h"
#include "pipeline/wire/wire.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines in ---- */

static const struct oct_lines_header golden = {
    .sequence = 0x0807060504030201,
    .time_ns = 0x1817161514131211,
    .first_line = 0x2827262524232221,
    .n_lines = 0x34333231,
    .n_samples = 832,
    .format = OCT_LINES_U16,
    .flags = OCT_LINES_STARTS | OCT_LINES_ENDS,
    .epoch = 0x44434241,
    .crc32c = 0x54535251,
};

static const uint8_t golden_bytes[OCT_LINES_HEADER_BYTES] = {
    'O',  'C',  'T',  'L',  1,    0,    64,   0,    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
    0x31, 0x32, 0x33, 0x34, 0x40, 0x03, 0,    0,    2,    0,    3,    0,    0x41, 0x42, 0x43, 0x44,
    0x51, 0x52, 0x53, 0x54, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
};

TEST(header_is_written_byte_for_byte_as_the_contract_says)
{
    uint8_t bytes[OCT_LINES_HEADER_BYTES];
    memset(bytes, 0xee, sizeof(bytes));
    oct_lines_encode(&golden, bytes);
    assert_memory_equal(bytes, golden_bytes, sizeof(bytes));
}

TEST(header_is_read_back_field_by_field)
{
    struct oct_lines_header h;
    assert_int_equal(oct_lines_decode(&h, golden_bytes, sizeof(golden_bytes)), OCT_BAD_NONE);
    assert_int_equal(h.sequence, golden.sequence);
    assert_int_equal(h.time_ns, golden.time_ns);
    assert_int_equal(h.first_line, golden.first_line);
    assert_int_equal(h.n_lines, golden.n_lines);
    assert_int_equal(h.n_samples, golden.n_samples);
    assert_int_equal(h.format, golden.format);
    assert_int_equal(h.flags, golden.flags);
    assert_int_equal(h.epoch, golden.epoch);
    assert_int_equal(h.crc32c, golden.crc32c);
}

static enum oct_bad decode_with(unsigned offset, uint8_t value)
{
    uint8_t bytes[OCT_LINES_HEADER_BYTES];
    struct oct_lines_header h;
    memcpy(bytes, golden_bytes, sizeof(bytes));
    bytes[offset] = value;
    return oct_lines_decode(&h, bytes, sizeof(bytes));
}

TEST(every_fault_of_a_header_has_its_reason)
{
    struct oct_lines_header h;
    assert_int_equal(oct_lines_decode(&h, golden_bytes, 63), OCT_BAD_HEADER_SIZE);
    assert_int_equal(oct_lines_decode(&h, golden_bytes, 0), OCT_BAD_HEADER_SIZE);
    assert_int_equal(oct_lines_decode(&h, NULL, 0), OCT_BAD_HEADER_SIZE);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(decode_with(i, 'x'), OCT_BAD_MAGIC);
    assert_int_equal(decode_with(4, 2), OCT_BAD_VERSION);
    assert_int_equal(decode_with(5, 1), OCT_BAD_VERSION);
    assert_int_equal(decode_with(6, 65), OCT_BAD_HEADER_SIZE);
    assert_int_equal(decode_with(7, 1), OCT_BAD_HEADER_SIZE);
    for (unsigned i = 52; i < 64; i++)
        assert_int_equal(decode_with(i, 1), OCT_BAD_RESERVED);
    assert_int_equal(decode_with(42, 8), OCT_BAD_RESERVED);
    assert_int_equal(decode_with(43, 0x80), OCT_BAD_RESERVED);
    assert_int_equal(decode_with(40, 0), OCT_BAD_FORMAT);
    assert_int_equal(decode_with(40, 4), OCT_BAD_FORMAT);
    assert_int_equal(decode_with(41, 1), OCT_BAD_FORMAT);
    assert_int_equal(decode_with(39, 1), OCT_BAD_SAMPLES);
}

static enum oct_bad decode_lines(uint64_t first_line, uint32_t n_lines, uint16_t flags)
{
    struct oct_lines_header h = {.first_line = first_line,
                                 .n_lines = n_lines,
                                 .n_samples = 4,
                                 .format = OCT_LINES_U8,
                                 .flags = flags};
    uint8_t bytes[OCT_LINES_HEADER_BYTES];
    oct_lines_encode(&h, bytes);
    return oct_lines_decode(&h, bytes, sizeof(bytes));
}

TEST(no_lines_are_legal_only_with_a_flag)
{
    assert_int_equal(decode_lines(0, 0, 0), OCT_BAD_LINES);
    assert_int_equal(decode_lines(0, 0, OCT_LINES_ENDS), OCT_BAD_NONE);
    assert_int_equal(decode_lines(0, 0, OCT_LINES_STARTS), OCT_BAD_NONE);
    assert_int_equal(decode_lines(0, 1, 0), OCT_BAD_NONE);
}

TEST(line_numbers_must_not_overflow)
{
    assert_int_equal(decode_lines(UINT64_MAX - 5, 5, 0), OCT_BAD_NONE);
    assert_int_equal(decode_lines(UINT64_MAX - 5, 6, 0), OCT_BAD_LINES);
    assert_int_equal(decode_lines(UINT64_MAX, UINT32_MAX, 0), OCT_BAD_LINES);
}

TEST(payload_bytes_follow_format_without_overflow)
{
    struct oct_lines_header h = {.n_lines = 240, .n_samples = 832, .format = OCT_LINES_U16};
    assert_int_equal(oct_lines_payload_bytes(&h), 240 * 832 * 2);
    h.format = OCT_LINES_U8;
    assert_int_equal(oct_lines_payload_bytes(&h), 240 * 832);
    h.format = OCT_LINES_12P;
    assert_int_equal(oct_lines_payload_bytes(&h), 240 * 832 * 3 / 2);
    h = (struct oct_lines_header){.n_lines = UINT32_MAX, .n_samples = OCT_MAX_SAMPLES, .format = 2};
    assert_true(oct_lines_payload_bytes(&h) == (uint64_t)UINT32_MAX * OCT_MAX_SAMPLES * 2);
    h.n_samples = UINT32_MAX;
    assert_true(oct_lines_payload_bytes(&h) == UINT64_MAX);
}

TEST(every_reason_has_a_name_of_its_own)
{
    for (unsigned i = 0; i < OCT_N_BAD; i++) {
        assert_non_null(oct_bad_names[i]);
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(oct_bad_names[i], oct_bad_names[j]);
    }
    assert_string_equal(oct_bad_names[OCT_BAD_PARTS], "parts");
    assert_string_equal(oct_bad_names[OCT_BAD_CRC], "crc");
    assert_string_equal(oct_bad_names[OCT_BAD_EPOCH], "epoch");
}

/* ---- CRC-32C ---- */

TEST(crc32c_gives_the_published_values)
{
    /* RFC 3720, B.4, and the check value of the polynomial. */
    uint8_t zeros[32] = {0}, ones[32], rising[32];
    memset(ones, 0xff, sizeof(ones));
    for (unsigned i = 0; i < 32; i++)
        rising[i] = (uint8_t)i;
    assert_int_equal(oct_crc32c("123456789", 9), 0xE3069283);
    assert_int_equal(oct_crc32c(zeros, 32), 0x8A9136AA);
    assert_int_equal(oct_crc32c(ones, 32), 0x62A8AB43);
    assert_int_equal(oct_crc32c(rising, 32), 0x46DD794E);
    assert_int_equal(oct_crc32c_portable("123456789", 9), 0xE3069283);
    assert_int_equal(oct_crc32c_portable(rising, 32), 0x46DD794E);
    assert_int_equal(oct_crc32c(NULL, 0), 0);
}

TEST(crc32c_is_the_same_with_and_without_the_instruction)
{
    static uint8_t bytes[3 * 3072 + 200];
    uint32_t random = 1;
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
    for (unsigned start = 0; start < 16; start++)
        for (unsigned n = 0; n + start <= sizeof(bytes); n += n < 40 ? 1 : 37)
            assert_int_equal(oct_crc32c(bytes + start, n), oct_crc32c_portable(bytes + start, n));
    for (unsigned n = 3072 - 9; n <= 3072 + 9; n++) /* where three streams begin */
        assert_int_equal(oct_crc32c(bytes + 1, n), oct_crc32c_portable(bytes + 1, n));
    /* A bit anywhere in any stream counts. */
    uint32_t before = oct_crc32c(bytes, 2 * 3072);
    for (unsigned at = 0; at < 2 * 3072; at += 61) {
        bytes[at] ^= 0x10;
        assert_int_not_equal(oct_crc32c(bytes, 2 * 3072), before);
        bytes[at] ^= 0x10;
    }
}

/* ---- B-scans out ---- */

static const struct oct_picture_header picture = {
    .frame_num = 123456789012345,
    .acquisition_id = "20240131T120000-1",
    .sample_type = OCT_SAMPLE_U8,
    .n_lines = 3,
    .depth = 5,
    .time_ns = 1700000000123456789,
    .missing_lines = 2,
    .lo = -12.5,
    .hi = 60,
    .volume = 7,
    .bscan = 239,
};

static const char picture_json[] =
    "{\"frame_num\":123456789012345,\"acquisition_id\":\"20240131T120000-1\",\"dtype\":\"uint8\","
    "\"dsize\":15,\"dataset\":\"bscans\",\"compression\":\"none\",\"shape\":[\"3\",\"5\"],"
    "\"time_ns\":1700000000123456789,\"missing_lines\":2,\"lo\":-12.5,\"hi\":60,\"volume\":7,"
    "\"bscan\":239}";

TEST(picture_header_is_written_as_the_contract_says)
{
    char json[OCT_PICTURE_HEADER_BYTES];
    assert_int_equal(oct_picture_encode(&picture, json, sizeof(json)), strlen(picture_json));
    assert_string_equal(json, picture_json);
    struct oct_picture_header f32 = picture;
    f32.sample_type = OCT_SAMPLE_F32;
    oct_picture_encode(&f32, json, sizeof(json));
    assert_non_null(strstr(json, "\"dtype\":\"float\",\"dsize\":60,"));
}

TEST(picture_header_of_the_largest_values_fits_and_is_exact)
{
    char json[OCT_PICTURE_HEADER_BYTES];
    struct oct_picture_header h = {.frame_num = UINT64_MAX,
                                   .sample_type = OCT_SAMPLE_F32,
                                   .n_lines = UINT32_MAX,
                                   .depth = UINT32_MAX,
                                   .time_ns = UINT64_MAX - 1,
                                   .missing_lines = UINT32_MAX,
                                   .lo = -1.2345678901234567e-300,
                                   .hi = 1.2345678901234567e300,
                                   .volume = UINT64_MAX,
                                   .bscan = UINT32_MAX};
    memset(h.acquisition_id, 1, sizeof(h.acquisition_id) - 1); /* each is written \u0001 */
    size_t n = oct_picture_encode(&h, json, sizeof(json));
    assert_true(n > 0 && n == strlen(json));
    assert_non_null(strstr(json, "\"frame_num\":18446744073709551615,"));
    assert_non_null(strstr(json, "\"time_ns\":18446744073709551614,"));
}

TEST(picture_header_that_does_not_fit_is_empty)
{
    char json[64] = "x";
    assert_int_equal(oct_picture_encode(&picture, json, sizeof(json)), 0);
    assert_string_equal(json, "");
    struct oct_picture_header h = picture;
    char room[OCT_PICTURE_HEADER_BYTES];
    h.lo = NAN;
    assert_int_equal(oct_picture_encode(&h, room, sizeof(room)), 0);
    h.lo = 0;
    h.hi = INFINITY;
    assert_int_equal(oct_picture_encode(&h, room, sizeof(room)), 0);
}

static enum oct_err decode(const char *json, size_t image_bytes, struct oct_picture_header *h,
                           struct oct_error *err)
{
    return oct_picture_decode(h, json, strlen(json), image_bytes, err);
}

TEST(picture_header_is_read_back)
{
    struct oct_picture_header h;
    must(decode(picture_json, 15, &h, &failure));
    assert_int_equal(h.frame_num, picture.frame_num);
    assert_string_equal(h.acquisition_id, picture.acquisition_id);
    assert_int_equal(h.sample_type, OCT_SAMPLE_U8);
    assert_int_equal(h.n_lines, 3);
    assert_int_equal(h.depth, 5);
    assert_true(h.time_ns - picture.time_ns + 256 <= 512); /* a double holds 53 bits */
    assert_int_equal(h.missing_lines, 2);
    assert_true(h.lo == -12.5 && h.hi == 60);
    assert_int_equal(h.volume, 7);
    assert_int_equal(h.bscan, 239);
}

/* The golden header with `from` replaced by `to` must be refused with `says` in the message. */
static void refuse(const char *from, const char *to, const char *says)
{
    char json[2048];
    const char *at = strstr(picture_json, from);
    assert_non_null(at);
    snprintf(json, sizeof(json), "%.*s%s%s", (int)(at - picture_json), picture_json, to,
             at + strlen(from));
    struct oct_picture_header h;
    struct oct_error err = {0};
    assert_int_equal(decode(json, 15, &h, &err), OCT_E_FORMAT);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
    assert_int_equal(decode(json, 15, &h, NULL), OCT_E_FORMAT);
}

TEST(every_fault_of_a_picture_header_is_named)
{
    refuse("\"frame_num\":", "\"frame\":", "frame_num");
    refuse("123456789012345", "-1", "frame_num");
    refuse("123456789012345", "1.5", "frame_num");
    refuse("123456789012345", "1e300", "frame_num");
    refuse("123456789012345", "18446744073709551616", "frame_num");
    refuse("123456789012345", "\"1\"", "frame_num");
    refuse("\"20240131T120000-1\"", "5", "acquisition_id");
    refuse("20240131T120000-1", "0123456789012345678901234567890123456789012345678901234567890123",
           "acquisition_id");
    refuse("uint8", "uint16", "dtype");
    refuse("uint8", "float", "dsize");
    refuse("\"dsize\":15", "\"dsize\":16", "dsize");
    refuse("bscans", "enface", "dataset");
    refuse("none", "blosc", "compression");
    refuse("\"dtype\"", "\"type\"", "dtype");
    refuse("\"shape\"", "\"form\"", "shape");
    refuse("[\"3\",\"5\"]", "[\"3\",\"5\",\"1\"]", "shape");
    refuse("[\"3\",\"5\"]", "[3,5]", "shape");
    refuse("[\"3\",\"5\"]", "[\"15\",\"-1\"]", "shape");
    refuse("[\"3\",\"5\"]", "[\"3\",\" 5\"]", "shape");
    refuse("[\"3\",\"5\"]", "[\"3\",\"\"]", "shape");
    refuse("[\"3\",\"5\"]", "[\"0\",\"5\"]", "shape");
    refuse("[\"3\",\"5\"]", "[\"65536\",\"65536\"]", "shape");
    refuse("[\"3\",\"5\"]", "[\"3\",\"99999999999999999999999999\"]", "shape");
    refuse("[\"3\",\"5\"]", "{\"a\":\"3\",\"b\":\"5\"}", "shape");
    refuse("\"missing_lines\":2", "\"missing_lines\":4", "missing_lines");
    refuse("-12.5", "null", "lo");
    refuse("\"hi\":60", "\"hi\":1e999", "hi");
    refuse("239", "1048576", "bscan");
    refuse("}", "", "not a JSON object");
}

TEST(picture_header_must_agree_with_the_image)
{
    struct oct_picture_header h;
    struct oct_error err = {0};
    must_fail(decode(picture_json, 14, &h, &failure), OCT_E_FORMAT, "14 bytes");
    assert_int_equal(decode(picture_json, 0, &h, &err), OCT_E_FORMAT);
}

TEST(hostile_json_is_refused)
{
    struct oct_picture_header h;
    struct oct_error err;
    char deep[OCT_PICTURE_HEADER_BYTES];
    static char huge[1 << 20];
    const char *texts[] = {"",  "[]", "5",       "null",     "\"x\"",
                           "{", "{}", "{\"a\":", "\xff\xfe", "{\"\":}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(decode(texts[i], 15, &h, &err), OCT_E_FORMAT);
    memset(deep, '[', sizeof(deep));
    assert_int_equal(oct_picture_decode(&h, deep, sizeof(deep), 15, &err), OCT_E_FORMAT);
    memset(huge, ' ', sizeof(huge));
    memcpy(huge, picture_json, strlen(picture_json));
    assert_int_equal(oct_picture_decode(&h, huge, sizeof(huge), 15, &err), OCT_E_FORMAT);
    /* Every cut and every flipped byte: no crash, and a cut is never accepted. Copies of exact
     * size, so that a sanitizer sees the first byte read beyond. */
    size_t n = strlen(picture_json);
    for (size_t i = 0; i < n; i++) {
        char *copy = malloc(n);
        assert_non_null(copy);
        memcpy(copy, picture_json, n);
        copy[i] = (char)(copy[i] ^ 0x15);
        oct_picture_decode(&h, copy, n, 15, &err);
        char *cut = malloc(i + 1);
        assert_non_null(cut);
        memcpy(cut, picture_json, i);
        assert_int_equal(oct_picture_decode(&h, cut, i, 15, &err), OCT_E_FORMAT);
        free(cut);
        free(copy);
    }
}

/* ---- the client's refusals (what it sends is seen in test_client.c and test_replay.py) ---- */

TEST(client_refuses_what_makes_no_sense)
{
    struct oct_client *client;
    char error[128] = "";
    assert_int_equal(oct_client_connect(&client, "tcp://127.0.0.1:9", 0, NULL, error, 128),
                     OCT_CLIENT_REFUSED);
    assert_null(client);
    assert_non_null(strstr(error, "n_samples"));
    assert_int_equal(oct_client_connect(&client, "shm://octd/x", 832, NULL, error, 128),
                     OCT_CLIENT_REFUSED);
    assert_non_null(strstr(error, "shm://octd/x"));
    assert_int_equal(oct_client_connect(&client, "tcp://", 832, NULL, NULL, 0), OCT_CLIENT_REFUSED);
    assert_int_equal(oct_client_close(NULL), 0);
}
