/* Motion within frames: simulated motion is found line by line, the reference's own motion is taken
 * out, frames that cannot be registered are left out with the reason. */
#include "analysis/align/reference.h"
#include "analysis/align/sequence.h"
#include "test/rig/engine_scene.h"
#include "test/rig/tap.h"
#include "test/rig/waves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { H = 160, W = 160, MOST = 24 };

/* Frames of a scene that moves while it is scanned. */
struct rig {
    struct oct_waves waves;
    uint64_t random;
    double dy[MOST][H], dx[MOST][H]; /* truth: what registration must find */
    double noise;
    int blank; /* a frame without contrast; -1: none */
    unsigned n_read;
};

/* Drift, a slow oscillation and a shift of the whole frame. */
static void move(struct rig *r, unsigned frame, double amount)
{
    for (unsigned axis = 0; axis < 2; axis++) {
        double *shift = axis ? r->dx[frame] : r->dy[frame];
        double offset = 6 * (2 * oct_random_uniform(&r->random) - 1);
        double slope = 3 * (2 * oct_random_uniform(&r->random) - 1);
        double swing = 1.0 * oct_random_uniform(&r->random);
        double phase = 6.283 * oct_random_uniform(&r->random);
        for (unsigned y = 0; y < H; y++)
            shift[y] = amount * (offset + slope * ((double)y / H - 0.5) +
                                 swing * sin(6.283 * y / 110 + phase));
    }
}

static void open_rig(struct rig *r, double noise)
{
    *r = (struct rig){.random = 5, .noise = noise, .blank = -1};
    oct_waves_init(&r->waves, 3, 8, 50);
}

static enum oct_err read_frame(void *context, uint64_t frame, struct oct_picture *picture,
                               struct oct_error *err)
{
    struct rig *r = context;
    uint64_t random = 1000 + frame; /* the same frame each time */
    assert_int_equal(oct_picture_init(picture, H, W, false, err), OCT_OK);
    oct_waves_draw(&r->waves, r->dy[frame], r->dx[frame], picture);
    oct_waves_add_noise(picture, r->noise, &random);
    for (size_t i = 0; (int)frame == r->blank && i < (size_t)H * W; i++)
        picture->pixels[i] = 3;
    r->n_read++;
    return OCT_OK;
}

static struct oct_sequence_setup usual(void)
{
    return (struct oct_sequence_setup){
        .height = H,
        .width = W,
        .model = OCT_SEQUENCE_STRIPS,
        .max_dy = 32,
        .max_dx = 32,
        .rows = 16,
        .step = 4,
        .search = 8,
        .far = 24,
        .min_score = OCT_STRIP_MIN_SCORE,
        .n_passes = 1,
        .backend = "cpu",
    };
}

static void run(struct oct_sequence *q, struct rig *r, const struct oct_sequence_setup *setup,
                uint64_t n)
{
    struct oct_error err = {.text = ""};
    const struct oct_sequence_source source = {.context = r, .n_frames = n, .read = read_frame};
    if (oct_sequence_register(q, setup, &source, &err))
        fail_msg("%s", err.text);
}

/* RMS a coordinate and line; `free_mean`: the truth is known but for one shift of everything. */
static double rms_error(struct oct_sequence *q, const struct rig *r, uint64_t n, bool free_mean)
{
    double dy[H], dx[H], sum[2] = {0}, square = 0, lines = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (!oct_sequence_lines(q, i, dy, dx))
            continue;
        for (unsigned y = 0; y < H; y++) {
            double e_y = dy[y] - r->dy[i][y], e_x = dx[y] - r->dx[i][y];
            square += e_y * e_y + e_x * e_x;
            sum[0] += e_y;
            sum[1] += e_x;
            lines++;
        }
    }
    double mean = free_mean ? (sum[0] * sum[0] + sum[1] * sum[1]) / lines : 0;
    return sqrt((square - mean) / (2 * lines));
}

static void motion_within_frames_is_found_line_by_line(void **state)
{
    static struct rig r;
    struct oct_sequence q;
    struct oct_sequence_setup setup = usual();
    open_rig(&r, 0.5);
    struct oct_picture still = oct_waves_picture(&r.waves, H, W, 0, 0, 0, &r.random);
    for (unsigned i = 0; i < 8; i++)
        move(&r, i, 1);
    setup.reference = &still;
    run(&q, &r, &setup, 8);
    double error = rms_error(&q, &r, 8, false);
    print_message("still reference: %.3f px RMS a line\n", error);
    assert_int_equal(q.n_used, 8);
    assert_true(error <= 0.25);
    oct_sequence_finish(&q);
    oct_picture_finish(&still);
}

