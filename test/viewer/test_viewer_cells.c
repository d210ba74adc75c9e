/* The cells that octd follows, in the viewer: what is kept of its tables, and where circles and
 * tails are drawn. */
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"
#include "viewer/draw/draw.h"
#include "viewer/model/clock.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <SDL.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S OCT_NS_PER_S
#define CELL 0xff9a3cu
enum { W = 120, H = 100 }; /* as oct_scene_layered; of a volume H B-scans */

struct cell {
    float track, x, y, radius, how;
};

static struct oct_image_header header_of(uint32_t n, bool is_bscan)
{
    static const char *const labels[] = {"track", "x_px", "y_px", "radius_px", "how", "speed_um_s"};
    struct oct_image_header h = {.dataset = "analysis/cells",
                                 .acquisition_id = "a",
                                 .type = OCT_SAMPLE_F32,
                                 .rank = 2,
                                 .dims = {n, 6},
                                 .n_labels = 6,
                                 .n_numbers = 5};
    for (unsigned i = 0; i < 6; i++)
        snprintf(h.labels[i], sizeof(h.labels[i]), "%s", labels[i]);
    h.numbers[0] = (struct oct_image_header_number){"count", 1, {n}};
    h.numbers[1] = (struct oct_image_header_number){"median_speed_um_s", 1, {NAN}};
    h.numbers[2] = (struct oct_image_header_number){"width", 1, {W}};
    h.numbers[3] = (struct oct_image_header_number){"height", 1, {H}};
    h.numbers[4] = (struct oct_image_header_number){"is_bscan", 1, {is_bscan}};
    return h;
}

static struct oct_view_image table_of(const struct cell *cells, uint32_t n, bool is_bscan,
                                      uint64_t frame_num)
{
    struct oct_image_header h = header_of(n, is_bscan);
    struct oct_view_image image = {0};
    float values[OCT_VIEW_CELLS_MOST * 6];
    h.frame_num = frame_num;
    for (uint32_t i = 0; i < n; i++) {
        const struct cell *c = &cells[i];
        const float row[6] = {c->track, c->x, c->y, c->radius, c->how, 7};
        memcpy(values + 6 * i, row, sizeof(row));
    }
    assert_int_equal(oct_view_image_set(&image, &h, values, n * 6 * sizeof(float), NULL), OCT_OK);
    image.arrival_ns = (10 + frame_num) * S;
    return image;
}

static void take(struct oct_view_cells *cells, const struct cell *row, uint32_t n, uint64_t frame)
{
    struct oct_view_image image = table_of(row, n, true, frame);
    oct_view_cells_set(cells, &image);
    oct_view_image_finish(&image);
}

static void tracks_keep_their_last_positions(void **state)
{
    struct oct_view_cells cells = {.n = 0};
    for (unsigned frame = 0; frame < 30; frame++) {
        const struct cell rows[] = {{3, (float)frame, 50, 5, 0}, {9, 80, (float)frame, 4, 2}};
        take(&cells, rows, frame < 28 ? 2 : 1, frame);
    }
    assert_int_equal(cells.n, 1); /* the other one ended */
    assert_int_equal(cells.tracks[0].track, 3);
    assert_int_equal(cells.tracks[0].n, OCT_VIEW_CELLS_TAIL);
    for (unsigned i = 0; i < OCT_VIEW_CELLS_TAIL; i++)
        assert_int_equal((int)cells.tracks[0].x[i], 30 - (int)OCT_VIEW_CELLS_TAIL + (int)i);
    assert_false(cells.tracks[0].is_coasting);
    assert_true(oct_view_cells_are_new(&cells, 42 * S) && !oct_view_cells_are_new(&cells, 44 * S));
    const struct cell back = {3, 1, 1, 5, 2};
    take(&cells, &back, 1, 2); /* before the newest: another beginning */
    assert_true(cells.n == 1 && cells.tracks[0].n == 1 && cells.tracks[0].is_coasting);
    take(&cells, &back, 0, 3);
    assert_int_equal(cells.n, 0);
    assert_true(cells.arrival_ns == 13 * S);
}

