/* Pictures of strangers: the input is a whole PNG, TIFF, AVI, .npy, HDF5, .vol or DICOM file. The
 * checksums of PNG chunks are put right first, or no change would get past them. HDF5 files go
 * through the child process that looks at them first (hdf5_probe.h), as for users. */
#include "formats/pictures.h"
#include "formats/volumes.h"
#include "test/fuzz/fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PICTURES = 3, MOST_PIXELS = 1 << 22 };

static uint32_t crc32_of(const uint8_t *bytes, size_t n)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static void mend_checksums(uint8_t *png, size_t size)
{
    for (size_t at = 8; at + 12 <= size;) {
        const uint32_t n = (uint32_t)png[at] << 24 | (uint32_t)png[at + 1] << 16 |
                           (uint32_t)png[at + 2] << 8 | png[at + 3];
        if (n > size - at - 12)
            return;
        const uint32_t crc = crc32_of(png + at + 4, (size_t)n + 4);
        for (unsigned i = 0; i < 4; i++)
            png[at + 8 + n + i] = (uint8_t)(crc >> (24 - 8 * i));
        at += (size_t)n + 12;
    }
}

static void check_picture(const struct oct_picture *picture, const struct oct_pictures_info *info,
                          uint32_t height, uint32_t width)
{
    fuzz_must(picture->height == height && picture->width == width);
    fuzz_must(info->bits == 8 || info->bits == 16 || info->bits == 32);
    for (size_t i = 0; i < (size_t)height * width; i++) {
        if (picture->valid && !picture->valid[i])
            continue;
        fuzz_must(isfinite(picture->pixels[i]));
        fuzz_must(!info->is_integer ||
                  (picture->pixels[i] >= 0 && picture->pixels[i] == floorf(picture->pixels[i])));
    }
}

static void check_times(struct oct_pictures *pictures, uint64_t frame, uint32_t height)
{
    struct oct_pictures_times times = {0};
    struct oct_error err;
    if (oct_pictures_times(pictures, frame, &times, &err) == OCT_OK) {
        for (uint32_t y = 0; times.time_s && y < height; y++)
            fuzz_must(isfinite(times.time_s[y]) &&
                      (y == 0 || times.time_s[y] >= times.time_s[y - 1]));
        fuzz_must(!isinf(times.start_s) && (!times.time_s || times.start_s == times.time_s[0]));
    }
    oct_pictures_times_finish(&times);
}

static void read_pictures(const char *path, const struct oct_pictures_options *options)
{
    struct oct_pictures *pictures;
    struct oct_error err = {.code = OCT_OK};
    const enum oct_err e = oct_pictures_open(&pictures, &path, 1, options, &err);
    fuzz_must((e == OCT_OK) == (pictures != NULL));
    if (e) {
        fuzz_must(err.code == e && err.text[0] && !strchr(err.text, '\n'));
        return;
    }
    const uint64_t n = oct_pictures_count(pictures);
    fuzz_must(n > 0 && (isnan(oct_pictures_fps(pictures)) || oct_pictures_fps(pictures) > 0));
    const char *warning = oct_pictures_warning(pictures);
    fuzz_must(!warning || (options->keeps_whole && warning[0] && !strchr(warning, '\n')));
    for (uint64_t i = 0; i < n && i < MOST_PICTURES; i++) {
        struct oct_picture picture;
        struct oct_pictures_info info;
        uint32_t height, width;
        oct_pictures_size(pictures, i, &height, &width);
        fuzz_must(height >= OCT_PICTURE_LEAST_SIDE && height <= OCT_PICTURE_MOST_SIDE);
        fuzz_must(width >= OCT_PICTURE_LEAST_SIDE && width <= OCT_PICTURE_MOST_SIDE);
        if ((uint64_t)height * width > MOST_PIXELS)
            continue;
        if (oct_pictures_read(pictures, i, &picture, &info, &err) == OCT_OK)
            check_picture(&picture, &info, height, width);
        else
            fuzz_must(!picture.pixels && !strchr(err.text, '\n'));
        oct_picture_finish(&picture);
        check_times(pictures, i, height);
    }
    oct_pictures_close(pictures);
}

/* Layers that the device found lie in the picture, or nowhere. */
static void read_layers(const char *path)
{
    struct oct_volume_info info;
    struct oct_pictures *pictures;
    const struct oct_pictures_options options = {.any_side = true};
    if (oct_volume_look(path, &info, NULL) ||
        oct_pictures_open(&pictures, &path, 1, &options, NULL))
        return;
    float *px = malloc(info.dims[1] * sizeof(*px));
    fuzz_must(px != NULL);
    for (unsigned k = 0; k < info.n_layers; k++)
        for (uint32_t v = 0; v < info.dims[0] && v < MOST_PICTURES; v++)
            if (oct_pictures_layer(pictures, v, k, px, NULL) == OCT_OK)
                for (uint32_t j = 0; j < info.dims[1]; j++)
                    fuzz_must(isnan(px[j]) || (px[j] >= 0 && px[j] < (float)info.dims[2]));
    free(px);
    oct_pictures_close(pictures);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char dataset[256];
    const char *path = fuzz_path(0, "picture");
    const struct oct_pictures_options frames = {.what = OCT_PICTURES_FRAMES};
    uint8_t *bytes = malloc(size + 1);
    fuzz_must(bytes != NULL);
    memcpy(bytes, data, size);
    if (size > 8 && data[0] == 0x89 && data[1] == 'P')
        mend_checksums(bytes, size);
    fuzz_write_file(path, bytes, size);
    free(bytes);
    read_pictures(path, &frames);
    const struct oct_pictures_options keep = {.keeps_whole = true};
    read_pictures(path, &keep);
    if (oct_pictures_are_of_device(path)) {
        const struct oct_pictures_options face = {.what = OCT_PICTURES_EN_FACE,
                                                  .projection = OCT_PICTURES_HIGHEST};
        read_pictures(path, &face);
        read_layers(path);
    }
    if (size > 4 && data[0] == 0x89 && data[1] == 'H') {
        const struct oct_pictures_options slab = {.what = OCT_PICTURES_EN_FACE,
                                                  .slab = {{.at = 1}, {.at = 3}}};
        snprintf(dataset, sizeof(dataset), "%s:/a", path);
        read_pictures(dataset, &frames);
        read_pictures(path, &slab);
        const struct oct_pictures_options shares = {
            .what = OCT_PICTURES_EN_FACE,
            .projection = OCT_PICTURES_OVER_SHARES,
            .slab = {{0.3, OCT_DEPTH_SHARE}, {0.5, OCT_DEPTH_SHARE}}};
        read_pictures(path, &shares);
    }
    return 0;
}
