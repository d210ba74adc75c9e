/* Playback: the model that shows a recording in place of live pictures, and the thread that reads
 * it. */
#include "analysis/enface/gridded.h"
#include "config/config.h"
#include "formats/results.h"
#include "pipeline/base/clock.h"
#include "pipeline/volume/label.h"
#include "test/rig/layers_scene.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/volume_cases.h"
#include "viewer/play/play.h"

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define S OCT_NS_PER_S
#define PATIENCE_NS (20 * S)
#define N_BSCANS 9u
#define N_LINES 7u
#define DEPTH 33u

struct scene {
    struct oct_view_model model;
    struct oct_play *play;
    struct oct_config config;
};

static struct scene *scene_open(void)
{
    struct scene *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    oct_config_init(&s->config);
    oct_view_model_init(&s->model, "tcp://127.0.0.1:5702", true);
    oct_view_model_tick(&s->model, 5 * S);
    assert_int_equal(oct_play_create(&s->play, &s->config, NULL, NULL, NULL), OCT_OK);
    return s;
}

static void scene_close(struct scene *s)
{
    oct_play_destroy(s->play);
    oct_view_model_finish(&s->model);
    free(s);
}

/* Until all that is wanted was read and given. */
static void settle(struct scene *s)
{
    do
        oct_play_turn(s->play, &s->model);
    while (oct_play_wait_idle(s->play, PATIENCE_NS) && oct_play_turn(s->play, &s->model));
}

static void open_path(struct scene *s, const char *path, int by)
{
    oct_view_playback_open(&s->model, path, by, false);
    settle(s);
}

/* B-scans 0 .. n - 1 but for `without`. */
static struct oct_plan record(const char *path, enum oct_sample_type type, uint32_t without)
{
    const struct oct_plan plan = volume_plan(37, N_LINES, N_BSCANS, DEPTH, type);
    unlink(path);
    struct oct_volume_writer *w = volume_make(path, &plan, false, true);
    for (uint32_t v = 0; v < N_BSCANS; v++)
        if (v != without)
            volume_add(w, &plan, v, false, true);
    volume_close(w);
    return plan;
}

/* ---- the order of reading ---- */

TEST(every_item_is_read_once_from_coarse_to_fine)
{
    static const uint32_t sizes[] = {1, 2, 63, 64, 65, 240, 2048};
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const uint32_t n = sizes[k];
        uint8_t *times = calloc(n, 1), *covered = calloc(n, 1);
        struct oct_play_fill fill;
        uint32_t item, n_for, given = 0;
        oct_play_fill_begin(&fill, n);
        while (oct_play_fill_next(&fill, &item, &n_for)) {
            assert_true(item < n && n_for >= 1 && n_for <= n - item);
            times[item]++;
            for (uint32_t i = 0; i < n_for; i++) {
                assert_true(i == 0 ||
                            times[item + i] == 0); /* what was read is not covered again */
                covered[item + i] = 1;
            }
            if (++given == (n + 63) / 64) /* a first look at all of it */
                for (uint32_t i = 0; i < n; i++)
                    assert_int_equal(covered[i], 1);
        }
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(times[i], 1);
        assert_true(oct_play_fill_share(&fill) == 1);
        free(times);
        free(covered);
    }
}

/* ---- the model ---- */

static struct oct_view_file a_file(void)
{
    return (struct oct_view_file){.path = "/data/a.h5",
                                  .name = "a.h5",
                                  .n_bscans = 100,
                                  .n_lines = 120,
                                  .depth = 100,
                                  .n_valid = 100,
                                  .axial_um = 2,
                                  .lateral_um = 3,
                                  .slow_um = 4,
                                  .rate_hz = 50};
}

/* An opened file with its B-scan 0, without a reader. */
static void begin(struct oct_view_model *m)
{
    const struct oct_view_file file = a_file();
    struct oct_view_picture picture = oct_scene_layered(40, 5);
    oct_view_playback_open(m, "/data/a.h5", 0, false);
    oct_view_playback_opened(m, &file);
    oct_view_playback_offer(m, &picture, &(struct oct_view_read){.bscan = 0, .valid = true});
    oct_view_picture_finish(&picture);
}

TEST(another_file_is_not_shown_with_the_pictures_of_the_one_before)
{
    struct oct_view_model m;
    struct oct_view_file file = a_file();
    struct oct_view_picture picture = oct_scene_layered(40, 5);
    char text[128];
    oct_view_model_init(&m, "tcp://127.0.0.1:5702", true);
    begin(&m);
    oct_view_playback_go(&m, 90);
    oct_view_playback_offer(&m, &picture, &(struct oct_view_read){.bscan = 90, .valid = false});
    oct_view_playback_text(&m, text, sizeof(text));
    assert_string_equal(text, "B-scan 91 of 100: it was not recorded");
    oct_view_playback_open(&m, "/data/a.h5", 1, false);
    snprintf(file.path, sizeof(file.path), "/data/b.h5");
    file.n_bscans = 20;
    assert_true(m.has_picture); /* as long as it is the one before */
    oct_view_playback_opened(&m, &file);
    assert_false(m.has_picture);
    oct_view_playback_text(&m, text, sizeof(text));
    assert_string_equal(text, "B-scan 1 of 20");
    oct_view_playback_offer(&m, &picture, &(struct oct_view_read){.bscan = 0, .valid = true});
    assert_true(m.has_picture);
    oct_view_picture_finish(&picture);
    oct_view_model_finish(&m);
}

/* What octd recorded last was stopped within a volume: V shows the whole one before it. */
TEST(a_piece_gives_way_to_the_whole_volume_before_it)
{
    struct oct_view_model m;
    struct oct_view_file piece = a_file();
    oct_view_model_init(&m, "tcp://127.0.0.1:5702", true);
    snprintf(m.daemon.record.path, sizeof(m.daemon.record.path), "%s", piece.path);
    piece.n_valid = 13;
    piece.place = piece.n_files = 2;
    oct_view_model_apply(&m, OCT_ACTION_PLAYBACK, 1);
    oct_view_playback_opened(&m, &piece); /* no whole volume was recorded: it is all there is */
    assert_true(m.playback.active);
    oct_view_playback_end(&m);
    m.recorded.n_whole = 2;
    oct_view_model_apply(&m, OCT_ACTION_PLAYBACK, 1);
    oct_view_playback_opened(&m, &piece);
    assert_false(m.playback.active);
    assert_int_equal(m.playback.request.by, -1);
    assert_string_equal(m.playback.request.path, piece.path);
    oct_view_playback_opened(&m, &piece); /* another piece: it goes no further back */
    assert_true(m.playback.active);
    oct_view_model_finish(&m);
}

