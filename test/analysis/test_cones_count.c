/* Cones counted: places, cells and densities that are known, and mosaics whose cones are known. The
 * oracle of the cells asks of points all over the picture which cone is nearest. */
#include "analysis/cones/map.h"
#include "kernels/device/workers.h"
#include "test/rig/mosaic.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { H = 120, W = 150, MOST = 400 };
#define S 10.0

/* A whitened picture: a paraboloid of that height about each of n places, whose vertices the search
 * finds exactly. */
struct scene {
    float e[H * W];
    uint8_t valid[H * W];
    bool is_masked;
    double at[MOST][2];
    double height[MOST];
    size_t n;
};

static void add(struct scene *scene, double y, double x, double height)
{
    assert_true(scene->n < MOST);
    scene->at[scene->n][0] = y;
    scene->at[scene->n][1] = x;
    scene->height[scene->n++] = height;
}

/* A hexagonal lattice of spacing S whose places differ from it by `jitter` S at most. */
static void add_lattice(struct scene *scene, double jitter, double gap_y, double gap_x, double gap)
{
    struct dice dice = {4};
    for (int j = -2; j * S * sqrt(0.75) < H + S; j++)
        for (int i = -1; (i + 0.5 * (j & 1)) * S < W + S; i++) {
            const double y =
                j * S * sqrt(0.75) + jitter * S * (dice_below(&dice, 2001) / 1000.0 - 1);
            const double x =
                (i + 0.5 * (j & 1)) * S + jitter * S * (dice_below(&dice, 2001) / 1000.0 - 1);
            if (hypot(y - gap_y, x - gap_x) >= gap)
                add(scene, y + 0.37, x + 0.21, 1);
        }
}

static struct oct_cone_count count(struct scene *scene, uint32_t side,
                                   struct oct_cone_place **places)
{
    struct oct_cone_count result;
    struct oct_error err = {.text = ""};
    for (int i = 0; i < H * W; i++) {
        double most = -1;
        for (size_t k = 0; k < scene->n; k++) {
            const double dy = i / W - scene->at[k][0], dx = i % W - scene->at[k][1];
            most = fmax(most, scene->height[k] - (dy * dy + dx * dx) / (S * S));
        }
        scene->e[i] = (float)most;
    }
    const struct oct_cone_picture picture = {scene->e, scene->is_masked ? scene->valid : NULL, H, W,
                                             side};
    if (oct_cone_count_run(&picture, S, places, &result, &err))
        fail_msg("%s", err.text);
    return result;
}

/* ---- places ---- */

static void every_top_has_its_place(void **state)
{
    static struct scene scene;
    struct oct_cone_place *places;
    scene.n = 0;
    add_lattice(&scene, 0.15, 0, 0, 0);
    const struct oct_cone_count c = count(&scene, 1, &places);
    size_t n = 0;
    for (size_t k = 0; k < scene.n; k++) {
        const double y = scene.at[k][0], x = scene.at[k][1];
        double nearest = INFINITY;
        /* What rounds to a pixel of the border is left out. */
        if (!(y >= 0.5 && y < H - 1.5 && x >= 0.5 && x < W - 1.5))
            continue;
        for (uint32_t i = 0; i < c.n; i++)
            nearest = fmin(nearest, hypot(places[i].y - y, places[i].x - x));
        assert_true(nearest < 1e-4);
        n++;
    }
    assert_int_equal(n, c.n);
    for (uint32_t i = 1; i < c.n; i++)
        assert_true(places[i].y > places[i - 1].y ||
                    (places[i].y == places[i - 1].y && places[i].x > places[i - 1].x));
    free(places);
}

static void low_and_near_tops_are_no_cones(void **state)
{
    static struct scene scene;
    struct oct_cone_place *places;
    scene.n = 0;
    add(&scene, 30, 30, 1);
    add(&scene, 30, 34.8, 0.99); /* nearer than S / 2 to a higher one */
    add(&scene, 60, 30, 0.9);
    add(&scene, 60, 35.5, 1);
    add(&scene, 90, 30, 0.31);
    add(&scene, 90, 60, 0.29);
    const struct oct_cone_count c = count(&scene, 1, &places);
    assert_int_equal(c.n, 4);
    assert_true(fabs(places[0].x - 30) < 1e-4);
    assert_true(fabs(places[3].x - 30) < 1e-4 && fabs(places[3].y - 90) < 1e-4);
    for (uint32_t i = 1; i < 3; i++)
        assert_true(fabs(places[i].nearest - 5.5) < 1e-4);
    assert_true(isnan(places[0].nearest) == false && isnan(places[0].area));
    assert_int_equal(c.n_whole, 0);
    assert_true(isnan(c.per_px2) && isnan(c.spacing) && isnan(c.nearest));
    free(places);
}

