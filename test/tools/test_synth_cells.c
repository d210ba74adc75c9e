/* The film of cells: its truth is what is in the pictures. */
#include "test/rig/tap.h"

#include "synth/cells.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CELLS 64u

static struct oct_cell_film_setup setup_of(uint64_t seed)
{
    return (struct oct_cell_film_setup){
        .height = 240,
        .width = 320,
        .n_frames = 40,
        .fps = 30,
        .cnr = INFINITY,
        .n_threads = 1,
        .paths = {.n_cells = 10, .radius = 10, .slowest = 2, .fastest = 5, .seed = seed}};
}

static struct oct_cell_film *film_of(const struct oct_cell_film_setup *setup)
{
    struct oct_cell_film *film;
    struct oct_error err = {.text = ""};
    if (oct_cell_film_create(&film, setup, &err))
        fail_msg("%s", err.text);
    return film;
}

static uint8_t *render(const struct oct_cell_film_setup *setup, unsigned first, unsigned n)
{
    struct oct_cell_film *film = film_of(setup);
    uint8_t *pictures = calloc((size_t)n * setup->height, setup->width);
    assert_non_null(pictures);
    oct_cell_film_render(film, first, n, pictures);
    oct_cell_film_destroy(film);
    return pictures;
}

static void same_seed_same_bytes_whatever_the_threads(void **state)
{
    struct oct_cell_film_setup one = setup_of(3), five = one, other = setup_of(4);
    const size_t bytes = (size_t)one.height * one.width;
    one.cnr = five.cnr = other.cnr = 4;
    five.n_threads = 5;
    uint8_t *a = render(&one, 0, 6), *b = render(&five, 0, 6), *c = render(&other, 0, 6);
    uint8_t *part = render(&five, 4, 2);
    assert_memory_equal(a, b, 6 * bytes);
    assert_memory_equal(a + 4 * bytes, part, 2 * bytes);
    assert_true(memcmp(a, c, bytes) != 0);
    assert_true(memcmp(a, a + bytes, bytes) != 0);
    free(a);
    free(b);
    free(c);
    free(part);
}

/* ---- what is in a picture ---- */

/* The background without noise: cells leave every pixel at some time, and are brighter. */
static uint8_t *background_of(const struct oct_cell_film_setup *setup, const uint8_t *pictures)
{
    const size_t n = (size_t)setup->height * setup->width;
    uint8_t *least = malloc(n);
    assert_non_null(least);
    memcpy(least, pictures, n);
    for (unsigned t = 1; t < setup->n_frames; t++)
        for (size_t i = 0; i < n; i++)
            if (pictures[t * n + i] < least[i])
                least[i] = pictures[t * n + i];
    return least;
}

struct spot {
    double x, y, area; /* px; area in units of the peak */
};

/* What is brighter than the background about a place. */
static struct spot spot_at(const struct oct_cell_film_setup *s, const uint8_t *picture,
                           const uint8_t *background, const struct oct_cell_truth *t,
                           double reach_x, double reach_y)
{
    double sum = 0, sum_x = 0, sum_y = 0, peak = 0;
    for (int y = (int)(t->y_px - reach_y); y <= (int)(t->y_px + reach_y + 1); y++)
        for (int x = (int)(t->x_px - reach_x); x <= (int)(t->x_px + reach_x + 1); x++) {
            const int at = y * (int)s->width + x;
            const double value = picture[at] - background[at];
            sum += value;
            sum_x += value * x;
            sum_y += value * y;
            peak = fmax(peak, value);
        }
    return (struct spot){sum_x / sum, sum_y / sum, sum / peak};
}

static bool is_whole(const struct oct_cell_film_setup *s, const struct oct_cell_truth *t,
                     double reach_x, double reach_y)
{
    return t->x_px > reach_x + 1 && t->y_px > reach_y + 1 && t->x_px < s->width - reach_x - 2 &&
           t->y_px < s->height - reach_y - 2;
}

