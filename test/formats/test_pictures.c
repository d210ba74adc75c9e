/* Sequences of pictures: every format and kind gives the pixels that were written into it, and what
 * is no picture is refused by name. The files are made here, by libpng and libtiff themselves. */
#include "formats/csv.h"
#include "formats/pictures.h"
#include "formats/results.h"
#include "pipeline/volume/array.h"
#include "test/rig/picture_write.h"
#include "test/rig/tap.h"

#include <math.h>
#include <png.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tiffio.h>
#include <unistd.h>

enum { H = 37, W = 50, N = H * W };

static uint32_t value(unsigned i, unsigned bits)
{
    return (uint32_t)(i * 2654435761u) >> (32 - bits);
}

/* ---- writing ---- */

struct png_kind {
    int colour, bits, interlace;
    unsigned n_channels;
    bool is_transparent;
};

static void write_png(const char *path, const struct png_kind *kind, unsigned odd_channel)
{
    FILE *stream = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    unsigned char *rows[H];
    const unsigned bytes = (unsigned)kind->bits / 8;
    for (unsigned y = 0; y < H; y++) {
        rows[y] = calloc((size_t)W * kind->n_channels, bytes);
        for (unsigned i = 0; i < W * kind->n_channels; i++) {
            uint32_t v = value(y * W + i / kind->n_channels, (unsigned)kind->bits);
            if (odd_channel && y == 3 && i == 7 * kind->n_channels + odd_channel)
                v ^= 1;
            for (unsigned b = 0; b < bytes; b++)
                rows[y][i * bytes + b] = (unsigned char)(v >> 8 * (bytes - 1 - b));
        }
    }
    png_init_io(png, stream);
    png_set_IHDR(png, info, W, H, kind->bits, kind->colour, kind->interlace,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (kind->colour == PNG_COLOR_TYPE_PALETTE) {
        png_color palette[256];
        for (int i = 0; i < 256; i++)
            palette[i].red = palette[i].green = palette[i].blue = (png_byte)i;
        png_set_PLTE(png, info, palette, 256);
        if (kind->is_transparent)
            png_set_tRNS(png, info, (png_byte[3]){0, 128, 255}, 3, NULL);
    }
    png_set_rows(png, info, rows);
    png_write_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    png_destroy_write_struct(&png, &info);
    for (unsigned y = 0; y < H; y++)
        free(rows[y]);
    assert_int_equal(fclose(stream), 0);
}

struct tiff_kind {
    const char *mode; /* "w", "wb" big-endian, "w8" BigTIFF */
    uint16_t bits, format, photometric, compression, n_samples, planes;
    bool tiled;
    unsigned n_pictures;
};

static void put_sample(unsigned char *at, const struct tiff_kind *kind, unsigned i, unsigned page)
{
    if (kind->format == SAMPLEFORMAT_IEEEFP) {
        const float v = (float)value(i, 16) / 1000.0f - 20.0f + (float)page;
        const double wide = (double)v;
        memcpy(at, kind->bits == 64 ? (const void *)&wide : (const void *)&v, kind->bits / 8);
        return;
    }
    const uint32_t v = value(i + page, kind->bits);
    memcpy(at, &v, kind->bits / 8); /* the test's machine is little-endian, as octd's */
}

/* A chunk of the size h x w whose first pixel is (y0, x0). */
static void fill_chunk(unsigned char *chunk, const struct tiff_kind *kind, unsigned y0, unsigned x0,
                       unsigned h, unsigned w, unsigned page)
{
    const unsigned n = kind->planes == PLANARCONFIG_SEPARATE ? 1 : kind->n_samples;
    for (unsigned y = 0; y < h; y++)
        for (unsigned x = 0; x < w; x++)
            for (unsigned c = 0; c < n; c++)
                if (y0 + y < H && x0 + x < W)
                    put_sample(chunk + ((size_t)(y * w + x) * n + c) * (kind->bits / 8), kind,
                               (y0 + y) * W + x0 + x, page);
}

static void write_chunks(TIFF *tiff, const struct tiff_kind *kind, unsigned page)
{
    static unsigned char chunk[64 * 64 * 4 * 8];
    const unsigned h = kind->tiled ? 16 : 10, w = kind->tiled ? 32 : W;
    const unsigned n_planes = kind->planes == PLANARCONFIG_SEPARATE ? kind->n_samples : 1;
    for (uint16_t plane = 0; plane < n_planes; plane++)
        for (unsigned y = 0; y < H; y += h)
            for (unsigned x = 0; x < W; x += w) {
                const unsigned rows = kind->tiled || H - y > h ? h : H - y;
                const size_t n = (size_t)rows * w * (kind->n_samples / n_planes) * kind->bits / 8;
                memset(chunk, 0, sizeof(chunk));
                fill_chunk(chunk, kind, y, x, rows, w, page);
                if (kind->tiled)
                    assert_true(TIFFWriteTile(tiff, chunk, x, y, 0, plane) > 0);
                else
                    assert_true(TIFFWriteEncodedStrip(tiff, TIFFComputeStrip(tiff, y, plane), chunk,
                                                      (tmsize_t)n) > 0);
            }
}

static void write_tiff(const char *path, const struct tiff_kind *kind)
{
    TIFF *tiff = TIFFOpen(path, kind->mode);
    assert_non_null(tiff);
    for (unsigned page = 0; page < kind->n_pictures; page++) {
        TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, W);
        TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, H);
        TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, kind->bits);
        TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, kind->format);
        TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, kind->n_samples);
        TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, kind->photometric);
        TIFFSetField(tiff, TIFFTAG_COMPRESSION, kind->compression);
        TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, kind->planes);
        if (kind->tiled) {
            TIFFSetField(tiff, TIFFTAG_TILEWIDTH, 32);
            TIFFSetField(tiff, TIFFTAG_TILELENGTH, 16);
        } else {
            TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 10);
        }
        write_chunks(tiff, kind, page);
        assert_true(TIFFWriteDirectory(tiff));
    }
    TIFFClose(tiff);
}