/* ---- cells ---- */

static void a_perfect_lattice_is_measured_exactly(void **state)
{
    static struct scene scene;
    for (uint32_t side = 1; side <= 4; side *= 4) {
        struct oct_cone_place *places;
        scene.n = 0;
        add_lattice(&scene, 0, 0, 0, 0);
        const struct oct_cone_count c = count(&scene, side, &places);
        assert_true(c.n_whole > 100 && c.n_whole < c.n);
        assert_true(fabs(c.spacing / (side * S) - 1) < 1e-5);
        assert_true(fabs(c.per_px2 * side * side * S * S * sqrt(0.75) - 1) < 1e-5);
        assert_true(fabs(c.nearest / (side * S) - 1) < 1e-4);
        assert_true(c.six_sided > 0.99 && c.spacing_se < 1e-3 && c.per_px2_se < 1e-6);
        assert_true(c.regularity > 1000);
        /* Pixel y of e is the middle of rows side y .. side y + side - 1. */
        assert_true(
            fabs(fmod((places[0].y + 0.5) / side - 0.5 - 0.37, S * sqrt(0.75)) - 0) < 1e-3 ||
            fabs(fmod((places[0].y + 0.5) / side - 0.5 - 0.37, S * sqrt(0.75)) - S * sqrt(0.75)) <
                1e-3);
        free(places);
    }
}

/* Areas by points 0.1 px apart. */
static void measure_directly(const struct oct_cone_place *places, uint32_t n, double *area)
{
    for (int i = 0; i < 10 * H; i++)
        for (int j = 0; j < 10 * W; j++) {
            const double y = i / 10.0 - 0.45, x = j / 10.0 - 0.45;
            double least = INFINITY;
            uint32_t which = 0;
            for (uint32_t k = 0; k < n; k++) {
                const double dy = places[k].y - y, dx = places[k].x - x;
                if (dy * dy + dx * dx < least) {
                    least = dy * dy + dx * dx;
                    which = k;
                }
            }
            area[which] += 0.01;
        }
}

static void cells_are_what_is_nearest(void **state)
{
    static struct scene scene;
    static double area[MOST];
    struct oct_cone_place *places;
    double sum = 0, sum2 = 0, n = 0;
    scene.n = 0;
    scene.is_masked = false;
    add_lattice(&scene, 0.25, 0, 0, 0);
    const struct oct_cone_count c = count(&scene, 1, &places);
    measure_directly(places, c.n, area);
    for (uint32_t i = 0; i < c.n; i++) {
        double nearest = INFINITY;
        for (uint32_t k = 0; k < c.n; k++)
            if (k != i)
                nearest =
                    fmin(nearest, hypot(places[k].y - places[i].y, places[k].x - places[i].x));
        assert_true(fabs(places[i].nearest - nearest) < 1e-9);
        if (isnan(places[i].area)) { /* only at the border */
            assert_true(places[i].y < 2 * S || places[i].y > H - 2 * S || places[i].x < 2 * S ||
                        places[i].x > W - 2 * S);
            continue;
        }
        assert_true(fabs(places[i].area / area[i] - 1) < 0.02);
        sum += area[i];
        sum2 += area[i] * area[i];
        n++;
    }
    const double sd = sqrt((sum2 - sum * sum / n) / (n - 1));
    assert_true(n == c.n_whole && n > 80);
    assert_true(fabs(c.per_px2 * sum / n - 1) < 2e-3);
    assert_true(fabs(c.per_px2_se / c.per_px2 * sum / sqrt(n) / sd - 1) < 0.01);
    assert_true(fabs(2 * c.spacing_se / c.spacing / (c.per_px2_se / c.per_px2) - 1) < 1e-9);
    free(places);
}

/* Cones beside the border melt into their mirror image and are not found. The cells that they would
 * cut are not whole. */
static void cones_that_the_border_hides_bias_nothing(void **state)
{
    static struct scene scene;
    struct oct_cone_place *places;
    scene.n = 0;
    scene.is_masked = false;
    add_lattice(&scene, 0, 0, 0, 0);
    for (size_t k = 0; k < scene.n; k++) {
        scene.at[k][1] += 2;
        if (scene.at[k][1] < 3)
            scene.height[k] = -1;
    }
    const struct oct_cone_count c = count(&scene, 1, &places);
    assert_true(c.n_whole > 100 && fabs(c.spacing / S - 1) < 1e-5);
    free(places);
}

