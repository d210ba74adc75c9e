/* The live average (analysis/average/average.h): its numbers against means in double precision, of
 * B-scans of which the shift is known. */
#include "analysis/average/average.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 96, D = 160, V = 64 };
#define N_PX ((size_t)M * D)

static const struct oct_average_settings usual = {
    .bscans = 8, .repeats = 1, .max_shift_px = 16, .min_score = 0};

struct rig {
    struct oct_analysis *analysis;
    struct oct_image_form input, form;
    struct oct_image_frame bscan, result;
    float values[M * D];
    uint64_t n;
};

static struct rig *open_rig(const struct oct_average_settings *settings, bool log,
                            enum oct_sample_type type, uint32_t n_bscans)
{
    struct rig *r = calloc(1, sizeof(*r));
    struct oct_error err = {.text = ""};
    assert_non_null(r);
    r->input = (struct oct_image_form){.name = "bscan",
                                       .quantity =
                                           log ? OCT_QUANTITY_INTENSITY_DB : OCT_QUANTITY_INTENSITY,
                                       .type = type,
                                       .rank = 2,
                                       .dims = {M, D},
                                       .spacing_um = {NAN, NAN},
                                       .axes = {"line", "depth"}};
    const struct oct_analysis_setup setup = {
        .input = &r->input, .n_bscans = n_bscans, .live = true, .settings = settings};
    if (oct_average_cpu.create(&r->analysis, &setup, &r->form, &err))
        fail_msg("%s", err.text);
    r->bscan = (struct oct_image_frame){
        .form = &r->input, .values = r->values, .lo = 0, .hi = log ? 60 : 1e6};
    r->result.pixels = malloc(N_PX * sizeof(float));
    assert_non_null(r->result.pixels);
    return r;
}

static void close_rig(struct rig *r)
{
    oct_average_cpu.run.destroy(r->analysis);
    free(r->result.pixels);
    free(r);
}

/* Noise of its own for each pixel and B-scan, uniform in 0..1. */
static double noise(uint64_t seed, uint64_t i)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u + 1;
    for (int k = 0; k < 3; k++) {
        x ^= x >> 31;
        x *= 0x94d049bb133111ebu;
    }
    return (double)(x >> 11) * 0x1p-53;
}

static double lattice(int64_t line, int64_t depth, uint64_t kind)
{
    return noise(kind + 1000, (uint64_t)(line + 1000) * 4096 + (uint64_t)(depth + 1000));
}

/* dB of a smooth scene at real coordinates: random values 6 px apart, and what lies between. Each
 * kind is another place. */
static double scene(double line, double depth, uint64_t kind)
{
    const double y = line / 6, x = depth / 6;
    const int64_t j = (int64_t)floor(y), d = (int64_t)floor(x);
    const double v = y - floor(y), u = x - floor(x);
    const double s = v * v * (3 - 2 * v), t = u * u * (3 - 2 * u);
    const double here = (1 - t) * lattice(j, d, kind) + t * lattice(j, d + 1, kind);
    const double next = (1 - t) * lattice(j + 1, d, kind) + t * lattice(j + 1, d + 1, kind);
    return 20 + 25 * ((1 - s) * here + s * next);
}

/* Fills with the scene moved by (-dy, -dx): registration then finds (dy, dx). */
static void fill(struct rig *r, double dy, double dx, uint64_t kind, double noise_db, bool log)
{
    for (size_t i = 0; i < N_PX; i++) {
        double db = scene((double)(i / D) + dy, (double)(i % D) + dx, kind) +
                    noise_db * (2 * noise(r->n + 1, i) - 1);
        r->values[i] = (float)(log ? db : pow(10, db / 10));
    }
}

/* Pushes what is there; whether there is a result. */
static bool push(struct rig *r)
{
    struct oct_error err = {.text = ""};
    if (oct_average_cpu.run.push(r->analysis, &r->bscan, &err))
        fail_msg("%s", err.text);
    r->n++;
    return oct_average_cpu.run.take(r->analysis, &r->result, &err) == OCT_OK;
}