/* ---- reading ---- */

static struct oct_pictures *open_one(const char *path, const struct oct_pictures_options *options)
{
    const struct oct_pictures_options plain = {.what = OCT_PICTURES_FRAMES};
    struct oct_pictures *pictures;
    must(oct_pictures_open(&pictures, &path, 1, options ? options : &plain, &failure));
    return pictures;
}

static void read_one(struct oct_pictures *pictures, uint64_t frame, struct oct_picture *picture,
                     struct oct_pictures_info *info)
{
    must(oct_pictures_read(pictures, frame, picture, info, &failure));
    assert_int_equal(picture->height, H);
    assert_int_equal(picture->width, W);
}

static void must_refuse(const char *path, enum oct_err code, const char *says)
{
    const struct oct_pictures_options plain = {.what = OCT_PICTURES_FRAMES};
    struct oct_pictures *pictures;
    struct oct_picture picture;
    struct oct_error err = {.text = ""};
    enum oct_err e = oct_pictures_open(&pictures, &path, 1, &plain, &err);
    if (e == OCT_OK) {
        e = oct_pictures_read(pictures, 0, &picture, NULL, &err);
        assert_null(picture.pixels);
    }
    oct_pictures_close(pictures);
    assert_int_equal(e, code);
    if (!strstr(err.text, says) || !strstr(err.text, path))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

TEST(png_of_every_kind)
{
    static const struct png_kind kinds[] = {
        {PNG_COLOR_TYPE_GRAY, 8, PNG_INTERLACE_NONE, 1, false},
        {PNG_COLOR_TYPE_GRAY, 16, PNG_INTERLACE_NONE, 1, false},
        {PNG_COLOR_TYPE_GRAY, 16, PNG_INTERLACE_ADAM7, 1, false},
        {PNG_COLOR_TYPE_GRAY_ALPHA, 8, PNG_INTERLACE_NONE, 2, false},
        {PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_ADAM7, 3, false},
        {PNG_COLOR_TYPE_RGB_ALPHA, 16, PNG_INTERLACE_NONE, 4, false},
        {PNG_COLOR_TYPE_PALETTE, 8, PNG_INTERLACE_NONE, 1, false},
        {PNG_COLOR_TYPE_PALETTE, 8, PNG_INTERLACE_NONE, 1, true},
    };
    for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        const char *path = "kind.png";
        struct oct_picture picture;
        struct oct_pictures_info info;
        write_png(path, &kinds[k], 0);
        struct oct_pictures *pictures = open_one(path, NULL);
        assert_int_equal(oct_pictures_count(pictures), 1);
        read_one(pictures, 0, &picture, &info);
        for (unsigned i = 0; i < N; i++)
            assert_true(picture.pixels[i] == (float)value(i, (unsigned)kinds[k].bits));
        assert_int_equal(info.bits, kinds[k].bits);
        assert_true(info.is_integer && !info.is_db && isnan(info.um[0]) && !picture.valid);
        oct_picture_finish(&picture);
        oct_pictures_close(pictures);
    }
    write_png("odd.png", &kinds[4], 2);
    must_refuse("odd.png", OCT_E_FORMAT, "differ at x 7, y 3");
}

#define U SAMPLEFORMAT_UINT
#define F SAMPLEFORMAT_IEEEFP
#define BLACK PHOTOMETRIC_MINISBLACK
#define ONE PLANARCONFIG_CONTIG

