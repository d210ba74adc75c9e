/* Films from picture to track: simulated ones against their truth, units, times and parts of
 * pictures. OCT_CELLS_SEEDS=n runs n times as many films a row. */
#include "analysis/cells/cells.h"
#include "kernels/device/workers.h"
#include "test/rig/cell_judge.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct oct_cells_film_setup octd_setup(void)
{
    struct oct_cells_film_setup setup = {.um = {NAN, NAN}};
    oct_cells_params_octd(&setup.params, 10);
    return setup;
}

struct row {
    const char *name;
    double cnr, slowest, fastest;
    bool overtakes;
    unsigned detect_every, n_films;
    double precision, recall, mota, rmse, cells_a_switch; /* bounds */
};

static const struct row rows[] = {
    {"CNR 8", 8, 2, 5, false, 1, 1, 0.99, 0.99, 0.98, 0.22, INFINITY},
    {"CNR 4", 4, 2, 5, false, 1, 1, 0.99, 0.99, 0.98, 0.31, INFINITY},
    {"CNR 2", 2, 2, 5, false, 1, 1, 0.99, 0.99, 0.98, 0.58, INFINITY},
    {"CNR 1", 1, 2, 5, false, 1, 1, 0.98, 0.88, 0.86, 1.25, 250},
    {"overtaking, CNR 4", 4, 2, 5, true, 1, 4, 0.95, 0.95, 0.90, 0.5, 250},
    {"every 10th frame, CNR 2", 2, 2, 5, false, 10, 1, 0.99, 0.98, 0.98, 0.58, INFINITY},
    {"8 to 12 px a frame, CNR 4", 4, 8, 12, false, 1, 1, 0.98, 0.96, 0.96, 0.31, INFINITY},
    {"12 to 18 px a frame, CNR 4", 4, 12, 18, false, 1, 1, 0.98, 0.93, 0.93, 0.31, INFINITY},
};

static void add_score(struct oct_cells_score *sum, double *squares, const struct cell_judge *judge)
{
    const struct oct_cells_score *s = &judge->score;
    sum->n_true += s->n_true;
    sum->n_found += s->n_found;
    sum->n_matches += s->n_matches;
    sum->n_switches += s->n_switches;
    if (s->n_matches > 0)
        *squares += s->rmse * s->rmse * (double)s->n_matches;
}

static void judge_row(const struct row *row, unsigned n_films)
{
    struct cell_film_setup film;
    struct oct_cells_film_setup setup = octd_setup();
    struct oct_cells_score s = {0};
    double squares = 0;
    cell_film_setup_default(&film);
    film.cnr = row->cnr;
    film.slowest = row->slowest;
    film.fastest = row->fastest;
    film.overtakes = row->overtakes;
    film.lane = row->overtakes ? 60 : film.lane;
    setup.params.detect_every = row->detect_every;
    for (film.seed = 1; film.seed <= n_films; film.seed++) {
        struct cell_judge judge;
        cell_judge_run(&judge, &film, &setup, 0);
        add_score(&s, &squares, &judge);
        cell_judge_finish(&judge);
    }
    const double n = (double)s.n_true, n_pairs = (double)s.n_matches;
    const double precision = n_pairs / (double)s.n_found, recall = n_pairs / n;
    const double rmse = sqrt(squares / n_pairs);
    const double mota = (2 * n_pairs - (double)(s.n_found + s.n_switches)) / n;
    print_message("%s: %.0f cells, precision %.4f, recall %.4f, MOTA %.4f, %d switches, "
                  "rmse %.3f px\n",
                  row->name, n, precision, recall, mota, (int)s.n_switches, rmse);
    assert_true(n >= 150.0 * n_films);
    assert_true(precision >= row->precision && recall >= row->recall && mota >= row->mota);
    assert_true(rmse <= row->rmse);
    assert_true(s.n_switches == 0 || n / (double)s.n_switches >= row->cells_a_switch);
}

TEST(simulated_films_are_tracked)
{
    const char *seeds = getenv("OCT_CELLS_SEEDS");
    const unsigned n_seeds = seeds ? (unsigned)strtoul(seeds, NULL, 10) : 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        judge_row(&rows[i], n_seeds * rows[i].n_films);
}