static void number(struct rig *r, uint64_t number, uint32_t n_bscans)
{
    r->bscan.info.number = number;
    r->bscan.info.volume = number / n_bscans;
    r->bscan.info.bscan = (uint32_t)(number % n_bscans);
}

static double said(const struct rig *r, enum oct_average_number number)
{
    return r->result.numbers[number];
}

/* The largest difference from what is expected, in dB, over pixels more than `margin` inside. */
static double worst(const struct rig *r, const double *expected, uint32_t margin)
{
    const float *mean = r->result.pixels;
    double most = 0;
    for (uint32_t j = margin; j < M - margin; j++)
        for (uint32_t d = margin; d < D - margin; d++) {
            double difference = fabs((double)mean[j * D + d] - expected[j * D + d]);
            most = difference > most || isnan(difference) ? difference : most;
        }
    return most;
}

/* The same, the root of the mean square. */
static double rms(const struct rig *r, const double *expected, uint32_t margin)
{
    const float *mean = r->result.pixels;
    double sum = 0, n = 0;
    for (uint32_t j = margin; j < M - margin; j++)
        for (uint32_t d = margin; d < D - margin; d++, n++)
            sum += pow((double)mean[j * D + d] - expected[j * D + d], 2);
    return sqrt(sum / n);
}

/* To intensity and back, over all that is kept; what is beyond is cut off, NaN counts as least. */
static void decibels_to_a_thousandth(void **state)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, -400};
    static const double cut_off[] = {-120, 240, -120, -120};
    struct oct_average_settings s = usual;
    s.registration = OCT_AVERAGE_AS_THEY_COME;
    struct rig *r = open_rig(&s, true, OCT_SAMPLE_F32, V);
    const float *mean = r->result.pixels;
    for (size_t i = 0; i < N_PX; i++)
        r->values[i] = i < 4 ? odd[i] : (float)(-119.9 + 359.8 * (double)i / N_PX);
    assert_true(push(r));
    for (size_t i = 0; i < N_PX; i++)
        assert_true(fabs((double)mean[i] - (i < 4 ? cut_off[i] : (double)r->values[i])) < 1e-3);
    close_rig(r);
}

/* domain, and how the expected mean of n kept B-scans (dB) is made. */
static void check_mean(bool log, enum oct_average_domain domain)
{
    struct oct_average_settings s = usual;
    s.registration = OCT_AVERAGE_AS_THEY_COME;
    s.domain = domain;
    struct rig *r = open_rig(&s, log, OCT_SAMPLE_F32, V);
    double(*kept)[M * D] = calloc(20, sizeof(*kept));
    double *expected = calloc(N_PX, sizeof(double));
    for (unsigned k = 0; k < 20; k++) {
        number(r, k, V);
        fill(r, 0, 0, 0, 20, log);
        for (size_t i = 0; i < N_PX; i++)
            kept[k][i] = log ? (double)r->values[i] : 10 * log10((double)r->values[i]);
        assert_true(push(r));
        const unsigned first = k >= 8 ? k - 7 : 0, n = k - first + 1;
        assert_int_equal((int)said(r, OCT_AVERAGE_AVERAGED), n);
        for (size_t i = 0; i < N_PX; i++) {
            double sum = 0;
            for (unsigned m = first; m <= k; m++)
                sum += domain == OCT_AVERAGE_LINEAR ? pow(10, kept[m][i] / 10) : kept[m][i];
            expected[i] = domain == OCT_AVERAGE_LINEAR ? 10 * log10(sum / n) : sum / n;
        }
        for (size_t i = 0; !log && i < N_PX; i++)
            ((float *)r->result.pixels)[i] = 10 * log10f(((float *)r->result.pixels)[i]);
        assert_true(worst(r, expected, 0) < 2e-3);
    }
    free(kept);
    free(expected);
    close_rig(r);
}

