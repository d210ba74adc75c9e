/* Cells live (analysis/cells/cells.h): disks that move over volumes and B-scans, of which place and
 * speed are known. */
#include "analysis/cells/cells.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 110, V = 96, D = 6, DEPTH = 90, N_CELLS = 3 };
#define ROW_S 2e-3
#define LINE_HZ 60000.0
#define UM 2.0
#define R_PX 5.0

static struct oct_cells_settings usual(enum oct_cells_source source)
{
    struct oct_cells_settings s;
    oct_cells_settings_init(&s);
    s.enabled = true;
    s.source = source;
    s.params.radius = R_PX;
    s.cpu = true;
    s.enface = (struct oct_enface_settings){OCT_PROJECTION_MEAN, 0.4, 0.6};
    return s;
}

/* Where a cell is at a time, and how it moves, in px and px/s. */
struct mover {
    double x, y, vx, vy;
};

struct rig {
    struct oct_cells_settings settings;
    struct oct_analysis *analysis;
    struct oct_image_form input, form;
    struct oct_image_frame bscan, result;
    float *table;
    uint8_t *pixels;
    uint32_t n; /* of the next B-scan */
    struct mover cells[N_CELLS];
    unsigned n_cells;
};

static struct rig *open_rig(const struct oct_cells_settings *settings, uint32_t depth)
{
    struct rig *r = calloc(1, sizeof(*r));
    assert_non_null(r);
    r->settings = *settings;
    r->input = (struct oct_image_form){.name = "bscan",
                                       .quantity = OCT_QUANTITY_INTENSITY_DB,
                                       .type = OCT_SAMPLE_U8,
                                       .rank = 2,
                                       .dims = {M, depth},
                                       .spacing_um = {UM, UM},
                                       .axes = {"line", "depth"}};
    const struct oct_analysis_setup setup = {.input = &r->input,
                                             .n_bscans = V,
                                             .spacing = {UM, UM, UM},
                                             .line_rate_hz = LINE_HZ,
                                             .live = true,
                                             .settings = settings};
    must(oct_cells_analysis_cpu.create(&r->analysis, &setup, &r->form, &failure));
    must(oct_image_form_check(&r->form, &failure));
    r->pixels = malloc((size_t)M * depth);
    r->table = malloc(oct_image_form_bytes(&r->form));
    assert_true(r->pixels && r->table);
    r->bscan = (struct oct_image_frame){.form = &r->input, .pixels = r->pixels, .lo = 0, .hi = 60};
    return r;
}

static void close_rig(struct rig *r)
{
    oct_cells_analysis_cpu.run.destroy(r->analysis);
    free(r->pixels);
    free(r->table);
    free(r);
}

/* A bright disk with a soft edge, on speckle. */
static double light(const struct rig *r, double x, double y, double time_s, struct dice *dice)
{
    double sum = 90 + (double)dice_below(dice, 1000) * 0.012;
    for (unsigned i = 0; i < r->n_cells; i++) {
        const struct mover *c = &r->cells[i];
        const double far = hypot(x - c->x - c->vx * time_s, y - c->y - c->vy * time_s);
        sum += 90 / (1 + exp((far - R_PX) / 0.5));
    }
    return fmin(sum, 255);
}

static void number(struct rig *r)
{
    r->bscan.info.number = r->bscan.info.id = r->n;
    r->bscan.info.volume = r->n / V;
    r->bscan.info.bscan = (uint32_t)(r->n % V);
    r->bscan.info.time_ns = UINT64_C(1700000000000000000) + (uint64_t)(1e9 * ROW_S * r->n);
    r->n++;
}

static void push(struct rig *r)
{
    struct oct_error err = {.text = ""};
    if (oct_cells_analysis_cpu.run.push(r->analysis, &r->bscan, &err))
        fail_msg("push %u: %s", r->n, err.text);
}

/* A row of the volume: the same in all depths. */
static void push_row(struct rig *r)
{
    struct dice dice = {r->n * 7 + 1};
    const uint32_t row = (uint32_t)(r->n % V);
    for (uint32_t x = 0; x < M; x++)
        memset(r->pixels + (size_t)x * D, (int)light(r, x, row, r->n * ROW_S, &dice), D);
    number(r);
    push(r);
}