/* Neither a mask nor a gap changes the density of the rest. */
static void masks_and_gaps_take_no_part(void **state)
{
    static struct scene scene;
    const double exact = 1 / (S * S * sqrt(0.75));
    for (int which = 0; which < 3; which++) {
        struct oct_cone_place *places;
        scene.n = 0;
        scene.is_masked = which < 2;
        add_lattice(&scene, 0, 60, 70, which == 2 ? 25 : 0);
        for (int i = 0; i < H * W; i++) /* a band, or specks as large as a cone */
            scene.valid[i] = which == 0 ? !(i / W >= 50 && i / W < 63)
                                        : hypot((i / W) % 60 - 30.0, (i % W) % 75 - 40.0) > 4;
        const struct oct_cone_count c = count(&scene, 1, &places);
        assert_true(c.n_whole > 60);
        assert_true(fabs(c.per_px2 / exact - 1) < (which == 2 ? 0.03 : 1e-4));
        for (uint32_t i = 0; i < c.n && scene.is_masked; i++)
            assert_true(scene.valid[lrint(places[i].y) * W + lrint(places[i].x)]);
        free(places);
    }
}

/* ---- mosaics ---- */

struct score {
    double missed, made_up, error, ring_error; /* shares; of the spacing */
};

/* Of cones that are further than a spacing from the border. */
static struct score judge(const struct oct_cone_mosaic *m)
{
    struct oct_mosaic_truth truth;
    struct oct_picture p = oct_mosaic_make_known(m, false, &truth);
    struct oct_cones *cones;
    struct oct_cones_result r;
    const struct oct_cones_setup setup = {.height = m->height, .width = m->width};
    const double s = m->spacing_x;
    double n_there = 0, n_found = 0, n_right = 0;
    assert_int_equal(oct_cones_create(&cones, &setup, NULL), OCT_OK);
    assert_int_equal(oct_cones_find(cones, &p, &r, NULL), OCT_OK);
    assert_true(r.found);
    struct oct_cone_place *places = oct_cones_take_places(cones);
    assert_null(oct_cones_take_places(cones));
    for (size_t k = 0; k < truth.n; k++) {
        const double y = truth.at[k][0], x = truth.at[k][1];
        bool is_found = false;
        if (fmin(fmin(y, m->height - 1 - y), fmin(x, m->width - 1 - x)) < s)
            continue;
        for (uint32_t i = 0; i < r.count.n && !is_found; i++)
            is_found = hypot(places[i].y - y, places[i].x - x) < 0.3 * s;
        n_there++;
        n_right += is_found;
    }
    for (uint32_t i = 0; i < r.count.n; i++)
        n_found += fmin(fmin(places[i].y, m->height - 1 - places[i].y),
                        fmin(places[i].x, m->width - 1 - places[i].x)) >= s;
    const double lattice = oct_cones_per_area(s) * (double)m->height * m->width;
    print_message("# %4.1f px: %.0f cones, %.2f %% missed, spacing %+.2f %%, ring %+.2f %%; drawn "
                  "%+.2f %%\n",
                  s, n_there, 100 * (1 - n_right / n_there), 100 * (r.spacing_px / s - 1),
                  100 * (r.ring_spacing_px / s - 1), 100 * ((double)truth.n / lattice - 1));
    free(places);
    free(truth.at);
    oct_cones_destroy(cones);
    oct_picture_finish(&p);
    return (struct score){1 - n_right / n_there, n_found / n_there - n_right / n_there,
                          r.spacing_px / s - 1, r.ring_spacing_px / s - 1};
}

/* Hard ones: uneven places, brightness and light, blur near the limit of resolution, noise, missing
 * cones. The spacing that is counted is nearer to the truth than the ring's. */
