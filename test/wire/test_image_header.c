/* The header of images of any topic: written, read back, and refused where it lies. */
#include "pipeline/wire/image_header.h"
#include "test/rig/tap.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const columns[] = {"line", "depth um", "\xc2\xb5m"};

/* One row of three numbers. */
static const struct oct_image_form row_form = {
    .name = "numbers",
    .quantity = OCT_QUANTITY_NUMBERS,
    .type = OCT_SAMPLE_F32,
    .rank = 2,
    .dims = {4, 3},
    .spacing_um = {NAN, NAN},
    .axes = {"row", "column"},
    .labels = columns,
};

static const struct oct_image_form map_form = {
    .name = "map",
    .quantity = OCT_QUANTITY_INTENSITY_DB,
    .type = OCT_SAMPLE_U8,
    .rank = 3,
    .dims = {2, 3, 5},
    .spacing_um = {12.25, NAN, 3.5},
    .axes = {"bscan", "line", "depth"},
    .of_volume = true,
};

static struct oct_image_frame frame_of(const struct oct_image_form *form, void *pixels)
{
    struct oct_image_frame frame = {
        .info = {.number = 12345,
                 .volume = 7,
                 .bscan = 239,
                 .time_ns = 1700000000123456789,
                 .missing_lines = 2},
        .form = form,
        .whole = true,
        .lo = -12.5,
        .hi = 60,
        .pixels = pixels,
    };
    memcpy(frame.dims, form->dims, sizeof(frame.dims));
    return frame;
}

static const char row_json[] =
    "{\"frame_num\":12345,\"acquisition_id\":\"s-1\",\"dtype\":\"float\",\"dsize\":12,"
    "\"dataset\":\"analysis/numbers\",\"compression\":\"none\",\"shape\":[\"1\",\"3\"],"
    "\"time_ns\":1700000000123456789,\"missing_lines\":2,\"lo\":-12.5,\"hi\":60,\"volume\":7,"
    "\"bscan\":239,\"quantity\":\"numbers\",\"unit\":\"as labelled\",\"axes\":[\"row\",\"column\"],"
    "\"spacing_um\":[null,null],\"whole\":true,\"labels\":[\"line\",\"depth um\",\"\xc2\xb5m\"],"
    "\"values\":{\"line\":1.5,\"depth um\":null,\"\xc2\xb5m\":-3}}";

static const char map_json[] =
    "{\"frame_num\":12345,\"acquisition_id\":\"s-1\",\"dtype\":\"uint8\",\"dsize\":30,"
    "\"dataset\":\"analysis/map\",\"compression\":\"none\",\"shape\":[\"2\",\"3\",\"5\"],"
    "\"time_ns\":1700000000123456789,\"missing_lines\":2,\"lo\":-12.5,\"hi\":60,\"volume\":7,"
    "\"bscan\":239,\"quantity\":\"intensity\",\"unit\":\"dB\",\"axes\":[\"bscan\",\"line\","
    "\"depth\"],\"spacing_um\":[12.25,null,3.5],\"whole\":false}";

TEST(headers_are_written_key_by_key)
{
    float row[3] = {1.5f, NAN, -3};
    char json[OCT_IMAGE_HEADER_BYTES];
    struct oct_image_frame frame = frame_of(&row_form, row);
    frame.dims[0] = 1;
    assert_int_equal(oct_image_header_encode(&frame, "s-1", json, sizeof(json)), strlen(row_json));
    assert_string_equal(json, row_json);
    frame = frame_of(&map_form, NULL);
    frame.whole = false;
    assert_int_equal(oct_image_header_encode(&frame, "s-1", json, sizeof(json)), strlen(map_json));
    assert_string_equal(json, map_json);
}

/* Values stand in the header only where they are one row. */
TEST(tables_of_any_other_length_have_no_values_in_the_header)
{
    float rows[12] = {0};
    for (uint32_t n = 0; n <= 4; n++) {
        struct oct_image_frame frame = frame_of(&row_form, rows);
        struct oct_image_header h;
        char json[OCT_IMAGE_HEADER_BYTES];
        frame.dims[0] = n;
        size_t length = oct_image_header_encode(&frame, "s-1", json, sizeof(json));
        assert_true(length > 0);
        assert_true((strstr(json, "\"values\"") != NULL) == (n == 1));
        must(oct_image_header_decode(&h, json, length, n * 12, &failure));
        assert_int_equal(h.dims[0], n);
        assert_int_equal(h.dims[1], 3);
        assert_int_equal(h.n_labels, 3);
    }
}

