/* The C API of liboctd: what it computes does not depend on how it is called, and calls that make
 * no sense are refused with a line that says so. That its bytes are those of octctl recon is shown
 * by test/process/test_python.py. */
#include "python/liboctd/octd/octd.h"
#include "test/rig/tap.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 300, M = 20, B = 12, D = 64 };

struct scene {
    uint16_t spectra[B][M][N];
    double nm[N];
};

/* A mirror that moves from B-scan to B-scan and grows darker, with noise. */
static struct scene *make_scene(void)
{
    struct scene *scene = malloc(sizeof(*scene));
    uint32_t random = 1;
    assert_non_null(scene);
    for (int i = 0; i < N; i++)
        scene->nm[i] = 800 + 80.0 * i / N;
    for (int b = 0; b < B; b++)
        for (int j = 0; j < M; j++)
            for (int i = 0; i < N; i++) {
                random = random * 1664525u + 1013904223u;
                double fringe = cos(6283.2 * (20 + b) / scene->nm[i] + 0.5 * j);
                scene->spectra[b][j][i] =
                    (uint16_t)(1000 + 600.0 / (1 + b) * fringe + (random >> 25));
            }
    return scene;
}

static void set(struct octd_recon *recon, const char *key, const char *value)
{
    if (octd_recon_set(recon, key, value))
        fail_msg("%s", octd_recon_error(recon));
}

static struct octd_recon *make_recon(const struct scene *scene, const char *sample)
{
    struct octd_recon *recon = octd_recon_create();
    assert_non_null(recon);
    set(recon, "camera.samples", "300");
    set(recon, "scan.lines", "20");
    set(recon, "pipeline.crop_last", "64");
    set(recon, "pipeline.backend", "cpu");
    set(recon, "pipeline.threads", "2");
    set(recon, "output.sample", sample);
    assert_int_equal(octd_recon_wavelengths(recon, scene->nm, N), OCTD_OK);
    if (octd_recon_start(recon))
        fail_msg("%s", octd_recon_error(recon));
    return recon;
}

static void run(struct octd_recon *recon, const struct scene *scene, unsigned first, unsigned n,
                uint8_t (*pictures)[M][D], double (*limits)[2])
{
    if (octd_recon_run(recon, scene->spectra[first][0], NULL, n, pictures[first],
                       n * sizeof(*pictures), limits ? limits[first] : NULL))
        fail_msg("%s", octd_recon_error(recon));
}

/* ---- what is computed ---- */

static void test_parts(void **state)
{
    struct scene *scene = make_scene();
    struct octd_recon *recon = make_recon(scene, "u8");
    static uint8_t whole[B][M][D], parts[B][M][D];
    double limits[B][2], again[B][2];
    assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
    run(recon, scene, 0, B, whole, limits);
    memset(parts, 0xA5, sizeof(parts));
    assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
    run(recon, scene, 0, 5, parts, again);
    run(recon, scene, 5, 0, parts, again);
    run(recon, scene, 5, B - 5, parts, again);
    assert_memory_equal(whole, parts, sizeof(whole));
    assert_memory_equal(limits, again, sizeof(limits));

    /* The limits of a B-scan depend on those before it, until a volume begins. */
    assert_int_equal(octd_recon_begin(recon, 5), OCTD_OK);
    run(recon, scene, 0, B, parts, again);
    assert_memory_equal(whole, parts, 5 * sizeof(whole[0]));
    assert_true(again[5][1] < limits[5][1]);
    assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
    run(recon, scene, 5, 1, whole, limits);
    assert_memory_equal(whole[5], parts[5], sizeof(whole[5]));

    /* Rows that never came count as places. */
    assert_int_equal(octd_recon_begin(recon, 5), OCTD_OK);
    run(recon, scene, 0, 3, parts, again);
    assert_int_equal(octd_recon_skip(recon, 2), OCTD_OK);
    run(recon, scene, 5, 1, parts, again);
    assert_memory_equal(limits[5], again[5], sizeof(limits[5]));
    octd_recon_destroy(recon);
    free(scene);
}

