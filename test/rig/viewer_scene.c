#include "test/rig/viewer_scene.h"

#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oct_picture_header oct_scene_header(uint64_t frame_num, const char *acquisition)
{
    struct oct_picture_header header = {
        .frame_num = frame_num,
        .sample_type = OCT_SAMPLE_U8,
        .n_lines = 120,
        .depth = 100,
        .lo = 10.0,
        .hi = 70.0,
        .bscan = 7,
    };
    snprintf(header.acquisition_id, sizeof(header.acquisition_id), "%s", acquisition);
    return header;
}

struct oct_view_picture oct_scene_layered(unsigned layer, unsigned thick)
{
    struct oct_picture_header header = oct_scene_header(1, "a");
    struct oct_view_picture picture = {0};
    uint8_t *pixels = calloc(header.n_lines, header.depth);
    assert_non_null(pixels);
    for (unsigned line = 0; line < header.n_lines; line++)
        for (unsigned d = 0; d < header.depth; d++)
            pixels[line * header.depth + d] = d >= layer && d < layer + thick ? 255
                                              : line == 0                     ? 200
                                                                              : 10;
    assert_int_equal(oct_view_picture_set(&picture, &header, pixels,
                                          (size_t)header.n_lines * header.depth, NULL),
                     OCT_OK);
    free(pixels);
    return picture;
}

struct oct_view_image oct_scene_enface(uint32_t n_bscans, uint32_t n_lines)
{
    struct oct_image_header header = {.dataset = "analysis/enface",
                                      .acquisition_id = "a",
                                      .type = OCT_SAMPLE_F32,
                                      .rank = 2,
                                      .dims = {n_bscans, n_lines},
                                      .unit = "dB",
                                      .lo = 10,
                                      .hi = 70};
    struct oct_view_image image = {0};
    size_t n = (size_t)n_bscans * n_lines;
    float *values = malloc(n * sizeof(*values) + 1);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        values[i] = NAN;
    assert_int_equal(oct_view_image_set(&image, &header, values, n * sizeof(*values), NULL),
                     OCT_OK);
    free(values);
    return image;
}

void oct_scene_enface_fill(struct oct_view_image *image, uint32_t bscan, float value)
{
    uint32_t n_lines = image->header.dims[1];
    float *values = image->values;
    for (uint32_t i = 0; i < n_lines; i++)
        values[(size_t)bscan * n_lines + i] = value;
    image->header.bscan = bscan;
}

struct oct_view_image oct_scene_quality(void)
{
    static const char *const labels[] = {"snr_db",        "sharpness",       "level_db", "blink",
                                         "motion",        "missing",         "blinks",   "motions",
                                         "snr_smooth_db", "sharpness_smooth"};
    enum { N = sizeof(labels) / sizeof(labels[0]) };
    struct oct_image_header header = {.dataset = "analysis/quality",
                                      .acquisition_id = "a",
                                      .type = OCT_SAMPLE_F32,
                                      .rank = 1,
                                      .dims = {N},
                                      .n_labels = N};
    struct oct_view_image row = {0};
    const float zeros[N] = {0};
    for (unsigned i = 0; i < N; i++)
        snprintf(header.labels[i], sizeof(header.labels[i]), "%s", labels[i]);
    assert_int_equal(oct_view_image_set(&row, &header, zeros, sizeof(zeros), NULL), OCT_OK);
    return row;
}

void oct_scene_quality_put(struct oct_view_image *row, const char *label, double value)
{
    for (unsigned i = 0; i < row->header.n_labels; i++)
        if (strcmp(row->header.labels[i], label) == 0)
            ((float *)row->values)[i] = (float)value;
}
