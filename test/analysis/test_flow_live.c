/* The analyses flow, angiogram, velocity and trace as a stage runs them. */
#include "analysis/flow/flow.h"
#include "test/rig/analysis_suite.h"
#include "test/rig/flow_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 48, D = 160 };

static void read_settings(const struct oct_params *params, void *settings, size_t bytes,
                          const char *const *given)
{
    memset(settings, 0, bytes);
    oct_params_set_defaults(params, settings);
    for (; *given; given += 2)
        for (unsigned i = 0; i < params->n; i++) {
            char why[200];
            if (strcmp(params->rows[i].name, given[0]) == 0)
                assert_true(
                    oct_param_parse(&params->rows[i], settings, given[1], why, sizeof(why)));
        }
}

static struct oct_flow_settings flow_settings(const char *slab)
{
    struct oct_flow_settings s;
    const char *const given[] = {"enabled", "yes", "slab", slab, NULL};
    read_settings(&oct_flow_params, &s, sizeof(s), given);
    return s;
}

/* ---- B-scans of a scene, pushed by number ---- */

struct scan {
    const struct oct_analysis_ops *ops;
    struct oct_analysis *analysis;
    struct oct_image_form input, form;
    struct oct_image_frame result;
    uint32_t n_bscans;
};

static void create_scan(struct scan *s, const void *settings, struct oct_scan_protocol protocol)
{
    struct oct_error err = {.text = ""};
    const struct oct_analysis_setup setup = {.input = &s->input,
                                             .n_bscans = s->n_bscans,
                                             .spacing = {NAN, NAN, NAN},
                                             .scan = protocol,
                                             .line_rate_hz = 1e5,
                                             .settings = settings};
    if (s->ops->create(&s->analysis, &setup, &s->form, &err))
        fail_msg("%s", err.text);
    s->result.pixels = malloc(oct_image_form_bytes(&s->form));
    assert_non_null(s->result.pixels);
    s->result.values = s->form.n_beside ? malloc(s->form.n_beside * sizeof(float)) : NULL;
}

static void open_scan(struct scan *s, const struct oct_analysis_ops *ops, const void *settings,
                      struct oct_scan_protocol protocol, uint32_t n_bscans)
{
    *s = (struct scan){.ops = ops,
                       .n_bscans = n_bscans,
                       .input = {.name = "bscan",
                                 .quantity = OCT_QUANTITY_INTENSITY_DB,
                                 .type = OCT_SAMPLE_F32,
                                 .rank = 2,
                                 .dims = {M, D},
                                 .axes = {"line", "depth"}}};
    create_scan(s, settings, protocol);
}

static void close_scan(struct scan *s)
{
    s->ops->run.destroy(s->analysis);
    free(s->result.pixels);
    free(s->result.values);
}

static void push(struct scan *s, uint32_t number, const float *values)
{
    struct oct_image_frame frame = {.form = &s->input, .dims = {M, D}};
    struct oct_error err = {.text = ""};
    frame.info = (struct oct_bscan_info){.number = number,
                                         .volume = number / s->n_bscans,
                                         .bscan = number % s->n_bscans,
                                         .time_ns = number * UINT64_C(5000000)};
    frame.complex_values = (float *)(uintptr_t)values;
    if (s->ops->run.push(s->analysis, &frame, &err))
        fail_msg("%s", err.text);
}

static bool take(struct scan *s)
{
    for (unsigned i = 0; i < OCT_IMAGE_MAX_NUMBERS; i++)
        s->result.numbers[i] = NAN;
    s->result.whole = true;
    return s->ops->run.take(s->analysis, &s->result, NULL) == OCT_OK;
}

static const struct oct_flow_scene vessel = {.n_lines = M,
                                             .depth = D,
                                             .n_repeats = 4,
                                             .top = 40,
                                             .snr = 10,
                                             .noise = 1,
                                             .turns = true,
                                             .box = {20, 10, 80, 20},
                                             .seed = 7};
enum { BSCAN = 2 * M * D };

