#include "analysis/layers/find/pixels.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define NO_LIGHT_DB -119.99f /* an A-line that never came has -120 dB */
#define DB_AN_OCTAVE 3.0103f
#define MOST_DB 1e6f /* what is farther from 0 is no light */

/* The logarithm of a positive number that is finite, linear within each octave: it rises steadily
 * and is wrong by 0.26 dB at most, far less than speckle, at a hundredth of log10f's cost. */
static float to_db(float value)
{
    uint32_t bits;
    if (!(value > 0 && value <= FLT_MAX))
        return -INFINITY;
    memcpy(&bits, &value, sizeof(bits));
    return DB_AN_OCTAVE * ((float)bits * 0x1p-23f - 127);
}

void oct_surface_pixels_begin(struct oct_surface_pixels *p, const struct oct_image_form *input,
                              const struct oct_image_frame *bscan)
{
    const double step = (bscan->hi - bscan->lo) / 255;
    p->bscan = bscan;
    p->type = input->type;
    p->is_db = input->quantity == OCT_QUANTITY_INTENSITY_DB;
    p->depth = input->dims[1];
    if (p->type != OCT_SAMPLE_U8)
        return;
    for (unsigned i = 0; i < 256; i++) {
        p->value[i] = (float)(bscan->lo + i * step);
        /* Counts^2 that round to 0 are thought to be half a step. */
        const double light = bscan->lo + (i > 0 ? i : 0.5) * step;
        p->brightness[i] = p->is_db ? p->value[i] : to_db((float)light);
    }
}

static void look_up(const float table[256], const uint8_t *from, uint32_t n, float *to)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = table[from[i]];
}

void oct_surface_pixels_values(const struct oct_surface_pixels *p, uint32_t line, float *values)
{
    const size_t at = (size_t)line * p->depth;
    if (p->type == OCT_SAMPLE_U8)
        look_up(p->value, (const uint8_t *)p->bscan->pixels + at, p->depth, values);
    else
        memcpy(values, (const float *)p->bscan->pixels + at, p->depth * sizeof(*values));
}

void oct_surface_pixels_brightness(const struct oct_surface_pixels *p, uint32_t line,
                                   float *brightness)
{
    const size_t at = (size_t)line * p->depth;
    const float *from = (const float *)p->bscan->pixels + at;
    if (p->type == OCT_SAMPLE_U8)
        look_up(p->brightness, (const uint8_t *)p->bscan->pixels + at, p->depth, brightness);
    else if (p->is_db)
        for (uint32_t i = 0; i < p->depth; i++)
            brightness[i] = fabsf(from[i]) <= MOST_DB ? from[i] : -INFINITY;
    else
        for (uint32_t i = 0; i < p->depth; i++)
            brightness[i] = to_db(from[i]);
}

bool oct_surface_pixels_came(const struct oct_surface_pixels *p, uint32_t line)
{
    const size_t at = (size_t)line * p->depth;
    const uint8_t *u8 = (const uint8_t *)p->bscan->pixels + at;
    const float *f32 = (const float *)p->bscan->pixels + at;
    const float least = p->is_db ? NO_LIGHT_DB : 0;
    if (p->bscan->info.missing_lines == 0)
        return true;
    for (uint32_t i = 0; i < p->depth; i++)
        if (p->type == OCT_SAMPLE_U8 ? u8[i] > 0 : f32[i] > least)
            return true;
    return false;
}