static void counted_cones_are_those_that_were_drawn(void **state)
{
    static const struct oct_cone_mosaic plain = {
        .jitter = 0.08, .brightness = 0.3, .noise = 0.03, .shade = 0.7, .blob = 0.22};
    double error = 0, bias = 0, ring = 0, missed = 0, made_up = 0;
    enum { N = 14 };
    for (unsigned i = 0; i < N; i++) {
        struct oct_cone_mosaic m = plain;
        m.spacing_x = m.spacing_y = 4.5 * pow(4.4, i / (double)N);
        m.width = (uint32_t)(m.spacing_x * 22);
        m.height = (uint32_t)(m.spacing_x * 20);
        m.angle = 0.1 * i;
        m.seed = 30 + i;
        m.jitter = i % 7 == 1 ? 0.12 : m.jitter;
        m.brightness = i % 7 == 2 ? 0.5 : m.brightness;
        m.blob = i % 7 == 3 ? 0.27 : i % 7 == 4 ? 0.17 : m.blob;
        m.noise = i % 7 == 5 ? 0.1 : m.noise;
        m.missing = i % 7 == 6 ? 0.04 : 0;
        const struct score score = judge(&m);
        const double whole = sqrt(1 - m.missing); /* of the spacing, of fewer cones */
        assert_true(score.missed < 0.03 && score.made_up < 0.03);
        error += fabs((1 + score.error) * whole - 1) / N;
        bias += ((1 + score.error) * whole - 1) / N;
        ring += fabs((1 + score.ring_error) * whole - 1) / N;
        missed += score.missed / N;
        made_up += score.made_up / N;
    }
    print_message("# mean error of the spacing %.2f %%, bias %+.2f %%, of the ring %.2f %%; missed "
                  "%.2f %%, made up %.2f %%\n",
                  100 * error, 100 * bias, 100 * ring, 100 * missed, 100 * made_up);
    assert_true(error < 0.003 && error < ring / 2 && fabs(bias) < 0.001);
    assert_true(missed < 0.008 && made_up < 0.008);
}

/* Tops of neighbours merge with the usual detail, unless noise is in the way. */
static void near_the_limit_of_resolution_cones_are_counted(void **state)
{
    double error = 0, missed = 0;
    enum { N = 12 };
    for (unsigned i = 0; i < N; i++) {
        const double s = 6 + i;
        const struct oct_cone_mosaic m = {.height = (uint32_t)(18 * s),
                                          .width = (uint32_t)(20 * s),
                                          .spacing_y = s,
                                          .spacing_x = s,
                                          .angle = 0.1 * i,
                                          .jitter = 0.1,
                                          .brightness = 0.45,
                                          .blob = 0.28,
                                          .noise = i % 2 ? 0.02 : 0.06,
                                          .seed = 90 + i};
        const struct score score = judge(&m);
        error += fabs(score.error) / N;
        missed += score.missed / N;
    }
    print_message("# mean error of the spacing %.2f %%, missed %.2f %%\n", 100 * error,
                  100 * missed);
    assert_true(error < 0.005 && missed < 0.015);
}

/* Noise of nearly half the mean: the ring needs a larger sigma, and so does the count. */
static void in_noise_cones_are_counted(void **state)
{
    double error = 0;
    for (unsigned i = 0; i < 5; i++) {
        const double s = 7 + 2 * i;
        const struct oct_cone_mosaic m = {.height = (uint32_t)(20 * s),
                                          .width = (uint32_t)(24 * s),
                                          .spacing_y = s,
                                          .spacing_x = s,
                                          .jitter = 0.05,
                                          .brightness = 0.3,
                                          .noise = 0.45,
                                          .seed = 60 + i};
        error += fabs(judge(&m).error) / 5;
    }
    print_message("# mean error of the spacing %.2f %%\n", 100 * error);
    assert_true(error < 0.002);
}

static void where_the_density_changes_all_are_found(void **state)
{
    struct oct_cone_mosaic m = {.height = 260,
                                .width = 260,
                                .spacing_y = 9,
                                .spacing_x = 9,
                                .jitter = 0.07,
                                .brightness = 0.3,
                                .noise = 0.03,
                                .bend = 0.25,
                                .seed = 5};
    const struct score score = judge(&m);
    assert_true(score.missed < 0.01 && score.made_up < 0.01);
}

/* A picture of cones with a corner that is too dark to see any: masked, and not. */
static void a_vessel_changes_little(void **state)
{
    struct oct_cone_mosaic m = {.height = 200,
                                .width = 220,
                                .spacing_y = 9,
                                .spacing_x = 9,
                                .jitter = 0.07,
                                .brightness = 0.3,
                                .noise = 0.02,
                                .seed = 8};
    for (int is_masked = 0; is_masked < 2; is_masked++) {
        struct oct_picture p = oct_mosaic_make(&m, true);
        const struct oct_cones_setup setup = {.height = m.height, .width = m.width, .masked = true};
        struct oct_cones *cones;
        struct oct_cones_result r;
        for (uint32_t i = 0; i < m.height * m.width; i++) {
            const double far = fabs((double)(i % m.width) - 60 - 0.3 * (double)(i / m.width));
            p.pixels[i] *= (float)(1 - 0.8 * exp(-far * far / 200));
            p.valid[i] = !is_masked || far > 12;
        }
        assert_int_equal(oct_cones_create(&cones, &setup, NULL), OCT_OK);
        assert_int_equal(oct_cones_find(cones, &p, &r, NULL), OCT_OK);
        print_message("# %s: %.3f px, %u of %u cells whole\n", is_masked ? "masked" : "seen",
                      r.spacing_px, r.count.n_whole, r.count.n);
        assert_true(r.found && fabs(r.spacing_px / 9 - 1) < 0.006);
        oct_cones_destroy(cones);
        oct_picture_finish(&p);
    }
}