/* Compares every cell of every fifth picture. Returns how many. */
static unsigned compare_film(const struct oct_cell_film_setup *s, double dx, double dy)
{
    struct oct_cell_film *film = film_of(s);
    uint8_t *pictures = render(s, 0, s->n_frames), *background = background_of(s, pictures);
    const double reach_x = 15 / dx, reach_y = 15 / dy;
    unsigned n_compared = 0;
    for (unsigned frame = 0; frame < s->n_frames; frame += 5) {
        struct oct_cell_truth truth[MOST_CELLS];
        const unsigned n = oct_cell_film_truth(film, frame, truth);
        assert_in_range(n, 1, s->paths.n_cells);
        for (unsigned i = 0; i < n; i++) {
            const struct oct_cell_truth *t = &truth[i];
            if (!is_whole(s, t, reach_x, reach_y))
                continue;
            const struct spot spot = spot_at(s, pictures + (size_t)frame * s->height * s->width,
                                             background, t, reach_x, reach_y);
            /* A soft disk is larger by (pi s)^2 / 3, s = 0.8 px; rounding to grey levels: 2 %. */
            const double area = 3.14159265 * (t->radius_px * t->radius_px + 2.1) / (dx * dy);
            if (fabs(spot.x - t->x_px) > 0.06 || fabs(spot.y - t->y_px) > 0.06)
                fail_msg("frame %u: %.3f, %.3f for %.3f, %.3f", frame, spot.x, spot.y, t->x_px,
                         t->y_px);
            if (s->scan == 0 && fabs(spot.area / area - 1) > 0.04)
                fail_msg("frame %u: area %.1f for %.1f", frame, spot.area, area);
            assert_true(t->radius_px >= 0.95 * s->paths.radius);
            assert_true(t->radius_px <= 1.05 * s->paths.radius);
            n_compared++;
        }
    }
    oct_cell_film_destroy(film);
    free(pictures);
    free(background);
    return n_compared;
}

static void cells_lie_where_the_truth_says(void **state)
{
    for (uint64_t seed = 1; seed < 4; seed++) {
        struct oct_cell_film_setup s = setup_of(seed);
        assert_true(compare_film(&s, 1, 1) > 20);
        s.paths.has_flow = true;
        s.paths.flow_deg = 115;
        s.paths.n_cells = 8;
        assert_true(compare_film(&s, 1, 1) > 10);
    }
}

static void of_oblong_pixels_too(void **state)
{
    struct oct_cell_film_setup s = setup_of(5);
    s.um[0] = 1;
    s.um[1] = 2;
    s.width = 200;
    assert_true(compare_film(&s, 2, 1) > 20);
    struct oct_cell_film_setup tall = setup_of(6);
    tall.um[0] = 3;
    tall.um[1] = 1.5;
    assert_true(compare_film(&tall, 1, 2) > 20);
}

/* ---- rows ---- */

static void rows_that_are_scanned_see_cells_at_their_time(void **state)
{
    struct oct_cell_film_setup s = setup_of(7);
    s.scan = 1;
    s.paths.fastest = 8;
    assert_true(compare_film(&s, 1, 1) > 20);
    s.paths.has_flow = true; /* along the slow axis, against the scan */
    s.paths.flow_deg = -90;
    s.paths.n_cells = 6;
    assert_true(compare_film(&s, 1, 1) > 10);

    struct oct_cell_film *film = film_of(&s);
    struct oct_cell_truth before[MOST_CELLS] = {{0}}, now[MOST_CELLS];
    unsigned n_before = 0, n_compared = 0;
    for (unsigned frame = 0; frame < s.n_frames; frame++) {
        const unsigned n = oct_cell_film_truth(film, frame, now);
        for (unsigned i = 0; i < n; i++) {
            const double time = (frame + now[i].y_px / (s.height - 1)) / s.fps;
            assert_true(fabs(now[i].time_s - time) < 1e-6);
            for (unsigned k = 0; k < n_before; k++)
                if (before[k].track == now[i].track) {
                    const double speed =
                        (before[k].y_px - now[i].y_px) / (now[i].time_s - before[k].time_s) / s.fps;
                    assert_true(speed > 0.99 * s.paths.slowest && speed < 1.01 * s.paths.fastest);
                    /* by whole frames it would be off */
                    assert_true(before[k].y_px - now[i].y_px <
                                speed * (1 - 0.5 * speed / s.height));
                    n_compared++;
                }
        }
        memcpy(before, now, sizeof(now));
        n_before = n;
    }
    assert_true(n_compared > 50);
    oct_cell_film_destroy(film);
}

