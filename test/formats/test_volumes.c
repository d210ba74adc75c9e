/* Recordings, datasets and arrays of numpy as whole volumes: what went in comes out as dB, with its
 * spacing; what is no volume is refused by name. */
#include "formats/results.h"
#include "formats/volumes.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { V = 4, M = 6, D = 9, N = V * M * D };

static const uint64_t dims[4] = {V, M, D, 2};

static struct oct_results *begin(const char *path)
{
    struct oct_results *results;
    must(oct_results_create(&results, path, "result", true, &failure));
    return results;
}

static void end(struct oct_results *results)
{
    must(oct_results_publish(results, &failure));
}

static void add(struct oct_results *results, const char *name, enum oct_results_type type,
                unsigned rank, const void *values)
{
    oct_results_write(results, oct_results_dataset(results, name, type, rank, dims, NULL), values);
}

static struct oct_volume_info looked(const char *path)
{
    struct oct_volume_info info;
    must(oct_volume_look(path, &info, &failure));
    assert_true(info.dims[0] == V && info.dims[1] == M && info.dims[2] == D && !info.is_nifti);
    return info;
}

static struct oct_volume_info loaded(const char *path, float values[N])
{
    const struct oct_volume_info info = looked(path);
    must(oct_volume_load(path, &info, values, &failure));
    return info;
}

static void refused(const char *path, enum oct_err code, const char *says)
{
    struct oct_volume_info info;
    struct oct_error err = {.text = ""};
    const enum oct_err e = oct_volume_look(path, &info, &err);
    if (e != code || !strstr(err.text, says) || strncmp(err.text, path, strcspn(path, ":")) != 0)
        fail_msg("%s: code %d, \"%s\" instead of %d, \"%s\"", path, e, err.text, code, says);
}

/* ---- recordings ---- */

static const uint8_t valid[V] = {1, 1, 0, 1};

/* B-scan 2 never came; of B-scan 1 A-line 3 did not. */
static void make_recording(const char *path, bool is_u8, const char *config)
{
    static uint8_t u8[N], came[V * M];
    static float f32[N];
    static const double lo[V] = {10, 10, 10, 20}, hi[V] = {70, 70, 70, 71};
    static const double um[3] = {12.5, 5.25, 2.5};
    struct oct_results *results = begin(path);
    for (unsigned i = 0; i < N; i++) {
        u8[i] = (uint8_t)(i * 37);
        f32[i] = (float)i * 0.5F;
    }
    memset(came, 1, sizeof(came));
    came[1 * M + 3] = 0;
    add(results, "/bscans", is_u8 ? OCT_RESULTS_U8 : OCT_RESULTS_F32, 3,
        is_u8 ? (void *)u8 : (void *)f32);
    oct_results_numbers(results, "/bscans", "axis_spacing_um", um, 3);
    add(results, "/frames/lo", OCT_RESULTS_F64, 1, lo);
    add(results, "/frames/hi", OCT_RESULTS_F64, 1, hi);
    add(results, "/frames/valid", OCT_RESULTS_U8, 1, valid);
    add(results, "/frames/line_valid", OCT_RESULTS_U8, 2, came);
    add(results, "/analysis/more", OCT_RESULTS_F32, 3, f32); /* no matter */
    oct_results_text(results, NULL, "config", config);
    oct_results_text(results, NULL, "eye", "OS");
    end(results);
}

static double recorded(bool is_u8, unsigned i)
{
    const unsigned v = i / (M * D);
    const double lo = v == 3 ? 20 : 10, hi = v == 3 ? 71 : 70;
    if (!valid[v] || (v == 1 && i / D % M == 3))
        return (double)NAN;
    return is_u8 ? (double)(float)(lo + (uint8_t)(i * 37) * (hi - lo) / 255) : i * 0.5;
}

TEST(recordings_are_db_with_what_is_missing)
{
    static float values[N];
    for (int k = 0; k < 3; k++) { /* u8 of dB, f32 of dB, f32 of counts^2 */
        const bool is_u8 = k == 0;
        make_recording("r.h5", is_u8, k == 2 ? "[pipeline]\nlog = no\n" : "");
        const struct oct_volume_info info = loaded("r.h5", values);
        assert_true(info.um[0] == 12.5 && info.um[1] == 5.25 && info.um[2] == 2.5);
        assert_true(info.is_db == (k < 2) && info.is_linear == (k == 2));
        assert_string_equal(info.eye, "OS");
        for (unsigned i = 0; i < N; i++) {
            const double want = recorded(is_u8, i);
            if (isnan(want) ? !isnan(values[i]) : (double)values[i] != want)
                fail_msg("voxel %u is %g, not %g", i, (double)values[i], want);
        }
    }
}

/* ---- datasets ---- */

