/* Recordings as films: when each row was taken, and what an A-line becomes in en face pictures. */
#include "analysis/enface/enface.h"
#include "formats/results.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { V = 20, M = 24, D = 30 };

#define PERIOD_NS UINT64_C(2500007)
#define BEGIN_NS UINT64_C(1790000000000000123) /* above 2^53 */

struct recording {
    uint64_t time_ns[V];
    uint8_t valid[V], bscans[V][M][D];
    float f32[V][M][D];
    const char *config;
    bool is_f32, without_rows;
};

static void fill(struct recording *r, uint64_t begin_ns)
{
    *r = (struct recording){.config = "[scan]\nline_rate_hz = 80000\n"};
    for (unsigned v = 0; v < V; v++) {
        r->time_ns[v] = begin_ns + v * PERIOD_NS + v * v * 11;
        r->valid[v] = 1;
        for (unsigned i = 0; i < M * D; i++) {
            r->bscans[v][i / D][i % D] = (uint8_t)((v * M * D + i) * 2654435761u >> 24);
            r->f32[v][i / D][i % D] = (float)r->bscans[v][i / D][i % D] / 7;
        }
    }
}

static void lose_row(struct recording *r, unsigned v)
{
    r->valid[v] = 0;
    r->time_ns[v] = 0;
}

static void save(const struct recording *r, const char *path)
{
    const uint64_t dims[] = {V, M, D};
    struct oct_results *h5;
    must(oct_results_create(&h5, path, "result", true, &failure));
    oct_results_write(h5,
                      oct_results_dataset(h5, "/bscans",
                                          r->is_f32 ? OCT_RESULTS_F32 : OCT_RESULTS_U8, 3, dims,
                                          NULL),
                      r->is_f32 ? (const void *)r->f32 : (const void *)r->bscans);
    if (!r->without_rows) {
        double lo[V], hi[V];
        for (unsigned v = 0; v < V; v++) {
            lo[v] = 10;
            hi[v] = 70;
        }
        oct_results_write(
            h5, oct_results_dataset(h5, "/frames/time_ns", OCT_RESULTS_U64, 1, dims, NULL),
            r->time_ns);
        oct_results_write(
            h5, oct_results_dataset(h5, "/frames/valid", OCT_RESULTS_U8, 1, dims, NULL), r->valid);
        oct_results_write(h5, oct_results_dataset(h5, "/frames/lo", OCT_RESULTS_F64, 1, dims, NULL),
                          lo);
        oct_results_write(h5, oct_results_dataset(h5, "/frames/hi", OCT_RESULTS_F64, 1, dims, NULL),
                          hi);
    }
    if (r->config)
        oct_results_text(h5, NULL, "config", r->config);
    must(oct_results_publish(h5, &failure));
}

static const struct oct_pictures_options en_face = {.what = OCT_PICTURES_EN_FACE,
                                                    .projection = OCT_PICTURES_OVER_ALL};

static struct oct_pictures *open_two(const char *first, const char *second,
                                     const struct oct_pictures_options *options)
{
    const char *paths[] = {first, second};
    struct oct_pictures *pictures;
    must(oct_pictures_open(&pictures, paths, 2, options, &failure));
    return pictures;
}

static void get_times(struct oct_pictures *pictures, uint64_t frame,
                      struct oct_pictures_times *times)
{
    must(oct_pictures_times(pictures, frame, times, &failure));
}

/* ---- times ---- */