TEST(live_pictures_wait_and_come_back)
{
    struct oct_view_model m;
    oct_view_model_init(&m, "tcp://127.0.0.1:5702", true);
    oct_view_model_tick(&m, 5 * S);
    struct oct_view_picture picture = oct_scene_layered(20, 5);
    picture.header.frame_num = 1;
    oct_view_model_offer(&m, &picture);
    m.daemon.axial_um = 7;
    oct_view_contrast_move(&m.contrast, 3, 0);
    const struct oct_view_contrast before = m.contrast;
    oct_view_model_apply(&m, OCT_ACTION_FREEZE, 1);
    begin(&m);
    assert_true(m.playback.active && !m.frozen);
    assert_true(oct_view_model_scale(&m).axial_um == 2);
    assert_true(oct_view_model_slow_um(&m) == 4);
    assert_false(m.contrast.log); /* the file's */
    assert_int_equal(m.contrast.range, OCT_CONTRAST_PUBLISHED);
    oct_view_model_offer(&m, &picture);
    picture.header.frame_num = 2;
    assert_string_equal(m.shown.header.acquisition_id, "a");
    struct oct_view_picture newest = oct_scene_layered(20, 5);
    newest.header.frame_num = 9;
    oct_view_model_offer(&m, &newest);
    assert_int_equal(m.newest.header.frame_num, 9);
    assert_true(m.shown.header.frame_num != 9);
    oct_view_model_apply(&m, OCT_ACTION_PLAYBACK, 1);
    assert_false(m.playback.active);
    assert_int_equal(m.shown.header.frame_num, 9);
    assert_true(oct_view_model_scale(&m).axial_um == 7);
    assert_true(m.contrast.log && m.contrast.lo == before.lo && m.contrast.hi == before.hi);
    oct_view_picture_finish(&picture);
    oct_view_picture_finish(&newest);
    oct_view_model_finish(&m);
}

TEST(without_a_live_picture_none_is_left)
{
    struct oct_view_model m;
    oct_view_model_init(&m, "tcp://127.0.0.1:5702", true);
    begin(&m);
    assert_true(m.has_picture);
    oct_view_playback_end(&m);
    assert_false(m.has_picture);
    oct_view_model_finish(&m);
}

TEST(keys_move_through_the_bscans)
{
    static const struct {
        enum oct_view_action action;
        unsigned times;
        uint32_t then;
    } moves[] = {
        {OCT_ACTION_NEWER, 1, 1},         {OCT_ACTION_NEWER, 5, 6},
        {OCT_ACTION_OLDER, 2, 4},         {OCT_ACTION_OLDER, 9, 0},
        {OCT_ACTION_SLAB_DOWN, 1, 10},    {OCT_ACTION_SLAB_UP, 1, 0},
        {OCT_ACTION_SLAB_THICKER, 1, 99}, {OCT_ACTION_SLAB_DOWN, 1, 99},
        {OCT_ACTION_SLAB_THINNER, 1, 0},
    };
    struct oct_view_model m;
    oct_view_model_init(&m, "tcp://127.0.0.1:5702", true);
    begin(&m);
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        oct_view_model_apply(&m, moves[i].action, moves[i].times);
        assert_int_equal(m.playback.wanted, moves[i].then);
    }
    oct_view_playback_go(&m, NAN);
    assert_int_equal(m.playback.wanted, 0);
    oct_view_model_finish(&m);
}

TEST(it_plays_at_its_own_rate_and_stops_at_the_end)
{
    struct oct_view_model m;
    oct_view_model_init(&m, "tcp://127.0.0.1:5702", true);
    oct_view_model_tick(&m, 5 * S);
    begin(&m);
    oct_view_model_apply(&m, OCT_ACTION_FREEZE, 1);
    assert_true(m.playback.plays && !m.frozen);
    for (unsigned i = 1; i <= 60; i++) /* a second of 60 frames: 50 B-scans */
        oct_view_model_tick(&m, 5 * S + i * S / 60);
    assert_in_range(m.playback.wanted, 49, 50);
    oct_view_model_apply(&m, OCT_ACTION_FREEZE, 1);
    const uint32_t at = m.playback.wanted;
    oct_view_model_tick(&m, 8 * S);
    assert_int_equal(m.playback.wanted, at);
    oct_view_model_apply(&m, OCT_ACTION_FREEZE, 1);
    oct_view_model_tick(&m, 20 * S);
    assert_int_equal(m.playback.wanted, 99);
    assert_false(m.playback.plays);
    oct_view_model_apply(&m, OCT_ACTION_FREEZE, 1); /* from the end: once more */
    assert_int_equal(m.playback.wanted, 0);
    assert_true(m.playback.plays);
    m.playback.file.rate_hz = 800; /* slowed, so that none is skipped */
    for (unsigned i = 1; i <= 30; i++) {
        const uint32_t before = m.playback.wanted;
        oct_view_model_tick(&m, 20 * S + i * S / 60);
        assert_true(m.playback.wanted - before <= 1);
    }
    assert_in_range(m.playback.wanted, 28, 30);
    oct_view_model_finish(&m);
}

TEST(what_cannot_be_opened_is_said)
{
    struct oct_view_model m;
    oct_view_model_init(&m, "tcp://127.0.0.1:5702", true);
    oct_view_model_apply(&m, OCT_ACTION_PLAYBACK, 1);
    assert_non_null(strstr(m.message, "no recording yet"));
    snprintf(m.daemon.record.path, sizeof(m.daemon.record.path), "/data/x.h5");
    snprintf(m.elsewhere, sizeof(m.elsewhere), "oct-pc");
    oct_view_model_apply(&m, OCT_ACTION_PLAYBACK, 1);
    assert_false(m.playback.opens);
    assert_non_null(strstr(m.message, "oct-pc"));
    m.elsewhere[0] = '\0';
    oct_view_model_apply(&m, OCT_ACTION_PLAYBACK, 1);
    assert_true(m.playback.opens);
    oct_view_playback_refused(&m, "/data/x.h5: cannot open");
    assert_false(m.playback.opens || m.playback.active);
    assert_string_equal(m.message, "/data/x.h5: cannot open");
    oct_view_model_finish(&m);
}

/* ---- the reader ---- */

