/* liboctd with a GPU, on the stand-in for CUDA: samples and pixels pass through pinned memory, and
 * the CPU takes over from a device that fails. */
#include "config/apply.h"
#include "python/liboctd/octd/octd.h"
#include "test/rig/cuda_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { N = 200, M = 6, B = 40, D = 50 };

static uint16_t spectra[B][M][N];
static uint8_t mask[B][M];

/* liboctd gives a device its usual deadline, which a stand-in on a busy machine does not keep. */
void __real_oct_config_engine_options(const struct oct_config *config,
                                      struct oct_engine_options *options, char *wisdom_dir,
                                      size_t wisdom_bytes);
void __wrap_oct_config_engine_options(const struct oct_config *config,
                                      struct oct_engine_options *options, char *wisdom_dir,
                                      size_t wisdom_bytes);

void __wrap_oct_config_engine_options(const struct oct_config *config,
                                      struct oct_engine_options *options, char *wisdom_dir,
                                      size_t wisdom_bytes)
{
    __real_oct_config_engine_options(config, options, wisdom_dir, wisdom_bytes);
    options->deadline_ms = PATIENCE_MS;
}

static struct octd_recon *make_recon(const char *backend)
{
    static const char *const keys[][2] = {{"camera.samples", "200"},
                                          {"scan.lines", "6"},
                                          {"pipeline.crop_last", "50"},
                                          {"pipeline.batch", "4"},
                                          {"pipeline.threads", "1"}};
    struct octd_recon *recon = octd_recon_create();
    double nm[N];
    for (int i = 0; i < N; i++)
        nm[i] = 800 + 0.3 * i;
    for (int b = 0; b < B; b++)
        for (int j = 0; j < M; j++) {
            mask[b][j] = b != 5 || j != 2;
            for (int i = 0; i < N; i++)
                spectra[b][j][i] = (uint16_t)(800 + (i * (5 + b) % 97) * 4 + (i * 7 + j * 31) % 53);
        }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_int_equal(octd_recon_set(recon, keys[i][0], keys[i][1]), OCTD_OK);
    assert_int_equal(octd_recon_set(recon, "pipeline.backend", backend), OCTD_OK);
    assert_int_equal(octd_recon_wavelengths(recon, nm, N), OCTD_OK);
    if (octd_recon_start(recon))
        fail_msg("%s", octd_recon_error(recon));
    return recon;
}

static void run(struct octd_recon *recon, uint8_t (*pictures)[M][D], double (*limits)[2])
{
    assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
    if (octd_recon_run(recon, spectra[0][0], mask[0], B, pictures, sizeof(*pictures) * B,
                       limits[0]))
        fail_msg("%s", octd_recon_error(recon));
}

static void check_alike(uint8_t (*a)[M][D], uint8_t (*b)[M][D])
{
    for (int i = 0; i < B; i++)
        for (int j = 0; j < M; j++)
            for (int d = 0; d < D; d++)
                if (abs(a[i][j][d] - b[i][j][d]) > 1)
                    fail_msg("B-scan %d, line %d, depth %d: %d and %d", i, j, d, a[i][j][d],
                             b[i][j][d]);
}

/* Complex values through pinned memory, in place of pictures. */
static void test_complex_as_cpu(void **state)
{
#if defined(__SANITIZE_THREAD__)
    skip();
#endif
    static float z[2][B][M][D][2];
    cuda_host_reset(1, MEMORY);
    for (int gpu = 0; gpu < 2; gpu++) {
        struct octd_recon *recon = make_recon(gpu ? "cuda" : "cpu");
        octd_recon_complex(recon, 1);
        assert_int_equal(octd_recon_start(recon), OCTD_OK);
        assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
        if (octd_recon_run(recon, spectra[0][0], mask[0], B, z[gpu], sizeof(z[gpu]), NULL))
            fail_msg("%s", octd_recon_error(recon));
        octd_recon_destroy(recon);
    }
    const float *cpu = (const float *)z[0], *gpu = (const float *)z[1];
    for (int i = 0; i < 2 * B * M * D; i++) {
        const bool is_missing = i / (2 * D) == 5 * M + 2;
        assert_int_equal(isnan(cpu[i]), is_missing);
        assert_int_equal(isnan(gpu[i]), is_missing);
        assert_true(is_missing || fabsf(cpu[i] - gpu[i]) < 1e-3f);
    }
}

