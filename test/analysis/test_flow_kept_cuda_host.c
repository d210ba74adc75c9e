/* Flow that reads the B-scans of a group where they lie, as the stage keeps them, beside flow that
 * copies each: streams that lose B-scans, are cut off, set anew and reset give the same bytes. The
 * memory of the N newest, N of a group, is overwritten in turn right before each push. Device code
 * runs on the CPU (test/cuda_host). */
#include "analysis/analysis.h"
#include "analysis/flow/flow.h"
#include "kernels/device/cuda_device.h"
#include "pipeline/flow/frame.h"
#include "test/cuda_host/cuda_host.h"
#include "test/rig/flow_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 20, D = 44, GROUPS = 30, A_VOLUME = 2, MOST = 8 };
#define N_VALUES ((size_t)2 * M * D)

struct one {
    struct oct_analysis *analysis;
    struct oct_flow_settings settings;
    float pixels[MOST * M * D], beside[MOST * (M + 1)];
};

static const struct oct_stage_ops *const ops = &oct_flow_cpu.run;

static void open_flow(struct one *o, unsigned repeats, unsigned interleave, bool keeps)
{
    static const struct oct_image_form input = {
        .name = "bscan", .rank = 2, .dims = {M, D}, .type = OCT_SAMPLE_F32};
    struct oct_image_form form;
    struct oct_error err = {.text = ""};
    memset(o, 0, sizeof(*o));
    oct_params_set_defaults(&oct_flow_params, &o->settings);
    o->settings.enabled = true;
    const struct oct_analysis_setup setup = {.input = &input,
                                             .n_bscans = A_VOLUME * repeats * interleave,
                                             .spacing = {NAN, NAN, NAN},
                                             .scan = {repeats, interleave, 1},
                                             .settings = &o->settings,
                                             .deadline_ms = 60000,
                                             .live = true,
                                             .keeps_groups = keeps};
    if (oct_flow_cpu.create(&o->analysis, &setup, &form, &err))
        fail_msg("%s", err.text);
    assert_string_equal(ops->running(o->analysis), "cuda");
}

/* What both have ready. */
static unsigned take_all(struct one of[2], size_t n_pixels)
{
    for (unsigned n = 0;; n++) {
        struct oct_image_frame result[2];
        enum oct_err e[2];
        for (unsigned i = 0; i < 2; i++) {
            struct oct_error err;
            memset(&result[i], 0, sizeof(result[i]));
            result[i].pixels = of[i].pixels;
            result[i].values = of[i].beside;
            e[i] = ops->take(of[i].analysis, &result[i], &err);
        }
        assert_int_equal(e[0], e[1]);
        if (e[0])
            return n;
        assert_memory_equal(of[0].pixels, of[1].pixels, n_pixels * sizeof(float));
        assert_memory_equal(result[0].numbers, result[1].numbers, sizeof(result[0].numbers));
    }
}

static void disturb(struct one of[2])
{
    const double share = rand() % 2 ? 1.1 : 0.9;
    const bool is_set = rand() % 50 == 0, is_reset = rand() % 70 == 0;
    for (unsigned i = 0; i < 2; i++) {
        of[i].settings.window_um *= is_set ? share : 1;
        if (is_set)
            assert_int_equal(ops->configure(of[i].analysis, &of[i].settings, NULL), OCT_OK);
        if (is_reset)
            ops->reset(of[i].analysis);
    }
}

static unsigned end_both(struct one of[2], size_t n_pixels)
{
    for (unsigned i = 0; i < 2; i++)
        ops->end(of[i].analysis);
    const unsigned n_taken = take_all(of, n_pixels);
    for (unsigned i = 0; i < 2; i++)
        ops->reset(of[i].analysis);
    return n_taken;
}

/* Of n kept buffers. */
static unsigned push_stream(struct one of[2], unsigned n, size_t n_pixels)
{
    float *kept = oct_cuda_pin(n * N_VALUES * sizeof(float));
    float *copied = oct_cuda_pin(N_VALUES * sizeof(float)), *scene = NULL;
    unsigned n_taken = 0, n_pushed = 0, acquisition = 1, before = 1;
    assert_true(kept && copied);
    for (unsigned t = 0; t < GROUPS * n; t++) {
        if (t % n == 0) {
            const struct oct_flow_scene tissue = {.n_lines = M,
                                                  .depth = D,
                                                  .n_repeats = n,
                                                  .top = 10,
                                                  .snr = 20,
                                                  .noise = 1,
                                                  .turns = true,
                                                  .box = {4, 6, 20, 10},
                                                  .tail = 0.7,
                                                  .seed = t + 77};
            free(scene);
            scene = oct_flow_scene_make(&tissue);
        }
        acquisition += rand() % 40 == 0;
        if (rand() % 100 < (int)(t / n % 5) * 12) /* lost */
            continue;
        float *to[2] = {kept + n_pushed++ % n * N_VALUES, copied};
        n_taken += acquisition != before ? end_both(of, n_pixels) : 0;
        before = acquisition;
        disturb(of);
        for (unsigned i = 0; i < 2; i++) {
            const struct oct_image_frame bscan = {
                .complex_device = memcpy(to[i], scene + t % n * N_VALUES, N_VALUES * sizeof(float)),
                .info = {.acquisition = acquisition,
                         .number = t,
                         .volume = t / (A_VOLUME * n),
                         .bscan = t % (A_VOLUME * n),
                         .time_ns = UINT64_C(1000000) * t}};
            assert_int_equal(ops->push(of[i].analysis, &bscan, NULL), OCT_OK);
        }
        memset(copied, 0xff, N_VALUES * sizeof(float));
        n_taken += take_all(of, n_pixels);
    }
    free(scene);
    oct_cuda_unpin(kept);
    oct_cuda_unpin(copied);
    return n_taken;
}

TEST(groups_that_are_kept_give_the_same_bytes)
{
    static const unsigned groups[][2] = {{2, 1}, {4, 1}, {8, 1}, {2, 4}, {4, 2}, {3, 2}};
    static struct one of[2];
    srand(5);
    for (unsigned i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        const unsigned repeats = groups[i][0], interleave = groups[i][1];
        cuda_host_reset(1, (size_t)1 << 28);
        for (unsigned k = 0; k < 2; k++)
            open_flow(&of[k], repeats, interleave, k == 0);
        assert_true(push_stream(of, repeats * interleave, (size_t)interleave * M * D) > 8);
        for (unsigned k = 0; k < 2; k++)
            ops->destroy(of[k].analysis);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_that_are_kept_give_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
