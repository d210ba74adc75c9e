/* octctl synth --mirror: the files it makes, their truth, and what it refuses. */
#include "test/rig/synth_rig.h"
#include "test/rig/tap.h"

#include "config/config.h"
#include "pipeline/volume/volume.h"
#include "synth/spectrometer.h"
#include "tools/commands.h"

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N 832u
#define M 6u

#define SYNTH(...)                                                                                 \
    oct_synth_run((struct oct_synth_geometry){N, M, 7}, (const char *const[8]){__VA_ARGS__})

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void read_truth(const char *path, const char *name, double *values, size_t n)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set);

    assert_true(set >= 0);
    assert_int_equal(H5Sget_simple_extent_npoints(space), n);
    assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
}

/* The samples of the only B-scan. */
static void read_samples(const char *path, uint16_t *samples)
{
    struct oct_volume_reader *reader;
    struct oct_error err = {0};
    uint8_t line_valid[M];
    struct oct_raw_frame frame = {.spectra = samples, .line_valid = line_valid};
    bool valid;

    if (oct_volume_open(&reader, path, &err))
        fail_msg("%s", err.text);
    const struct oct_volume_facts *facts = oct_volume_facts(reader);
    assert_true(facts->whole && facts->n_bscans == 1 && facts->n_lines == M);
    assert_int_equal(oct_volume_read_spectra(reader, 0, &frame, &valid, &err), OCT_OK);
    assert_true(valid);
    oct_volume_reader_destroy(reader);
}

/* What the file holds is the model's light at the depth of its truth, up to noise. */
static void expect_mirror(const char *path, const struct oct_spectrometer *s,
                          const struct oct_reflector *reflectors, unsigned n)
{
    uint16_t samples[M * N];
    double light[N], error = 0;

    read_samples(path, samples);
    oct_spectrometer_light(s, reflectors, n, light);
    for (uint32_t i = 0; i < N; i++)
        error += pow(samples[i] - light[i], 2) / N;
    if (!(sqrt(error) < 3 * s->read_counts + 1))
        fail_msg("%s: off by %g counts rms, noise %g", path, sqrt(error), s->read_counts);
}

static void each_depth_is_a_file_with_its_truth(void **state)
{
    static const double depths[] = {60, 450.5};
    struct oct_spectrometer s;
    struct oct_error err;
    double px, kmap[N], a[2];
    char name[32];

    assert_int_equal(SYNTH("m.h5", "--mirror", "60,450.5"), 0);
    assert_int_equal(oct_spectrometer_init(&s, &oct_spectrometer_standard, &err), OCT_OK);
    for (unsigned i = 0; i < 2; i++) {
        const struct oct_reflector mirror = {depths[i], OCT_SPECTROMETER_SHARE, 0};
        snprintf(name, sizeof(name), "m-%u.h5", i + 1);
        expect_mirror(name, &s, &mirror, 1);
        read_truth(name, "/truth/mirror/depth_px", &px, 1);
        assert_true(px == depths[i]);
        read_truth(name, "/truth/kmap_px", kmap, N);
        assert_memory_equal(kmap, s.kmap_px, sizeof(kmap));
        read_truth(name, "/truth/dispersion_rad", a, 2);
        assert_true(a[0] == s.setup.a2 && a[1] == s.setup.a3);
    }
    oct_spectrometer_finish(&s);
}

/* The true k map is in /truth alone. */
static void a_recording_is_of_a_spectrometer_that_nobody_has_calibrated(void **state)
{
    struct oct_volume_reader *reader;
    struct oct_calibration cal;
    struct oct_error err = {0};

    assert_int_equal(SYNTH("m.h5", "--mirror", "100"), 0);
    assert_int_equal(oct_volume_open(&reader, "m.h5", &err), OCT_OK);
    assert_int_equal(oct_volume_calibration(reader, &cal, &err), OCT_OK);
    assert_true(cal.n_kmap == 2 && cal.kmap_px[0] == 0 && cal.kmap_px[1] == N - 1);
    for (size_t q = 0; q < cal.n_dispersion; q++)
        assert_true(cal.dispersion[2 * q] == 1 && cal.dispersion[2 * q + 1] == 0);
    assert_null(strstr(oct_volume_config_text(reader), "dispersion_a2=30"));
    oct_calibration_finish(&cal);
    oct_volume_reader_destroy(reader);
}

