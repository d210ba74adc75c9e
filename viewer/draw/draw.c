#include "viewer/draw/draw.h"

#include "pipeline/base/log.h"
#include "viewer/draw/canvas.h"
#include "viewer/model/buttons.h"

#include <math.h>
#include <string.h>

/* SDL's software renderer scales straight into the window where picture and window have one format,
 * and through two pictures in between where they differ. RGB888 is ARGB8888 with the first byte
 * unused. */
static uint32_t sheet_format(SDL_Renderer *renderer)
{
    SDL_Window *window = SDL_RenderGetWindow(renderer);
    SDL_RendererInfo info;
    if (window && SDL_GetRendererInfo(renderer, &info) == 0 && info.flags & SDL_RENDERER_SOFTWARE &&
        SDL_GetWindowPixelFormat(window) == SDL_PIXELFORMAT_RGB888)
        return SDL_PIXELFORMAT_RGB888;
    return SDL_PIXELFORMAT_ARGB8888;
}

enum oct_err oct_draw_create(struct oct_draw **draw, struct SDL_Renderer *renderer,
                             const char *font, struct oct_error *err)
{
    struct oct_error no_font;
    *draw = SDL_calloc(1, sizeof(**draw));
    if (!*draw)
        return oct_fail(err, OCT_E_NO_MEMORY, "drawing: out of memory");
    (*draw)->renderer = renderer;
    oct_draw_set_text(*draw, 12, 96);
    (*draw)->sheet_format = sheet_format(renderer);
    if (oct_text_create(&(*draw)->text, renderer, font, &no_font))
        oct_log(OCT_LOG_WARNING, "%s", no_font.text);
    return OCT_OK;
}

bool oct_draw_has_text(const struct oct_draw *draw)
{
    return draw->text != NULL;
}

void oct_draw_set_text(struct oct_draw *draw, double points, double dpi)
{
    draw->points = points;
    draw->dpi = dpi;
}

static void measure_buttons(struct oct_draw *draw, const struct oct_view_model *model,
                            struct oct_view_contents *contents)
{
    struct oct_view_button buttons[OCT_VIEW_MOST_BUTTONS];
    contents->n_buttons = oct_view_buttons(model, buttons);
    for (unsigned i = 0; i < contents->n_buttons; i++) {
        const struct oct_view_button *b = &buttons[i];
        bool is_field = b->look == OCT_BUTTON_FIELD;
        int label = oct_draw_text_width(draw, OCT_TEXT_LARGE, is_field ? "00000000" : b->label);
        contents->button[i] =
            (struct oct_view_button_room){b->row, is_field, label + contents->text_px};
    }
}

static void arrange(struct oct_draw *draw, const struct oct_view_model *model, int width,
                    int height)
{
    static const unsigned n_panels[] = {1, 2, 4};
    const struct oct_view_settings *settings = &model->settings;
    int text_px = oct_view_layout_text_px(draw->points, draw->dpi, width, height);
    struct oct_view_contents contents = {
        .width = width,
        .height = height,
        .text_px = text_px,
        .n_panels = n_panels[settings->arrangement],
        .proportion = NAN,
        .enface_proportion = oct_view_model_enface_proportion(model),
        .fills = settings->fit == OCT_FIT_FILL,
        .has_slice = model->playback.active,
        .has_speeds = oct_view_model_has_flow(model) && model->settings.velocity,
        .has_angiogram = oct_view_model_has_angiogram(model) || oct_view_playback_has_map(model),
        .has_fibres = oct_view_playback_has_map(model) &&
                      oct_view_playback_map(model) == OCT_MAP_NERVE_FIBRES,
        .divider = settings->divider};
    if (model->has_picture && oct_view_model_knows_proportion(model))
        contents.proportion = oct_view_model_proportion(model);
    if (draw->text)
        oct_text_set_size(draw->text, text_px, text_px * 3 / 2);
    /* Without a font the heights of lines follow from the layout's letters. */
    draw->layout.text_px = text_px;
    draw->layout.large_px = text_px * 3 / 2;
    draw->layout.margin = text_px / 2;
    contents.status_height = oct_draw_status_height(draw, model, width, text_px);
    contents.guide_height = oct_draw_guide_height(draw, model);
    contents.banner_height = oct_draw_banner_height(draw);
    contents.list_rows = oct_view_exams_are_shown(model)                ? model->exams.rows.n
                         : oct_view_scans_are_shown(model)              ? model->scan.rows.n
                         : model->worklist.state == OCT_WORKLIST_FAILED ? 3
                                                                        : model->worklist.rows.n;
    contents.list_width = oct_view_exams_are_shown(model)   ? width
                          : oct_view_scans_are_shown(model) ? oct_draw_scans_width(draw, model)
                                                            : oct_draw_worklist_width(draw, model);
    measure_buttons(draw, model, &contents);
    oct_view_layout_window(&draw->layout, &contents);
}