TEST(a_list_of_one_axis_has_a_label_for_each_number)
{
    struct oct_image_form form = row_form;
    float list[3] = {1, 2, 3};
    form.rank = 1;
    form.dims[0] = 3;
    for (uint32_t n = 0; n <= 3; n++) {
        struct oct_image_frame frame = frame_of(&form, list);
        struct oct_image_header h;
        char json[OCT_IMAGE_HEADER_BYTES];
        frame.dims[0] = n;
        size_t length = oct_image_header_encode(&frame, "s-1", json, sizeof(json));
        must(oct_image_header_decode(&h, json, length, n * 4, &failure));
        assert_int_equal(h.rank, 1);
        assert_int_equal(h.n_labels, n);
    }
}

TEST(headers_are_read_back)
{
    struct oct_image_header h;
    const float row[3] = {1.5f, 7, -3};
    must(oct_image_header_decode(&h, row_json, strlen(row_json), 12, &failure));
    assert_string_equal(h.dataset, "analysis/numbers");
    assert_string_equal(h.acquisition_id, "s-1");
    assert_string_equal(h.unit, "as labelled");
    assert_int_equal(h.frame_num, 12345);
    assert_true(h.time_ns - 1700000000123456789 + 256 <= 512); /* a double holds 53 bits */
    assert_int_equal(h.volume, 7);
    assert_int_equal(h.bscan, 239);
    assert_int_equal(h.missing_lines, 2);
    assert_int_equal(h.type, OCT_SAMPLE_F32);
    assert_int_equal(h.rank, 2);
    assert_int_equal(h.dims[0], 1);
    assert_int_equal(h.dims[1], 3);
    assert_true(isnan(h.spacing_um[0]) && isnan(h.spacing_um[1]));
    assert_true(h.lo == -12.5 && h.hi == 60 && h.whole);
    assert_int_equal(h.n_labels, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(h.labels[i], columns[i]);
    assert_true(oct_image_header_value(&h, row, "depth um") == 7);
    assert_true(oct_image_header_value(&h, row, "\xc2\xb5m") == -3);
    assert_true(isnan(oct_image_header_value(&h, row, "depth")));

    must(oct_image_header_decode(&h, map_json, strlen(map_json), 30, &failure));
    assert_int_equal(h.type, OCT_SAMPLE_U8);
    assert_int_equal(h.rank, 3);
    assert_int_equal(h.dims[2], 5);
    assert_true(h.spacing_um[0] == 12.25 && isnan(h.spacing_um[1]) && h.spacing_um[2] == 3.5);
    assert_string_equal(h.unit, "dB");
    assert_false(h.whole);
    assert_int_equal(h.n_labels, 0);
}

/* What was published before there were other topics is read as an image too. */
TEST(the_header_of_a_picture_is_one_of_an_image)
{
    static const char json[] =
        "{\"frame_num\":1,\"acquisition_id\":\"a\",\"dtype\":\"uint8\",\"dsize\":6,\"dataset\":"
        "\"bscans\",\"compression\":\"none\",\"shape\":[\"2\",\"3\"],\"time_ns\":5,"
        "\"missing_lines\":0,\"lo\":0,\"hi\":60,\"volume\":0,\"bscan\":1}";
    struct oct_image_header h;
    must(oct_image_header_decode(&h, json, strlen(json), 6, &failure));
    assert_true(h.whole && isnan(h.spacing_um[0]) && isnan(h.spacing_um[1]));
    assert_string_equal(h.unit, "");
    assert_int_equal(h.n_labels, 0);
}

/* Numbers beside the pixels: members of the header, by name. */
TEST(numbers_of_a_form_are_members)
{
    static const struct oct_image_number numbers[] = {{"averaged", 1}, {"shift_px", 2}};
    static const struct oct_image_number taken[] = {{"lo", 1}};
    struct oct_image_form form = map_form;
    form.numbers = numbers;
    form.n_numbers = 2;
    struct oct_image_frame frame = frame_of(&form, NULL);
    memcpy(frame.numbers, (double[]){14, -0.25, NAN}, 3 * sizeof(double));
    struct oct_image_header h;
    char json[OCT_IMAGE_HEADER_BYTES], more[OCT_IMAGE_HEADER_BYTES];
    size_t n = oct_image_header_encode(&frame, "s-1", json, sizeof(json));
    const char *end = ",\"averaged\":14,\"shift_px\":[-0.25,null]}";
    assert_true(n > strlen(end));
    assert_string_equal(json + n - strlen(end), end);
    assert_int_equal(oct_image_header_decode(&h, json, n, 30, NULL), OCT_OK);
    assert_int_equal(h.n_numbers, 2);
    assert_true(oct_image_header_number(&h, "averaged", 0) == 14);
    assert_true(oct_image_header_number(&h, "shift_px", 0) == -0.25);
    assert_true(isnan(oct_image_header_number(&h, "shift_px", 1)));
    assert_true(isnan(oct_image_header_number(&h, "shift_px", 2)));
    assert_true(isnan(oct_image_header_number(&h, "score", 0)));
    /* Anybody's members: what holds no numbers, or too many, is passed over. */
    snprintf(more, sizeof(more),
             "%.*s,\"a\":\"x\",\"b\":[1,\"x\"],"
             "\"c\":[1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7],"
             "\"d\":[],\"e\":1e999,\"f\":true,\"g\":{\"h\":1},\"i\":7}",
             (int)(n - 1), json);
    assert_int_equal(oct_image_header_decode(&h, more, strlen(more), 30, NULL), OCT_OK);
    assert_int_equal(h.n_numbers, 4);
    assert_true(isnan(oct_image_header_number(&h, "e", 0)));
    assert_true(oct_image_header_number(&h, "i", 0) == 7);
    form.numbers = taken;
    form.n_numbers = 1;
    assert_int_equal(oct_image_header_encode(&frame, "s-1", json, sizeof(json)), 0);
}

static const char *const hows[] = {"found", "guessed", NULL};
static const struct oct_image_objects objects = {
    .name = "things",
    .keys = (const char *const[]){"id", "how", "speed_um_s"},
    .words = (const char *const *const[]){NULL, hows, NULL},
};

TEST(rows_of_a_table_are_objects_too)
{
    static const char said[] =
        ",\"things\":[{\"id\":16777215,\"how\":\"guessed\",\"speed_um_s\":-0.123},"
        "{\"id\":-3,\"how\":\"found\",\"speed_um_s\":null},"
        "{\"id\":1.25e+10,\"how\":null,\"speed_um_s\":0}]}";
    float rows[12] = {16777215, 1, -0.123f, -3, 0, NAN, 1.25e10f, 2, 0};
    struct oct_image_form form = row_form;
    struct oct_image_header h;
    char json[OCT_IMAGE_HEADER_BYTES];
    form.objects = &objects;
    for (uint32_t n = 0; n <= 3; n += 3) {
        struct oct_image_frame frame = frame_of(&form, rows);
        frame.dims[0] = n;
        size_t length = oct_image_header_encode(&frame, "s-1", json, sizeof(json));
        const char *at = strstr(json, ",\"things\":");
        assert_non_null(at);
        assert_string_equal(at, n ? said : ",\"things\":[]}");
        must(oct_image_header_decode(&h, json, length, n * 12, &failure));
        assert_int_equal(h.dims[0], n);
        assert_int_equal(h.n_numbers, 0);
    }
}

TEST(objects_that_cannot_be_written_are_refused)
{
    const char *const bad_keys[] = {"id", "how", "Speed"}, *const bad_words[] = {"a b", NULL};
    struct oct_image_objects wrong = objects;
    struct oct_image_form form = row_form, good;
    struct oct_error err;
    char json[OCT_IMAGE_HEADER_BYTES];
    float row[3] = {0};
    form.objects = &wrong;
    assert_int_equal(oct_image_form_check(&form, &err), OCT_OK);
    good = form;
    form.labels = NULL;
    form.quantity = OCT_QUANTITY_LENGTH;
    assert_int_equal(oct_image_form_check(&form, &err), OCT_E_ARG);
    form = good;
    form.dims[0] = 4096; /* their text would be longer than a header */
    assert_int_equal(oct_image_form_check(&form, &err), OCT_E_ARG);
    form = good;
    wrong.keys = bad_keys;
    assert_int_equal(oct_image_form_check(&form, &err), OCT_E_ARG);
    wrong = objects;
    wrong.words = (const char *const *const[]){NULL, bad_words, NULL};
    assert_int_equal(oct_image_form_check(&form, &err), OCT_E_ARG);
    wrong = objects;
    wrong.name = "volume"; /* a key of every header */
    struct oct_image_frame frame = frame_of(&form, row);
    frame.dims[0] = 1;
    assert_int_equal(oct_image_header_encode(&frame, "a", json, sizeof(json)), 0);
}

/* As many as a form may have, each number as long as one can be. */
TEST(the_most_objects_fit)
{
    struct oct_image_form form = row_form;
    struct oct_error err;
    char json[OCT_IMAGE_HEADER_BYTES];
    form.objects = &objects;
    while (form.dims[0]++, oct_image_form_check(&form, &err) == OCT_OK)
        ;
    form.dims[0]--;
    float *rows = malloc(form.dims[0] * 3 * sizeof(*rows));
    assert_non_null(rows);
    for (uint32_t i = 0; i < 3 * form.dims[0]; i++)
        rows[i] = i % 3 == 1 ? 1 : -1.234567e-38f;
    struct oct_image_frame frame = frame_of(&form, rows);
    size_t n = oct_image_header_encode(&frame, "s-1", json, sizeof(json));
    print_message("# %u objects in %zu bytes\n", form.dims[0], n);
    assert_true(n > 30000);
    free(rows);
}

TEST(the_largest_header_fits)
{
    static char labels[OCT_IMAGE_MAX_LABELS][OCT_IMAGE_LABEL_BYTES];
    const char *names[OCT_IMAGE_MAX_LABELS];
    float row[OCT_IMAGE_MAX_LABELS];
    struct oct_image_form form = row_form;
    char id[64], json[OCT_IMAGE_HEADER_BYTES];
    for (unsigned i = 0; i < OCT_IMAGE_MAX_LABELS; i++) {
        memset(labels[i], '"', OCT_IMAGE_LABEL_BYTES - 1);
        labels[i][0] = (char)('A' + i);
        names[i] = labels[i];
        row[i] = -FLT_MIN / 3;
    }
    memset(form.name, 'x', sizeof(form.name) - 1);
    memset(id, 1, sizeof(id) - 1);
    id[63] = '\0';
    form.labels = names;
    form.dims[1] = OCT_IMAGE_MAX_LABELS;
    struct oct_image_frame frame = frame_of(&form, row);
    frame.dims[0] = 1;
    frame.info = (struct oct_bscan_info){.number = UINT64_MAX,
                                         .time_ns = UINT64_MAX,
                                         .volume = UINT64_MAX,
                                         .bscan = UINT32_MAX,
                                         .missing_lines = UINT32_MAX};
    frame.lo = -DBL_MAX;
    frame.hi = DBL_MAX;
    size_t n = oct_image_header_encode(&frame, id, json, sizeof(json));
    assert_true(n > 0 && n == strlen(json));
    assert_non_null(strstr(json, "\"frame_num\":18446744073709551615,"));
}

TEST(what_cannot_be_written_is_empty)
{
    static const char *const wrong[] = {"0123456789012345678901234567890x", "two\nlines", "\xff",
                                        "\xc2\x9b"};
    struct oct_image_form form = row_form;
    float row[12] = {0};
    char json[OCT_IMAGE_HEADER_BYTES] = "x";
    struct oct_image_frame frame = frame_of(&form, row);
    assert_int_equal(oct_image_header_encode(&frame, "a", json, 100), 0);
    assert_string_equal(json, "");
    assert_int_equal(oct_image_header_encode(&frame, "a", json, 0), 0);
    frame.lo = NAN;
    assert_int_equal(oct_image_header_encode(&frame, "a", json, sizeof(json)), 0);
    frame.lo = 0;
    frame.hi = INFINITY;
    assert_int_equal(oct_image_header_encode(&frame, "a", json, sizeof(json)), 0);
    frame.hi = 1;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *const labels[] = {"a", wrong[i], "c"};
        form.labels = labels;
        assert_int_equal(oct_image_header_encode(&frame, "a", json, sizeof(json)), 0);
        assert_string_equal(json, "");
    }
    form.labels = columns;
    assert_true(oct_image_header_encode(&frame, "a", json, sizeof(json)) > 0);
}