static void the_mean_of_the_last_ones_is_of_intensity_or_of_decibels(void **state)
{
    check_mean(true, OCT_AVERAGE_LINEAR);
    check_mean(true, OCT_AVERAGE_DB);
    check_mean(false, OCT_AVERAGE_LINEAR);
    check_mean(false, OCT_AVERAGE_DB);
}

/* A pixel of 200 dB leaves nothing behind when it goes: its place then holds 0 dB. */
static void bright_pixels_leave_nothing_behind(void **state)
{
    struct oct_average_settings s = usual;
    s.registration = OCT_AVERAGE_AS_THEY_COME;
    struct rig *r = open_rig(&s, true, OCT_SAMPLE_F32, 1);
    double *expected = calloc(N_PX, sizeof(double));
    for (unsigned k = 0; k < 200; k++) {
        number(r, k, 1);
        for (size_t i = 0; i < N_PX; i++)
            r->values[i] = k < 100 ? 190 + 10 * (float)noise(k, i) : 0;
        assert_true(push(r));
    }
    assert_true(worst(r, expected, 0) < 1e-3);
    free(expected);
    close_rig(r);
}

/* Each B-scan is moved onto the first; the shift is found and undone. */
static void shifted_bscans_lie_on_top_of_each_other(void **state)
{
    static const double shifts[][2] = {{0, 0},    {3, -5},     {-2.5, 4.25}, {7.75, 0.5},
                                       {-6, 9.5}, {0.25, -11}, {1.5, 2},     {-4.25, -0.75}};
    struct rig *r = open_rig(&usual, true, OCT_SAMPLE_F32, 1);
    double *expected = calloc(N_PX, sizeof(double));
    for (unsigned k = 0; k < 8; k++) {
        number(r, k, 1);
        fill(r, shifts[k][0], shifts[k][1], 0, 0.5, true);
        assert_true(push(r));
        assert_int_equal((int)said(r, OCT_AVERAGE_AVERAGED), k + 1);
        assert_true(fabs(said(r, OCT_AVERAGE_SHIFT_LINES) - shifts[k][0]) < 0.15);
        assert_true(fabs(said(r, OCT_AVERAGE_SHIFT_DEPTH) - shifts[k][1]) < 0.15);
        assert_true(k == 0 ? isnan(said(r, OCT_AVERAGE_SCORE)) : said(r, OCT_AVERAGE_SCORE) > 0.8);
    }
    for (size_t i = 0; i < N_PX; i++)
        expected[i] = scene((double)(i / D), (double)(i % D), 0);
    assert_true(rms(r, expected, 12) < 0.3);
    free(expected);
    close_rig(r);
}

static void a_jump_a_blink_and_a_bad_frame_are_left_out(void **state)
{
    struct rig *r = open_rig(&usual, true, OCT_SAMPLE_F32, 1);
    double *before = calloc(N_PX, sizeof(double));
    for (unsigned k = 0; k < 12; k++) {
        number(r, k, 1);
        fill(r, 0, 0, k == 5 ? 2 : 0, k == 6 ? 0 : 1, true); /* 5: another place */
        for (size_t i = 0; k == 6 && i < N_PX; i++)          /* a blink: noise alone */
            r->values[i] = (float)(5 + 10 * noise(77, i));
        r->bscan.info.missing_lines = k == 7 ? M / 2 : 0;
        assert_true(push(r));
        const bool is_bad = k >= 5 && k <= 7;
        assert_int_equal((int)said(r, OCT_AVERAGE_REJECTED), k < 5 ? 0 : k > 7 ? 3 : k - 4);
        if (k == 5 || k == 6)
            assert_true(said(r, OCT_AVERAGE_SCORE) < 0.3);
        if (is_bad)
            assert_true(worst(r, before, 0) == 0.0);
        for (size_t i = 0; i < N_PX; i++)
            before[i] = (double)((float *)r->result.pixels)[i];
    }
    assert_int_equal((int)said(r, OCT_AVERAGE_AVERAGED), 8);
    assert_int_equal((int)said(r, OCT_AVERAGE_RESETS), 0);
    free(before);
    close_rig(r);
}