static double share_of_flow(const float *d, uint32_t first_line, uint32_t n_lines)
{
    double n = 0;
    for (uint32_t j = first_line; j < first_line + n_lines; j++)
        for (uint32_t at = 86; at < 94; at++)
            n += d[j * D + at] > 0.3F;
    return n / (8.0 * n_lines);
}

/* ---- flow ---- */

static void a_place_becomes_a_picture(void **state)
{
    const struct oct_flow_settings settings = flow_settings("");
    float *values = oct_flow_scene_make(&vessel);
    struct scan s;
    open_scan(&s, &oct_flow_cpu, &settings, (struct oct_scan_protocol){4, 1, 1}, 8);
    assert_int_equal(s.form.bscans_an_image, 4);
    for (uint32_t b = 0; b < 4; b++) {
        assert_false(take(&s));
        push(&s, b, values + b * BSCAN);
    }
    assert_true(take(&s));
    assert_int_equal(s.result.info.bscan, 3);
    assert_true(share_of_flow(s.result.pixels, 23, 4) > 0.9);
    assert_true(share_of_flow(s.result.pixels, 4, 12) < 0.05);
    assert_true(s.result.numbers[OCT_FLOW_PAIRS] == 3 && s.result.numbers[OCT_FLOW_MOVED] == 0);
    assert_true(fabs(s.result.numbers[OCT_FLOW_TAU_US] - 5000) < 1);
    assert_true(fabs(s.result.numbers[OCT_FLOW_SNR_DB] - 10) < 1);
    assert_false(take(&s));

    /* The second place loses its second and its last B-scan: the next volume ends it. */
    push(&s, 4, values);
    push(&s, 6, values + 2 * BSCAN);
    assert_false(take(&s));
    push(&s, 8, values);
    assert_true(take(&s));
    assert_int_equal(s.result.info.bscan, 6);
    assert_true(s.result.numbers[OCT_FLOW_PAIRS] == 0);
    assert_true(isnan(((float *)s.result.pixels)[90]));
    push(&s, 9, values + BSCAN);
    s.ops->run.end(s.analysis);
    assert_true(take(&s));
    assert_true(s.result.numbers[OCT_FLOW_PAIRS] == 1);
    close_scan(&s);
    free(values);
}

/* Two places in turn: one flows, the other is still. */
static void interleaved_places_make_one_image(void **state)
{
    const struct oct_flow_settings settings = flow_settings("");
    struct oct_flow_scene still = vessel;
    still.box[1] = 0;
    still.seed = 8;
    float *flows = oct_flow_scene_make(&vessel), *rests = oct_flow_scene_make(&still);
    struct scan s;
    open_scan(&s, &oct_flow_cpu, &settings, (struct oct_scan_protocol){2, 2, 1}, 4);
    assert_int_equal(s.form.rank, 3);
    assert_int_equal(s.form.dims[0], 2);
    for (uint32_t r = 0; r < 2; r++) {
        push(&s, 2 * r, flows + r * BSCAN);
        push(&s, 2 * r + 1, rests + r * BSCAN);
    }
    assert_true(take(&s));
    assert_true(share_of_flow(s.result.pixels, 23, 4) > 0.8);
    assert_true(share_of_flow((float *)s.result.pixels + M * D, 23, 4) < 0.05);
    assert_true(fabs(s.result.numbers[OCT_FLOW_TAU_US] - 10000) < 1);
    close_scan(&s);
    free(flows);
    free(rests);
}

static void without_repeats_it_rests_or_refuses(void **state)
{
    struct oct_flow_settings settings = flow_settings("");
    struct oct_error err = {.text = ""};
    struct scan s;
    settings.enabled = false;
    open_scan(&s, &oct_flow_cpu, &settings, (struct oct_scan_protocol){1, 1, 1}, 8);
    assert_true(s.ops->run.is_at_rest(s.analysis));
    settings.enabled = true;
    assert_int_equal(s.ops->run.configure(s.analysis, &settings, &err), OCT_E_CONFIG);
    assert_non_null(strstr(err.text, "scan.repeats"));
    assert_true(s.ops->run.is_at_rest(s.analysis));
    close_scan(&s);
}