/* The row's header with `from` replaced by `to` is refused with `says` in the message. */
static void refuse(const char *from, const char *to, const char *says)
{
    char json[4096];
    const char *at = strstr(row_json, from);
    assert_non_null(at);
    snprintf(json, sizeof(json), "%.*s%s%s", (int)(at - row_json), row_json, to, at + strlen(from));
    struct oct_image_header h;
    struct oct_error err = {0};
    assert_int_equal(oct_image_header_decode(&h, json, strlen(json), 12, &err), OCT_E_FORMAT);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
    assert_int_equal(h.rank, 0);
    assert_int_equal(oct_image_header_decode(&h, json, strlen(json), 12, NULL), OCT_E_FORMAT);
}

TEST(every_fault_of_what_all_headers_have_is_named)
{
    refuse("\"frame_num\":12345", "\"frame_num\":-1", "frame_num");
    refuse("\"frame_num\":12345", "\"frame_num\":1e300", "frame_num");
    refuse("\"frame_num\"", "\"frame\"", "frame_num");
    refuse("\"s-1\"", "5", "acquisition_id");
    refuse("s-1", "0123456789012345678901234567890123456789012345678901234567890123",
           "acquisition_id");
    refuse("s-1", "a\\u001bb", "acquisition_id");
    refuse("\"float\"", "\"uint16\"", "dtype");
    refuse("\"float\"", "\"uint8\"", "dsize");
    refuse("\"dsize\":12", "\"dsize\":16", "dsize");
    refuse("\"dsize\":12", "\"dsize\":-12", "dsize");
    refuse("analysis/numbers", "analysis/0123456789012345678901234567890123456789", "dataset");
    refuse("analysis/numbers", "analysis/\\n", "dataset");
    refuse("\"none\"", "\"blosc\"", "compression");
    refuse("\"time_ns\":", "\"time\":", "time_ns");
    refuse("\"missing_lines\":2", "\"missing_lines\":4294967296", "missing_lines");
    refuse("-12.5", "null", "lo");
    refuse("\"hi\":60", "\"hi\":1e999", "hi");
    refuse("\"volume\":7", "\"volume\":0.5", "volume");
    refuse("\"bscan\":239", "\"bscan\":1048576", "bscan");
    refuse("}}", "}", "not a JSON object");
}

