/* Contrast, and from pixels as they lie on the wire to what a screen shows. */
#include "viewer/model/picture.h"

#include <math.h>

/* Lightness L* (CIE 1976) rises evenly from 0 to 100; the hue runs from blue through red to yellow
 * at the largest chroma up to 68 that sRGB can show there. So equal steps of a value look equally
 * large; test_viewer_model.c measures that. */
/* clang-format off */
static const uint32_t uniform[256] = {
    0x000000, 0x000106, 0x01030b, 0x01040f, 0x020512, 0x030715, 0x040817, 0x060919,
    0x070a1b, 0x080b1d, 0x090d1f, 0x0a0e21, 0x0b0f23, 0x0c0f25, 0x0c1027, 0x0d1129,
    0x0d122b, 0x0e132d, 0x0e142e, 0x0f1430, 0x101532, 0x111534, 0x121636, 0x131637,
    0x141739, 0x15173b, 0x17183d, 0x18183e, 0x191940, 0x1b1942, 0x1c1943, 0x1e1a45,
    0x1f1a46, 0x211b48, 0x231b49, 0x241b4b, 0x261c4c, 0x281c4e, 0x291c4f, 0x2b1c51,
    0x2d1d52, 0x2f1d54, 0x311d55, 0x331d56, 0x351e57, 0x371e59, 0x391e5a, 0x3b1e5b,
    0x3d1e5c, 0x3f1e5e, 0x411e5f, 0x431e60, 0x451f61, 0x471f62, 0x491f63, 0x4c1f64,
    0x4e1f65, 0x501f66, 0x521e67, 0x541e68, 0x561e68, 0x591e69, 0x5b1e6a, 0x5d1e6b,
    0x5f1e6c, 0x621e6c, 0x641e6d, 0x661d6e, 0x681d6e, 0x6a1d6f, 0x6d1d70, 0x6f1c70,
    0x711c71, 0x731c71, 0x761c72, 0x781b72, 0x7a1b73, 0x7c1b73, 0x7e1a73, 0x811a74,
    0x831a74, 0x851974, 0x871975, 0x891975, 0x8c1975, 0x8e1875, 0x901876, 0x921876,
    0x941876, 0x961776, 0x981776, 0x9b1776, 0x9d1776, 0x9f1776, 0xa11776, 0xa31776,
    0xa51776, 0xa71776, 0xa91776, 0xab1776, 0xad1776, 0xaf1776, 0xb11876, 0xb31876,
    0xb41876, 0xb61976, 0xb81a75, 0xba1a75, 0xbc1b75, 0xbe1c75, 0xbf1c75, 0xc11d75,
    0xc31e74, 0xc51f74, 0xc62074, 0xc82174, 0xca2273, 0xcb2373, 0xcd2473, 0xce2672,
    0xd02772, 0xd22872, 0xd32972, 0xd52b71, 0xd62c71, 0xd72d71, 0xd92f70, 0xda3070,
    0xdc3270, 0xdd336f, 0xde356f, 0xe0366f, 0xe1386e, 0xe2396e, 0xe33b6e, 0xe53c6d,
    0xe63e6d, 0xe73f6d, 0xe8416d, 0xe9436c, 0xea446c, 0xec466c, 0xed486b, 0xee496b,
    0xef4b6b, 0xf04d6b, 0xf14e6a, 0xf1506a, 0xf2526a, 0xf3546a, 0xf4556a, 0xf55769,
    0xf65969, 0xf75b69, 0xf75c69, 0xf85e69, 0xf96069, 0xfa6269, 0xfa6369, 0xfb6569,
    0xfc6768, 0xfc6968, 0xfd6a68, 0xfd6c68, 0xfe6e69, 0xfe7069, 0xff7169, 0xff7469,
    0xff766a, 0xff786a, 0xff7a6b, 0xff7c6b, 0xff7e6c, 0xff806c, 0xff826d, 0xff846e,
    0xff866e, 0xff886f, 0xff8a70, 0xff8b71, 0xff8d71, 0xff8f72, 0xff9173, 0xff9374,
    0xff9575, 0xff9676, 0xff9877, 0xff9a78, 0xff9c79, 0xff9d7a, 0xff9f7b, 0xffa17c,
    0xffa27d, 0xffa47e, 0xffa67f, 0xffa880, 0xffa981, 0xffab83, 0xffac84, 0xffae85,
    0xffb087, 0xffb188, 0xffb389, 0xffb58b, 0xffb68c, 0xffb88d, 0xffb98f, 0xffbb90,
    0xffbc92, 0xffbe93, 0xffc095, 0xffc197, 0xffc398, 0xffc49a, 0xffc69b, 0xffc79d,
    0xffc99f, 0xffcaa1, 0xffcca2, 0xffcda4, 0xffcfa6, 0xffd0a8, 0xffd2aa, 0xffd3ac,
    0xffd5ae, 0xffd6b0, 0xffd8b2, 0xffd9b4, 0xffdbb6, 0xffdcb8, 0xffddba, 0xffdfbc,
    0xffe0be, 0xffe2c1, 0xffe3c3, 0xffe4c5, 0xffe6c8, 0xffe7ca, 0xffe9cd, 0xffeacf,
    0xffebd2, 0xffedd4, 0xffeed7, 0xffefda, 0xfff1dc, 0xfff2df, 0xfff3e2, 0xfff5e5,
    0xfff6e8, 0xfff7eb, 0xfff9ee, 0xfffaf1, 0xfffbf5, 0xfffdf8, 0xfffefb, 0xffffff,
};
/* clang-format on */