static void expect_bscan(struct scene *s, const struct oct_plan *plan, uint32_t v)
{
    struct volume_bscan want;
    oct_view_playback_go(&s->model, v);
    settle(s);
    volume_bscan_init(&want, &plan->geometry);
    volume_bscan_make(&want, &plan->geometry, v);
    assert_int_equal(s->model.playback.read.bscan, v);
    assert_true(s->model.playback.read.valid);
    assert_memory_equal(s->model.shown.pixels, want.image.pixels, want.pixel_bytes);
    assert_true(s->model.shown.header.lo == want.image.lo);
    assert_true(s->model.shown.header.hi == want.image.hi);
    volume_bscan_finish(&want);
}

/* Slice and en face are what the B-scans, read one by one, say they are. */
static void expect_cuts(struct scene *s, uint32_t without)
{
    const struct oct_view_playback *p = &s->model.playback;
    const float *slice = p->slice.pixels;
    assert_int_equal(p->slice.header.n_lines, N_BSCANS);
    assert_int_equal(p->read.slice_of, p->slice_line);
    assert_true(p->read.slice_share == 1 && p->read.enface_share == 1);
    for (uint32_t v = 0; v < N_BSCANS; v++) {
        oct_view_playback_go(&s->model, v);
        settle(s);
        for (uint32_t line = 0; line < N_LINES; line++) {
            const double mean = oct_view_enface_row(&p->enface, v)[line];
            double sum = 0;
            for (uint32_t d = 0; d < DEPTH; d++)
                sum += oct_view_picture_value(&s->model.shown, line, d);
            if (v == without)
                assert_true(isnan(mean));
            else
                assert_true(fabs(mean - sum / DEPTH) < 1e-3 * (1 + fabs(mean)));
        }
        for (uint32_t d = 0; d < DEPTH; d++) {
            const double want = oct_view_picture_value(&s->model.shown, p->slice_line, d);
            const double got = slice[v * DEPTH + d];
            assert_true(v == without ? isnan(got) : fabs(got - want) < 1e-3 * (1 + fabs(want)));
        }
    }
}

TEST(pictures_of_both_types_slice_and_enface)
{
    for (int type = OCT_SAMPLE_U8; type <= OCT_SAMPLE_F32; type++) {
        const struct oct_plan plan = record("both.h5", (enum oct_sample_type)type, 4);
        struct scene *s = scene_open();
        open_path(s, "both.h5", 0);
        const struct oct_view_file *f = &s->model.playback.file;
        assert_true(s->model.playback.active);
        assert_int_equal(f->n_bscans, N_BSCANS);
        assert_int_equal(f->n_valid, N_BSCANS - 1);
        assert_string_equal(f->eye, "OD");
        assert_true(isfinite(f->axial_um) && f->slow_um > 0);
        expect_bscan(s, &plan, 0);
        expect_bscan(s, &plan, 8);
        expect_cuts(s, 4);
        oct_view_playback_slice_at(&s->model, 2);
        settle(s);
        expect_cuts(s, 4);
        scene_close(s);
    }
    unlink("both.h5");
}

/* The same recording of a star; the means of its A-lines, [N_BSCANS][N_LINES]. */
static void record_star(const char *path, uint32_t without, float *means)
{
    const struct oct_plan plan = volume_plan(37, N_LINES, N_BSCANS, DEPTH, OCT_SAMPLE_F32);
    struct oct_volume_about about = volume_about;
    struct oct_volume_writer *w;
    about.config_text = "[scan]\nbscans = 9\nlines = 7\npattern = radial\nwidth_um = 700\n";
    unlink(path);
    assert_int_equal(oct_volume_create(&w, path, &plan, &about, false, true, NULL), OCT_OK);
    for (uint32_t v = 0; v < N_BSCANS; v++) {
        struct volume_bscan b;
        volume_bscan_init(&b, &plan.geometry);
        volume_bscan_make(&b, &plan.geometry, v);
        const float *pixels = b.image.pixels;
        for (uint32_t j = 0; j < N_LINES; j++)
            means[v * N_LINES + j] =
                v == without ? NAN : (float)oct_enface_line(pixels + (size_t)j * DEPTH, DEPTH).mean;
        if (v != without)
            assert_int_equal(oct_volume_write_image(w, &b.image, NULL), OCT_OK);
        volume_bscan_finish(&b);
    }
    volume_close(w);
}

TEST(the_picture_from_above_of_a_star_is_gridded)
{
    const struct oct_scan star = {
        .pattern = OCT_SCAN_RADIAL, .n_lines = N_LINES, .n_bscans = N_BSCANS, .width_um = 700};
    const struct oct_image_form form = {.of_volume = true,
                                        .type = OCT_SAMPLE_F32,
                                        .rank = 2,
                                        .dims = {N_BSCANS, N_LINES},
                                        .axes = {"bscan", "line"}};
    float means[N_BSCANS * N_LINES], want[4096];
    struct oct_grid *grid;
    uint32_t height, width, n_known = 0;
    double pitch_um;
    record_star("star.h5", 4, means);
    assert_int_equal(oct_grid_create(&grid, &star, N_BSCANS, &form, NULL), OCT_OK);
    oct_grid_size(grid, &height, &width, &pitch_um);
    assert_true((size_t)height * width <= sizeof(want) / sizeof(want[0]));
    oct_grid_apply(grid, means, want);
    struct scene *s = scene_open();
    open_path(s, "star.h5", 0);
    const struct oct_view_enface *e = &s->model.playback.enface;
    assert_true(oct_view_model_enface_is_gridded(&s->model));
    assert_true(e->n_rows == height && e->n_columns == width && e->spacing_um == pitch_um);
    assert_true(s->model.playback.read.enface_share == 1);
    for (uint32_t i = 0; i < height * width; i++) {
        const float got = oct_view_enface_row(e, i / width)[i % width];
        assert_true(isnan(want[i]) ? isnan(got) : fabsf(got - want[i]) < 1e-3F);
        n_known += isnan(got) ? 0 : 1;
    }
    assert_true(n_known > height * width / 2);
    assert_int_equal(oct_view_above_scan(&s->model)->pattern, OCT_SCAN_RADIAL);
    oct_grid_destroy(grid);
    scene_close(s);
    unlink("star.h5");
}