static void push_volume(struct rig *r)
{
    for (uint32_t i = 0; i < V; i++)
        push_row(r);
}

/* A B-scan, each A-line at its own time. */
static void push_bscan(struct rig *r)
{
    struct dice dice = {r->n * 7 + 1};
    for (uint32_t x = 0; x < M; x++)
        for (uint32_t d = 0; d < DEPTH; d++)
            r->pixels[(size_t)x * DEPTH + d] =
                (uint8_t)light(r, x, d, r->n * ROW_S + x / LINE_HZ, &dice);
    number(r);
    push(r);
}

/* As the stage asks. False: there is none. */
static bool take(struct rig *r)
{
    struct oct_error err = {.text = ""};
    r->result = (struct oct_image_frame){
        .form = &r->form, .info = r->bscan.info, .whole = true, .hi = 1, .pixels = r->table};
    memcpy(r->result.dims, r->form.dims, sizeof(r->form.dims));
    for (unsigned i = 0; i < OCT_IMAGE_MAX_NUMBERS; i++)
        r->result.numbers[i] = NAN;
    enum oct_err e = oct_cells_analysis_cpu.run.take(r->analysis, &r->result, &err);
    if (e && e != OCT_E_AGAIN)
        fail_msg("take: %s", err.text);
    assert_true(r->result.dims[0] <= OCT_CELLS_LIVE_MOST);
    return e == OCT_OK;
}

static float value(const struct rig *r, unsigned row, enum oct_cells_column column)
{
    return r->table[row * OCT_CELLS_N_COLUMNS + column];
}

static void configure(struct rig *r)
{
    struct oct_error err = {.text = ""};
    if (oct_cells_analysis_cpu.run.configure(r->analysis, &r->settings, &err))
        fail_msg("configure: %s", err.text);
}

/* The row of the cell at this place, within a pixel; -1: there is none. */
static int row_at(const struct rig *r, double x, double y, double within)
{
    for (unsigned i = 0; i < r->result.dims[0]; i++)
        if (hypot((double)value(r, i, OCT_CELLS_X) - x, (double)value(r, i, OCT_CELLS_Y) - y) <
            within)
            return (int)i;
    return -1;
}

/* When the scan meets a cell in the volume: where y(t) = row(t). */
static double met_s(const struct mover *c, uint64_t volume)
{
    const double start_s = (double)(volume * V) * ROW_S;
    return (c->y + start_s / ROW_S) / (1 / ROW_S - c->vy);
}

static struct rig *open_three(const struct oct_cells_settings *settings)
{
    struct rig *r = open_rig(settings, D);
    const double volume_s = V * ROW_S;
    r->n_cells = N_CELLS;
    r->cells[0] = (struct mover){25, 30, 3 / volume_s, 0};
    r->cells[1] = (struct mover){80, 25, 0, 4 / volume_s};
    r->cells[2] = (struct mover){60, 70, -2 / volume_s, 0};
    return r;
}

TEST(cells_of_volumes_are_followed)
{
    const struct oct_cells_settings settings = usual(OCT_CELLS_OF_ENFACE);
    struct rig *r = open_three(&settings);
    assert_true(r->form.of_volume);
    for (uint64_t volume = 0; volume < 6; volume++) {
        for (uint32_t i = 0; i < V; i++) {
            assert_false(take(r));
            push_row(r);
        }
        assert_true(take(r));
        assert_int_equal(r->result.info.bscan, V - 1);
        assert_int_equal(r->result.info.volume, volume);
        assert_int_equal(r->result.dims[0], volume < 2 ? 0 : N_CELLS); /* min_frames */
        assert_int_equal((int)r->result.numbers[OCT_CELLS_COUNT], r->result.dims[0]);
        assert_int_equal((int)r->result.numbers[OCT_CELLS_FRAMES], volume + 1);
        assert_int_equal((int)r->result.numbers[OCT_CELLS_WIDTH], M);
        assert_int_equal((int)r->result.numbers[OCT_CELLS_HEIGHT], V);
        assert_true(r->result.numbers[OCT_CELLS_IS_BSCAN] < 1);
        for (unsigned i = 0; volume >= 2 && i < N_CELLS; i++) {
            const struct mover *c = &r->cells[i];
            const double at_s = met_s(c, volume);
            const int row = row_at(r, c->x + c->vx * at_s, c->y + c->vy * at_s, 0.5);
            assert_true(row >= 0);
            const double speed = hypot(c->vx, c->vy) * UM;
            assert_int_equal((int)value(r, (unsigned)row, OCT_CELLS_TRACK),
                             (int)(i == 0   ? 2
                                   : i == 1 ? 1
                                            : 3)); /* in raster order */
            assert_int_equal((int)value(r, (unsigned)row, OCT_CELLS_HOW), OCT_CELLS_DETECTED);
            assert_true(value(r, (unsigned)row, OCT_CELLS_SCORE) < -1.8f);
            assert_true(fabs((double)value(r, (unsigned)row, OCT_CELLS_RADIUS) - R_PX) < 1);
            assert_true(fabs((double)value(r, (unsigned)row, OCT_CELLS_SPEED) / speed - 1) < 0.06);
        }
    }
    const double median = hypot(r->cells[0].vx, r->cells[0].vy) * UM; /* 3 of 2, 3, 4 */
    assert_true(fabs(r->result.numbers[OCT_CELLS_MEDIAN] / median - 1) < 0.06);
    close_rig(r);
}