const char *const oct_view_palette_names[] = {"grey", "inverted", "colour", 0};

uint32_t oct_view_palette_argb(enum oct_view_palette palette, uint8_t level)
{
    if (palette == OCT_PALETTE_CHANGE) { /* both ends as bright to those who see red as green */
        const uint32_t far = level < 128 ? 2u * level : 2u * (255u - level);
        const uint32_t pale = far > 255 ? 255 : far;
        return level < 128 ? UINT32_C(0xff000000) | pale << 16 | (64 + pale * 3 / 4) << 8 | 255u
                           : UINT32_C(0xffff0000) | (40 + pale * 5 / 6) << 8 | pale;
    }
    uint32_t grey = palette == OCT_PALETTE_INVERTED ? 255u - level : level;
    if (palette == OCT_PALETTE_UNIFORM)
        return UINT32_C(0xff000000) | uniform[level];
    return UINT32_C(0xff000000) | grey * UINT32_C(0x010101);
}

/* ---- contrast ---- */

/* Values beyond this have no meaning in counts^2 or dB. The bound keeps all sums below finite. */
#define LIMIT 1e30

static double clamp(double value, double lo, double hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* Returns the narrowest range: 1 dB, or one u8 step of the published range. */
static double narrowest(const struct oct_view_contrast *c)
{
    return c->log ? 1.0 : (c->published_hi - c->published_lo) / 255.0;
}

void oct_view_contrast_init(struct oct_view_contrast *contrast, bool log)
{
    *contrast = (struct oct_view_contrast){.log = log, .range = OCT_CONTRAST_PUBLISHED, .gamma = 1};
    oct_view_contrast_publish(contrast, 0.0, log ? 60.0 : 1.0);
}

void oct_view_contrast_publish(struct oct_view_contrast *contrast, double lo, double hi)
{
    lo = isfinite(lo) ? clamp(lo, -LIMIT, LIMIT) : 0.0;
    hi = isfinite(hi) ? clamp(hi, -LIMIT, LIMIT) : lo;
    /* A B-scan of one value has lo == hi. Nor may rounding make the range vanish. */
    double least = fmax(1e-9, 1e-9 * fabs(lo));
    if (hi - lo < least)
        hi = lo + least;
    contrast->published_lo = lo;
    contrast->published_hi = hi;
    if (contrast->range == OCT_CONTRAST_PUBLISHED) {
        contrast->lo = lo;
        contrast->hi = hi;
    }
}

void oct_view_contrast_adapt(struct oct_view_contrast *contrast, double lo, double hi, double pace)
{
    if (contrast->range != OCT_CONTRAST_AUTO || !isfinite(lo) || !isfinite(hi))
        return;
    lo = contrast->lo + pace * (clamp(lo, -LIMIT, LIMIT) - contrast->lo);
    hi = contrast->hi + pace * (clamp(hi, -LIMIT, LIMIT) - contrast->hi);
    double least = fmax(narrowest(contrast), 1e-9 * fabs(lo));
    contrast->lo = lo;
    contrast->hi = hi - lo < least ? lo + least : hi;
}

void oct_view_contrast_move(struct oct_view_contrast *contrast, double level, double width)
{
    double middle = clamp((contrast->lo + contrast->hi) / 2.0 + level, -LIMIT, LIMIT);
    double least = fmax(narrowest(contrast), 1e-9 * fabs(middle));
    double wide = clamp(contrast->hi - contrast->lo + width, least, LIMIT);
    contrast->range = OCT_CONTRAST_MANUAL;
    contrast->lo = middle - wide / 2.0;
    contrast->hi = middle + wide / 2.0;
}

void oct_view_contrast_move_lo(struct oct_view_contrast *contrast, double by)
{
    double least = fmax(narrowest(contrast), 1e-9 * fabs(contrast->hi));
    contrast->range = OCT_CONTRAST_MANUAL;
    contrast->lo = clamp(contrast->lo + by, contrast->hi - LIMIT, contrast->hi - least);
}

void oct_view_contrast_move_hi(struct oct_view_contrast *contrast, double by)
{
    double least = fmax(narrowest(contrast), 1e-9 * fabs(contrast->lo));
    contrast->range = OCT_CONTRAST_MANUAL;
    contrast->hi = clamp(contrast->hi + by, contrast->lo + least, contrast->lo + LIMIT);
}

double oct_view_contrast_step(const struct oct_view_contrast *contrast)
{
    return contrast->log ? 1.0 : (contrast->published_hi - contrast->published_lo) / 40.0;
}

void oct_view_contrast_set_range(struct oct_view_contrast *contrast, enum oct_view_range range)
{
    contrast->range = range;
    oct_view_contrast_publish(contrast, contrast->published_lo, contrast->published_hi);
}

void oct_view_contrast_set_gamma(struct oct_view_contrast *contrast, double gamma)
{
    contrast->gamma = gamma > 0 ? clamp(gamma, OCT_VIEW_LEAST_GAMMA, OCT_VIEW_MOST_GAMMA) : 1;
}

uint8_t oct_view_contrast_level(const struct oct_view_contrast *contrast, double value)
{
    double level = (value - contrast->lo) / (contrast->hi - contrast->lo) * 255.0;
    if (!(level > 0.0)) /* NaN too */
        return 0;
    return level >= 255.0 ? 255 : (uint8_t)lround(level);
}

void oct_view_contrast_colours(const struct oct_view_contrast *contrast, uint32_t argb[256])
{
    for (unsigned i = 0; i < 256; i++) {
        double bent = 255.0 * pow(i / 255.0, contrast->gamma);
        argb[i] = oct_view_palette_argb(contrast->palette, (uint8_t)lround(bent));
    }
}

void oct_view_contrast_table(const struct oct_view_contrast *contrast, uint32_t argb[256])
{
    double range = contrast->published_hi - contrast->published_lo;
    uint32_t colours[256];
    oct_view_contrast_colours(contrast, colours);
    for (unsigned i = 0; i < 256; i++)
        argb[i] =
            colours[oct_view_contrast_level(contrast, contrast->published_lo + i / 255.0 * range)];
}

/* ---- from pixels to colours ---- */

/* A tile writes whole cache lines of 16 ARGB pixels and reads 16 A-lines side by side. */
#define TILE_COLUMNS 16u
#define TILE_ROWS 64u

struct job {
    const struct oct_view_picture *picture;
    struct oct_view_upright upright;
    uint32_t table[256];    /* ARGB of a u8 pixel, or of a level when pixels are f32 */
    float f32_lo, f32_gain; /* level = (value - lo) * gain */
    uint32_t *argb;
    size_t pitch_px;
};

static unsigned step_for(unsigned n)
{
    return (n + OCT_VIEW_MAX_SIDE_PX - 1) / OCT_VIEW_MAX_SIDE_PX;
}

struct oct_view_upright oct_view_upright_of(const struct oct_picture_header *header)
{
    struct oct_view_upright u = {
        .column_step = step_for(header->n_lines),
        .row_step = step_for(header->depth),
    };
    u.n_columns = (header->n_lines + u.column_step - 1) / u.column_step;
    u.n_rows = (header->depth + u.row_step - 1) / u.row_step;
    return u;
}

static void tile_u8(const struct job *job, unsigned row0, unsigned row1, unsigned column0,
                    unsigned column1)
{
    const uint8_t *pixels = job->picture->pixels;
    const size_t line = (size_t)job->picture->header.depth * job->upright.column_step;
    for (unsigned row = row0; row < row1; row++) {
        const uint8_t *from = pixels + column0 * line + (size_t)row * job->upright.row_step;
        uint32_t *to = job->argb + row * job->pitch_px + column0;
        for (unsigned column = column0; column < column1; column++, from += line)
            *to++ = job->table[*from];
    }
}

static void tile_f32(const struct job *job, unsigned row0, unsigned row1, unsigned column0,
                     unsigned column1)
{
    const float *pixels = job->picture->pixels;
    const size_t line = (size_t)job->picture->header.depth * job->upright.column_step;
    for (unsigned row = row0; row < row1; row++) {
        const float *from = pixels + column0 * line + (size_t)row * job->upright.row_step;
        uint32_t *to = job->argb + row * job->pitch_px + column0;
        for (unsigned column = column0; column < column1; column++, from += line) {
            float level = (*from - job->f32_lo) * job->f32_gain + 0.5f;
            /* NaN fails the first comparison and is black, as everything too dark. */
            *to++ = job->table[level > 0.0f ? level < 255.0f ? (unsigned)level : 255u : 0u];
        }
    }
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static struct job start_job(const struct oct_view_picture *picture,
                            const struct oct_view_contrast *contrast)
{
    struct job job = {
        .picture = picture,
        .upright = oct_view_upright_of(&picture->header),
        .f32_lo = (float)contrast->lo,
        .f32_gain = (float)(255.0 / (contrast->hi - contrast->lo)),
    };
    if (picture->header.sample_type == OCT_SAMPLE_F32)
        oct_view_contrast_colours(contrast, job.table);
    else
        oct_view_contrast_table(contrast, job.table);
    return job;
}

void oct_view_convert(const struct oct_view_picture *picture,
                      const struct oct_view_contrast *contrast, uint32_t *argb, size_t pitch_px)
{
    struct job job = start_job(picture, contrast);
    job.argb = argb;
    job.pitch_px = pitch_px;
    for (unsigned row = 0; row < job.upright.n_rows; row += TILE_ROWS) {
        unsigned row1 = smaller(row + TILE_ROWS, job.upright.n_rows);
        for (unsigned column = 0; column < job.upright.n_columns; column += TILE_COLUMNS) {
            unsigned column1 = smaller(column + TILE_COLUMNS, job.upright.n_columns);
            if (picture->header.sample_type == OCT_SAMPLE_F32)
                tile_f32(&job, row, row1, column, column1);
            else
                tile_u8(&job, row, row1, column, column1);
        }
    }
}

static unsigned nearest(double at, unsigned n)
{
    return at < 0 ? 0 : at >= n ? n - 1 : (unsigned)at;
}

static uint32_t colour_of(const struct job *job, size_t i)
{
    if (job->picture->header.sample_type != OCT_SAMPLE_F32)
        return job->table[((const uint8_t *)job->picture->pixels)[i]];
    float level = (((const float *)job->picture->pixels)[i] - job->f32_lo) * job->f32_gain + 0.5f;
    return job->table[level > 0.0f ? level < 255.0f ? (unsigned)level : 255u : 0u];
}

void oct_view_convert_part(const struct oct_view_picture *picture,
                           const struct oct_view_contrast *contrast,
                           const struct oct_view_part *part, uint32_t *argb, size_t pitch_px)
{
    const struct oct_picture_header *h = &picture->header;
    struct job job = start_job(picture, contrast);
    for (int y = 0; y < part->height; y++) {
        unsigned d = nearest(part->depth0 + (y + 0.5) * part->depth_px, h->depth);
        uint32_t *to = argb + (size_t)y * pitch_px, colour = 0;
        unsigned shown = UINT32_MAX;
        for (int x = 0; x < part->width; x++) {
            unsigned line = nearest(part->line0 + (x + 0.5) * part->lines_px, h->n_lines);
            if (line != shown)
                colour = colour_of(&job, (size_t)line * h->depth + d);
            shown = line;
            to[x] = colour;
        }
    }
}
