#include "test/rig/viewer_scene.h"

#include "test/rig/tap.h"

#include <stdio.h>
#include <stdlib.h>

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
