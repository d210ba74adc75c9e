/* Playback: the folder's recordings by patient, a row each as high as a button: its middle B-scan,
 * who, which eye, when, how large, what was decided; and at its right, of the eye that is shown,
 * where it is compared with that. */
#include "viewer/draw/canvas.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Letters of the columns; the file's name has what is left. */
enum { EYE = 4, BEGUN = 18, SIZE = 27, VERDICT = 8, COMPARE = 11 };
#define PSEUDONYM_SHARE 0.3 /* of what the other columns leave */

static int thumb_width(const struct oct_draw *draw)
{
    return draw->layout.row_height * (int)OCT_VIEW_THUMB_COLUMNS / (int)OCT_VIEW_THUMB_ROWS;
}

/* The thumbs of the rows in sight, one below the other. */
static enum oct_err fill_thumbs(struct oct_draw *draw, const struct oct_view_exams *e,
                                struct oct_error *err)
{
    struct oct_draw_sheet *sheet = &draw->thumbs;
    const unsigned n_rows = draw->layout.n_rows;
    const enum oct_err code =
        oct_draw_sheet_size(draw, sheet, OCT_VIEW_THUMB_COLUMNS, OCT_VIEW_THUMB_ROWS * n_rows, err);
    uint32_t argb[OCT_VIEW_THUMB_COLUMNS];
    for (unsigned y = 0; !code && y < OCT_VIEW_THUMB_ROWS * n_rows; y++) {
        const struct oct_view_exam *exam =
            oct_view_exams_row(e, e->rows.first + y / OCT_VIEW_THUMB_ROWS);
        for (unsigned x = 0; x < OCT_VIEW_THUMB_COLUMNS; x++)
            argb[x] = exam && exam->has_thumb
                          ? 0xff000000u | exam->thumb[y % OCT_VIEW_THUMB_ROWS][x] * 0x010101u
                          : 0xff000000u | RGB_AREA;
        SDL_UpdateTexture(sheet->texture, &(SDL_Rect){0, (int)y, (int)OCT_VIEW_THUMB_COLUMNS, 1},
                          argb, sizeof(argb));
    }
    return code;
}

static void size_text(const struct oct_view_exam *exam, char *text, size_t n_bytes)
{
    if (exam->field_mm[0] > 0 && exam->field_mm[1] > 0)
        snprintf(text, n_bytes, "%u B-scans, %.1f x %.1f mm", exam->n_bscans, exam->field_mm[0],
                 exam->field_mm[1]);
    else
        snprintf(text, n_bytes, "%u B-scans", exam->n_bscans);
}

static void draw_row(struct oct_draw *draw, const struct oct_view_model *model, unsigned i,
                     struct oct_view_rect r)
{
    static const char *const verdicts[] = {"", "keep", "repeat"};
    const struct oct_view_exams *e = &model->exams;
    const struct oct_view_exam *exam = oct_view_exams_row(e, i);
    const struct oct_view_exam *before = i > e->rows.first ? oct_view_exams_row(e, i - 1) : NULL;
    const bool goes_on = before && strcmp(before->pseudonym, exam->pseudonym) == 0;
    const bool is_chosen = e->rows.chosen == i + 1, is_alike = oct_view_exams_is_alike(model, i);
    const int letter = oct_draw_letters_width(draw, 1), margin = draw->layout.margin;
    const int left = r.x + thumb_width(draw) + margin, right = draw->layout.compare_x;
    const int rest = right - left - (EYE + BEGUN + SIZE + VERDICT) * letter;
    const uint32_t rgb = is_chosen ? RGB_GROUND : RGB_PLAIN;
    char size[64];
    size_text(exam, size, sizeof(size));
    const struct {
        int width;
        const char *words;
        uint32_t rgb;
    } columns[] = {
        {(int)(PSEUDONYM_SHARE * rest),
         goes_on              ? ""
         : exam->pseudonym[0] ? exam->pseudonym
                              : "no pseudonym",
         rgb},
        {EYE * letter, exam->eye, rgb},
        {BEGUN * letter, exam->begun, rgb},
        {SIZE * letter, size, rgb},
        {VERDICT * letter, verdicts[exam->verdict],
         is_chosen                          ? rgb
         : exam->verdict == OCT_MARK_REPEAT ? RGB_WARN
                                            : RGB_GOOD},
        {rest - (int)(PSEUDONYM_SHARE * rest), exam->name, rgb},
    };
    const bool is_open = strcmp(exam->name, model->playback.file.name) == 0;
    oct_draw_fill(draw, (struct oct_view_rect){r.x, r.y, r.w, r.h - 1},
                  is_chosen ? RGB_GOOD
                  : is_open ? RGB_BAR
                            : RGB_BUTTON,
                  255);
    struct oct_view_rect at = {left, r.y, 0, r.h};
    for (size_t k = 0; k < sizeof(columns) / sizeof(columns[0]); k++) {
        at.w = columns[k].width - margin;
        oct_draw_words_in(draw, at, columns[k].words, columns[k].rgb);
        at.x += columns[k].width;
    }
    at = (struct oct_view_rect){right, r.y, r.x + r.w - right - margin, r.h};
    if (is_open || is_alike)
        oct_draw_words_in(draw, at, is_open ? "shown" : "compare",
                          is_chosen  ? rgb
                          : is_alike ? RGB_MEASURE
                                     : RGB_DIM);
}

enum oct_err oct_draw_exams(struct oct_draw *draw, const struct oct_view_model *model,
                            struct oct_error *err)
{
    const struct oct_view_exams *e = &model->exams;
    struct oct_view_rect r = draw->layout.list;
    const int margin = draw->layout.margin;
    char title[256];
    if (r.w == 0 || !oct_view_exams_are_shown(model))
        return OCT_OK;
    const enum oct_err code = e->rows.n > 0 ? fill_thumbs(draw, e, err) : OCT_OK;
    if (code)
        return code;
    draw->layout.compare_x = r.x + r.w - oct_draw_letters_width(draw, COMPARE);
    oct_draw_fill(draw, draw->layout.area, RGB_GROUND, 255);
    r.h = draw->layout.row_height;
    oct_draw_fill(draw, r, RGB_BAR, 255);
    oct_view_exams_title(model, title, sizeof(title));
    oct_draw_words_in(draw, (struct oct_view_rect){r.x + margin, r.y, r.w - 2 * margin, r.h}, title,
                      RGB_PLAIN);
    r.y += r.h;
    for (unsigned k = 0; k < draw->layout.n_rows && oct_view_exams_row(e, e->rows.first + k); k++) {
        draw_row(draw, model, e->rows.first + k, r);
        SDL_RenderCopy(draw->renderer, draw->thumbs.texture,
                       &(SDL_Rect){0, (int)(k * OCT_VIEW_THUMB_ROWS), (int)OCT_VIEW_THUMB_COLUMNS,
                                   (int)OCT_VIEW_THUMB_ROWS},
                       &(SDL_Rect){r.x, r.y, thumb_width(draw), r.h - 1});
        r.y += r.h;
    }
    return OCT_OK;
}