TEST(a_bscan_that_was_not_recorded_is_empty_and_says_so)
{
    char text[128];
    const struct oct_plan plan = record("gap.h5", OCT_SAMPLE_F32, 3);
    struct scene *s = scene_open();
    open_path(s, "gap.h5", 0);
    s->model.contrast.range = OCT_CONTRAST_AUTO;
    const double lo = s->model.contrast.lo;
    oct_view_playback_go(&s->model, 3);
    settle(s);
    assert_false(s->model.playback.read.valid);
    assert_true(isnan(oct_view_picture_value(&s->model.shown, 1, 1)));
    assert_true(s->model.contrast.lo == lo);
    oct_view_playback_text(&s->model, text, sizeof(text));
    assert_string_equal(text, "B-scan 4 of 9: it was not recorded");
    s->model.contrast.range = OCT_CONTRAST_PUBLISHED; /* it stays too */
    expect_bscan(s, &plan, 2);
    const double hi = s->model.contrast.hi;
    oct_view_playback_go(&s->model, 3);
    settle(s);
    assert_true(s->model.contrast.hi == hi);
    scene_close(s);
    unlink("gap.h5");
}

TEST(the_folders_recordings_follow_one_another)
{
    assert_int_equal(mkdir("playing", 0700), 0);
    record("playing/p2.h5", OCT_SAMPLE_U8, N_BSCANS);
    record("playing/p10.h5", OCT_SAMPLE_U8, N_BSCANS);
    record("playing/p9.h5", OCT_SAMPLE_U8, N_BSCANS);
    struct scene *s = scene_open();
    struct oct_view_playback *p = &s->model.playback;
    open_path(s, "playing/p9.h5", 0);
    assert_int_equal(p->file.place, 2);
    assert_int_equal(p->file.n_files, 3);
    oct_view_model_apply(&s->model, OCT_ACTION_FILE_AFTER, 1);
    settle(s);
    assert_string_equal(p->file.name, "p10.h5");
    oct_view_model_apply(&s->model, OCT_ACTION_FILE_AFTER, 1);
    settle(s);
    assert_string_equal(p->file.name, "p10.h5"); /* the last one stays */
    assert_non_null(strstr(s->model.message, "last recording"));
    oct_view_playback_step(&s->model, 2); /* and can still be scrolled */
    settle(s);
    assert_int_equal(p->read.bscan, 2);
    oct_view_model_apply(&s->model, OCT_ACTION_FILE_BEFORE, 1);
    settle(s);
    oct_view_model_apply(&s->model, OCT_ACTION_FILE_BEFORE, 1);
    settle(s);
    assert_string_equal(p->file.name, "p2.h5");
    /* One that is being written is not it, the one before it is. */
    fclose(fopen("playing/p11.h5.part", "w"));
    oct_view_playback_open(&s->model, "playing/p11.h5", 0, true);
    settle(s);
    assert_string_equal(p->file.name, "p10.h5");
    unlink("playing/p11.h5.part");
    oct_view_playback_open(&s->model, "playing/p12.h5", 0, true);
    settle(s);
    assert_non_null(strstr(s->model.message, "not to be found on this machine"));
    scene_close(s);
    unlink("playing/p2.h5");
    unlink("playing/p9.h5");
    unlink("playing/p10.h5");
    rmdir("playing");
}

/* As `record last` saves: one row a B-scan in the order they came, `numbers` of acquisition 1 and
 * of 2 after it, volumes of 4. Row r is B-scan r of volume_put. */
static struct oct_plan record_last(const char *path, const uint64_t *numbers, uint32_t n_first,
                                   uint32_t n)
{
    const struct oct_plan plan = volume_plan(37, N_LINES, n, DEPTH, OCT_SAMPLE_U8);
    struct oct_volume_about about = volume_about;
    struct oct_volume_writer *w;
    about.config_text = "[scan]\nbscans = 4\n";
    about.field_bscans = 4;
    about.gap_map = true;
    unlink(path);
    assert_int_equal(oct_volume_create(&w, path, &plan, &about, false, true, NULL), OCT_OK);
    for (uint32_t r = 0; r < n; r++) {
        struct volume_bscan b;
        volume_bscan_init(&b, &plan.geometry);
        volume_bscan_make(&b, &plan.geometry, r);
        b.image.info.number = numbers[r];
        b.image.info.acquisition = r < n_first ? 1 : 2;
        assert_int_equal(oct_volume_write_image(w, &b.image, NULL), OCT_OK);
        volume_bscan_finish(&b);
    }
    volume_close(w);
    return plan;
}

TEST(the_last_seconds_are_shown_volume_by_volume)
{
    /* The end of a volume, two whole ones, one that lacks a B-scan; another acquisition. */
    static const uint64_t numbers[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 0, 1};
    static const struct {
        uint32_t first, n;
    } parts[] = {{0, 2}, {2, 4}, {6, 4}, {10, 3}, {13, 2}};
    assert_int_equal(mkdir("last", 0700), 0);
    const struct oct_plan plan = record_last("last/b_last.h5", numbers, 13, 15);
    record("last/a.h5", OCT_SAMPLE_U8, N_BSCANS);
    record("last/c.h5", OCT_SAMPLE_U8, N_BSCANS);
    struct scene *s = scene_open();
    struct oct_view_playback *p = &s->model.playback;
    char text[96];
    open_path(s, "last/b_last.h5", 0); /* the newest whole one */
    assert_true(p->file.is_last && p->file.volume == 3 && p->file.n_volumes == 5);
    assert_true(p->enface.n_bscans == 4 && p->file.n_valid == 4);
    oct_view_playback_volume_text(&p->file, text, sizeof(text));
    assert_string_equal(text, "volume 3 of 5 of the last seconds");
    for (int i = 0; i < 2; i++) {
        oct_view_model_apply(&s->model, OCT_ACTION_FILE_BEFORE, 1);
        settle(s);
    }
    for (unsigned i = 0; i < 5; i++) {
        assert_true(p->file.volume == i + 1 && p->file.n_bscans == parts[i].n);
        assert_int_equal(p->slice.header.n_lines, parts[i].n);
        for (uint32_t v = 0; v < parts[i].n; v++) {
            struct volume_bscan want;
            oct_view_playback_go(&s->model, v);
            settle(s);
            volume_bscan_init(&want, &plan.geometry);
            volume_bscan_make(&want, &plan.geometry, parts[i].first + v);
            assert_memory_equal(s->model.shown.pixels, want.image.pixels, want.pixel_bytes);
            assert_int_equal(s->model.shown.header.frame_num, numbers[parts[i].first + v]);
            volume_bscan_finish(&want);
        }
        oct_view_model_apply(&s->model, OCT_ACTION_FILE_AFTER, 1);
        settle(s);
    }
    assert_string_equal(p->file.name, "c.h5"); /* and then the folder's */
    oct_view_playback_volume_text(&p->file, text, sizeof(text));
    assert_true(!p->file.is_last && text[0] == 0);
    oct_view_model_apply(&s->model, OCT_ACTION_FILE_BEFORE, 1);
    settle(s);
    assert_true(p->file.is_last && p->file.volume == 3);
    scene_close(s);
    unlink("last/a.h5");
    unlink("last/b_last.h5");
    unlink("last/c.h5");
    rmdir("last");
}