/* In place of pictures, in any parts; the limits are those of the pictures. */
static void test_complex(void **state)
{
    struct scene *scene = make_scene();
    struct octd_recon *recon = make_recon(scene, "f32");
    static float db[B][M][D], z[B][M][D][2];
    double limits[B][2], again[B][2];
    uint8_t valid[B][M];
    uint32_t bytes;
    memset(valid, 1, sizeof(valid));
    valid[3][7] = 0;
    assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
    assert_int_equal(
        octd_recon_run(recon, scene->spectra[0][0], valid[0], B, db, sizeof(db), limits[0]),
        OCTD_OK);
    octd_recon_complex(recon, 1);
    assert_int_equal(octd_recon_start(recon), OCTD_OK);
    assert_int_equal(octd_recon_shape(recon, NULL, NULL, NULL, &bytes, NULL), OCTD_OK);
    assert_int_equal(bytes, 8);
    assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
    for (int b = 0; b < B; b += 4)
        assert_int_equal(octd_recon_run(recon, scene->spectra[b][0], valid[b], 4, z[b],
                                        4 * sizeof(z[b]), again[b]),
                         OCTD_OK);
    assert_memory_equal(limits, again, sizeof(limits));
    for (int i = 0; i < B * M * D; i++) {
        const float *of = (const float *)z + 2 * i;
        const double got = 10 * log10((double)of[0] * of[0] + (double)of[1] * of[1]);
        if (i / D == 3 * M + 7)
            assert_true(isnan(of[0]) && isnan(of[1]));
        else
            assert_true(fabs(got - (double)((const float *)db)[i]) < 1e-3);
    }
    octd_recon_destroy(recon);
    free(scene);
}

static void test_running_mean(void **state)
{
    struct scene *scene = make_scene();
    struct octd_recon *recon = make_recon(scene, "u8");
    static uint8_t whole[B][M][D], parts[B][M][D], own[B][M][D];
    assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
    run(recon, scene, 0, B, own, NULL);
    set(recon, "pipeline.dc", "running");
    set(recon, "pipeline.dc_bscans", "4");
    assert_int_equal(octd_recon_start(recon), OCTD_OK);
    assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
    run(recon, scene, 0, B, whole, NULL);
    assert_memory_equal(own[0], whole[0], sizeof(own[0])); /* the first has its own mean */
    assert_memory_not_equal(own[3], whole[3], sizeof(own[0]));
    for (int again = 0; again < 2; again++) {
        assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
        run(recon, scene, 0, 7, parts, NULL);
        run(recon, scene, 7, B - 7, parts, NULL);
        assert_memory_equal(whole, parts, sizeof(whole));
    }
    octd_recon_destroy(recon);
    free(scene);
}

static void test_missing_lines(void **state)
{
    struct scene *scene = make_scene();
    struct octd_recon *recon = make_recon(scene, "f32");
    static uint8_t mask[B][M];
    static float zeroed[B][M][D], masked[B][M][D];
    uint32_t n, m, d, bytes;
    double axial_um;
    assert_int_equal(octd_recon_shape(recon, &n, &m, &d, &bytes, &axial_um), OCTD_OK);
    assert_true(n == N && m == M && d == D && bytes == 4 && axial_um > 0.5 && axial_um < 50);
    memset(mask, 1, sizeof(mask));
    mask[2][7] = mask[2][8] = 0;
    for (int junk = 0; junk < 2; junk++) { /* samples of a missing line do not matter */
        for (int i = 0; i < N; i++)
            scene->spectra[2][7][i] = scene->spectra[2][8][i] = junk ? (uint16_t)(77 * i) : 0;
        assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
        assert_int_equal(octd_recon_run(recon, scene->spectra[0][0], mask[0], B,
                                        junk ? masked : zeroed, sizeof(masked), NULL),
                         OCTD_OK);
    }
    assert_memory_equal(zeroed, masked, sizeof(masked));
    for (int i = 0; i < D; i++)
        assert_true(masked[2][7][i] < -119 && masked[2][9][i] > -119);
    assert_int_equal(scene->spectra[2][7][1], 77); /* nothing was written there */
    octd_recon_destroy(recon);
    free(scene);
}

/* ---- several at a time ---- */