/* Of a line scan whose noise leaves scores of a tenth, and whose light falls to the sides. */
static void noise_does_not_hide_a_match(void **state)
{
    struct rig *r = open_rig(&usual, true, OCT_SAMPLE_F32, 1);
    double most = 0;
    for (unsigned k = 0; k < 12; k++) {
        number(r, k, 1);
        fill(r, k % 3, 0, k == 10 ? 2 : 0, 30, true); /* 10: another place */
        for (size_t i = 0; i < N_PX; i++) {
            const double x = (double)(i / D) / M - 0.5;
            r->values[i] -= (float)(30 * x * x);
        }
        assert_true(push(r));
        if (k > 0 && k != 10)
            most = fmax(most, said(r, OCT_AVERAGE_SCORE));
        assert_int_equal((int)said(r, OCT_AVERAGE_REJECTED), k >= 10);
        assert_true(isnan(said(r, OCT_AVERAGE_SHIFT_LINES)) == (k == 10));
    }
    print_message("scores of up to %.2f\n", most);
    assert_true(most < 0.3);
    assert_int_equal((int)said(r, OCT_AVERAGE_RESETS), 0);
    close_rig(r);
}

static void the_window_begins_anew_where_it_should(void **state)
{
    struct rig *r = open_rig(&usual, true, OCT_SAMPLE_F32, V);
    uint64_t k = 0;
    for (; k < 6; k++) {
        number(r, k, V);
        fill(r, 0, 0, 0, 1, true);
        push(r);
    }
    for (; k < 14; k++) { /* eight of another place in a row */
        number(r, k, V);
        fill(r, 0, 0, 2, 1, true);
        push(r);
        assert_int_equal((int)said(r, OCT_AVERAGE_AVERAGED), k == 13 ? 1 : 6);
    }
    assert_int_equal((int)said(r, OCT_AVERAGE_RESETS), 1);
    assert_int_equal((int)said(r, OCT_AVERAGE_REJECTED), 8);
    number(r, V, V); /* the next volume, at the same place: it goes on */
    fill(r, 0, 0, 2, 1, true);
    push(r);
    assert_int_equal((int)said(r, OCT_AVERAGE_AVERAGED), 2);
    number(r, 2 * V, V); /* a flyback to another place */
    fill(r, 0, 0, 0, 1, true);
    push(r);
    assert_int_equal((int)said(r, OCT_AVERAGE_AVERAGED), 1);
    assert_int_equal((int)said(r, OCT_AVERAGE_RESETS), 2);
    oct_average_cpu.run.reset(r->analysis);
    fill(r, 0, 0, 0, 1, true);
    push(r);
    assert_int_equal((int)said(r, OCT_AVERAGE_AVERAGED), 1);
    assert_int_equal((int)said(r, OCT_AVERAGE_RESETS), 3);
    close_rig(r);
}

/* Of two first B-scans that do not match the second stays. */
static void a_window_of_one_is_replaced(void **state)
{
    struct rig *r = open_rig(&usual, true, OCT_SAMPLE_F32, 1);
    for (unsigned k = 0; k < 4; k++) {
        number(r, k, 1);
        fill(r, 0, 0, k == 0 ? 2 : 0, 1, true);
        assert_true(push(r));
    }
    assert_int_equal((int)said(r, OCT_AVERAGE_AVERAGED), 3);
    assert_int_equal((int)said(r, OCT_AVERAGE_REJECTED), 1);
    assert_int_equal((int)said(r, OCT_AVERAGE_RESETS), 0);
    close_rig(r);
}