/* As octctl writes results: a map whose rows are B-scans, a volume whose last axis is the depth,
 * and numbers that are no picture. */
static void make_results(const char *path, bool with_pictures)
{
    static const char *const axes[] = {"bscan", "line", "depth"};
    static const uint64_t dims[] = {3, 10, 12}, n[] = {12};
    static const double um[] = {30, 20, 2};
    float values[3 * 10 * 12];
    struct oct_results *r;
    for (unsigned i = 0; i < 3 * 10 * 12; i++)
        values[i] = (float)i;
    assert_int_equal(oct_results_create(&r, path, "layers", true, NULL), OCT_OK);
    unsigned set = oct_results_dataset(r, "/frames/fate", OCT_RESULTS_F32, 1, n, NULL);
    oct_results_write(r, set, values);
    if (with_pictures) {
        set = oct_results_dataset(r, "/volume", OCT_RESULTS_F32, 3, dims, "dB");
        oct_results_axes(r, set, axes, um);
        oct_results_write(r, set, values);
        set = oct_results_dataset(r, "/thickness_um", OCT_RESULTS_F32, 2, dims + 1, "um");
        oct_results_axes(r, set, axes, um);
        oct_results_write(r, set, values);
    }
    assert_int_equal(oct_results_publish(r, NULL), OCT_OK);
}

TEST(results_are_named_and_shown)
{
    char text[256];
    make_results("results.h5", true);
    struct scene *s = scene_open();
    struct oct_view_playback *p = &s->model.playback;
    open_path(s, "results.h5", 0);
    assert_true(p->active && p->file.n_volumes == 2 && p->file.n_bscans == 1);
    oct_view_playback_volume_text(&p->file, text, sizeof(text));
    assert_string_equal(text, "layers of the retina, by octctl surfaces: /thickness_um, 1 of 2");
    assert_string_equal(oct_view_model_unit(&s->model), "um");
    /* Row below row, as it is written. */
    assert_true(p->file.n_lines == 12 && p->file.depth == 10);
    assert_true(p->file.lateral_um == 20 && p->file.axial_um == 30);
    for (uint32_t y = 0; y < 10; y++)
        for (uint32_t x = 0; x < 12; x++)
            assert_true(oct_view_picture_value(&s->model.shown, x, y) == 12.0 * y + x);
    oct_view_playback_text(&s->model, text, sizeof(text));
    assert_string_equal(text, "picture 1 of 1");
    oct_view_model_apply(&s->model, OCT_ACTION_KEEP, 1); /* it gets no label */
    settle(s);
    assert_non_null(strstr(s->model.message, "results.h5 is no recording"));
    assert_false(oct_view_guide_has_number(&s->model));
    oct_view_model_apply(&s->model, OCT_ACTION_FILE_AFTER, 1);
    settle(s);
    assert_string_equal(p->file.dataset, "/volume");
    assert_string_equal(oct_view_model_unit(&s->model), "dB");
    assert_true(p->file.n_bscans == 3 && p->file.n_lines == 10 && p->file.depth == 12);
    assert_true(p->file.slow_um == 30 && p->file.axial_um == 2 && s->model.contrast.log);
    oct_view_playback_go(&s->model, 2);
    settle(s);
    assert_true(oct_view_picture_value(&s->model.shown, 4, 7) == 2 * 120 + 4 * 12 + 7);
    const float *slice = p->slice.pixels; /* of A-line 5 */
    assert_true(p->slice.header.n_lines == 3 && slice[1 * 12 + 3] == 120 + 5 * 12 + 3);
    make_results("results.h5", false);
    open_path(s, "results.h5", 0);
    assert_non_null(strstr(s->model.message, "layers of the retina, by octctl surfaces: it holds "
                                             "no picture to be shown"));
    scene_close(s);
    unlink("results.h5");
}

TEST(foreign_and_damaged_files_are_refused_in_one_line)
{
    record("whole.h5", OCT_SAMPLE_U8, N_BSCANS);
    size_t n;
    unsigned char *bytes = volume_slurp("whole.h5", &n);
    struct scene *s = scene_open();
    for (size_t cut = 0; cut < n; cut += 1 + n / 40) {
        FILE *f = fopen("cut.h5", "wb");
        assert_true(f && fwrite(bytes, 1, cut, f) == cut);
        fclose(f);
        open_path(s, "cut.h5", 0);
        assert_false(s->model.playback.active || s->model.playback.opens);
        assert_non_null(strstr(s->model.message, "cut.h5"));
        assert_null(strchr(s->model.message, '\n'));
    }
    open_path(s, "/dev/null", 0);
    assert_false(s->model.playback.active);
    open_path(s, "whole.h5", 0);
    assert_true(s->model.playback.active);
    scene_close(s);
    free(bytes);
    unlink("cut.h5");
    unlink("whole.h5");
}

/* A recording that loses its end while it is open. */
TEST(what_can_no_longer_be_read_is_said)
{
    record("torn.h5", OCT_SAMPLE_F32, N_BSCANS);
    struct scene *s = scene_open();
    open_path(s, "torn.h5", 0);
    assert_int_equal(truncate("torn.h5", 4096), 0);
    oct_view_playback_go(&s->model, 8);
    settle(s);
    assert_non_null(strstr(s->model.playback.read.why, "ends within"));
    assert_true(isnan(oct_view_picture_value(&s->model.shown, 0, 0)));
    scene_close(s);
    unlink("torn.h5");
}

