/* octctl synth: the files it makes, and what it refuses. */
#include "test/rig/synth_rig.h"
#include "test/rig/tap.h"

#include "config/apply.h"
#include "pipeline/volume/volume.h"
#include "test/rig/synth_scene.h"
#include "tools/commands.h"

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N 256u
#define M 12u
#define V 5u
#define VOLUME_BYTES ((size_t)N * M * V * 2)

#define SYNTH(...)                                                                                 \
    oct_synth_run((struct oct_synth_geometry){N, M, V}, (const char *const[8]){__VA_ARGS__})

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static unsigned char *read_whole(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    struct stat st;

    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &st), 0);
    *bytes = (size_t)st.st_size;
    unsigned char *content = malloc(*bytes + 1);
    assert_int_equal(fread(content, 1, *bytes, file), *bytes);
    fclose(file);
    return content;
}

static void expect_same(const char *a, const char *b, bool same)
{
    size_t n, m;
    unsigned char *x = read_whole(a, &n), *y = read_whole(b, &m);

    assert_true((n == m && memcmp(x, y, n) == 0) == same);
    free(x);
    free(y);
}

static void same_seed_gives_the_same_file(void **state)
{
    assert_int_equal(SYNTH("--seed", "5", "a.h5"), 0);
    assert_int_equal(SYNTH("b.h5", "--seed=5"), 0);
    assert_int_equal(SYNTH("--seed", "6", "c.h5"), 0);
    expect_same("a.h5", "b.h5", true);
    expect_same("a.h5", "c.h5", false);
}

/* The samples of volume v of the raw file equal those of a volume file. */
static void expect_volume(const char *path, const unsigned char *raw)
{
    struct oct_volume_reader *reader;
    struct oct_error err = {0};
    uint16_t samples[M * N];
    uint8_t line_valid[M];

    if (oct_volume_open(&reader, path, &err))
        fail_msg("%s", err.text);
    assert_true(oct_volume_facts(reader)->whole);
    for (uint32_t v = 0; v < V; v++) {
        struct oct_raw_frame frame = {.spectra = samples, .line_valid = line_valid};
        bool valid = false;
        assert_int_equal(oct_volume_read_spectra(reader, v, &frame, &valid, &err), OCT_OK);
        assert_true(valid && frame.info.missing_lines == 0);
        for (size_t i = 0; i < M * N; i++) {
            const unsigned char *p = raw + 2 * (v * (size_t)(M * N) + i);
            assert_int_equal(samples[i], p[0] | p[1] << 8);
        }
    }
    oct_volume_reader_destroy(reader);
}

static void several_volumes_are_files_of_their_own_or_one_raw_file(void **state)
{
    size_t bytes;

    assert_int_equal(SYNTH("--volumes", "2", "eye.h5"), 0);
    assert_int_equal(SYNTH("--volumes", "2", "eye.raw"), 0);
    assert_false(exists("eye.h5"));
    unsigned char *raw = read_whole("eye.raw", &bytes);
    assert_int_equal(bytes, 2 * VOLUME_BYTES);
    expect_volume("eye-000.h5", raw);
    expect_volume("eye-001.h5", raw + VOLUME_BYTES);
    assert_true(memcmp(raw, raw + VOLUME_BYTES, VOLUME_BYTES) != 0);
    assert_true(exists("eye.raw.truth.h5"));
    free(raw);
}