/* ---- contrast ---- */

static void contrast_to_noise_is_what_was_asked_for(void **state)
{
    static const double wanted[] = {16, 8, 4, 2, 1};
    struct oct_cell_film_setup clean = setup_of(9);
    uint8_t *pictures = render(&clean, 0, clean.n_frames);
    uint8_t *background = background_of(&clean, pictures);
    const size_t n_pixels = (size_t)clean.height * clean.width;
    for (unsigned c = 0; c < sizeof(wanted) / sizeof(wanted[0]); c++) {
        struct oct_cell_film_setup s = clean;
        struct oct_cell_truth truth[MOST_CELLS];
        double noise = 0, cell = 0, n_noise = 0, n_cell = 0;
        s.cnr = wanted[c];
        struct oct_cell_film *film = film_of(&s);
        uint8_t *noisy = render(&s, 0, s.n_frames);
        for (unsigned frame = 0; frame < s.n_frames; frame++) {
            const unsigned n = oct_cell_film_truth(film, frame, truth);
            for (size_t i = 0; i < n_pixels; i++) {
                double nearest = HUGE_VAL;
                const double value = noisy[frame * n_pixels + i] - background[i];
                for (unsigned k = 0; k < n; k++)
                    nearest = fmin(nearest, hypot((double)(i % s.width) - truth[k].x_px,
                                                  (double)(i / s.width) - truth[k].y_px) /
                                                truth[k].radius_px);
                if (nearest < 1) {
                    cell += value;
                    n_cell++;
                } else if (pictures[frame * n_pixels + i] == background[i]) {
                    noise += value * value;
                    n_noise++;
                }
            }
        }
        const double cnr = cell / n_cell / sqrt(noise / n_noise);
        if (fabs(cnr / wanted[c] - 1) > 0.03)
            fail_msg("a contrast to noise of %.3f for %.0f", cnr, wanted[c]);
        oct_cell_film_destroy(film);
        free(noisy);
    }
    free(pictures);
    free(background);
}

/* ---- paths ---- */

static struct oct_cell_paths paths_of(struct oct_cell_paths_setup setup)
{
    struct oct_cell_paths paths;
    struct oct_error err = {.text = ""};
    setup.width = 639;
    setup.height = 479;
    setup.n_frames = 60;
    if (oct_cell_paths_init(&paths, &setup, &err))
        fail_msg("%s", err.text);
    return paths;
}

static double distance_of(struct oct_cell_place a, struct oct_cell_place b)
{
    return hypot(a.x - b.x, a.y - b.y);
}

static void separate_cells_keep_three_radii_apart(void **state)
{
    for (unsigned n_cells = 1; n_cells <= 200; n_cells += 7) {
        const struct oct_cell_paths_setup setup = {.n_cells = n_cells,
                                                   .radius = 10,
                                                   .slowest = 1,
                                                   .fastest = 18,
                                                   .has_flow = n_cells % 2,
                                                   .flow_deg = n_cells,
                                                   .seed = n_cells};
        const struct oct_cell_paths paths = paths_of(setup);
        for (double time = 0; time < 60; time += 3.7)
            for (unsigned i = 0; i < n_cells; i++)
                for (unsigned k = 0; k < i; k++)
                    assert_true(distance_of(oct_cell_paths_at(&paths, i, time),
                                            oct_cell_paths_at(&paths, k, time)) >= 29.999);
    }
}

/* The nearest that two cells come, in radii. */
static double nearest_of(const struct oct_cell_paths *paths, unsigned i, unsigned k)
{
    double nearest = HUGE_VAL;
    for (double time = 0; time < 60; time += 0.05)
        nearest = fmin(nearest, distance_of(oct_cell_paths_at(paths, i, time),
                                            oct_cell_paths_at(paths, k, time)));
    return nearest / paths->setup.radius;
}