/* Blobs of a static texture are no cells: each film by itself. */
TEST(a_static_texture_is_no_cell)
{
    static const struct {
        double cnr, texture, grain, recall;
    } films[] = {{8, 0.1, 5, 0.99},
                 {8, 0.15, 9, 0.99},
                 {4, 0.15, 7, 0.99},
                 {2, 0.15, 7, 0.99},
                 {1, 0.15, 7, 0.88}};
    const char *seeds = getenv("OCT_CELLS_SEEDS");
    const unsigned n_seeds = 3 * (seeds ? (unsigned)strtoul(seeds, NULL, 10) : 1);
    for (size_t i = 0; i < sizeof films / sizeof *films; i++)
        for (unsigned seed = 4; seed < 4 + n_seeds; seed++) {
            struct cell_film_setup film;
            const struct oct_cells_film_setup setup = octd_setup();
            struct cell_judge judge;
            cell_film_setup_default(&film);
            film.n_frames = 8;
            film.cnr = films[i].cnr;
            film.texture = films[i].texture;
            film.grain = films[i].grain;
            film.seed = seed;
            cell_judge_run(&judge, &film, &setup, 0);
            const struct oct_cells_score *s = &judge.score;
            print_message("CNR %g, texture %g of %g px, seed %u: precision %.4f, recall %.4f\n",
                          film.cnr, film.texture, film.grain, seed, s->precision, s->recall);
            assert_true(s->precision >= 0.99 && s->recall >= films[i].recall);
            cell_judge_finish(&judge);
        }
}

/* ---- units ---- */

static const struct cell_judge_row *find_row(const struct cell_judge *j, unsigned frame, double x,
                                             double y, double within)
{
    const struct cell_judge_row *best = NULL;
    for (size_t i = 0; i < j->n_rows; i++) {
        const struct cell_judge_row *row = &j->rows[i];
        const double d = hypot(row->found.x_um - x, row->found.y_um - y);
        if (row->frame == frame && d <= within) {
            best = row;
            within = d;
        }
    }
    return best;
}

/* The same scene in pixels of 1 x 1 um, and of 2 um (rows) x 1 um. */
TEST(pixels_that_are_not_square_give_the_same_tracks)
{
    struct cell_film_setup film;
    struct oct_cells_film_setup setup = octd_setup();
    struct cell_judge square, tall;
    cell_film_setup_default(&film);
    film.cnr = INFINITY;
    film.softness = 1.5;
    film.n_frames = 12;
    film.height = 241;
    setup.um[0] = setup.um[1] = 1;
    setup.radius_um = 10;
    cell_judge_run(&square, &film, &setup, 0);
    film.height = 121;
    film.dy = setup.um[0] = 2;
    cell_judge_run(&tall, &film, &setup, 0);
    double worst = 0;
    assert_true(square.n_rows > 150);
    assert_int_equal(square.n_rows, tall.n_rows);
    for (size_t i = 0; i < tall.n_rows; i++) {
        const struct oct_cells_found *f = &tall.rows[i].found;
        const struct cell_judge_row *row =
            find_row(&square, tall.rows[i].frame, f->x_um, f->y_um, 2);
        assert_non_null(row);
        assert_true(f->track == row->found.track);
        assert_true(fabs(f->y_um - 2 * f->y_px) < 1e-9 && fabs(f->x_um - f->x_px) < 1e-9);
        assert_true(fabs(f->radius_um - row->found.radius_um) <= 0.2);
        worst = fmax(worst, hypot(f->x_um - row->found.x_um, f->y_um - row->found.y_um));
    }
    print_message("pixels of 2 x 1 um: %.3f um apart at most\n", worst);
    assert_true(worst <= 0.1);
    cell_judge_finish(&square);
    cell_judge_finish(&tall);
}

/* Rows are scanned while the cells run along them: by the times of rows their speeds are right. */
TEST(speeds_go_by_the_times_of_rows)
{
    struct cell_film_setup setup;
    struct oct_cells_film_setup track = octd_setup();
    struct cell_judge judge;
    struct cell_film film;
    cell_film_setup_default(&setup);
    setup.is_upright = true;
    setup.scan = 0.9;
    setup.cnr = INFINITY;
    setup.n_frames = 16;
    track.um[0] = track.um[1] = 0.5;
    cell_judge_run(&judge, &setup, &track, 0.1);
    cell_film_init(&film, &setup);
    double worst = 0;
    unsigned n = 0;
    for (size_t i = 0; i < judge.n_rows; i++) {
        const struct oct_cells_found *f = &judge.rows[i].found;
        const unsigned frame = judge.rows[i].frame;
        for (unsigned c = 0; c < film.n_cells && !isnan(f->speed_um_s); c++) {
            double x, y, x0, y0;
            if (!cell_film_place_seen(&film, c, frame, &x, &y) ||
                !cell_film_place_seen(&film, c, frame - 1, &x0, &y0) ||
                hypot(x - f->x_px, y - f->y_px) > 3)
                continue;
            const double seconds = 0.1 * (1 + 0.9 * (y - y0) / setup.height);
            const double speed = 0.5 * hypot(x - x0, y - y0) / seconds;
            worst = fmax(worst, fabs(f->speed_um_s / speed - 1));
            assert_true(fabs(f->time_s - 0.1 * (frame + 0.9 * y / setup.height)) < 1e-3);
            n++;
        }
    }
    print_message("speeds of %u steps: %.2f %% off at most\n", n, 100 * worst);
    assert_true(n > 100);
    assert_true(worst <= 0.01);
    cell_judge_finish(&judge);
}