TEST(rows_of_en_face_have_the_times_of_their_bscans)
{
    static struct recording a, b;
    struct oct_pictures_times times = {0};
    fill(&a, BEGIN_NS);
    fill(&b, BEGIN_NS + UINT64_C(3600000000000)); /* an hour later */
    save(&a, "a.h5");
    save(&b, "b.h5");
    struct oct_pictures *pictures = open_two("a.h5", "b.h5", &en_face);
    for (unsigned frame = 2; frame-- > 0;) {
        const struct recording *r = frame ? &b : &a;
        get_times(pictures, frame, &times);
        assert_non_null(times.time_s);
        for (unsigned v = 0; v < V; v++)
            assert_true(times.time_s[v] == (double)(r->time_ns[v] - BEGIN_NS) / 1e9);
        assert_true(times.start_s == times.time_s[0]);
    }
    assert_true(isnan(oct_pictures_fps(pictures)));
    oct_pictures_close(pictures);
    struct oct_pictures_options given = en_face;
    given.fps = 4;
    pictures = open_two("a.h5", "b.h5", &given);
    get_times(pictures, 1, &times);
    assert_true(!times.time_s && times.start_s == 0.25 && oct_pictures_fps(pictures) == 4);
    oct_pictures_close(pictures);
    oct_pictures_times_finish(&times);
}