TEST(tiff_of_every_kind)
{
    static const struct tiff_kind kinds[] = {
        {"w", 8, U, BLACK, COMPRESSION_NONE, 1, ONE, false, 1},
        {"wb", 16, U, BLACK, COMPRESSION_NONE, 1, ONE, false, 3},
        {"wb", 32, F, BLACK, COMPRESSION_LZW, 1, ONE, true, 1},
        {"w8", 16, U, BLACK, COMPRESSION_ADOBE_DEFLATE, 1, ONE, true, 2},
        {"w", 32, F, BLACK, COMPRESSION_PACKBITS, 1, ONE, false, 2},
        {"w", 64, F, BLACK, COMPRESSION_NONE, 1, ONE, false, 1},
        {"w", 8, U, PHOTOMETRIC_RGB, COMPRESSION_LZW, 3, ONE, false, 1},
        {"w", 16, U, PHOTOMETRIC_RGB, COMPRESSION_NONE, 3, PLANARCONFIG_SEPARATE, true, 1},
        {"w", 8, U, PHOTOMETRIC_MINISWHITE, COMPRESSION_NONE, 1, ONE, false, 1},
    };
    for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        const struct tiff_kind *kind = &kinds[k];
        struct oct_picture picture;
        struct oct_pictures_info info;
        write_tiff("kind.tif", kind);
        struct oct_pictures *pictures = open_one("kind.tif", NULL);
        assert_int_equal(oct_pictures_count(pictures), kind->n_pictures);
        for (unsigned page = kind->n_pictures; page-- > 0;) { /* backwards too */
            read_one(pictures, page, &picture, &info);
            for (unsigned i = 0; i < N; i++) {
                float want = kind->format == F ? (float)value(i, 16) / 1000.0f - 20.0f + (float)page
                                               : (float)value(i + page, kind->bits);
                if (kind->photometric == PHOTOMETRIC_MINISWHITE)
                    want = 255 - want;
                assert_true(picture.pixels[i] == want);
            }
            assert_int_equal(info.bits, kind->bits > 32 ? 32 : kind->bits);
            assert_int_equal(info.index, page);
            assert_int_equal(info.is_integer, kind->format == U);
            oct_picture_finish(&picture);
        }
        oct_pictures_close(pictures);
    }
}