static void test_as_cpu(void **state)
{
#if defined(__SANITIZE_THREAD__) /* the stand-in takes longer than the deadline of a device */
    skip();
#endif
    static uint8_t cpu[B][M][D], gpu[B][M][D];
    static double cpu_limits[B][2], gpu_limits[B][2];
    cuda_host_reset(1, MEMORY);
    struct octd_recon *recon = make_recon("cpu");
    run(recon, cpu, cpu_limits);
    octd_recon_destroy(recon);
    assert_int_equal(cuda_host_n_launches(0), 0);
    recon = make_recon("cuda");
    assert_non_null(strstr(octd_recon_engine(recon), "engine cuda"));
    for (int again = 0; again < 2; again++) {
        memset(gpu, 0xA5, sizeof(gpu));
        run(recon, gpu, gpu_limits);
        check_alike(cpu, gpu);
        for (int i = 0; i < B; i++)
            assert_true(gpu_limits[i][1] - cpu_limits[i][1] < 0.01 &&
                        cpu_limits[i][1] - gpu_limits[i][1] < 0.01);
    }
    assert_true(cuda_host_n_launches(0) > 0);
    octd_recon_destroy(recon);
    check_nothing_left();
}

/* With auto the CPU goes on; with cuda the call says what was lost, and the next works or says. */
static void test_device_fails(void **state)
{
#if defined(__SANITIZE_THREAD__) /* the same */
    skip();
#endif
    static uint8_t pictures[B][M][D];
    static double limits[B][2];
    cuda_host_reset(1, MEMORY);
    struct octd_recon *recon = make_recon("auto");
    cuda_host_set_fault(CUDA_HOST_WORK_FAILS, 9);
    run(recon, pictures, limits);
    run(recon, pictures, limits);
    octd_recon_destroy(recon);
    let_go();

    recon = make_recon("cuda");
    cuda_host_set_fault(CUDA_HOST_WORK_FAILS, 9);
    assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
    assert_int_equal(
        octd_recon_run(recon, spectra[0][0], NULL, B, pictures, sizeof(pictures), NULL),
        OCTD_E_BACKEND);
    assert_non_null(strstr(octd_recon_error(recon), "cuda engine"));
    assert_int_equal(
        octd_recon_run(recon, spectra[0][0], NULL, B, pictures, sizeof(pictures), NULL),
        OCTD_E_STATE); /* a volume with a hole does not go on */
    assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
    assert_int_equal(
        octd_recon_run(recon, spectra[0][0], NULL, 1, pictures, sizeof(pictures[0]), NULL),
        OCTD_E_BACKEND); /* it stays gone */
    octd_recon_destroy(recon);
    let_go();
}

static void test_no_device(void **state)
{
    cuda_host_reset(1, MEMORY);
    cuda_host_remove_driver();
    struct octd_recon *recon = make_recon("auto");
    assert_non_null(strstr(octd_recon_engine(recon), "engine cpu"));
    assert_int_equal(octd_recon_set(recon, "pipeline.backend", "cuda"), OCTD_OK);
    assert_int_equal(octd_recon_start(recon), OCTD_E_BACKEND);
    octd_recon_destroy(recon);
    let_go();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_cpu),
        cmocka_unit_test(test_complex_as_cpu),
        cmocka_unit_test(test_device_fails),
        cmocka_unit_test(test_no_device),
    };
    return cmocka_run_group_tests_name("liboctd with a GPU", tests, NULL, NULL) > 0;
}