TEST(the_label_is_corrected_and_marked)
{
    struct oct_volume_label label;
    record("label.h5", OCT_SAMPLE_U8, N_BSCANS);
    struct scene *s = scene_open();
    open_path(s, "label.h5", 0);
    oct_view_model_apply(&s->model, OCT_ACTION_REPEAT, 1);
    oct_view_playback_relabel(&s->model, &(struct oct_volume_label_change){.eye = "OS"});
    settle(s);
    assert_int_equal(s->model.playback.file.verdict, OCT_MARK_REPEAT);
    assert_string_equal(s->model.playback.file.eye, "OS");
    assert_int_equal(oct_volume_label_read("label.h5", &label, NULL), OCT_OK);
    assert_int_equal(label.mark, OCT_MARK_REPEAT);
    assert_string_equal(label.eye, "OS");
    oct_view_model_apply(&s->model, OCT_ACTION_REPEAT, 1); /* the same again takes it back */
    settle(s);
    assert_int_equal(oct_volume_label_read("label.h5", &label, NULL), OCT_OK);
    assert_int_equal(label.mark, OCT_MARK_NONE);
    scene_close(s);
    s = scene_open();
    open_path(s, "label.h5", 0);
    assert_string_equal(s->model.playback.file.eye, "OS");
    assert_string_equal(s->model.playback.file.pseudonym, volume_about.pseudonym);
    scene_close(s);
    unlink("label.h5");
}

static enum oct_volume_mark mark_of(const char *path)
{
    struct oct_volume_label label;
    assert_int_equal(oct_volume_label_read(path, &label, NULL), OCT_OK);
    return label.mark;
}

/* Whatever is asked for in the same moment: the next file, live pictures, the end of octview. */
TEST(a_mark_goes_to_the_file_that_was_shown)
{
    mkdir("marked", 0755);
    record("marked/1.h5", OCT_SAMPLE_U8, N_BSCANS);
    record("marked/2.h5", OCT_SAMPLE_U8, N_BSCANS);
    struct scene *s = scene_open();
    open_path(s, "marked/1.h5", 0);
    oct_view_model_apply(&s->model, OCT_ACTION_REPEAT, 1);
    oct_view_model_apply(&s->model, OCT_ACTION_FILE_AFTER, 1);
    settle(s);
    assert_string_equal(s->model.playback.file.name, "2.h5");
    assert_int_equal(s->model.playback.file.verdict, OCT_MARK_NONE);
    assert_int_equal(mark_of("marked/1.h5"), OCT_MARK_REPEAT);
    assert_int_equal(mark_of("marked/2.h5"), OCT_MARK_NONE);
    oct_view_model_apply(&s->model, OCT_ACTION_KEEP, 1);
    oct_view_model_apply(&s->model, OCT_ACTION_PLAYBACK, 1);
    assert_false(s->model.playback.active);
    settle(s);
    assert_int_equal(mark_of("marked/2.h5"), OCT_MARK_KEEP);
    open_path(s, "marked/1.h5", 0);
    oct_view_model_apply(&s->model, OCT_ACTION_KEEP, 1);
    oct_play_turn(s->play, &s->model);
    oct_view_playback_relabel(&s->model,
                              &(struct oct_volume_label_change){
                                  .eye = "OS"}); /* before the thread is through, or after that */
    oct_play_turn(s->play, &s->model);
    scene_close(s);
    struct oct_volume_label label;
    assert_int_equal(oct_volume_label_read("marked/1.h5", &label, NULL), OCT_OK);
    assert_int_equal(label.mark, OCT_MARK_KEEP);
    assert_string_equal(label.eye, "OS");
    unlink("marked/1.h5");
    unlink("marked/2.h5");
    rmdir("marked");
}

/* ---- layers ---- */

/* A retina whose layers are known, but for B-scan `without`; its layers, [B-scan][A-line]. */
static void record_eye(const char *path, uint32_t without, double ilm[][LAYERS_LINES],
                       double rpe[][LAYERS_LINES])
{
    const struct oct_plan plan =
        volume_plan(1024, LAYERS_LINES, LAYERS_BSCANS, LAYERS_DEPTH, OCT_SAMPLE_U8);
    struct layers_scene scene;
    struct oct_volume_writer *w;
    unlink(path);
    w = volume_make(path, &plan, false, true);
    layers_scene_open(&scene, OCT_SAMPLE_U8, true);
    for (uint32_t v = 0; v < LAYERS_BSCANS; v++) {
        layers_scene_next(&scene);
        for (uint32_t j = 0; j < LAYERS_LINES; j++) {
            ilm[v][j] = layers_scene_ilm(&scene, j);
            rpe[v][j] = layers_scene_rpe(&scene, j);
        }
        if (v != without)
            must(oct_volume_write_image(w, &scene.bscan, &failure));
    }
    layers_scene_close(&scene);
    volume_close(w);
}

TEST(layers_are_found_in_a_recording_and_from_above)
{
    static double ilm[LAYERS_BSCANS][LAYERS_LINES], rpe[LAYERS_BSCANS][LAYERS_LINES];
    struct oct_view_phrase phrase;
    struct scene *s = scene_open();
    struct oct_view_model *m = &s->model;
    const struct oct_view_thickness *t = &m->playback.thickness;
    record_eye("eye.h5", 5, ilm, rpe);
    m->settings.layers = false;
    open_path(s, "eye.h5", 0);
    assert_true(m->layers.n_lines == 0 && t->share == 0); /* nobody asked */
    m->settings.layers = true;
    oct_view_playback_go(m, 3);
    settle(s);
    assert_true(oct_view_model_has_layers(m) && t->share == 1 && !t->why[0]);
    assert_true(oct_view_playback_has_map(m));
    const double um = m->playback.file.axial_um;
    const struct oct_view_enface *map = &t->map[OCT_MAP_RETINA];
    assert_string_equal(map->unit, "\u00b5m");
    assert_true(map->n_rows == LAYERS_BSCANS && map->n_columns == LAYERS_LINES);
    for (uint32_t j = 8; j < LAYERS_LINES - 8; j++) {
        const double upper = (double)m->layers.position[OCT_LAYER_ILM][j];
        const double lower = (double)m->layers.position[OCT_LAYER_RPE][j];
        assert_true(fabs(upper - ilm[3][j]) < 3 && fabs(lower - rpe[3][j]) < 3);
        for (uint32_t v = 0; v < LAYERS_BSCANS; v++) {
            const double value = (double)oct_view_enface_row(map, v)[j];
            const double nerve = (double)oct_view_enface_row(&t->map[OCT_MAP_NERVE_FIBRES], v)[j];
            if (v == 5)
                assert_true(isnan(value) && isnan(nerve));
            else
                assert_true(fabs(value - (rpe[v][j] - ilm[v][j]) * um) < 4 * um &&
                            !(nerve > value / 2));
        }
    }
    oct_view_playback_slice_at(m, 40);
    oct_view_thickness_text(m, &phrase);
    assert_true(strncmp(phrase.text, "ILM to RPE ", 11) == 0);
    assert_true(fabs(atof(phrase.text + 11) - (rpe[3][40] - ilm[3][40]) * um) < 4 * um);

    /* What octd finds meanwhile is not of the file. */
    const float found = m->layers.position[OCT_LAYER_ILM][20];
    struct oct_view_image live = {
        .header = {.type = OCT_SAMPLE_F32, .rank = 2, .dims = {OCT_SURFACES_N_ROWS, LAYERS_LINES}}};
    live.values = calloc(OCT_SURFACES_N_ROWS * LAYERS_LINES, sizeof(float));
    oct_view_overlay_take(m, &oct_view_overlay_layers, &live);
    assert_true(m->layers.position[OCT_LAYER_ILM][20] == found);
    oct_view_image_finish(&live);

    oct_view_playback_go(m, 5); /* it was not recorded */
    settle(s);
    assert_false(oct_view_model_has_layers(m));
    oct_view_thickness_text(m, &phrase);
    assert_string_equal(phrase.text, "ILM to RPE: not found");
    oct_view_playback_end(m);
    assert_true(t->map[0].n_rows == 0 && !oct_view_model_has_layers(m));
    scene_close(s);
}