static void the_options_are_those_of_the_spectrometer(void **state)
{
    struct oct_spectrometer_setup setup = oct_spectrometer_standard;
    struct oct_spectrometer s;
    struct oct_error err;
    const struct oct_reflector two[] = {{100, 0.3, 0}, {300, 0.3, 0}};

    setup.a2 = 5;
    setup.a3 = 2;
    setup.bump = 0.5;
    setup.snr_db = 40;
    assert_int_equal(oct_spectrometer_init(&s, &setup, &err), OCT_OK);
    assert_int_equal(
        SYNTH("m.h5", "--mirror=100+300", "--dispersion=5,2", "--source-bump=0.5", "--snr=40"), 0);
    expect_mirror("m.h5", &s, two, 2);
    oct_spectrometer_finish(&s);
    uint16_t samples[M * N], *last = samples + (M - 1) * N;
    assert_int_equal(SYNTH("rest.h5", "--mirror=100", "--turns=0", "--snr=100"), 0);
    read_samples("rest.h5", samples);
    for (uint32_t i = 0; i < N; i++)
        assert_true(abs(samples[i] - last[i]) < 3);
    assert_int_equal(SYNTH("bright.h5", "--mirror=none", "--gain=3"), 0);
    read_samples("bright.h5", samples);
    assert_int_equal(samples[N / 2], 4095);
}

static void plain_samples_are_the_same_with_the_truth_beside_them(void **state)
{
    uint16_t samples[M * N];
    uint8_t raw[2 * M * N];
    double px[2];

    assert_int_equal(SYNTH("m.h5", "--mirror=100+200", "--seed=3"), 0);
    assert_int_equal(SYNTH("m.raw", "--mirror=100+200", "--seed=3", "--calibration=cal"), 0);
    read_samples("m.h5", samples);
    FILE *file = fopen("m.raw", "rb");
    assert_non_null(file);
    assert_int_equal(fread(raw, 1, sizeof(raw), file), sizeof(raw));
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
    for (uint32_t i = 0; i < M * N; i++)
        assert_int_equal(samples[i], raw[2 * i] | raw[2 * i + 1] << 8);
    read_truth("m.raw.truth.h5", "/truth/mirror/depth_px", px, 2);
    assert_true(px[0] == 100 && px[1] == 200);
    assert_true(exists("cal/kmap.txt") && exists("cal/wavelengths.txt"));
    /* The folder's configuration is one that octd takes. */
    struct oct_config *config = calloc(1, sizeof(*config));
    struct oct_error err = {0};
    oct_config_init(config);
    if (oct_config_load(config, "cal/calibration.ini", &err))
        fail_msg("%s", err.text);
    assert_true(config->calibration.dispersion_a2 == 30 && config->camera.bits == 12);
    free(config);
}

static void what_cannot_be_done_is_refused_and_leaves_nothing_behind(void **state)
{
    assert_int_equal(SYNTH("m.h5", "--mirror="), 2);
    assert_int_equal(SYNTH("m.h5", "--mirror=100,"), 2);
    assert_int_equal(SYNTH("m.h5", "--mirror=100+"), 2);
    assert_int_equal(SYNTH("m.h5", "--mirror=-1"), 2);
    assert_int_equal(SYNTH("m.h5", "--mirror=4097"), 2);
    assert_int_equal(SYNTH("m.h5", "--mirror=nan"), 2);
    assert_int_equal(SYNTH("m.h5", "--mirror=100none"), 2);
    assert_int_equal(SYNTH("m.h5", "--mirror=100", "--volumes=2"), 2);
    assert_int_equal(SYNTH("m.h5", "--mirror=100", "--cells=2"), 2);
    assert_int_equal(SYNTH("m.npy", "--mirror=100"), 2);
    assert_int_equal(SYNTH("m.h5", "--snr=30"), 2);
    assert_int_equal(SYNTH("m.h5", "--mirror=100", "--dispersion=3"), 2);
    assert_false(exists("m.h5") || exists("m.h5.synth"));
    /* The second of two names is taken: known before the first is made. */
    assert_int_equal(SYNTH("m-2.h5", "--mirror=100"), 0);
    assert_int_equal(SYNTH("m.h5", "--mirror=100,200"), 1);
    assert_false(exists("m-1.h5"));
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, oct_synth_enter, oct_synth_leave)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(each_depth_is_a_file_with_its_truth),
        IN_FOLDER(a_recording_is_of_a_spectrometer_that_nobody_has_calibrated),
        IN_FOLDER(the_options_are_those_of_the_spectrometer),
        IN_FOLDER(plain_samples_are_the_same_with_the_truth_beside_them),
        IN_FOLDER(what_cannot_be_done_is_refused_and_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