/* The time of a cell is that of its rows, not of the volume: with 24 px a volume along the slow
 * axis the difference is a third. */
TEST(the_speed_is_of_the_rows_times)
{
    struct oct_cells_settings settings = usual(OCT_CELLS_OF_ENFACE);
    struct rig *r;
    settings.max_speed_um_s = 1000;
    settings.params.min_frames = 1;
    r = open_rig(&settings, D);
    r->n_cells = 1;
    r->cells[0] = (struct mover){50, 14, 0, 24 / (V * ROW_S)};
    for (unsigned volume = 0; volume < 3; volume++) {
        push_volume(r);
        assert_true(take(r));
        assert_int_equal(r->result.dims[0], 1);
        const double ratio = (double)value(r, 0, OCT_CELLS_SPEED) / (r->cells[0].vy * UM);
        print_message("# volume %u: speed %.4f of the true one\n", volume, ratio);
        assert_true(volume == 0 ? isnan(ratio) : fabs(ratio - 1) < 0.01);
        assert_int_equal((int)value(r, 0, OCT_CELLS_TRACK), 1);
    }
    close_rig(r);
}

TEST(rows_that_miss_are_masked)
{
    const struct oct_cells_settings settings = usual(OCT_CELLS_OF_ENFACE);
    struct rig *r = open_three(&settings);
    for (unsigned volume = 0; volume < 4; volume++)
        push_volume(r);
    while (take(r))
        ;
    for (uint32_t i = 0; i < V; i++) {
        if (i == 28 || i == 29) { /* those of cell 0 never come */
            r->n++;
            continue;
        }
        r->bscan.info.missing_lines = i == 70; /* a row of cell 2 misses a line */
        push_row(r);
    }
    r->bscan.info.missing_lines = 0;
    assert_true(take(r));
    for (unsigned i = 0; i < N_CELLS; i++) {
        const struct mover *c = &r->cells[i];
        const double at_s = met_s(c, 4);
        const int row = row_at(r, c->x + c->vx * at_s, c->y + c->vy * at_s, 1.5);
        assert_true(row >= 0);
        const int how = (int)value(r, (unsigned)row, OCT_CELLS_HOW);
        assert_int_equal(how == OCT_CELLS_DETECTED, i == 1);
        assert_true(isnan(value(r, (unsigned)row, OCT_CELLS_SCORE)) == (how == OCT_CELLS_COASTED));
    }
    push_volume(r); /* they are the same tracks again */
    assert_true(take(r));
    assert_int_equal(r->result.dims[0], N_CELLS);
    for (unsigned i = 0; i < N_CELLS; i++) {
        assert_int_equal((int)value(r, i, OCT_CELLS_TRACK), i + 1);
        assert_int_equal((int)value(r, i, OCT_CELLS_HOW), OCT_CELLS_DETECTED);
    }
    close_rig(r);
}

/* A volume that another one follows before its end, one that never came, and one that ends with
 * the acquisition. */