TEST(lost_rows_lie_between_their_neighbours)
{
    static struct recording r;
    struct oct_pictures_times times = {0};
    fill(&r, BEGIN_NS);
    for (unsigned v = 0; v < V; v++)
        r.time_ns[v] = BEGIN_NS + v * PERIOD_NS;
    static const unsigned lost[] = {0, 1, 7, 8, 9, V - 1};
    for (unsigned i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
        lose_row(&r, lost[i]);
    save(&r, "lost.h5");
    struct oct_pictures *pictures = film_open("lost.h5", &en_face);
    get_times(pictures, 0, &times);
    for (unsigned v = 0; v < V; v++)
        assert_true(fabs(times.time_s[v] - (double)(v * PERIOD_NS) / 1e9) < 1e-12);
    oct_pictures_close(pictures);
    for (unsigned v = 0; v < V; v++)
        if (v != 3)
            lose_row(&r, v);
    save(&r, "lost.h5"); /* one is left: the configuration says how far the others are */
    pictures = film_open("lost.h5", &en_face);
    get_times(pictures, 0, &times);
    for (unsigned v = 0; v < V; v++)
        assert_true(fabs(times.time_s[v] - v * M / 80000.0) < 1e-9);
    oct_pictures_close(pictures);
    oct_pictures_times_finish(&times);
}

TEST(lines_of_bscans_follow_the_line_rate)
{
    static struct recording r;
    struct oct_pictures_times times = {0};
    struct oct_pictures_options part = {.frames = {1, V, 3}};
    fill(&r, BEGIN_NS);
    save(&r, "lines.h5");
    struct oct_pictures *pictures = film_open("lines.h5", NULL);
    for (unsigned v = 0; v < V; v++) {
        const double start = (double)(r.time_ns[v] - BEGIN_NS) / 1e9;
        get_times(pictures, v, &times);
        assert_true(times.start_s == start);
        for (unsigned j = 0; j < M; j++)
            assert_true(times.time_s[j] == start + j / 80000.0);
    }
    oct_pictures_close(pictures);
    pictures = film_open("lines.h5", &part); /* its own first row is 0 */
    assert_int_equal(oct_pictures_count(pictures), (V - 1 + 2) / 3);
    for (unsigned i = 0; i < oct_pictures_count(pictures); i++) {
        get_times(pictures, i, &times);
        assert_true(times.start_s == (double)(r.time_ns[1 + 3 * i] - r.time_ns[1]) / 1e9);
        assert_true(times.time_s[2] == times.start_s + 2 / 80000.0);
    }
    oct_pictures_close(pictures);
    part.fps = 12;
    pictures = film_open("lines.h5", &part); /* of all frames */
    get_times(pictures, 2, &times);
    assert_true(!times.time_s && times.start_s == 0.5 && oct_pictures_fps(pictures) == 4);
    oct_pictures_close(pictures);
    r.config = NULL;
    save(&r, "lines.h5");
    pictures = film_open("lines.h5", NULL);
    get_times(pictures, 1, &times);
    assert_true(!times.time_s && times.start_s == (double)(r.time_ns[1] - BEGIN_NS) / 1e9);
    oct_pictures_close(pictures);
    oct_pictures_times_finish(&times);
}

static void must_be_unknown(struct oct_pictures *pictures)
{
    struct oct_pictures_times times = {0};
    for (uint64_t i = 0; i < oct_pictures_count(pictures); i++) {
        get_times(pictures, i, &times);
        assert_true(!times.time_s && isnan(times.start_s));
    }
    oct_pictures_times_finish(&times);
    oct_pictures_close(pictures);
}

TEST(clocks_that_cannot_be_are_unknown)
{
    static struct recording a, b;
    fill(&a, BEGIN_NS);
    fill(&b, BEGIN_NS + 1); /* begins before the first has ended */
    save(&a, "a.h5");
    save(&b, "b.h5");
    must_be_unknown(open_two("a.h5", "b.h5", &en_face));
    a.time_ns[9] = a.time_ns[7];
    save(&a, "a.h5");
    must_be_unknown(film_open("a.h5", NULL));
    fill(&a, BEGIN_NS);
    a.time_ns[V - 1] = UINT64_MAX;
    save(&a, "a.h5");
    must_be_unknown(film_open("a.h5", &en_face));
    memset(a.time_ns, 0, sizeof(a.time_ns));
    save(&a, "a.h5");
    must_be_unknown(film_open("a.h5", NULL));
    a.without_rows = true;
    save(&a, "a.h5");
    must_be_unknown(film_open("a.h5", &en_face));
}

/* ---- projections ---- */

static double reference(const struct recording *r, unsigned v, unsigned j,
                        enum oct_pictures_projection projection, unsigned first, unsigned last)
{
    double sum = 0, most = -INFINITY;
    unsigned n = 0;
    for (unsigned d = first; d < last; d++) {
        const double x = r->is_f32 ? (double)r->f32[v][j][d] : 10 + r->bscans[v][j][d] * 60.0 / 255;
        if (!isfinite(x))
            continue;
        sum += x;
        most = x > most ? x : most;
        n++;
    }
    return n == 0 ? (double)NAN : projection == OCT_PICTURES_HIGHEST ? most : sum / n;
}

static void check_projection(const struct recording *r, const struct oct_pictures_options *options,
                             unsigned first, unsigned last)
{
    struct oct_picture picture;
    struct oct_pictures *pictures = film_open("p.h5", options);
    film_read(pictures, 0, &picture, NULL);
    assert_true(picture.height == V && picture.width == M);
    for (unsigned i = 0; i < V * M; i++) {
        const double want = reference(r, i / M, i % M, options->projection, first, last);
        const bool valid = r->valid[i / M] && !isnan(want);
        assert_int_equal(!picture.valid || picture.valid[i], valid);
        if (valid && fabs((double)picture.pixels[i] - want) > 1e-5)
            fail_msg("pixel %u: %g, not %g", i, (double)picture.pixels[i], want);
    }
    oct_picture_finish(&picture);
    oct_pictures_close(pictures);
}

TEST(projections_are_those_of_the_analysis)
{
    static struct recording r;
    struct oct_pictures_options o = {.what = OCT_PICTURES_EN_FACE};
    for (int is_f32 = 0; is_f32 < 2; is_f32++) {
        fill(&r, BEGIN_NS);
        r.is_f32 = is_f32;
        r.f32[4][5][6] = NAN; /* of floats one pixel, and one A-line */
        for (unsigned d = 0; is_f32 && d < D; d++)
            r.f32[2][3][d] = NAN;
        lose_row(&r, 9);
        save(&r, "p.h5");
        o.projection = OCT_PICTURES_OVER_ALL;
        check_projection(&r, &o, 0, D);
        o.projection = OCT_PICTURES_HIGHEST;
        check_projection(&r, &o, 0, D);
        o.projection = OCT_PICTURES_OVER_SHARES; /* floor(0.25 * 30), ceil(0.52 * 30) */
        o.slab = (struct oct_depths){{0.25, OCT_DEPTH_SHARE}, {0.52, OCT_DEPTH_SHARE}};
        check_projection(&r, &o, 7, 16);
        o.slab = (struct oct_depths){{0.999, OCT_DEPTH_SHARE}, {1, OCT_DEPTH_SHARE}};
        check_projection(&r, &o, D - 1, D);
    }
}

/* The same values as octd's own en face of the same B-scans. */
TEST(the_live_analysis_gives_the_same)
{
    static struct recording r;
    const struct oct_suite_recipe recipe = {
        .n_lines = M, .depth = D, .n_bscans = V, .type = OCT_SAMPLE_U8};
    const struct oct_enface_settings settings = {OCT_PROJECTION_SLAB, 0.31, 0.74};
    const struct oct_pictures_options options = {
        .what = OCT_PICTURES_EN_FACE,
        .projection = OCT_PICTURES_OVER_SHARES,
        .slab = {{0.31, OCT_DEPTH_SHARE}, {0.74, OCT_DEPTH_SHARE}}};
    struct oct_suite_bscan bscan;
    struct oct_suite_result result;
    struct oct_image_form form;
    struct oct_analysis *analysis;
    struct oct_picture picture;
    fill(&r, BEGIN_NS);
    save(&r, "live.h5");
    oct_suite_bscan_open(&bscan, &recipe, OCT_STAGE_PICTURES);
    const struct oct_analysis_setup setup = oct_suite_setup(&bscan, &recipe, &settings);
    must(oct_enface_cpu.create(&analysis, &setup, &form, &failure));
    oct_suite_result_open(&result, &form);
    for (unsigned v = 0; v < V; v++) {
        memcpy(bscan.memory, r.bscans[v], M * D);
        bscan.frame.lo = 10;
        bscan.frame.hi = 70;
        oct_suite_bscan_number(&bscan, v, V);
        must(oct_enface_cpu.run.push(analysis, &bscan.frame, &failure));
    }
    assert_int_equal(oct_suite_take(&oct_enface_cpu, analysis, &bscan.frame.info, &result), OCT_OK);
    struct oct_pictures *pictures = film_open("live.h5", &options);
    film_read(pictures, 0, &picture, NULL);
    for (unsigned i = 0; i < V * M; i++)
        assert_true(fabsf(picture.pixels[i] - ((const float *)result.memory)[i]) <
                    64 * 4 * FLT_EPSILON);
    oct_picture_finish(&picture);
    oct_pictures_close(pictures);
    oct_enface_cpu.run.destroy(analysis);
    oct_suite_result_close(&result);
    oct_suite_bscan_close(&bscan);
}

TEST(slabs_outside_are_refused)
{
    static struct recording r;
    static const double shares[][2] = {{-0.1, 0.5}, {0.5, 0.5}, {0.6, 0.5}, {0.5, 1.01}};
    struct oct_pictures_options o = {.what = OCT_PICTURES_EN_FACE,
                                     .projection = OCT_PICTURES_OVER_SHARES};
    fill(&r, BEGIN_NS);
    save(&r, "slab.h5");
    for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        o.slab =
            (struct oct_depths){{shares[i][0], OCT_DEPTH_SHARE}, {shares[i][1], OCT_DEPTH_SHARE}};
        film_refused("slab.h5", &o, OCT_E_ARG, "shares of the depth go from 0 to 1");
    }
    o.slab.first.at = (double)NAN;
    film_refused("slab.h5", &o, OCT_E_ARG, "shares of the depth");
    const struct oct_pictures_options depths = {.what = OCT_PICTURES_EN_FACE,
                                                .slab.last.at = D + 1};
    film_refused("slab.h5", &depths, OCT_E_ARG, "no slab 0:31: its depth is 0:30");
}