static void cut_file(const char *from, const char *to, size_t n)
{
    static unsigned char bytes[1 << 16];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out && fread(bytes, 1, n, in) == n && fwrite(bytes, 1, n, out) == n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

TEST(what_is_no_picture_is_refused)
{
    static const struct png_kind grey = {PNG_COLOR_TYPE_GRAY, 8, PNG_INTERLACE_NONE, 1, false};
    static const struct tiff_kind wide = {"w", 16, U, BLACK, COMPRESSION_NONE, 1, ONE, false, 1};
    write_png("a.png", &grey, 0);
    write_tiff("a.tif", &wide);
    cut_file("a.png", "cut.png", 150);
    cut_file("a.tif", "cut.tif", 2000);
    cut_file("a.png", "start.png", 20);
    cut_file("a.png", "empty.png", 0);
    must_refuse("cut.png", OCT_E_FORMAT, "truncated");
    must_refuse("cut.tif", OCT_E_FORMAT, "truncated");
    must_refuse("start.png", OCT_E_FORMAT, "truncated");
    must_refuse("empty.png", OCT_E_ARG, "neither PNG, TIFF, AVI, .npy, HDF5, .vol nor DICOM");
    must_refuse("absent.png", OCT_E_IO, "No such file");
    must_refuse(".", OCT_E_IO, "a folder");
    unsigned char small[8 * 40] = {0};
    must(oct_picture_write_png("low.png", true, 8, 40, 8, small, &failure));
    must_refuse("low.png", OCT_E_ARG, "40 x 8; each side must have 16 to 16384");
    const struct oct_pictures_options any_side = {.any_side = true};
    const char *low = "low.png";
    struct oct_pictures *pictures;
    struct oct_picture picture = {0};
    must(oct_pictures_open(&pictures, &low, 1, &any_side, &failure));
    must(oct_pictures_read(pictures, 0, &picture, NULL, &failure));
    assert_true(picture.height == 8 && picture.width == 40);
    oct_picture_finish(&picture);
    oct_pictures_close(pictures);
}

TEST(sizes_must_be_one)
{
    static const struct png_kind grey = {PNG_COLOR_TYPE_GRAY, 8, PNG_INTERLACE_NONE, 1, false};
    static unsigned char other[20 * 30];
    struct oct_pictures_options options = {.what = OCT_PICTURES_FRAMES};
    struct oct_pictures *pictures;
    struct oct_error err;
    uint32_t height, width;
    write_png("a.png", &grey, 0);
    assert_int_equal(oct_picture_write_png("b.png", true, 20, 30, 8, other, &err), OCT_OK);
    const char *paths[] = {"a.png", "b.png"};
    assert_int_equal(oct_pictures_open(&pictures, paths, 2, &options, &err), OCT_E_FORMAT);
    assert_true(strstr(err.text, "a.png") && strstr(err.text, "b.png") && !pictures);
    options.allow_sizes = true;
    assert_int_equal(oct_pictures_open(&pictures, paths, 2, &options, &err), OCT_OK);
    oct_pictures_size(pictures, 1, &height, &width);
    assert_true(height == 20 && width == 30);
    oct_pictures_close(pictures);
}

TEST(masks_and_scales_apply)
{
    static float pixels[N];
    static unsigned char mask[N];
    struct oct_picture picture;
    struct oct_pictures_info info;
    const struct oct_pictures_options options = {.what = OCT_PICTURES_FRAMES,
                                                 .um = {2.5, 0.5},
                                                 .has_invalid = true,
                                                 .invalid = -1,
                                                 .mask_path = "mask.png"};
    for (unsigned i = 0; i < N; i++) {
        pixels[i] = i % 10 == 3 ? NAN : i % 10 == 4 ? INFINITY : i % 10 == 5 ? -1.0f : (float)i;
        mask[i] = i % 10 != 6;
    }
    must(oct_picture_write_tiff("m.tif", true, H, W, pixels, &failure));
    must(oct_picture_write_png(options.mask_path, true, H, W, 8, mask, &failure));
    struct oct_pictures *first = open_one("m.tif", &options), *pictures;
    must(oct_pictures_share(&pictures, first, &failure));
    read_one(pictures, 0, &picture, &info);
    assert_non_null(picture.valid);
    for (unsigned i = 0; i < N; i++) {
        const bool valid = i % 10 < 3 || i % 10 > 6;
        assert_int_equal(picture.valid[i], valid);
        assert_true(!valid || picture.pixels[i] == (float)i);
    }
    assert_true(info.um[0] == 2.5 && info.um[1] == 0.5 && info.is_integer);
    oct_picture_finish(&picture);
    oct_pictures_close(pictures);
    oct_pictures_close(first);
}

/* ---- what is written ---- */

TEST(results_stream_and_appear_whole)
{
    const uint64_t dims[] = {3, 4};
    const char *path = "results.h5";
    struct oct_results *results;
    struct oct_volume_array *array;
    struct oct_error err;
    float row[4], got[12];
    assert_int_equal(oct_results_create(&results, path, "result", false, &err), OCT_OK);
    const unsigned id = oct_results_dataset(results, "/a/b", OCT_RESULTS_F32, 2, dims, "px");
    for (unsigned v = 0; v < 2; v++) {
        for (unsigned i = 0; i < 4; i++)
            row[i] = (float)(10 * v + i);
        oct_results_write_rows(results, id, 2 * v, 1, row);
    }
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(oct_results_publish(results, &err), OCT_OK);
    assert_int_equal(oct_volume_array_open(&array, path, "/a/b", &err), OCT_OK);
    assert_string_equal(oct_volume_array_facts(array)->unit, "px");
    assert_int_equal(oct_volume_array_read(array, got, &err), OCT_OK);
    for (unsigned i = 0; i < 4; i++)
        assert_true(got[i] == (float)i && isnan(got[4 + i]) && got[8 + i] == (float)(10 + i));
    oct_volume_array_close(array);
    assert_int_equal(oct_results_create(&results, path, "result", false, &err), OCT_E_IO);
    assert_int_equal(oct_results_create(&results, path, "result", true, &err), OCT_OK);
    oct_results_write_rows(results, oct_results_dataset(results, "/c", OCT_RESULTS_U8, 1, dims, ""),
                           2, 5, row); /* beyond its end */
    assert_int_equal(oct_results_publish(results, &err), OCT_E_IO);
    assert_int_equal(oct_volume_array_open(&array, path, "/a/b", &err), OCT_OK); /* still there */
    oct_volume_array_close(array);
}

TEST(tables_have_empty_cells)
{
    const char *path = "table.csv";
    char text[128] = "";
    struct oct_csv *csv;
    struct oct_error err;
    assert_int_equal(oct_csv_create(&csv, path, false, "a,b,c", &err), OCT_OK);
    oct_csv_count(csv, 7);
    oct_csv_number(csv, NAN);
    oct_csv_number(csv, -1234.5678);
    oct_csv_end_row(csv);
    oct_csv_text(csv, "a \"b\", c");
    oct_csv_end_row(csv);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(oct_csv_publish(csv, &err), OCT_OK);
    FILE *file = fopen(path, "r");
    assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    assert_string_equal(text, "a,b,c\n7,,-1234.5678\n\"a \"\"b\"\", c\"\n");
    assert_int_equal(oct_csv_create(&csv, path, false, "a", &err), OCT_E_IO);
}