/* Dataset `name` holds exactly n values. */
static void expect_dataset(hid_t file, const char *name, const double *values, size_t n)
{
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    double *found = malloc(n * sizeof(double));

    assert_true(dataset >= 0);
    hid_t space = H5Dget_space(dataset);
    assert_int_equal(H5Sget_simple_extent_npoints(space), n);
    assert_true(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
    assert_memory_equal(found, values, n * sizeof(double));
    H5Sclose(space);
    H5Dclose(dataset);
    free(found);
}

static void expect_truth(const char *path, const char *group, uint32_t volume)
{
    struct oct_retina_params params = synth_params(N, M, V, 9);
    struct oct_retina *retina;
    struct oct_retina_truth truth;
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    char name[80];

    retina = synth_retina(&params);
    assert_int_equal(oct_retina_truth(retina, volume, &truth, NULL), OCT_OK);
    assert_true(file >= 0);
    snprintf(name, sizeof(name), "%s/motion_um", group);
    expect_dataset(file, name, truth.motion_um, (size_t)3 * V);
    snprintf(name, sizeof(name), "%s/vessel_um", group);
    expect_dataset(file, name, truth.vessel_um, (size_t)V * M);
    for (size_t s = 0; s < OCT_N_SURFACES; s++) {
        snprintf(name, sizeof(name), "%s/surfaces_px/%s", group, oct_surface_names[s]);
        expect_dataset(file, name, truth.surface_px + s * V * M, (size_t)V * M);
    }
    expect_dataset(file, "/truth/axial_um", &oct_retina_facts(retina)->axial_um, 1);
    expect_dataset(file, "/truth/wavelengths_nm", oct_retina_facts(retina)->wavelengths_nm, N);
    expect_dataset(file, "/truth/fovea_um", oct_retina_facts(retina)->fovea_um, 2);
    hid_t cones = H5Dopen2(file, "/truth/cones/position_um", H5P_DEFAULT);
    hid_t space = H5Dget_space(cones);
    assert_int_equal(H5Sget_simple_extent_npoints(space), 2 * oct_retina_facts(retina)->n_cones);
    H5Sclose(space);
    H5Dclose(cones);
    H5Fclose(file);
    oct_retina_truth_finish(&truth);
    oct_retina_destroy(retina);
}

static void the_truth_lies_in_the_volume_or_beside_the_raw_file(void **state)
{
    assert_int_equal(SYNTH("t.h5", "--seed", "9", "--volumes", "2"), 0);
    assert_int_equal(SYNTH("t.bin", "--seed", "9", "--volumes", "2"), 0);
    expect_truth("t-001.h5", "/truth", 1);
    expect_truth("t.bin.truth.h5", "/truth/volume-000", 0);
    expect_truth("t.bin.truth.h5", "/truth/volume-001", 1);
}

static void the_truth_of_every_a_line_is_there_when_the_eye_moves_within_a_bscan(void **state)
{
    struct oct_retina_params params = synth_params(N, M, V, 9);
    struct oct_retina *retina;
    struct oct_retina_truth truth;
    hid_t file;

    params.motion = OCT_EYE_UNSTEADY;
    retina = synth_retina(&params);
    assert_int_equal(oct_retina_truth(retina, 0, &truth, NULL), OCT_OK);
    assert_int_equal(SYNTH("u.h5", "--motion", "unsteady", "--seed", "9"), 0);
    assert_int_equal(SYNTH("b.h5", "--motion", "bscans"), 0);
    assert_int_equal(SYNTH("d.h5"), 0);
    expect_same("b.h5", "d.h5", true);
    file = H5Fopen("u.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    expect_dataset(file, "/truth/motion_um", truth.motion_um, (size_t)3 * V);
    expect_dataset(file, "/truth/line_motion_um", truth.line_um, (size_t)3 * V * M);
    expect_dataset(file, "/truth/line_shift_px", truth.line_px, (size_t)2 * V * M);
    expect_dataset(file, "/truth/blink", truth.blink, (size_t)V * M);
    H5Fclose(file);
    file = H5Fopen("d.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_int_equal(H5Lexists(file, "/truth/line_motion_um", H5P_DEFAULT), 0);
    H5Fclose(file);
    oct_retina_truth_finish(&truth);
    oct_retina_destroy(retina);
}

/* The recording's own calibration, with its dispersion as a phase, equals the folder's. */
static void the_calibration_folder_and_the_recording_give_the_same_plan(void **state)
{
    struct oct_config *config = calloc(1, sizeof(*config));
    struct oct_calibration cal = {0};
    struct oct_plan *from_folder, *from_file;
    struct oct_volume_reader *reader;
    struct oct_error err = {0};

    assert_int_equal(SYNTH("--calibration", "cal", "x.h5"), 0);
    oct_config_init(config);
    if (oct_config_load(config, "cal/calibration.ini", &err) ||
        oct_config_set(config, "pipeline.interpolation", "linear", "test", &err) ||
        oct_config_plan(config, &from_folder, &err) || oct_volume_open(&reader, "x.h5", &err) ||
        oct_volume_calibration(reader, &cal, &err) ||
        oct_plan_create(&from_file, &from_folder->geometry, &cal, &oct_chain_thesis, &err))
        fail_msg("%s", err.text);
    assert_int_equal(from_folder->geometry.n_samples, N);
    assert_int_equal(config->camera.bits, 12);
    assert_true(from_folder->calibration.coefficient[2] != 0);
    assert_true(config->scan.width_um > 0 && config->scan.height_um > 0);
    for (uint32_t q = 0; q < from_file->geometry.upsampled; q++) {
        assert_float_equal(from_file->phase_re[q] * N, from_folder->phase_re[q] * N, 1e-5f);
        assert_float_equal(from_file->phase_im[q] * N, from_folder->phase_im[q] * N, 1e-5f);
        assert_int_equal(from_file->tap_first[q], from_folder->tap_first[q]);
    }
    oct_plan_destroy(from_file);
    oct_plan_destroy(from_folder);
    oct_calibration_finish(&cal);
    oct_volume_reader_destroy(reader);
    free(config);
}

static void the_models_depth_scale_is_the_plans(void **state)
{
    static const uint32_t sizes[] = {200, 832, 1024, 2048, 2049};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct oct_retina_params params = synth_params(sizes[i], 4, 4, 1);
        struct oct_retina *retina = synth_retina(&params);
        const struct oct_retina_facts *facts = oct_retina_facts(retina);
        double *nm = malloc(sizes[i] * sizeof(double));
        struct oct_calibration cal = {.wavelengths_nm = nm, .n_wavelengths = sizes[i]};
        struct oct_geometry g;
        struct oct_plan *plan;
        const struct oct_chain chain = {.dc = OCT_DC_NONE};
        memcpy(nm, facts->wavelengths_nm, sizes[i] * sizeof(double));
        assert_int_equal(oct_geometry_init(&g, sizes[i], 4, 4, 0, 0, OCT_SAMPLE_U8, NULL), OCT_OK);
        assert_int_equal(oct_plan_create(&plan, &g, &cal, &chain, NULL), OCT_OK);
        assert_true(fabs(plan->axial_um / facts->axial_um - 1) < 1e-9);
        oct_plan_destroy(plan);
        oct_retina_destroy(retina);
        free(nm);
    }
}

static void what_cannot_be_done_is_refused_and_leaves_nothing_behind(void **state)
{
    assert_int_equal(SYNTH("--seed", "1"), 2);
    assert_int_equal(SYNTH("picture.tiff"), 2);
    assert_int_equal(SYNTH(".h5"), 2);
    assert_int_equal(SYNTH("o.h5", "--seed", "one"), 2);
    assert_int_equal(SYNTH("o.h5", "--volumes", "0"), 2);
    assert_int_equal(SYNTH("o.h5", "--colour"), 2);
    assert_int_equal(SYNTH("o.h5", "--motion", "wild"), 2);
    assert_int_equal(SYNTH("o.h5", "--motion"), 2);
    assert_int_equal(SYNTH("o.h5", "p.h5"), 2);
    assert_int_equal(SYNTH("no/such/folder/o.h5"), 1);
    assert_int_equal(SYNTH("no/such/folder/o.raw"), 1);
    assert_int_equal(SYNTH("o.h5", "--calibration", "no/such/folder"), 1);
    assert_false(exists("o.h5") || exists("o.h5.synth") || exists("o.h5.synth.part"));
}

static void files_are_never_overwritten_but_leftovers_are(void **state)
{
    size_t bytes;
    FILE *file = fopen("kept.raw", "w"), *left = fopen("new.h5.synth", "w");

    fputs("mine", file);
    fputs("left by a synth that was killed", left);
    fclose(file);
    fclose(left);
    assert_int_equal(SYNTH("kept.raw"), 1);
    unsigned char *content = read_whole("kept.raw", &bytes);
    assert_true(bytes == 4 && memcmp(content, "mine", 4) == 0);
    free(content);
    assert_int_equal(SYNTH("new.h5"), 0);
    assert_false(exists("new.h5.synth"));
    /* The second of two names is taken: known before the first is made. */
    assert_int_equal(rename("new.h5", "pair-001.h5"), 0);
    assert_int_equal(SYNTH("--volumes", "2", "pair.h5"), 1);
    assert_false(exists("pair-000.h5"));
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, oct_synth_enter, oct_synth_leave)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(same_seed_gives_the_same_file),
        IN_FOLDER(several_volumes_are_files_of_their_own_or_one_raw_file),
        IN_FOLDER(the_truth_lies_in_the_volume_or_beside_the_raw_file),
        IN_FOLDER(the_truth_of_every_a_line_is_there_when_the_eye_moves_within_a_bscan),
        IN_FOLDER(the_calibration_folder_and_the_recording_give_the_same_plan),
        IN_FOLDER(the_models_depth_scale_is_the_plans),
        IN_FOLDER(what_cannot_be_done_is_refused_and_leaves_nothing_behind),
        IN_FOLDER(files_are_never_overwritten_but_leftovers_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