/* ---- angiogram ---- */

/* Gives what `flow` has found to the angiogram that takes it in. */
static void hand_on(struct scan *flow, struct scan *rows)
{
    struct oct_error err = {.text = ""};
    while (take(flow))
        if (rows->ops->run.push(rows->analysis, &flow->result, &err))
            fail_msg("%s", err.text);
}

static void open_rows(struct scan *rows, const struct scan *flow, const void *settings,
                      struct oct_scan_protocol protocol)
{
    *rows =
        (struct scan){.ops = &oct_angiogram_cpu, .n_bscans = flow->n_bscans, .input = flow->form};
    assert_string_equal(rows->ops->of, flow->form.name);
    create_scan(rows, settings, protocol);
}

static void places_become_rows(void **state)
{
    const struct oct_flow_settings settings = flow_settings("80:99");
    const struct oct_scan_protocol protocol = {4, 1, 1};
    struct oct_flow_scene dark = vessel;
    dark.top = 1000;
    dark.seed = 20;
    float *values = oct_flow_scene_make(&vessel), *noise = oct_flow_scene_make(&dark);
    struct scan flow, s;
    open_scan(&flow, &oct_flow_cpu, &settings, protocol, 12);
    open_rows(&s, &flow, &settings, protocol);
    assert_int_equal(s.form.dims[0], 3);
    for (uint32_t b = 0; b < 12; b++) {
        if (b < 4 || b >= 8 || b == 4) /* of the second place one B-scan alone comes */
            push(&flow, b, b == 10 ? noise + 2 * BSCAN : values + b % 4 * BSCAN);
        hand_on(&flow, &s);
    }
    assert_true(take(&s));
    const float *row = s.result.pixels;
    for (uint32_t j = 0; j < M; j++) {
        assert_true(j < 22 || j >= 28 || row[j] > 5);
        assert_true((j > 16 && j < 34) || row[j] < 5);
        assert_true(isnan(row[M + j]));     /* no pair */
        assert_true(isnan(row[2 * M + j])); /* a blink: moved */
    }
    assert_true(s.result.numbers[0] == 3 && s.result.numbers[1] == 1);
    assert_true(s.result.whole);
    close_scan(&flow);
    close_scan(&s);
    free(values);
    free(noise);
}

/* Interleaved, and by layers: of synthetic layers that nobody finds no row has a value. */
static void rows_are_of_each_place_and_of_its_slab(void **state)
{
    const struct oct_scan_protocol protocol = {2, 2, 1};
    static const char *const slabs[] = {"80:99", "100:140", "ilm:rpe"};
    float *values = oct_flow_scene_make(&vessel);
    for (unsigned i = 0; i < 3; i++) {
        struct oct_flow_settings settings = flow_settings(slabs[i]);
        struct scan flow, s;
        open_scan(&flow, &oct_flow_cpu, &settings, protocol, 8);
        open_rows(&s, &flow, &settings, protocol);
        for (uint32_t b = 0; b < 8; b++) { /* place 0 has the vessel's repeats, place 1 is still */
            push(&flow, b, values + (b % 2 ? 0 : b / 2 % 2) * BSCAN);
            hand_on(&flow, &s);
        }
        assert_true(take(&s));
        const float *row = s.result.pixels;
        for (uint32_t j = 22; j < 28; j++)
            for (uint32_t place = 0; place < 4; place++) {
                const float z = row[place * M + j];
                assert_true(i == 2 ? isnan(z) : i == 0 && place % 2 == 0 ? z > 5 : !(z > 5));
            }
        /* Another slab: a new image. min_z is not in it. */
        settings.min_z = 4;
        assert_int_equal(s.ops->run.configure(s.analysis, &settings, NULL), OCT_OK);
        s.ops->run.end(s.analysis);
        assert_true(row[22] > 5 || i > 0);
        settings = flow_settings("1:2");
        assert_int_equal(s.ops->run.configure(s.analysis, &settings, NULL), OCT_OK);
        s.ops->run.end(s.analysis);
        assert_false(take(&s));
        close_scan(&flow);
        close_scan(&s);
    }
    free(values);
}

