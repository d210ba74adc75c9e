#include "viewer/model/picture.h"

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