TEST(every_fault_of_a_shape_is_named)
{
    static const char *const wrong[] = {
        "[]", "[\"1\",\"1\",\"1\",\"3\"]", "[1,3]", "[\"1\",\"-3\"]", "[\"1\",\" 3\"]",
        "[\"1\",\"\"]", "[\"1\",\"0\"]", "[\"0\",\"0\"]", "\"13\"", "{\"a\":\"1\",\"b\":\"3\"}",
        "[\"1\",\"99999999999999999999999999\"]", "[\"65536\",\"65536\"]",
        /* No values, but a size that none can have; and one that overflows. */
        "[\"0\",\"268435456\",\"2\"]", "[\"268435456\",\"268435456\",\"268435456\"]"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        refuse("[\"1\",\"3\"]", wrong[i], "shape");
    refuse("[\"1\",\"3\"]", "[\"2\",\"3\"]", "dsize");
    refuse("[\"1\",\"3\"]", "[\"0\",\"3\"]", "dsize");
}

TEST(every_fault_of_what_only_images_have_is_named)
{
    refuse("[null,null]", "[null]", "spacing_um");
    refuse("[null,null]", "[null,null,null]", "spacing_um");
    refuse("[null,null]", "[null,0]", "spacing_um");
    refuse("[null,null]", "[null,-1]", "spacing_um");
    refuse("[null,null]", "[1e999,1]", "spacing_um");
    refuse("[null,null]", "[true,1]", "spacing_um");
    refuse("[null,null]", "7", "spacing_um");
    refuse("\"whole\":true", "\"whole\":1", "whole");
    refuse("\"as labelled\"", "7", "unit");
    refuse("as labelled", "0123456789012345678901234", "unit");
    refuse("\"labels\":[\"line\",", "\"labels\":[", "labels");
    refuse("\"labels\":[\"line\",", "\"labels\":[\"a\",\"line\",", "labels");
    refuse("\"labels\":[\"line\",", "\"labels\":[5,", "labels");
    refuse("\"labels\":[\"line\",", "\"labels\":[\"\\u0007\",", "labels");
    refuse("\"labels\":[\"line\",", "\"labels\":[\"\xff\",", "labels");
    refuse("\"labels\":[\"line\",", "\"labels\":[\"01234567890123456789012345678901\",", "labels");
    refuse("\"labels\":[\"line\",\"depth um\",\"\xc2\xb5m\"]", "\"labels\":\"abc\"", "labels");
}

/* More columns than there may be labels: none are given. */
TEST(labels_are_bounded)
{
    static char json[OCT_IMAGE_HEADER_BYTES], labels[4096];
    for (unsigned n = 31; n <= 33; n++) {
        struct oct_image_header h;
        struct oct_error err;
        labels[0] = '\0';
        for (unsigned i = 0; i < n; i++)
            snprintf(labels + strlen(labels), sizeof(labels) - strlen(labels), "%s\"c%u\"",
                     i ? "," : "", i);
        int length =
            snprintf(json, sizeof(json),
                     "{\"frame_num\":1,\"acquisition_id\":\"a\",\"dtype\":\"uint8\",\"dsize\":%u,"
                     "\"dataset\":\"x\",\"compression\":\"none\",\"shape\":[\"%u\"],\"time_ns\":5,"
                     "\"missing_lines\":0,\"lo\":0,\"hi\":60,\"volume\":0,\"bscan\":1,"
                     "\"labels\":[%s]}",
                     n, n, labels);
        assert_int_equal(oct_image_header_decode(&h, json, (size_t)length, n, &err),
                         n <= OCT_IMAGE_MAX_LABELS ? OCT_OK : OCT_E_FORMAT);
        assert_int_equal(h.n_labels, n <= OCT_IMAGE_MAX_LABELS ? n : 0);
    }
}

TEST(a_header_must_agree_with_the_values)
{
    struct oct_image_header h;
    struct oct_error err = {0};
    must_fail(oct_image_header_decode(&h, row_json, strlen(row_json), 11, &failure), OCT_E_FORMAT,
              "11 bytes");
    assert_int_equal(oct_image_header_decode(&h, row_json, strlen(row_json), 0, &err),
                     OCT_E_FORMAT);
}

TEST(hostile_json_is_refused)
{
    struct oct_image_header h;
    struct oct_error err;
    static char deep[OCT_IMAGE_HEADER_BYTES], huge[1 << 20];
    const char *texts[] = {"",  "[]", "5",       "null",     "\"x\"",
                           "{", "{}", "{\"a\":", "\xff\xfe", "{\"\":}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(oct_image_header_decode(&h, texts[i], strlen(texts[i]), 12, &err),
                         OCT_E_FORMAT);
    memset(deep, '[', sizeof(deep));
    assert_int_equal(oct_image_header_decode(&h, deep, sizeof(deep), 12, &err), OCT_E_FORMAT);
    memset(huge, ' ', sizeof(huge));
    memcpy(huge, row_json, strlen(row_json));
    assert_int_equal(oct_image_header_decode(&h, huge, sizeof(huge), 12, &err), OCT_E_FORMAT);
    /* Copies of exact size, so that a sanitizer sees the first byte read beyond. */
    size_t n = strlen(row_json);
    for (size_t i = 0; i < n; i++) {
        char *copy = malloc(n), *cut = malloc(i + 1);
        assert_true(copy && cut);
        memcpy(copy, row_json, n);
        copy[i] = (char)(copy[i] ^ 0x15);
        oct_image_header_decode(&h, copy, n, 12, &err);
        memcpy(cut, row_json, i);
        assert_int_equal(oct_image_header_decode(&h, cut, i, 12, &err), OCT_E_FORMAT);
        free(cut);
        free(copy);
    }
}