/* Steps of 28 to 32 px are beyond 2 R, and within 400 um/s. */
TEST(a_longest_speed_opens_the_first_gate)
{
    struct cell_film_setup film;
    struct oct_cells_film_setup setup = octd_setup();
    struct cell_judge judge;
    cell_film_setup_default(&film);
    film.slowest = 28;
    film.fastest = 32;
    film.distance = 200;
    film.n_frames = 20;
    setup.um[0] = setup.um[1] = 1;
    cell_judge_run(&judge, &film, &setup, 0.1);
    const double without = judge.score.mota;
    cell_judge_finish(&judge);
    setup.max_speed_um_s = 400;
    cell_judge_run(&judge, &film, &setup, 0.1);
    print_message("MOTA %.3f, with a longest speed %.3f\n", without, judge.score.mota);
    assert_true(without < 0.5 && judge.score.mota > 0.9);
    cell_judge_finish(&judge);
}

/* ---- one picture ---- */

static const struct oct_cells_found *push_one(struct oct_cells_film *film,
                                              const struct oct_picture *picture, unsigned *n)
{
    const struct oct_cells_found *found;
    must(oct_cells_film_push(film, picture, NULL, 0, &found, n, &failure));
    return found;
}

static struct oct_cells_film *open_film(const struct oct_cells_film_setup *setup)
{
    struct oct_cells_film *film;
    must(oct_cells_film_create(&film, setup, &failure));
    return film;
}

static struct oct_picture draw_one(double cnr)
{
    struct cell_film_setup setup;
    struct cell_film film;
    struct oct_picture picture;
    cell_film_setup_default(&setup);
    setup.cnr = cnr;
    cell_film_init(&film, &setup);
    assert_int_equal(oct_picture_init(&picture, setup.height, setup.width, false, NULL), OCT_OK);
    cell_film_draw(&film, 0, &picture);
    return picture;
}

TEST(a_region_is_searched_as_a_picture_of_its_own)
{
    const struct oct_region roi = {.x = 40, .y = 30, .width = 220, .height = 150};
    struct oct_picture whole = draw_one(4), part;
    struct oct_cells_film_setup setup = octd_setup();
    unsigned n, n_part;
    setup.backend = "cpu";
    setup.height = whole.height;
    setup.width = whole.width;
    setup.roi = roi;
    assert_int_equal(oct_picture_init(&part, roi.height, roi.width, false, NULL), OCT_OK);
    for (uint32_t y = 0; y < roi.height; y++)
        memcpy(part.pixels + (size_t)y * roi.width,
               whole.pixels + (size_t)(y + roi.y) * whole.width + roi.x, roi.width * sizeof(float));
    struct oct_cells_film *of_whole = open_film(&setup);
    setup.height = roi.height;
    setup.width = roi.width;
    setup.roi = (struct oct_region){0};
    struct oct_cells_film *of_part = open_film(&setup);
    const struct oct_cells_found *a = push_one(of_whole, &whole, &n);
    const struct oct_cells_found *b = push_one(of_part, &part, &n_part);
    assert_true(n > 2 && n == n_part);
    for (unsigned i = 0; i < n; i++)
        assert_true(a[i].x_px == b[i].x_px + 40 && a[i].y_px == b[i].y_px + 30 &&
                    a[i].score == b[i].score && isnan(a[i].x_um) && isnan(a[i].time_s));
    assert_true(oct_cells_film_highest(of_whole) >= fabs(a[0].score));
    oct_cells_film_destroy(of_whole);
    oct_cells_film_destroy(of_part);
    oct_picture_finish(&whole);
    oct_picture_finish(&part);
}

static void assert_refused(const struct oct_cells_film_setup *setup, const char *text)
{
    struct oct_error err = {.text = ""};
    struct oct_cells_film *film;
    assert_int_equal(oct_cells_film_create(&film, setup, &err), OCT_E_ARG);
    assert_null(film);
    if (!strstr(err.text, text))
        fail_msg("'%s' does not say '%s'", err.text, text);
    err = (struct oct_error){.text = ""};
    assert_int_equal(oct_cells_film_check(setup, &err), OCT_E_ARG);
    if (!strstr(err.text, text))
        fail_msg("'%s' does not say '%s'", err.text, text);
}