/* A handle in the gap between B-scan and en face picture. */
static void draw_divider(struct oct_draw *draw)
{
    const struct oct_view_rect r = draw->layout.divider;
    const int length = 3 * draw->layout.text_px, thick = draw->layout.margin / 3 + 1;
    if (r.w == 0)
        return;
    struct oct_view_rect handle = {r.x + (r.w - thick) / 2, r.y + (r.h - length) / 2, thick,
                                   length};
    if (draw->layout.is_stacked)
        handle = (struct oct_view_rect){r.x + (r.w - length) / 2, r.y + (r.h - thick) / 2, length,
                                        thick};
    oct_draw_fill(draw, handle, RGB_DIM, 255);
}

enum oct_err oct_draw_frame(struct oct_draw *draw, const struct oct_view_model *model,
                            struct oct_error *err)
{
    int width, height;
    enum oct_err code;
    if (SDL_GetRendererOutputSize(draw->renderer, &width, &height) < 0)
        return oct_fail(err, OCT_E_IO, "drawing: %s", SDL_GetError());
    arrange(draw, model, width, height);
    oct_draw_around(draw, (struct oct_view_rect){0, 0, width, height}, draw->layout.bscan,
                    RGB_GROUND, 255);
    if ((code = oct_draw_bscan(draw, model, err)) || (code = oct_draw_enface(draw, model, err)) ||
        (code = model->playback.active ? oct_draw_thickness(draw, model, err)
                                       : oct_draw_angiogram(draw, model, err)) ||
        (code = oct_draw_slice(draw, model, err)))
        return code;
    draw->n_corner_lines = 0;
    oct_draw_veil(draw, model);
    oct_draw_slice_place(draw, model);
    oct_draw_playback(draw, model);
    oct_draw_scale_bars(draw, model);
    for (size_t i = 0; i < oct_view_n_overlays; i++)
        if (oct_view_overlays[i]->draw)
            oct_view_overlays[i]->draw(draw, model);
    oct_draw_stretch(draw, model);
    oct_draw_veil_words(draw, model);
    oct_draw_guide(draw, model);
    oct_draw_colour_bar(draw, model);
    oct_draw_profile(draw, model);
    if (oct_view_model_has_trace(model))
        oct_draw_trace(draw, model);
    else
        oct_draw_spectrum(draw, model);
    if (model->playback.active)
        oct_draw_slider(draw, model);
    else
        oct_draw_timeline(draw, model);
    draw_divider(draw);
    if ((code = oct_draw_exams(draw, model, err)))
        return code;
    oct_draw_banner(draw, model);
    oct_draw_worklist(draw, model);
    oct_draw_scans(draw, model);
    oct_draw_message(draw, model);
    oct_draw_header(draw, model);
    oct_draw_buttons(draw, model);
    oct_draw_status(draw, model);
    oct_draw_guide_tip(draw, model);
    oct_draw_banner_tip(draw, model);
    if (model->help && draw->text)
        oct_draw_help(draw, model);
    return OCT_OK;
}

const struct oct_view_layout *oct_draw_layout(const struct oct_draw *draw)
{
    return &draw->layout;
}

static void forget_sheet(struct oct_draw_sheet *sheet)
{
    if (sheet->texture)
        SDL_DestroyTexture(sheet->texture);
    memset(sheet, 0, sizeof(*sheet));
}

void oct_draw_forget(struct oct_draw *draw)
{
    forget_sheet(&draw->bscan);
    forget_sheet(&draw->enface.sheet);
    forget_sheet(&draw->angiogram.sheet);
    forget_sheet(&draw->slice);
    forget_sheet(&draw->trace);
    forget_sheet(&draw->thumbs);
    forget_sheet(&draw->before);
    if (draw->text)
        oct_text_forget(draw->text);
}

void oct_draw_destroy(struct oct_draw *draw)
{
    if (!draw)
        return;
    oct_draw_forget(draw);
    oct_text_destroy(draw->text);
    SDL_free(draw);
}