/* ---- trace ---- */

static void bscans_become_values(void **state)
{
    const struct oct_flow_scene scene = {.n_lines = M,
                                         .depth = D,
                                         .n_repeats = 3,
                                         .top = 20,
                                         .snr = 100,
                                         .noise = 1,
                                         .turns = true,
                                         .seed = 9};
    const char *const given[] = {"enabled", "yes", "upper", "30:50", "lower", "100:120", NULL};
    struct oct_trace_settings settings;
    float *values = oct_flow_scene_make(&scene);
    struct scan s;
    read_settings(&oct_trace_params, &settings, sizeof(settings), given);
    open_scan(&s, &oct_trace_cpu, &settings, (struct oct_scan_protocol){1, 1, 1}, 3);
    assert_string_equal(s.form.labels[1], "rad"); /* no plan, no wavelengths */
    for (uint32_t b = 0; b < 3; b++) {
        for (uint32_t i = 0; i < M * D; i++) { /* `lower` turns by 0.5 a B-scan */
            float *at = values + b * BSCAN + 2 * i, re = at[0], im = at[1];
            const float turn = i % D >= 90 ? 0.5F * (float)b : 0;
            at[0] = re * cosf(turn) - im * sinf(turn);
            at[1] = re * sinf(turn) + im * cosf(turn);
        }
        push(&s, b, values + b * BSCAN);
        assert_true(take(&s));
        const float *row = s.result.pixels;
        assert_true(fabs((double)row[0] - 0.005 * b) < 1e-6);
        assert_true(fabs((double)row[1] - 0.5 * b) < 0.05);
        assert_true(row[2] > 0 && row[2] < 0.02F);
    }
    close_scan(&s);
    free(values);
}

int main(void)
{
    const struct oct_flow_settings flow = flow_settings("");
    struct oct_velocity_settings velocity, of_bscans;
    struct oct_trace_settings trace, no_layers;
    const char *const lines[] = {"enabled", "yes", NULL};
    const char *const bscans[] = {"enabled", "yes", "between", "bscans", NULL};
    const char *const layers[] = {"enabled", "yes", "upper", "2:6", "lower", "20:40", NULL};
    read_settings(&oct_velocity_params, &velocity, sizeof(velocity), lines);
    read_settings(&oct_velocity_params, &of_bscans, sizeof(of_bscans), bscans);
    read_settings(&oct_trace_params, &trace, sizeof(trace), layers);
    read_settings(&oct_trace_params, &no_layers, sizeof(no_layers), lines);
    velocity.window_um = of_bscans.window_um = 4;
    const struct oct_scan_protocol twice = {2, 1, 1};
    const struct oct_analysis_suite suites[] = {
        {.ops = &oct_flow_cpu, .settings = &flow, .refuses_small = true, .scan = twice},
        {.ops = &oct_velocity_cpu, .settings = &velocity},
        {.ops = &oct_velocity_cpu, .settings = &of_bscans, .refuses_small = true, .scan = twice},
        {.ops = &oct_trace_cpu,
         .settings = &trace,
         .wrong_settings = &no_layers,
         .refuses_small = true},
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_becomes_a_picture),
        cmocka_unit_test(interleaved_places_make_one_image),
        cmocka_unit_test(without_repeats_it_rests_or_refuses),
        cmocka_unit_test(places_become_rows),
        cmocka_unit_test(rows_are_of_each_place_and_of_its_slab),
        cmocka_unit_test(bscans_become_values),
    };
    int n_failed = 0;
    for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
        n_failed += oct_analysis_suite_run(&suites[i]);
    return n_failed + cmocka_run_group_tests(tests, NULL, NULL);
}