TEST(what_cannot_be_is_refused)
{
    struct oct_cells_film_setup good = octd_setup(), s;
    good.backend = "cpu";
    good.height = good.width = 200;
    assert_int_equal(oct_cells_film_check(&good, NULL), OCT_OK);
    s = good, s.roi = (struct oct_region){100, 0, 101, 100};
    assert_refused(&s, "region of interest 100,0,101,100");
    s = good, s.roi = (struct oct_region){0, 0, 0, 10};
    assert_refused(&s, "region of interest");
    s = good, s.um[0] = 9, s.um[1] = 1;
    assert_refused(&s, "at most 8 times");
    s = good, s.um[0] = 0, s.um[1] = 1;
    assert_refused(&s, "must be above 0");
    s = good, s.radius_um = 4;
    assert_refused(&s, "unknown");
    s = good, s.max_speed_um_s = 4;
    assert_refused(&s, "unknown");
    s = good, s.height = 40;
    assert_refused(&s, "too small");
    s = good, s.backend = "none", s.gpus = "none"; /* a check does not ask for them */
    assert_int_equal(oct_cells_film_check(&s, NULL), OCT_OK);
}

TEST(two_threads_give_the_same_bytes)
{
    struct cell_film_setup film;
    struct oct_cells_film_setup setup = octd_setup();
    struct cell_judge one, two;
    cell_film_setup_default(&film);
    film.n_frames = 8;
    film.cnr = 1;
    setup.params.detect_every = 4;
    cell_judge_run(&one, &film, &setup, 0);
    assert_int_equal(oct_workers_create(&setup.workers, 2, NULL), OCT_OK);
    cell_judge_run(&two, &film, &setup, 0);
    assert_int_equal(one.n_rows, two.n_rows);
    for (size_t i = 0; i < one.n_rows; i++) {
        const struct oct_cells_found *a = &one.rows[i].found, *b = &two.rows[i].found;
        assert_true(a->track == b->track && a->how == b->how);
        assert_memory_equal(&a->x_px, &b->x_px, sizeof a->x_px);
        assert_memory_equal(&a->y_px, &b->y_px, sizeof a->y_px);
        assert_memory_equal(&a->radius_px, &b->radius_px, sizeof a->radius_px);
        assert_memory_equal(&a->score, &b->score, sizeof a->score);
    }
    cell_judge_finish(&one);
    cell_judge_finish(&two);
    oct_workers_destroy(setup.workers);
}

/* ---- resampling ---- */

TEST(resampling_is_bilinear_and_keeps_the_mask)
{
    float pixels[3][4] = {{0, 1, 2, 3}, {10, 11, 12, 13}, {20, NAN, 22, 23}};
    uint8_t valid[3][4] = {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 0, 1, 1}};
    const struct oct_picture from = {3, 4, pixels[0], valid[0]};
    const double um[2] = {3, 1.5};
    struct oct_cells_resample plan;
    struct oct_picture to;
    oct_cells_resample_plan(&plan, 1, 0, 3, 3, um);
    assert_int_equal(plan.height, 5);
    assert_int_equal(plan.width, 3);
    assert_int_equal(oct_picture_init(&to, 5, 3, true, NULL), OCT_OK);
    for (uint32_t y = 0; y < plan.height; y++)
        oct_cells_resample_row(&plan, &from, &to, y);
    for (uint32_t y = 0; y < 5; y++)
        for (uint32_t x = 0; x < 3; x++) {
            const bool is_whole = y < 3 || x > 0;
            assert_int_equal(to.valid[3 * y + x], is_whole);
            assert_true(to.pixels[3 * y + x] == (is_whole ? (float)(5 * y + x + 1) : 0));
        }
    oct_picture_finish(&to);
    const double alike[2] = {1.019, 1}, wide[2] = {1, 3}, unknown[2] = {NAN, 1};
    oct_cells_resample_plan(&plan, 0, 0, 30, 40, alike);
    assert_true(oct_cells_resample_is_identity(&plan, 30, 40));
    oct_cells_resample_plan(&plan, 0, 0, 30, 40, unknown);
    assert_true(oct_cells_resample_is_identity(&plan, 30, 40));
    oct_cells_resample_plan(&plan, 0, 0, 30, 40, wide);
    assert_true(plan.height == 30 && plan.width == 3 * 39 + 1 && plan.dy == 1);
    assert_false(oct_cells_resample_is_identity(&plan, 30, 40));
}