static void pairs_that_overtake_touch_and_keep_from_others(void **state)
{
    const struct oct_cell_paths_setup setup = {
        .n_cells = 13, .radius = 10, .slowest = 2, .fastest = 5, .overtakes = true, .seed = 2};
    const struct oct_cell_paths paths = paths_of(setup);
    for (unsigned i = 0; i < setup.n_cells; i++)
        for (unsigned k = 0; k < i; k++) {
            const double nearest = nearest_of(&paths, i, k);
            if (i / 2 == k / 2)
                assert_true(nearest > 0.79 && nearest < 1.61);
            else
                assert_true(nearest > 2.99);
        }
}

static void tracks_go_on_and_new_ones_take_the_place_of_those_that_left(void **state)
{
    struct oct_cell_film_setup s = setup_of(11);
    enum { MOST = 400 };
    unsigned last_seen[MOST], n_tracks = 0;
    double last_x[MOST], last_y[MOST];
    struct oct_cell_truth truth[MOST_CELLS];
    s.n_frames = 300;
    struct oct_cell_film *film = film_of(&s);
    for (unsigned i = 0; i < MOST; i++)
        last_seen[i] = UINT32_MAX;
    for (unsigned frame = 0; frame < s.n_frames; frame++) {
        const unsigned n = oct_cell_film_truth(film, frame, truth);
        for (unsigned i = 0; i < n; i++) {
            const uint64_t track = truth[i].track;
            assert_in_range(track, 1, MOST - 1);
            if (last_seen[track] == UINT32_MAX) {
                n_tracks++;
                assert_true(frame == 0 || truth[i].x_px < 6 || truth[i].x_px > s.width - 7);
            } else { /* seen in the frame before, within the step of the fastest */
                assert_int_equal(last_seen[track], frame - 1);
                const double step =
                    hypot(truth[i].x_px - last_x[track], truth[i].y_px - last_y[track]);
                assert_true(step > 1.99 && step < 5.05);
            }
            last_seen[track] = frame;
            last_x[track] = truth[i].x_px;
            last_y[track] = truth[i].y_px;
        }
    }
    assert_true(n_tracks > 2 * s.paths.n_cells);
    oct_cell_film_destroy(film);
}

static void what_has_no_room_is_refused(void **state)
{
    struct oct_error err;
    struct oct_cell_film *film;
    struct oct_cell_film_setup few = setup_of(1), flat = few, crowd = few, none = few, wide = few;
    flat.height = 64;
    crowd.paths.n_cells = 200;
    none.paths.n_cells = 0;
    wide.width = 20000;
    assert_int_equal(oct_cell_film_create(&film, &flat, &err), OCT_E_ARG);
    assert_non_null(strstr(err.text, "needs 64"));
    assert_int_equal(oct_cell_film_create(&film, &crowd, &err), OCT_E_ARG);
    assert_non_null(strstr(err.text, "1 to 55"));
    assert_int_equal(oct_cell_film_create(&film, &none, &err), OCT_E_ARG);
    assert_int_equal(oct_cell_film_create(&film, &wide, &err), OCT_E_ARG);
    assert_null(film);
    crowd.paths.n_cells = 55;
    oct_cell_film_destroy(film_of(&crowd));
    oct_cell_film_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_same_bytes_whatever_the_threads),
        cmocka_unit_test(cells_lie_where_the_truth_says),
        cmocka_unit_test(of_oblong_pixels_too),
        cmocka_unit_test(rows_that_are_scanned_see_cells_at_their_time),
        cmocka_unit_test(contrast_to_noise_is_what_was_asked_for),
        cmocka_unit_test(separate_cells_keep_three_radii_apart),
        cmocka_unit_test(pairs_that_overtake_touch_and_keep_from_others),
        cmocka_unit_test(tracks_go_on_and_new_ones_take_the_place_of_those_that_left),
        cmocka_unit_test(what_has_no_room_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