static void without_a_ring_nothing_is_counted(void **state)
{
    struct oct_picture p = oct_mosaic_noise(120, 140, 3);
    const struct oct_cones_setup setup = {.height = 120, .width = 140};
    struct oct_cones *cones;
    struct oct_cones_result r;
    assert_int_equal(oct_cones_create(&cones, &setup, NULL), OCT_OK);
    assert_int_equal(oct_cones_find(cones, &p, &r, NULL), OCT_OK);
    assert_true(!r.found && r.count.n == 0 && isnan(r.spacing_px) && isnan(r.count.per_px2) &&
                isnan(r.ring_spacing_px));
    assert_null(oct_cones_take_places(cones));
    assert_false(oct_cones_differ(&r));
    oct_cones_destroy(cones);
    oct_picture_finish(&p);
}

static void spacings_that_differ_are_told(void **state)
{
    struct oct_cones_result r = {.found = true, .spacing_px = 9.6, .ring_spacing_px = 10};
    assert_false(oct_cones_differ(&r));
    r.spacing_px = 8.9;
    assert_true(oct_cones_differ(&r));
    r.spacing_px = 11.1;
    assert_true(oct_cones_differ(&r));
}

/* ---- tiles ---- */

/* Of tiles that overlap each cone is one tile's, whoever computed it. */
static void a_cone_is_one_tiles(void **state)
{
    struct oct_cone_mosaic m = {.height = 150,
                                .width = 210,
                                .spacing_y = 8,
                                .spacing_x = 8,
                                .jitter = 0.06,
                                .angle = 0.2,
                                .seed = 2};
    struct oct_picture p = oct_mosaic_make(&m, false);
    struct oct_workers *workers;
    struct oct_cones_result r[2][12];
    struct oct_cones_map_places places[2][12];
    struct oct_error why, err = {.text = ""};
    struct oct_cone_place all[1000];
    uint32_t n = 0;
    assert_int_equal(oct_workers_create(&workers, 2, &err), OCT_OK);
    for (int pool = 0; pool < 2; pool++) {
        const struct oct_cones_map_setup setup = {.finder = {.height = 150, .width = 210},
                                                  .tile = 90,
                                                  .step = 40,
                                                  .workers = pool ? workers : NULL};
        struct oct_cones_map *map;
        assert_int_equal(oct_cones_map_create(&map, &setup, &err), OCT_OK);
        assert_int_equal(oct_cones_map_run(map, &p, 1, r[pool], places[pool], &why, &err), OCT_OK);
        oct_cones_map_destroy(map);
    }
    for (int i = 0; i < 8; i++) { /* 2 x 4 tiles, the last down to row 130 */
        assert_int_equal(places[0][i].n, places[1][i].n);
        assert_memory_equal(places[0][i].place, places[1][i].place,
                            places[0][i].n * sizeof(struct oct_cone_place));
        assert_true(places[0][i].n < r[0][i].count.n && r[0][i].count.n == r[1][i].count.n);
        memcpy(all + n, places[0][i].place, places[0][i].n * sizeof(*all));
        n += places[0][i].n;
        free(places[0][i].place);
        free(places[1][i].place);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_true(hypot(all[i].y - all[k].y, all[i].x - all[k].x) > 3);
    assert_true(fabs(n / (oct_cones_per_area(8) * 130 * 210) - 1) < 0.05);
    oct_workers_destroy(workers);
    oct_picture_finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_top_has_its_place),
        cmocka_unit_test(low_and_near_tops_are_no_cones),
        cmocka_unit_test(a_perfect_lattice_is_measured_exactly),
        cmocka_unit_test(cells_are_what_is_nearest),
        cmocka_unit_test(cones_that_the_border_hides_bias_nothing),
        cmocka_unit_test(masks_and_gaps_take_no_part),
        cmocka_unit_test(counted_cones_are_those_that_were_drawn),
        cmocka_unit_test(near_the_limit_of_resolution_cones_are_counted),
        cmocka_unit_test(in_noise_cones_are_counted),
        cmocka_unit_test(where_the_density_changes_all_are_found),
        cmocka_unit_test(a_vessel_changes_little),
        cmocka_unit_test(without_a_ring_nothing_is_counted),
        cmocka_unit_test(spacings_that_differ_are_told),
        cmocka_unit_test(a_cone_is_one_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