static void what_cannot_be_a_cell_is_left_out(void **state)
{
    struct oct_view_cells cells = {.n = 0}, before;
    const struct cell rows[] = {{1, 5, 5, 3, 0},         {2, -0.5f, 5, 3, 0},    {3, 5, H, 3, 0},
                                {4, NAN, 5, 3, 0},       {5, 5, INFINITY, 3, 0}, {6, 5, 5, 0, 0},
                                {7, 5, 5, 500, 0},       {NAN, 5, 5, 3, 0},      {-4, 5, 5, 3, 0},
                                {3e9f, 5, 5, 3, 0},      {1, 50, 50, 3, 0},      {8, 5, 5, NAN, 0},
                                {11, W - 1, H - 1, 3, 1}};
    take(&cells, rows, 13, 1);
    assert_int_equal(cells.n, 2);
    assert_true(cells.tracks[0].track == 1 && cells.tracks[1].track == 11);
    assert_true(cells.tracks[0].n == 1 && cells.tracks[0].x[0] < 6); /* one track, one row */

    before = cells;
    struct oct_view_image image = table_of(rows, 1, true, 5);
    const struct oct_image_header good = image.header;
    image.header.n_labels = 0;
    oct_view_cells_set(&cells, &image);
    image.header = good;
    image.header.rank = 1;
    oct_view_cells_set(&cells, &image);
    image.header = good;
    image.header.type = OCT_SAMPLE_U8;
    oct_view_cells_set(&cells, &image);
    image.header = good;
    image.header.dims[0] = OCT_VIEW_CELLS_MOST + 1;
    assert_int_equal(oct_view_overlay_cells.check(&image.header, NULL), OCT_E_FORMAT);
    oct_view_cells_set(&cells, &image);
    assert_memory_equal(&cells, &before, sizeof(cells));
    image.header = good;
    image.header.numbers[2].values[0] = 1e12; /* of no picture: no place is within it */
    oct_view_cells_set(&cells, &image);
    assert_true(cells.n == 0 && cells.width == 0);
    oct_view_image_finish(&image);
}

/* ---- drawn ---- */

static void offer_late(struct oct_viewer_stage *s, const struct cell *rows, uint32_t n,
                       bool is_bscan, uint64_t frame)
{
    struct oct_view_image image = table_of(rows, n, is_bscan, frame);
    oct_view_model_offer_cells(&s->model, &image);
    oct_view_image_finish(&image);
}

/* Of the picture that is shown, where they are of a B-scan. */
static void offer(struct oct_viewer_stage *s, const struct cell *rows, uint32_t n, bool is_bscan,
                  uint64_t frame)
{
    if (is_bscan)
        s->model.shown.header.frame_num = frame;
    offer_late(s, rows, n, is_bscan, frame);
}

/* Where pixels have exactly the colour of cells: their box; n 0: nowhere. Of words, which have
 * another ground about them, nothing reaches below `top`. */
struct box {
    int x0, y0, x1, y1;
    unsigned n;
};

static struct box find_box(struct oct_viewer_stage *s, int top)
{
    struct box b = {INT32_MAX, INT32_MAX, -1, -1, 0};
    assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
    SDL_RenderFlush(s->renderer);
    for (int y = top; y < s->surface->h; y++)
        for (int x = 0; x < s->surface->w; x++) {
            uint32_t pixel;
            memcpy(&pixel, (const uint8_t *)s->surface->pixels + y * s->surface->pitch + 4 * x,
                   sizeof(pixel));
            if ((pixel & 0xffffffu) != CELL)
                continue;
            b.x0 = x < b.x0 ? x : b.x0;
            b.x1 = x > b.x1 ? x : b.x1;
            b.y0 = y < b.y0 ? y : b.y0;
            b.y1 = y > b.y1 ? y : b.y1;
            b.n++;
        }
    return b;
}

