#include "viewer/play/exams.h"

#include "pipeline/volume/volume.h"
#include "viewer/model/phrase.h"
#include "viewer/model/playback.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The mean of each block of pixels, by the limits of the B-scan. */
static void shrink(const void *pixels, const struct oct_volume_facts *f,
                   const struct oct_volume_row *row, struct oct_view_exam *exam)
{
    const bool is_u8 = f->sample_type == OCT_SAMPLE_U8;
    const double gain = is_u8 ? 1 : 255 / (row->hi - row->lo);
    for (uint32_t y = 0; y < OCT_VIEW_THUMB_ROWS; y++)
        for (uint32_t x = 0; x < OCT_VIEW_THUMB_COLUMNS; x++) {
            const uint32_t j0 = x * f->n_lines / OCT_VIEW_THUMB_COLUMNS;
            const uint32_t j1 = (x + 1) * f->n_lines / OCT_VIEW_THUMB_COLUMNS;
            const uint32_t d0 = y * f->depth / OCT_VIEW_THUMB_ROWS;
            const uint32_t d1 = (y + 1) * f->depth / OCT_VIEW_THUMB_ROWS;
            double sum = 0, n = 0;
            for (uint32_t j = j0; j < (j1 > j0 ? j1 : j0 + 1); j++)
                for (uint32_t d = d0; d < (d1 > d0 ? d1 : d0 + 1); d++, n++) {
                    const size_t at = (size_t)j * f->depth + d;
                    sum += is_u8 ? ((const uint8_t *)pixels)[at]
                                 : ((double)((const float *)pixels)[at] - row->lo) * gain;
                }
            const double level = sum / n;
            exam->thumb[y][x] = (uint8_t)(level > 0 ? fmin(level, 255) : 0); /* NaN: black */
        }
}

static void read_thumb(struct oct_volume_reader *reader, struct oct_view_exam *exam)
{
    const struct oct_volume_facts *f = oct_volume_facts(reader);
    const size_t n_bytes = (size_t)f->n_lines * f->depth *
                           (f->sample_type == OCT_SAMPLE_U8 ? sizeof(uint8_t) : sizeof(float));
    uint32_t v = f->n_bscans / 2;
    while (v > 0 && !oct_volume_row(reader, v).valid)
        v--;
    const struct oct_volume_row row = oct_volume_row(reader, v);
    bool valid = false;
    if (f->depth == 0 || !row.valid ||
        (f->sample_type != OCT_SAMPLE_U8 && !(row.hi - row.lo > 0 && isfinite(row.hi - row.lo))))
        return;
    void *pixels = malloc(n_bytes);
    if (pixels && oct_volume_read_image(reader, v, pixels, &valid, NULL) == OCT_OK && valid) {
        shrink(pixels, f, &row, exam);
        exam->has_thumb = true;
    }
    free(pixels);
}

bool oct_play_exam_read(const char *folder, const char *name, struct oct_view_exam *exam)
{
    struct oct_volume_reader *reader = NULL;
    char path[OCT_VIEW_PATH_BYTES];
    *exam = (struct oct_view_exam){.n_bscans = 0};
    if (snprintf(path, sizeof(path), "%s%s", folder, name) >= (int)sizeof(path) ||
        strlen(name) >= sizeof(exam->name) || oct_volume_open(&reader, path, NULL))
        return false;
    const struct oct_volume_facts *f = oct_volume_facts(reader);
    snprintf(exam->name, sizeof(exam->name), "%s", name);
    snprintf(exam->pseudonym, sizeof(exam->pseudonym), "%s", f->pseudonym);
    snprintf(exam->eye, sizeof(exam->eye), "%s", f->eye);
    snprintf(exam->begun, sizeof(exam->begun), "%.16s", f->start_time);
    if (strlen(exam->begun) > 10 && exam->begun[10] == 'T')
        exam->begun[10] = ' ';
    oct_view_letters_clean(exam->pseudonym);
    oct_view_letters_clean(exam->eye);
    oct_view_letters_clean(exam->begun);
    oct_volume_mark_of(f->mark, &exam->verdict);
    exam->n_bscans = f->n_bscans;
    exam->n_valid = (uint32_t)f->n_valid;
    exam->field_mm[0] = f->spacing_um[1] * f->n_lines / 1000;
    exam->field_mm[1] = f->spacing_um[0] * f->n_bscans / 1000;
    read_thumb(reader, exam);
    oct_volume_reader_destroy(reader);
    return true;
}