TEST(volumes_that_are_cut_count)
{
    struct oct_cells_settings settings = usual(OCT_CELLS_OF_ENFACE);
    settings.params.memory = 6;
    struct rig *r = open_three(&settings);
    for (unsigned volume = 0; volume < 3; volume++)
        push_volume(r);
    while (take(r))
        ;
    for (unsigned i = 0; i < 60; i++)
        push_row(r);
    r->n = 8 * V; /* volumes 4 to 7 never came: cells went farther than any gate */
    push_row(r);
    assert_true(take(r));
    assert_int_equal(r->result.info.volume, 3);
    assert_int_equal(r->result.info.bscan, 59);
    assert_int_equal((int)r->result.numbers[OCT_CELLS_FRAMES], 4);
    assert_false(take(r));
    for (unsigned i = 1; i < V - 1; i++)
        push_row(r);
    assert_false(take(r));
    oct_cells_analysis_cpu.run.end(r->analysis);
    assert_true(take(r));
    assert_int_equal(r->result.info.volume, 8);
    assert_int_equal(r->result.dims[0], N_CELLS);
    for (unsigned i = 0; i < N_CELLS; i++) {
        assert_int_equal((int)value(r, i, OCT_CELLS_TRACK), i + 1);
        assert_int_equal((int)value(r, i, OCT_CELLS_HOW), OCT_CELLS_DETECTED);
    }
    assert_false(take(r));
    oct_cells_analysis_cpu.run.reset(r->analysis);
    r->n = 0;
    for (unsigned volume = 0; volume < 3; volume++) {
        push_volume(r);
        assert_true(take(r));
    }
    assert_int_equal(r->result.dims[0], N_CELLS); /* of another acquisition: from 1 again */
    for (unsigned i = 0; i < N_CELLS; i++)
        assert_int_equal((int)value(r, i, OCT_CELLS_TRACK), i + 1);
    close_rig(r);
}

TEST(cells_of_bscans_are_followed)
{
    const struct oct_cells_settings settings = usual(OCT_CELLS_OF_BSCAN);
    struct rig *r = open_rig(&settings, DEPTH);
    r->n_cells = 2;
    r->cells[0] = (struct mover){20, 60, 8 / ROW_S, 0}; /* an A-line later, a little further */
    r->cells[1] = (struct mover){85, 25, 0, 2 / ROW_S};
    assert_false(r->form.of_volume);
    for (unsigned n = 0; n < 8; n++) {
        push_bscan(r);
        assert_true(take(r));
        assert_int_equal(r->result.info.number, n);
        assert_int_equal(r->result.dims[0], n < 2 ? 0 : 2);
        assert_true(r->result.numbers[OCT_CELLS_IS_BSCAN] > 0);
        assert_int_equal((int)r->result.numbers[OCT_CELLS_HEIGHT], DEPTH);
        for (unsigned i = 0; n >= 2 && i < 2; i++) {
            const struct mover *c = &r->cells[i];
            const double at_s = (n * ROW_S + c->x / LINE_HZ) / (1 - c->vx / LINE_HZ);
            const int row = row_at(r, c->x + c->vx * at_s, c->y + c->vy * at_s, 0.5);
            assert_true(row >= 0);
            const double ratio =
                (double)value(r, (unsigned)row, OCT_CELLS_SPEED) / (hypot(c->vx, c->vy) * UM);
            assert_true(fabs(ratio - 1) < (i == 0 ? 0.03 : 0.06));
        }
    }
    close_rig(r);
}

TEST(lines_that_miss_are_masked)
{
    const struct oct_cells_settings settings = usual(OCT_CELLS_OF_BSCAN);
    struct rig *r = open_rig(&settings, DEPTH);
    r->n_cells = 2;
    r->cells[0] = (struct mover){30, 60, 0, 0};
    r->cells[1] = (struct mover){85, 25, 0, 0};
    for (unsigned n = 0; n < 4; n++)
        push_bscan(r);
    while (take(r))
        ;
    struct dice dice = {5};
    for (uint32_t x = 0; x < M; x++)
        for (uint32_t d = 0; d < DEPTH; d++)
            r->pixels[(size_t)x * DEPTH + d] =
                x == 86 ? 0 : (uint8_t)light(r, x, d, r->n * ROW_S, &dice);
    r->bscan.info.missing_lines = 1;
    number(r);
    push(r);
    assert_true(take(r));
    const int near = row_at(r, 85, 25, 1.5), far = row_at(r, 30, 60, 0.5);
    assert_true(near >= 0 && far >= 0);
    assert_int_not_equal((int)value(r, (unsigned)near, OCT_CELLS_HOW), OCT_CELLS_DETECTED);
    assert_int_equal((int)value(r, (unsigned)far, OCT_CELLS_HOW), OCT_CELLS_DETECTED);
    close_rig(r);
}