static void circles_lie_about_their_cells(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    const struct cell cell = {1, 60, 59, 8, 0};
    offer(s, &cell, 1, true, 1);
    const int top = 200;
    struct box b = find_box(s, top);
    struct oct_view_rectf p = oct_draw_place(s->draw);
    const double cx = p.x + 60.5 / W * p.w, cy = p.y + 59.5 / H * p.h;
    assert_true(b.n > 50);
    assert_true(fabs((b.x0 + b.x1) / 2.0 - cx) < 3 && fabs((b.y0 + b.y1) / 2.0 - cy) < 3);
    assert_true(fabs(b.x1 - b.x0 - 16 * p.w / W) < 6 && fabs(b.y1 - b.y0 - 16 * p.h / H) < 6);
    oct_view_lens_zoom(&s->model.lens, 2, 0.5, 0.6); /* a zoomed picture takes them along */
    struct box zoomed = find_box(s, top);
    p = oct_draw_place(s->draw);
    assert_true(fabs((zoomed.x0 + zoomed.x1) / 2.0 - (p.x + 60.5 / W * p.w)) < 3);
    assert_true(fabs(zoomed.x1 - zoomed.x0 - 2.0 * (b.x1 - b.x0)) < 8);
    oct_view_lens_init(&s->model.lens);
    /* Of pixels of 2 x 1 um the radius is in pixels of the finer axis. */
    s->model.daemon.lateral_um = 2;
    s->model.daemon.axial_um = 1;
    s->model.settings.fit = OCT_FIT_FILL;
    b = find_box(s, top);
    p = oct_draw_place(s->draw);
    assert_true(fabs(b.x1 - b.x0 - 8 * p.w / W) < 6 && fabs(b.y1 - b.y0 - 16 * p.h / H) < 6);
    oct_view_model_apply(&s->model, OCT_ACTION_CELLS, 1);
    assert_int_equal(find_box(s, 0).n, 0);
    offer(s, &cell, 1, true, 2);
    assert_int_equal(find_box(s, 0).n, 0);
    oct_view_model_apply(&s->model, OCT_ACTION_CELLS, 1);
    offer(s, &cell, 1, true, 3);
    assert_true(find_box(s, top).n > 50);
    s->model.average = (struct oct_view_average){
        .score = 1, .shift_lines = 6, .shift_depth = -12, .arrival_ns = 11 * S};
    struct box moved = find_box(s, top); /* an average takes them along */
    p = oct_draw_place(s->draw);
    assert_true(fabs((moved.x0 + moved.x1) / 2.0 - (p.x + 66.5 / W * p.w)) < 3);
    assert_true(fabs((moved.y0 + moved.y1) / 2.0 - (p.y + 47.5 / H * p.h)) < 3);
    s->model.average.arrival_ns = 0;
    s->model.shown.header.frame_num = 4; /* octd says no more of them */
    assert_int_equal(find_box(s, 0).n, 0);
    oct_viewer_stage_close(s);
}

static void cells_of_volumes_are_on_the_en_face_picture(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_image enface = oct_scene_enface(H, W);
    const struct cell at_first = {1, 20, 70, 6, 0}, then = {1, 90, 70, 6, 0};
    oct_scene_enface_fill(&enface, 5, 20);
    oct_view_model_offer_enface(&s->model, &enface);
    offer(s, &at_first, 1, false, 1);
    assert_int_equal(find_box(s, 0).n, 0); /* there is no such panel */
    s->model.settings.arrangement = OCT_ARRANGEMENT_TWO;
    const struct oct_view_rect *area = &oct_draw_layout(s->draw)->enface;
    struct box b = find_box(s, 0);
    b = find_box(s, area->y + area->h / 2);
    assert_true(b.n > 20 && b.x0 >= area->x && b.x1 < area->x + area->w);
    const int middle = (b.x0 + b.x1) / 2;
    offer(s, &then, 1, false, 2);
    struct box moved = find_box(s, area->y + area->h / 2);
    const int by = (moved.x0 + moved.x1) / 2 - middle;
    assert_true(by > area->w / 3); /* 70 of 120 A-lines */
    /* Where it came from: a tail of another alpha, between both. */
    uint32_t tail;
    const int x = middle + by / 2, y = (moved.y0 + moved.y1) / 2;
    memcpy(&tail, (const uint8_t *)s->surface->pixels + y * s->surface->pitch + 4 * x,
           sizeof(tail));
    assert_true((tail >> 16 & 255) > (tail & 255) + 60);
    offer(s, &then, 1, true, 3); /* of the B-scan: not here */
    b = find_box(s, area->y + area->h / 2);
    assert_true(b.n > 0 && b.x1 < area->x);
    oct_view_image_finish(&enface);
    oct_viewer_stage_close(s);
}