struct worker {
    const struct scene *scene;
    pthread_t thread;
    uint8_t pictures[B][M][D];
};

static void *work(void *argument)
{
    struct worker *w = argument;
    struct octd_recon *recon = make_recon(w->scene, "u8");
    octd_recon_begin(recon, 0);
    octd_recon_run(recon, w->scene->spectra[0][0], NULL, B, w->pictures, sizeof(w->pictures), NULL);
    octd_recon_destroy(recon);
    return NULL;
}

static void test_threads(void **state)
{
    struct scene *scene = make_scene();
    static struct worker workers[3];
    for (int i = 0; i < 3; i++) {
        workers[i].scene = scene;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(workers[i].thread, NULL);
    assert_memory_equal(workers[0].pictures, workers[1].pictures, sizeof(workers[0].pictures));
    assert_memory_equal(workers[0].pictures, workers[2].pictures, sizeof(workers[0].pictures));
    assert_true(workers[0].pictures[3][3][20] != workers[0].pictures[0][3][20]);
    free(scene);
}

/* ---- what is refused ---- */

static void expect(const struct octd_recon *recon, int result, int wanted, const char *words)
{
    if (result != wanted || !strstr(octd_recon_error(recon), words))
        fail_msg("%d instead of %d, and not '%s': %s", result, wanted, words,
                 octd_recon_error(recon));
    assert_null(strchr(octd_recon_error(recon), '\n'));
}

static void test_wrong_order(void **state)
{
    struct octd_recon *recon = octd_recon_create();
    uint16_t sample = 0;
    uint8_t pixel;
    assert_string_equal(octd_recon_error(recon), "");
    assert_string_equal(octd_recon_engine(recon), "");
    assert_string_equal(octd_recon_error(NULL), "out of memory");
    expect(recon, octd_recon_begin(recon, 0), OCTD_E_STATE, "octd_recon_start");
    expect(recon, octd_recon_skip(recon, 1), OCTD_E_STATE, "octd_recon_begin");
    expect(recon, octd_recon_run(recon, &sample, NULL, 1, &pixel, 1, NULL), OCTD_E_STATE, "start");
    expect(recon, octd_recon_shape(recon, NULL, NULL, NULL, NULL, NULL), OCTD_E_STATE, "started");
    expect(recon, octd_recon_start(recon), OCTD_E_CONFIG, "calibration.wavelengths");
    octd_recon_destroy(recon);
    octd_recon_destroy(NULL);
}

static void test_wrong_arguments(void **state)
{
    struct scene *scene = make_scene();
    struct octd_recon *recon = make_recon(scene, "f32");
    static float room[B + 1][M][D];
    char text[16];
    assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
    const uint16_t *spectra = scene->spectra[0][0];
    const size_t one = sizeof(room[0]);
    expect(recon, octd_recon_run(recon, spectra, NULL, 2, room, one, NULL), OCTD_E_ARGUMENT,
           "2 B-scans of 20 lines and 64 depths");
    expect(recon, octd_recon_run(recon, NULL, NULL, 1, room, one, NULL), OCTD_E_ARGUMENT, "no spe");
    expect(recon, octd_recon_run(recon, spectra, NULL, 1, NULL, one, NULL), OCTD_E_ARGUMENT, "no ");
    expect(recon, octd_recon_run(recon, spectra, NULL, UINT64_MAX / 64, room, one, NULL),
           OCTD_E_ARGUMENT, "too many");
    expect(recon, octd_recon_run(recon, spectra, NULL, 1, (unsigned char *)room + 1, one, NULL),
           OCTD_E_ARGUMENT, "aligned");
    expect(recon,
           octd_recon_run(recon, (const uint16_t *)(const void *)((const char *)spectra + 1), NULL,
                          1, room, one, NULL),
           OCTD_E_ARGUMENT, "aligned");
    assert_int_equal(octd_recon_run(recon, spectra, NULL, 1, room, one, NULL), OCTD_OK);

    expect(recon, octd_recon_set(recon, "pipeline.window", "round"), OCTD_E_CONFIG,
           "pipeline.window");
    expect(recon, octd_recon_set(recon, "nonsense", "1"), OCTD_E_CONFIG, "SECTION.KEY");
    expect(recon, octd_recon_set(recon, NULL, "1"), OCTD_E_ARGUMENT, "NULL");
    expect(recon, octd_recon_load(recon, "/nowhere/octd.ini"), OCTD_E_CONFIG, "/nowhere");
    expect(recon, octd_recon_load_text(recon, "[scan]\nlines = x\n", "here"), OCTD_E_CONFIG,
           "here:2");
    expect(recon, octd_recon_get(recon, "record.directory", text, 1), OCTD_E_ARGUMENT, "longer");
    assert_int_equal(octd_recon_get(recon, "scan.lines", text, sizeof(text)), OCTD_OK);
    assert_string_equal(text, "20");
    octd_recon_destroy(recon);
    free(scene);
}

static void test_wrong_calibration(void **state)
{
    struct scene *scene = make_scene();
    struct octd_recon *recon = make_recon(scene, "u8");
    const double holes[3] = {1, NAN, 3};
    expect(recon, octd_recon_kmap(recon, holes, 3), OCTD_E_CONFIG, "value 1");
    expect(recon, octd_recon_dispersion(recon, NULL, 3), OCTD_E_ARGUMENT, "dispersion");
    expect(recon, octd_recon_background(recon, scene->nm, SIZE_MAX), OCTD_E_ARGUMENT, "values");
    assert_int_equal(octd_recon_kmap(recon, scene->nm, 3), OCTD_OK);
    expect(recon, octd_recon_start(recon), OCTD_E_CONFIG, "both");
    expect(recon, octd_recon_begin(recon, 0), OCTD_E_STATE, "start"); /* what ran is gone */
    assert_int_equal(octd_recon_kmap(recon, NULL, 0), OCTD_OK);
    assert_int_equal(octd_recon_dispersion(recon, scene->nm, 7), OCTD_OK);
    expect(recon, octd_recon_start(recon), OCTD_E_CONFIG, "calibration.dispersion");
    assert_int_equal(octd_recon_dispersion(recon, NULL, 0), OCTD_OK);
    set(recon, "pipeline.dc", "file");
    expect(recon, octd_recon_start(recon), OCTD_E_CONFIG, "calibration.background is missing");
    assert_int_equal(octd_recon_background(recon, scene->nm, N), OCTD_OK);
    assert_int_equal(octd_recon_start(recon), OCTD_OK);
    assert_non_null(strstr(octd_recon_engine(recon), "engine cpu (2 threads"));
    octd_recon_destroy(recon);
    free(scene);
}

static void test_configuration(void **state)
{
    struct octd_recon *recon = octd_recon_create(), *again = octd_recon_create();
    set(recon, "scan.lines", "77");
    char *text = octd_recon_config(recon), *same = NULL;
    assert_non_null(text);
    assert_int_equal(octd_recon_load_text(again, text, "a copy"), OCTD_OK);
    same = octd_recon_config(again);
    assert_non_null(same);
    assert_string_equal(text, same);
    free(text);
    free(same);
    octd_recon_destroy(recon);
    octd_recon_destroy(again);
    assert_int_equal(octd_api_version(), OCTD_API_VERSION);
    assert_string_equal(octd_version(), OCT_VERSION);
}

/* ---- the camera ---- */

static void test_camera(void **state)
{
    struct octd_camera *camera;
    struct octd_camera_options options = {.size = sizeof(options), .linger_ms = 1, .wait_ms = 1};
    struct octd_camera_counters counters = {
        .size = offsetof(struct octd_camera_counters, messages_dropped)};
    uint16_t line[4] = {1, 2, 3, 4}, *room;
    char error[200];
    assert_int_equal(
        octd_camera_connect(&camera, "carrier:pigeon", 4, &options, error, sizeof(error)),
        OCTD_E_ARGUMENT);
    assert_null(camera);
    assert_non_null(strstr(error, "carrier:pigeon"));
    options.size = 3;
    assert_int_equal(
        octd_camera_connect(&camera, "ipc:///tmp/nobody", 4, &options, error, sizeof(error)),
        OCTD_E_ARGUMENT);
    options.size = offsetof(struct octd_camera_options, crc); /* a caller that knows no more */
    options.crc = 0x7fffffff;
    assert_int_equal(
        octd_camera_connect(&camera, "ipc:///tmp/nobody", 4, &options, error, sizeof(error)),
        OCTD_OK);
    assert_int_equal(octd_camera_wait_connected(camera, 1), OCTD_E_TIMEOUT);
    octd_camera_start(camera);
    octd_camera_skip(camera, 3);
    assert_int_equal(octd_camera_send(camera, line, 1, 0), OCTD_OK);
    assert_int_equal(octd_camera_borrow(camera, 1, &room), OCTD_OK);
    memcpy(room, line, sizeof(line));
    assert_int_equal(octd_camera_send_borrowed(camera, 1, 0), OCTD_OK);
    assert_int_equal(octd_camera_next_line(camera), 5);
    counters.messages_dropped = 99;
    assert_int_equal(octd_camera_count(camera, &counters), OCTD_OK);
    assert_int_equal(counters.lines_sent, 2);
    assert_int_equal(counters.messages_dropped, 99); /* nothing behind the size */
    assert_int_equal(octd_camera_send(camera, line, 0, 0), OCTD_E_ARGUMENT);
    assert_true(octd_camera_error(camera)[0] != '\0');
    octd_camera_give_up(camera);
    assert_int_equal(octd_camera_close(camera), 2);
    assert_int_equal(octd_camera_close(NULL), 0);
}

/* ---- fork ---- */

static int forked(struct octd_recon *recon, struct octd_camera *camera, struct scene *scene)
{
    static uint8_t pictures[B][M][D];
    uint16_t *room;
    alarm(60); /* instead of hanging */
    bool refused = octd_recon_start(recon) == OCTD_E_STATE &&
                   octd_recon_run(recon, scene->spectra[0][0], NULL, 1, pictures,
                                  sizeof(pictures[0]), NULL) == OCTD_E_STATE &&
                   strstr(octd_recon_error(recon), "process") &&
                   octd_camera_send(camera, scene->spectra[0][0], 1, 0) == OCTD_E_ARGUMENT &&
                   octd_camera_borrow(camera, 1, &room) == OCTD_E_ARGUMENT &&
                   octd_camera_wait_connected(camera, 1) == OCTD_E_ARGUMENT &&
                   octd_camera_flush(camera, 1000) == OCTD_E_ARGUMENT &&
                   octd_camera_end(camera) == OCTD_E_ARGUMENT &&
                   strstr(octd_camera_error(camera), "process");
    octd_camera_return(camera);
    octd_camera_close(camera);
    octd_recon_destroy(recon);
    struct octd_recon *own = make_recon(scene, "u8");
    octd_recon_begin(own, 0);
    run(own, scene, 0, B, pictures, NULL);
    octd_recon_destroy(own);
    return refused ? 0 : 1;
}

static void test_fork(void **state)
{
#if defined(__SANITIZE_THREAD__) /* it cannot follow threads that a forked child starts */
    skip();
#endif
    struct scene *scene = make_scene();
    struct octd_recon *recon = make_recon(scene, "u8");
    const struct octd_camera_options options = {.size = sizeof(options), .linger_ms = 1};
    struct octd_camera *camera;
    int status = 0;
    assert_int_equal(octd_camera_connect(&camera, "ipc:///tmp/nobody", N, &options, NULL, 0),
                     OCTD_OK);
    assert_int_equal(octd_camera_send(camera, scene->spectra[0][0], 1, 0), OCTD_OK);
    assert_int_equal(octd_recon_begin(recon, 0), OCTD_OK);
    pid_t child = fork();
    if (child == 0)
        _exit(forked(recon, camera, scene));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    static uint8_t pictures[B][M][D];
    run(recon, scene, 0, B, pictures, NULL);
    octd_recon_destroy(recon);
    assert_int_equal(octd_camera_close(camera), 1);
    free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_complex),
        cmocka_unit_test(test_running_mean),
        cmocka_unit_test(test_missing_lines),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_wrong_order),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_wrong_calibration),
        cmocka_unit_test(test_configuration),
        cmocka_unit_test(test_camera),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests_name("liboctd", tests, NULL, NULL) > 0;
}