static void the_motion_of_the_reference_itself_is_taken_out(void **state)
{
    static struct rig r;
    struct oct_sequence q;
    struct oct_sequence_setup setup = usual();
    open_rig(&r, 0.5);
    for (unsigned i = 0; i < 20; i++)
        move(&r, i, 1);
    setup.has_number = true;
    setup.number = 4;
    run(&q, &r, &setup, 20);
    double once = rms_error(&q, &r, 20, true);
    oct_sequence_finish(&q);
    setup.n_passes = 2;
    run(&q, &r, &setup, 20);
    double twice = rms_error(&q, &r, 20, true);
    print_message("moving reference: %.3f px, in two passes %.3f px\n", once, twice);
    assert_int_equal(q.n_used, 20);
    assert_true(twice <= 0.40);
    oct_sequence_finish(&q);
}

static void frames_that_do_not_register_are_left_out_with_the_reason(void **state)
{
    static struct rig r;
    struct oct_sequence q;
    struct oct_sequence_setup setup = usual();
    struct oct_error err = {.text = ""};
    uint8_t skip[6] = {0, 0, 1, 0, 0, 0};
    open_rig(&r, 0);
    for (unsigned i = 0; i < 6; i++)
        move(&r, i, 1);
    for (unsigned y = 0; y < H; y++)
        r.dy[5][y] = 5000 + 3000.0 * y; /* another place at every line */
    r.blank = 3;
    setup.skip = skip;
    setup.has_number = true;
    run(&q, &r, &setup, 6);
    assert_int_equal(q.n_used, 3);
    assert_int_equal(q.frames[2].fate, OCT_FRAME_SKIPPED);
    assert_int_equal(q.frames[3].fate, OCT_FRAME_NO_CONTRAST);
    assert_int_equal(q.frames[5].fate, OCT_FRAME_FEW_STRIPS);
    /* What is averaged covers the frames that are used, and what none covers is NaN. */
    assert_int_equal(oct_sequence_render(&q, NULL, NULL, &err), OCT_OK);
    assert_in_range(q.render.height, H, H + 40);
    float *average = calloc((size_t)q.render.height * q.render.width, sizeof(float));
    oct_render_average(&q.render, average, NULL);
    double error = 0, n = 0, n_nan = 0;
    struct oct_picture still = oct_waves_picture(&r.waves, H, W, 0, 0, 0, &r.random);
    (void)still;
    for (size_t i = 0; i < (size_t)q.render.height * q.render.width; i++) {
        n_nan += isnan(average[i]);
        n++;
        error += isnan(average[i]) ? 0 : (double)(average[i] * average[i]);
    }
    assert_true(n_nan > 0 && n_nan < 0.4 * n);
    assert_true(error / n > 0.4);
    free(average);
    oct_picture_finish(&still);
    oct_sequence_finish(&q);
}

/* Strips at the frames' edges lie on the reference by less than half of them: what is there best is
 * the border of what may overlap, some lines beside the truth. */
static void strips_that_hardly_overlap_are_not_found(void **state)
{
    static const double shifts[] = {26, -26, 26.5, -26.5};
    static struct rig r;
    struct oct_sequence q;
    struct oct_sequence_setup setup = usual();
    setup.rows = 48;
    open_rig(&r, 0.1);
    oct_waves_init(&r.waves, 3, 12, 50); /* two lines beside it they are alike */
    struct oct_picture still = oct_waves_picture(&r.waves, H, W, 0, 0, 0, &r.random);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned y = 0; y < H; y++)
            r.dy[i][y] = shifts[i];
    setup.reference = &still;
    run(&q, &r, &setup, 4);
    assert_int_equal(q.n_used, 4);
    for (unsigned i = 0; i < 4; i++)
        for (uint32_t k = 0; k < q.n_strips; k++) {
            const struct oct_strip *strip = &q.strips[i * q.n_strips + k];
            if (strip->ok && fabs((double)strip->dy - shifts[i]) > 1)
                fail_msg("frame %u, strip %u: %.2f, not %g", i, k, (double)strip->dy, shifts[i]);
        }
    assert_true(q.n_strips_dropped > 0 && q.n_strips_dropped < q.n_strips);
    oct_sequence_finish(&q);
    oct_picture_finish(&still);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(motion_within_frames_is_found_line_by_line),
        cmocka_unit_test(the_motion_of_the_reference_itself_is_taken_out),
        cmocka_unit_test(frames_that_do_not_register_are_left_out_with_the_reason),
        cmocka_unit_test(strips_that_hardly_overlap_are_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