/* What does not concern the film leaves its tracks; other radii begin another, whose tracks have
 * numbers that were not given. */
TEST(settings_forget_no_more_than_they_must)
{
    const struct oct_cells_settings settings = usual(OCT_CELLS_OF_ENFACE);
    struct rig *r = open_three(&settings);
    for (unsigned volume = 0; volume < 4; volume++)
        push_volume(r);
    while (take(r))
        ;
    configure(r); /* as it was: the key of another analysis was set */
    r->settings.params.min_frames = 2;
    r->settings.enface.projection = OCT_PROJECTION_MAX;
    configure(r);
    push_volume(r);
    assert_true(take(r));
    assert_int_equal(r->result.dims[0], N_CELLS);
    for (unsigned i = 0; i < N_CELLS; i++)
        assert_int_equal((int)value(r, i, OCT_CELLS_TRACK), i + 1);
    r->settings.params.radius = 45; /* the picture is too small for it */
    must_fail(oct_cells_analysis_cpu.run.configure(r->analysis, &r->settings, &failure),
              OCT_E_CONFIG, "too small");
    r->settings.params.radius = 6;
    configure(r);
    push_volume(r);
    assert_true(take(r));
    assert_int_equal(r->result.dims[0], 0);
    push_volume(r);
    assert_true(take(r));
    assert_int_equal(r->result.dims[0], N_CELLS);
    assert_int_equal((int)value(r, 0, OCT_CELLS_TRACK), N_CELLS + 1);
    assert_false(oct_cells_analysis_cpu.run.is_at_rest(r->analysis));
    r->settings.enabled = false;
    configure(r);
    assert_true(oct_cells_analysis_cpu.run.is_at_rest(r->analysis));
    push_volume(r);
    assert_false(take(r));
    close_rig(r);
}

/* At rest nothing is asked of the pictures; a check says what would be. */
TEST(small_pictures_are_refused_only_where_it_is_enabled)
{
    struct oct_cells_settings settings = usual(OCT_CELLS_OF_BSCAN);
    struct oct_error err = {.text = ""};
    settings.enabled = false;
    struct rig *r = open_rig(&settings, 8);
    close_rig(r);
    const struct oct_image_form input = {.type = OCT_SAMPLE_U8,
                                         .rank = 2,
                                         .dims = {M, 8},
                                         .spacing_um = {NAN, NAN},
                                         .axes = {"line", "depth"}};
    assert_int_equal(oct_cells_live_check(&settings, &input, V, NAN, &err), OCT_E_CONFIG);
    settings.source = OCT_CELLS_OF_ENFACE;
    assert_int_equal(oct_cells_live_check(&settings, &input, V, NAN, &err), OCT_OK);
    settings.radius_um = 20; /* of pixels of which nobody knows the size */
    assert_int_equal(oct_cells_live_check(&settings, &input, V, NAN, &err), OCT_E_CONFIG);
    settings.radius_um = 0;
    settings.roi = (struct oct_region){100, 0, 11, 40};
    assert_int_equal(oct_cells_live_check(&settings, &input, V, NAN, &err), OCT_E_CONFIG);
}

int main(void)
{
    struct oct_cells_settings good = usual(OCT_CELLS_OF_BSCAN), wrong = good;
    good.params.radius = 3;
    good.params.min_frames = 1;
    good.params.threshold = 0.8;
    wrong.params.radius = 300;
    const struct oct_analysis_suite suite = {
        .ops = &oct_cells_analysis_cpu,
        .settings = &good,
        .wrong_settings = &wrong,
        .refuses_small = true,
    };
    int n_failed = oct_analysis_suite_run(&suite);
    return n_failed + test_run();
}