TEST(a_dataset_is_named_or_the_only_one)
{
    static float f32[N], values[N];
    static uint8_t u8[N];
    static int64_t i64[N];
    static double f64[2 * N];
    static const double um[3] = {30, 6, 3};
    static const char *const names[] = {"axis_spacing_um", "element_size_um", "um"};
    for (unsigned i = 0; i < N; i++) {
        f32[i] = (float)i;
        f64[i] = u8[i] = (uint8_t)(i + 1);
        i64[i] = (int64_t)i - 100;
    }
    for (int k = 0; k < 3; k++) {
        struct oct_results *results = begin("one.h5");
        add(results, "/scan/volume", OCT_RESULTS_I64, 3, i64);
        add(results, "/scan/field", OCT_RESULTS_F64, 4, f64);
        add(results, "/scan/flat", OCT_RESULTS_F32, 2, f32);
        oct_results_numbers(results, "/scan/volume", names[k], um, 3);
        end(results);
        for (int named = 0; named < 2; named++) {
            char path[300];
            snprintf(path, sizeof(path), "%s%s", "one.h5", named ? ":/scan/volume" : "");
            const struct oct_volume_info info = loaded(path, values);
            assert_true(info.um[0] == 30 && info.um[1] == 6 && info.um[2] == 3);
            assert_true(!info.is_db && !info.is_linear && !info.eye[0]);
            for (unsigned i = 0; i < N; i++)
                assert_true(values[i] == (float)i - 100);
        }
    }
    refused("one.h5:/scan/field", OCT_E_FORMAT, "4 axes");
    refused("one.h5:/scan/flat", OCT_E_FORMAT, "has 2 axes; a volume has 3");
    refused("one.h5:/scan/other", OCT_E_FORMAT, "no dataset");
    struct oct_results *results = begin("two.h5");
    add(results, "/warped", OCT_RESULTS_F32, 3, f32);
    add(results, "/average", OCT_RESULTS_U8, 3, u8);
    add(results, "/displacement", OCT_RESULTS_F64, 4, f64);
    end(results);
    refused("two.h5", OCT_E_ARG, "2 datasets of 3 axes: /average, /warped; name one");
    const struct oct_volume_info info = loaded("two.h5:/average", values);
    for (unsigned i = 0; i < N; i++)
        assert_true(values[i] == (float)u8[i]);
    assert_true(isnan(info.um[0]) && isnan(info.um[1]) && isnan(info.um[2]));
}

TEST(files_without_volumes_are_refused)
{
    static const float f32[N];
    struct oct_results *results = begin("none.h5");
    add(results, "/flat", OCT_RESULTS_F32, 2, f32);
    end(results);
    refused("none.h5", OCT_E_FORMAT, "");
    FILE *stream = fopen("false.h5", "wb");
    assert_true(stream && fputs("not HDF5 at all", stream) > 0 && fclose(stream) == 0);
    refused("false.h5", OCT_E_FORMAT, "not an HDF5 file");
    refused("absent.h5", OCT_E_IO, "cannot open");
    assert_int_equal(mkdir("folder", 0700), 0);
    refused("folder", OCT_E_IO, "is a folder");
    assert_int_equal(mkfifo("pipe.nii", 0600), 0);
    refused("pipe.nii", OCT_E_IO, "not a plain file");
}

/* ---- .npy ---- */

static struct film_bytes file;

static void make_npy(const char *path, const char *shape, unsigned n)
{
    char text[160];
    snprintf(text, sizeof(text), "{'descr': '<i2', 'fortran_order': False, 'shape': %s, }", shape);
    file.n = 0;
    film_put(&file, "\x93NUMPY\x01\0", 8);
    film_put_u16(&file, (uint32_t)strlen(text));
    film_put(&file, text, strlen(text));
    for (unsigned i = 0; i < n; i++)
        film_put_u16(&file, (i * 91 - 500) & 0xffff);
    film_write(&file, path, file.n);
}

TEST(arrays_of_numpy_are_volumes)
{
    static float values[N];
    make_npy("a.npy", "(4, 6, 9)", N);
    struct oct_volume_info info = loaded("a.npy", values);
    for (unsigned i = 0; i < N; i++)
        assert_true(values[i] == (float)((int)i * 91 - 500));
    assert_true(isnan(info.um[0]) && isnan(info.um[1]) && isnan(info.um[2]) && !info.is_db);
    make_npy("a.npy", "(4, 9, 6)", N);
    must_fail(oct_volume_load("a.npy", &info, values, &failure), OCT_E_FORMAT,
              "has changed meanwhile");
    make_npy("b.npy", "(24, 9)", N);
    refused("b.npy", OCT_E_FORMAT, "has 2 axes; a volume has 3");
    make_npy("b.npy", "(2, 2, 6, 9)", N);
    refused("b.npy", OCT_E_FORMAT, "has 4 axes");
    make_npy("b.npy", "(4, 6, 9)", N - 1);
    refused("b.npy", OCT_E_FORMAT, "truncated: 3 of 4 B-scans are whole");
    make_npy("b.npy", "(99999999999, 6, 9)", N);
    refused("b.npy", OCT_E_FORMAT, "truncated");
}