TEST(why_there_are_no_layers_is_said)
{
    struct oct_view_phrase phrase;
    struct scene *s = scene_open();
    record("small.h5", OCT_SAMPLE_U8, N_BSCANS);
    s->model.settings.layers = true;
    open_path(s, "small.h5", 0);
    assert_false(oct_view_model_has_layers(&s->model));
    assert_false(oct_view_playback_has_map(&s->model));
    oct_view_layers_text(&s->model, &phrase);
    assert_non_null(strstr(phrase.text, "too small"));
    open_path(s, "eye.h5", 0); /* of the test before: nothing of the other file stays */
    assert_true(oct_view_model_has_layers(&s->model) && !s->model.playback.thickness.why[0] &&
                s->model.playback.thickness.share == 1);
    scene_close(s);
}

/* ---- exams, and follow-up ---- */

enum { EYE_BSCANS = 48, EYE_UP = 3, EYE_LEFT = 7, EYE_THINNER_PX = 8 };

/* A retina that has a pattern from above, begun then; moved: an earlier exam of that eye, over
 * other B-scans and A-lines, where the retina was thinner. */
static void record_exam(const char *path, const char *begun, bool moved)
{
    const struct oct_plan plan =
        volume_plan(1024, LAYERS_LINES, EYE_BSCANS, LAYERS_DEPTH, OCT_SAMPLE_U8);
    struct oct_volume_about about = volume_about;
    struct oct_volume_writer *w = NULL;
    struct layers_scene scene;
    about.start_time = begun;
    about.eye = "OD";
    unlink(path);
    must(oct_volume_create(&w, path, &plan, &about, false, true, &failure));
    layers_scene_open(&scene, OCT_SAMPLE_U8, true);
    for (uint32_t v = 0; v < EYE_BSCANS; v++) {
        layers_scene_next(&scene);
        uint8_t *pixels = scene.pixels;
        scene.bscan.info.bscan = v;
        for (uint32_t j = 0; j < LAYERS_LINES; j++) {
            const uint32_t y = v + (moved ? EYE_UP : 0), x = j + (moved ? EYE_LEFT : 0);
            const int light = 12 * (int)((y / 5 * 7 + x / 8 * 13) * 2654435761u >> 30);
            uint8_t *line = pixels + (size_t)j * LAYERS_DEPTH;
            const size_t at = (size_t)layers_scene_ilm(&scene, j) + 40;
            if (moved)
                memmove(line + at, line + at + EYE_THINNER_PX, LAYERS_DEPTH - at - EYE_THINNER_PX);
            for (uint32_t d = 0; d < LAYERS_DEPTH; d++)
                line[d] = (uint8_t)(line[d] + light < 255 ? line[d] + light : 255);
        }
        must(oct_volume_write_image(w, &scene.bscan, &failure));
    }
    layers_scene_close(&scene);
    volume_close(w);
}

static void record_exams(void)
{
    struct oct_volume_label label = {.eye = ""};
    mkdir("exams", 0700);
    record_exam("exams/now.h5", "2026-11-28T14:03:07Z", false);
    record_exam("exams/then.h5", "2026-05-01T09:00:00Z", true);
    record("exams/other.h5", OCT_SAMPLE_U8, N_BSCANS);
    must(oct_volume_label_write("exams/other.h5",
                                &(struct oct_volume_label_change){.eye = "OS", .pseudonym = "A-9"},
                                &label, &failure));
    record("exams/fellow.h5", OCT_SAMPLE_U8, N_BSCANS); /* hers, in January, of the other eye */
    must(oct_volume_label_write("exams/fellow.h5", &(struct oct_volume_label_change){.eye = "OS"},
                                &label, &failure));
    FILE *text = fopen("exams/text.h5", "w");
    assert_non_null(text);
    fputs("no recording", text);
    fclose(text);
}

static void open_exams(struct scene *s)
{
    record_exams();
    open_path(s, "exams/now.h5", 0);
    oct_view_model_apply(&s->model, OCT_ACTION_EXAMS, 1);
    settle(s);
}

TEST(exams_are_listed_by_patient_and_found)
{
    struct scene *s = scene_open();
    struct oct_view_model *m = &s->model;
    struct oct_view_exams *e = &m->exams;
    char title[200];
    open_exams(s);
    assert_true(oct_view_exams_are_shown(m));
    assert_int_equal(e->rows.n, 4);
    assert_int_equal(e->n + e->n_others, e->n_files);
    assert_string_equal(oct_view_exams_row(e, 0)->name,
                        "now.h5"); /* her newest, then hers before */
    assert_string_equal(oct_view_exams_row(e, 0)->begun, "2026-11-28 14:03");
    assert_string_equal(oct_view_exams_row(e, 1)->name, "then.h5");
    assert_string_equal(oct_view_exams_row(e, 3)->pseudonym, "A-9");
    assert_true(oct_view_exams_row(e, 0)->has_thumb && oct_view_exams_row(e, 0)->field_mm[0] == 1);
    assert_false(oct_view_exams_is_alike(m, 0)); /* it is the open one */
    assert_true(oct_view_exams_is_alike(m, 1));
    assert_false(oct_view_exams_is_alike(m, 2) || oct_view_exams_is_alike(m, 3) ||
                 oct_view_exams_is_alike(m, 4));

    oct_view_exams_type(e, "a-9");
    assert_int_equal(e->rows.n, 1);
    oct_view_exams_title(m, title, sizeof(title));
    assert_string_equal(title, "a-9_: 1 exam of 1 patient");
    oct_view_exams_type(e, "x");
    assert_int_equal(e->rows.n, 0);
    assert_null(oct_view_exams_row(e, 0));
    oct_view_exams_choose(m, 0); /* there is none */
    assert_true(e->is_open);
    oct_view_exams_rub_out(e, true);
    assert_int_equal(e->rows.n, 4);
    oct_view_exams_choose(m, 1);
    settle(s);
    assert_true(!e->is_open && strcmp(m->playback.file.name, "then.h5") == 0);
    scene_close(s);
}