/* Lines that never came have no weight: the mean there is of the others. */
static void missing_lines_have_no_weight(void **state)
{
    struct rig *r = open_rig(&usual, true, OCT_SAMPLE_F32, 1);
    double *expected = calloc(N_PX, sizeof(double));
    for (unsigned k = 0; k < 4; k++) {
        number(r, k, 1);
        fill(r, 0, 0, 0, 0, true);
        r->bscan.info.missing_lines = k == 2 ? 10 : 0;
        for (size_t i = 0; k == 2 && i < (size_t)10 * D; i++)
            r->values[40 * D + i] = -120;
        assert_true(push(r));
    }
    assert_int_equal((int)said(r, OCT_AVERAGE_AVERAGED), 4);
    for (size_t i = 0; i < N_PX; i++)
        expected[i] = scene((double)(i / D), (double)(i % D), 0);
    assert_true(rms(r, expected, 1) < 0.05); /* B-scan 2 may lie a fraction of a pixel off */
    free(expected);
    close_rig(r);
}

/* Whether the image is a mean of that place. */
static bool is_of_kind(const struct rig *r, uint64_t kind)
{
    static double expected[N_PX];
    for (size_t i = 0; i < N_PX; i++)
        expected[i] = scene((double)(i / D), (double)(i % D), kind);
    return rms(r, expected, 2) < 1;
}

/* The last of a block is left out: the block's image is the mean of the others. */
static void a_block_may_end_with_a_bscan_that_is_left_out(void **state)
{
    struct oct_average_settings s = usual;
    s.repeats = 4;
    struct rig *r = open_rig(&s, true, OCT_SAMPLE_F32, V);
    for (unsigned k = 0; k < 8; k++) {
        number(r, k, V);
        fill(r, 0, 0, k == 3 ? 9 : k / 4, 1, true);
        assert_int_equal(push(r), k % 4 == 3);
    }
    assert_true(is_of_kind(r, 1) && (int)said(r, OCT_AVERAGE_AVERAGED) == 4);
    for (unsigned k = 8; k < 12; k++) {
        number(r, k, V);
        fill(r, 0, 0, k == 11 ? 9 : 2, 1, true);
        assert_int_equal(push(r), k == 11);
    }
    assert_true(is_of_kind(r, 2) && (int)said(r, OCT_AVERAGE_AVERAGED) == 3);
    assert_int_equal((int)said(r, OCT_AVERAGE_REJECTED), 2);
    close_rig(r);
}

static void repeats_are_averaged_in_blocks(void **state)
{
    struct oct_average_settings s = usual;
    s.repeats = 4;
    struct rig *r = open_rig(&s, true, OCT_SAMPLE_F32, V);
    assert_int_equal(r->form.bscans_an_image, 4);
    assert_int_equal(oct_image_form_rows(&r->form, V), V / 4);
    for (unsigned k = 0; k < 10; k++) { /* B-scans 6 and 7 do not come */
        const unsigned at = k < 6 ? k : k + 2;
        number(r, at, V);
        fill(r, 0, 0, at / 4, 1, true);
        const bool has = push(r);
        assert_int_equal(has, at == 3 || at == 8 || at == 11);
        if (!has)
            continue;
        assert_int_equal((int)said(r, OCT_AVERAGE_AVERAGED), at == 8 ? 2 : 4);
        assert_int_equal(r->result.info.bscan, at == 8 ? 5 : at);
        assert_true(is_of_kind(r, r->result.info.bscan / 4));
    }
    struct oct_error err;
    number(r, 12, V);
    fill(r, 0, 0, 12, 1, true);
    assert_false(push(r));
    oct_average_cpu.run.end(r->analysis);
    assert_int_equal(oct_average_cpu.run.take(r->analysis, &r->result, &err), OCT_OK);
    assert_int_equal((int)said(r, OCT_AVERAGE_AVERAGED), 1);
    assert_true(is_of_kind(r, 12));
    assert_int_equal(oct_average_cpu.run.take(r->analysis, &r->result, &err), OCT_E_AGAIN);
    close_rig(r);
}