static void the_corner_says_how_many_and_how_fast(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_phrase p;
    const struct cell rows[] = {{1, 20, 70, 6, 0}, {2, 90, 70, 6, 2}};
    oct_view_cells_text(&s->model, &p);
    assert_string_equal(p.text, "");
    offer(s, rows, 2, true, 1);
    oct_view_cells_text(&s->model, &p);
    assert_string_equal(p.text, "cells 2");
    s->model.cells.count = 300;
    s->model.cells.median_um_s = 1372.4;
    oct_view_cells_text(&s->model, &p);
    assert_string_equal(p.text, "cells 300, median 1372 um/s");
    s->model.cells.median_um_s = 0.00867;
    oct_view_cells_text(&s->model, &p);
    assert_string_equal(p.text, "cells 300, median 0.00867 um/s");
    snprintf(s->model.cells.acquisition_id, sizeof(s->model.cells.acquisition_id), "b");
    oct_view_cells_text(&s->model, &p);
    assert_string_equal(p.text, "");
    oct_viewer_stage_close(s);
}

static void a_frozen_picture_has_its_own_cells_and_no_others(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    const struct cell one = {1, 20, 70, 6, 0}, other = {1, 90, 70, 6, 0};
    offer(s, &one, 1, true, 1);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    offer_late(s, &other, 1, true, 2);
    oct_view_model_tick(&s->model, 60 * S);
    assert_true(oct_view_model_has_cells(&s->model));
    assert_true(s->model.cells.tracks[0].x[0] < 21);
    offer(s, &other, 1, false, 2); /* en face goes on */
    assert_true(s->model.cells.tracks[0].x[0] > 89);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    offer(s, &one, 1, true, 5);
    s->model.shown.header.frame_num = 6;
    assert_false(oct_view_model_has_cells(&s->model));
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    assert_false(oct_view_model_has_cells(&s->model));
    offer_late(s, &one, 1, true, 6);
    assert_true(oct_view_model_has_cells(&s->model));
    oct_viewer_stage_close(s);
}

/* Where the next volume has replaced the row that a cell was found in, it is not drawn. */
static void cells_of_a_volume_lie_on_its_own_rows(void **state)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_image enface = oct_scene_enface(H, W);
    const struct cell rows[] = {{1, 20, 20, 4, 0}, {2, 20, 70, 4, 0}};
    s->model.settings.arrangement = OCT_ARRANGEMENT_TWO;
    for (uint32_t row = 0; row < H; row++)
        oct_scene_enface_fill(&enface, row, 20);
    oct_view_model_offer_enface(&s->model, &enface);
    offer(s, rows, 2, false, 1);
    find_box(s, 0);
    const struct oct_view_rect *area = &oct_draw_layout(s->draw)->enface;
    const int words = area->y + area->h / 8;
    const struct box both = find_box(s, words);
    assert_true(both.n > 40 && both.y1 - both.y0 > area->h / 4);
    const uint32_t newest[] = {10, 40, 90};
    for (unsigned i = 0; i < 3; i++) { /* of the next volume */
        enface.header.volume = 1;
        enface.header.bscan = newest[i];
        oct_view_model_offer_enface(&s->model, &enface);
        const struct box b = find_box(s, words);
        assert_true(i == 0   ? b.n == both.n
                    : i == 1 ? b.n > 20 && b.y0 > both.y0 + area->h / 4
                             : b.n == 0);
    }
    s->model.cells.volume = 1; /* its own have come */
    assert_int_equal(find_box(s, words).n, both.n);
    s->model.cells.volume = 3; /* an en face picture that is late */
    assert_int_equal(find_box(s, words).n, 0);
    oct_view_image_finish(&enface);
    oct_viewer_stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tracks_keep_their_last_positions),
        cmocka_unit_test(what_cannot_be_a_cell_is_left_out),
        cmocka_unit_test(circles_lie_about_their_cells),
        cmocka_unit_test(cells_of_volumes_are_on_the_en_face_picture),
        cmocka_unit_test(the_corner_says_how_many_and_how_fast),
        cmocka_unit_test(a_frozen_picture_has_its_own_cells_and_no_others),
        cmocka_unit_test(cells_of_a_volume_lie_on_its_own_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