TEST(a_folder_of_more_files_than_the_list_has_says_so)
{
    struct scene *s = scene_open();
    char path[32], title[200];
    mkdir("many", 0700);
    record("many/one.h5", OCT_SAMPLE_U8, N_BSCANS);
    for (unsigned i = 0; i < OCT_VIEW_MOST_EXAMS + 2; i++) {
        snprintf(path, sizeof(path), "many/%u.h5", i);
        assert_int_equal(symlink("nowhere", path), 0); /* read soon */
    }
    open_path(s, "many/one.h5", 0);
    oct_view_model_apply(&s->model, OCT_ACTION_EXAMS, 1);
    settle(s);
    assert_int_equal(s->model.exams.n_left_out, 3);
    oct_view_exams_title(&s->model, title, sizeof(title));
    assert_non_null(strstr(title, "; the list ends at 5000 files, 3 are not in it"));
    scene_close(s);
    for (unsigned i = 0; i < OCT_VIEW_MOST_EXAMS + 2; i++) {
        snprintf(path, sizeof(path), "many/%u.h5", i);
        unlink(path);
    }
    unlink("many/one.h5");
    rmdir("many");
}

TEST(an_earlier_exam_of_the_eye_is_put_onto_the_open_one)
{
    struct scene *s = scene_open();
    struct oct_view_model *m = &s->model;
    struct oct_view_phrase phrase;
    open_exams(s);
    oct_view_exams_compare(m, 2); /* another eye */
    assert_false(m->playback.follow.is_on);
    oct_view_exams_compare(m, 1);
    oct_view_playback_go(m, 20);
    settle(s);
    const struct oct_view_follow *f = &m->playback.follow;
    const struct oct_view_file *file = &m->playback.file;
    oct_view_follow_text(m, &phrase);
    if (f->state != OCT_FOLLOW_FOUND)
        fail_msg("%s", phrase.text);
    assert_false(oct_view_exams_are_shown(m));
    assert_true(fabs(f->shift_um[0] + EYE_UP * file->slow_um) < 0.2 * file->slow_um);
    assert_true(fabs(f->shift_um[1] + EYE_LEFT * file->lateral_um) < 0.2 * file->lateral_um);
    assert_true(f->has_before && f->before_of == 20 && f->bscan == 20 - EYE_UP);
    assert_true(fabs(f->mean_change[OCT_MAP_RETINA] - EYE_THINNER_PX * file->axial_um) <
                file->axial_um);
    const struct oct_view_enface *change = oct_view_playback_shown_map(m);
    assert_ptr_equal(change, &f->change[OCT_MAP_RETINA]);
    assert_true(isnan(oct_view_enface_row(change, 0)[50])); /* it did not reach there */
    assert_true(change->hi == -change->lo);
    oct_view_thickness_text(m, &phrase);
    assert_non_null(strstr(phrase.text, " since 2026-05-01"));
    oct_view_playback_go(m, 1);
    settle(s);
    assert_false(f->has_before);
    oct_view_model_apply(m, OCT_ACTION_EXAMS, 1); /* ends it */
    assert_true(!f->is_on && oct_view_playback_shown_map(m) == &m->playback.thickness.map[0]);

    scene_close(s);
}

/* ---- a large file ---- */

/* [n][lines][depth] u8 in one piece, of which nothing is written: the file is a hole. */
static void make_sparse(const char *path, hsize_t n, hsize_t lines, hsize_t depth)
{
    const hsize_t dims[] = {n, lines, depth};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(3, dims, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
    H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY);
    hid_t set = H5Dcreate2(file, "/bscans", H5T_STD_U8LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(file >= 0 && set >= 0);
    H5Dclose(set);
    H5Pclose(how);
    H5Sclose(space);
    H5Fclose(file);
}

static double resident_mb(void)
{
    char line[128];
    double kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        sscanf(line, "VmRSS: %lf", &kb);
    if (f)
        fclose(f);
    return kb / 1024;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
}

TEST(a_file_of_20_gb_opens_at_once_and_scrolls_in_flat_memory)
{
    make_sparse("large.h5", 20000, 1000, 1000); /* 20 GB */
    struct scene *s = scene_open();
    struct oct_view_model *m = &s->model;
    const uint64_t begin_ns = oct_clock_ns();
    oct_view_playback_open(m, "large.h5", 0, false);
    while (!m->has_picture && oct_clock_ns() - begin_ns < PATIENCE_NS) {
        oct_play_turn(s->play, m);
        nap();
    }
    const double first_ms = (double)(oct_clock_ns() - begin_ns) / 1e6;
    assert_true(m->has_picture);
    double least = INFINITY, most = 0;
    for (uint32_t i = 0; i < 400; i++) { /* here and there, 400 of 20,000 */
        const uint32_t v = i * 7919u % 20000u;
        oct_view_playback_go(m, v);
        while (m->playback.read.bscan != v && oct_clock_ns() - begin_ns < 3 * PATIENCE_NS) {
            oct_play_turn(s->play, m);
            nap();
        }
        assert_int_equal(m->playback.read.bscan, v);
        if (i < 40)
            continue; /* all buffers are there by then */
        least = fmin(least, resident_mb());
        most = fmax(most, resident_mb());
    }
    print_message("# first picture after %.0f ms; resident %.0f to %.0f MB\n", first_ms, least,
                  most);
    assert_true(first_ms < 500);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their memory counts too */
    assert_true(most - least < 24); /* the slice and the en face picture may grow by a copy */
    assert_true(most < 200);
#endif
    scene_close(s);
    unlink("large.h5");
}