/* u8 pixels stand for values between the limits of the newest picture. */
static void pixels_have_the_limits_of_the_picture(void **state)
{
    struct oct_average_settings s = usual;
    s.registration = OCT_AVERAGE_AS_THEY_COME;
    struct rig *r = open_rig(&s, true, OCT_SAMPLE_U8, 1);
    fill(r, 0, 0, 0, 0, true);
    r->bscan.lo = 20;
    r->bscan.hi = 40;
    assert_true(push(r));
    assert_true(r->result.lo == 20 && r->result.hi == 40);
    for (size_t i = 0; i < N_PX; i++) {
        double wanted = (scene((double)(i / D), (double)(i % D), 0) - 20) / 20 * 255;
        wanted = wanted < 0 ? 0 : wanted > 255 ? 255 : wanted;
        assert_true(fabs(((uint8_t *)r->result.pixels)[i] - wanted) < 0.52);
    }
    close_rig(r);
}

static void it_rests_until_it_is_configured(void **state)
{
    struct oct_average_settings s = usual;
    struct oct_error err;
    s.bscans = 1;
    struct rig *r = open_rig(&s, true, OCT_SAMPLE_F32, 1);
    fill(r, 0, 0, 0, 1, true);
    assert_true(oct_average_cpu.run.is_at_rest(r->analysis) && !push(r));
    s.bscans = 4;
    assert_int_equal(oct_average_cpu.run.configure(r->analysis, &s, &err), OCT_OK);
    assert_true(!oct_average_cpu.run.is_at_rest(r->analysis) && push(r));
    s.min_score = 0.5; /* the window goes on */
    assert_int_equal(oct_average_cpu.run.configure(r->analysis, &s, &err), OCT_OK);
    number(r, 1, 1);
    assert_true(push(r) && (int)said(r, OCT_AVERAGE_AVERAGED) == 2);
    s.bscans = 0;
    assert_int_equal(oct_average_cpu.run.configure(r->analysis, &s, &err), OCT_E_CONFIG);
    number(r, 2, 1);
    assert_true(push(r) && (int)said(r, OCT_AVERAGE_AVERAGED) == 3);
    close_rig(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decibels_to_a_thousandth),
        cmocka_unit_test(the_mean_of_the_last_ones_is_of_intensity_or_of_decibels),
        cmocka_unit_test(bright_pixels_leave_nothing_behind),
        cmocka_unit_test(shifted_bscans_lie_on_top_of_each_other),
        cmocka_unit_test(a_jump_a_blink_and_a_bad_frame_are_left_out),
        cmocka_unit_test(noise_does_not_hide_a_match),
        cmocka_unit_test(the_window_begins_anew_where_it_should),
        cmocka_unit_test(a_window_of_one_is_replaced),
        cmocka_unit_test(missing_lines_have_no_weight),
        cmocka_unit_test(repeats_are_averaged_in_blocks),
        cmocka_unit_test(a_block_may_end_with_a_bscan_that_is_left_out),
        cmocka_unit_test(pixels_have_the_limits_of_the_picture),
        cmocka_unit_test(it_rests_until_it_is_configured),
    };
    const struct oct_average_settings wrong = {.bscans = 0, .repeats = 1, .max_shift_px = 1};
    const struct oct_average_settings unregistered = {
        .bscans = 4, .repeats = 1, .registration = OCT_AVERAGE_AS_THEY_COME, .max_shift_px = 32};
    const struct oct_analysis_suite suite = {
        .ops = &oct_average_cpu, .settings = &unregistered, .wrong_settings = &wrong};
    int failed = oct_analysis_suite_run(&suite);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
