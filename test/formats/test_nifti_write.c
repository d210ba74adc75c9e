/* NIfTI as output: the bytes are where nifti1.h and nifti2.h say, what is read again is what was
 * written, and displacements are those that ITK adds to a place. */
#include "formats/nifti_write.h"
#include "formats/volumes.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

enum { D = 7, M = 5, V = 3, N = D * M * V };

static const double known_um[3] = {25, 10, 4};
static const double unknown_um[3] = {25, NAN, 4};

static struct oct_nifti_form form_of(const double um[3])
{
    return (struct oct_nifti_form){
        .dims = {V, M, D}, .um = {um[0], um[1], um[2]}, .description = "a test"};
}

static float value(unsigned i)
{
    return i == 3 ? NAN : (float)i * 0.37F - 4;
}

static void fill(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = value((unsigned)i);
}

/* The bytes of a file, unpacked. */
static size_t bytes_of(const char *path, unsigned char *bytes, unsigned room)
{
    gzFile stream = gzopen(path, "rb");
    assert_non_null(stream);
    const int n = gzread(stream, bytes, room);
    assert_true(n > 0 && (unsigned)n < room);
    assert_int_equal(gzclose(stream), Z_OK);
    return (size_t)n;
}

static int i16(const unsigned char *at)
{
    int16_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static double f32(const unsigned char *at)
{
    float value;
    memcpy(&value, at, sizeof(value));
    return (double)value;
}

static void write_one(const char *path, const struct oct_nifti_form *form, const float *values)
{
    must(oct_nifti_write(path, true, form, values, &failure));
}

static void check_header(const unsigned char *h)
{
    static const int dims[8] = {3, D, M, V, 1, 1, 1, 1};
    int32_t n;
    memcpy(&n, h, sizeof(n));
    assert_int_equal(n, 348);
    for (int i = 0; i < 8; i++)
        assert_int_equal(i16(h + 40 + 2 * i), dims[i]);
    assert_int_equal(i16(h + 68), 0);  /* intent_code */
    assert_int_equal(i16(h + 70), 16); /* datatype */
    assert_int_equal(i16(h + 72), 32); /* bitpix */
    assert_true(f32(h + 108) == 352 && f32(h + 112) == 1 && f32(h + 116) == 0);
    assert_string_equal((const char *)h + 148, "a test");
    assert_memory_equal(h + 344, "n+1\0\0\0\0\0", 8);
}

TEST(bytes_are_where_the_format_says)
{
    static unsigned char h[4096];
    float values[N];
    const char *paths[2] = {"a.nii", "a.nii.gz"};
    fill(values, N);
    for (int i = 0; i < 2; i++) {
        const struct oct_nifti_form known = form_of(known_um), unknown = form_of(unknown_um);
        write_one(paths[i], &known, values);
        assert_int_equal(bytes_of(paths[i], h, sizeof(h)), 352 + sizeof(values));
        check_header(h);
        assert_memory_equal(h + 352, values, sizeof(values));
        assert_true(f32(h + 80) == (double)0.004F && f32(h + 84) == (double)0.01F &&
                    f32(h + 88) == (double)0.025F);
        assert_int_equal(h[123], 2); /* mm */
        assert_true(i16(h + 252) == 1 && i16(h + 254) == 1);
        assert_true(f32(h + 280) == (double)0.004F && f32(h + 300) == (double)0.01F &&
                    f32(h + 320) == (double)0.025F && f32(h + 292) == 0);
        write_one(paths[i], &unknown, values);
        bytes_of(paths[i], h, sizeof(h));
        check_header(h);
        assert_true(f32(h + 80) == 1 && f32(h + 84) == 1 && f32(h + 88) == 1 && h[123] == 0);
    }
    unsigned char magic[2];
    FILE *packed = fopen(paths[1], "rb");
    assert_true(packed && fread(magic, 1, 2, packed) == 2 && magic[0] == 0x1f && magic[1] == 0x8b);
    fclose(packed);
}

/* ---- there and back ---- */

static struct oct_volume_info looked(const char *path)
{
    struct oct_volume_info info;
    must(oct_volume_look(path, &info, &failure));
    return info;
}

TEST(what_is_read_is_what_was_written)
{
    static const char *const names[] = {"b.nii", "b.nii.gz"};
    float values[N], again[N];
    fill(values, N);
    for (int i = 0; i < 4; i++) {
        const struct oct_nifti_form form = form_of(i < 2 ? known_um : unknown_um);
        const char *path = names[i % 2];
        write_one(path, &form, values);
        const struct oct_volume_info info = looked(path);
        assert_memory_equal(info.dims, form.dims, sizeof(info.dims));
        for (int k = 0; k < 3; k++)
            assert_true(i < 2 ? fabs(info.um[k] - known_um[k]) < 1e-5 : isnan(info.um[k]));
        must(oct_volume_load(path, &info, again, &failure));
        assert_memory_equal(again, values, sizeof(values));
    }
}

TEST(places_come_back)
{
    const double turned[3][4] = {
        {0, 0.006, 0.02, -1}, {0, -0.008, 0.015, 2}, {0.004, 0, 0, 3}}; /* 3, 4, 5 */
    const double flipped[3][4] = {{-0.004, 0, 0, 1}, {0, 0.01, 0, 2}, {0, 0, 0.025, 3}};
    const double sheared[3][4] = {{0.004, 0.002, 0, 0}, {0, 0.01, 0, 0}, {0, 0, 0.025, 7}};
    const double(*const maps[3])[4] = {turned, flipped, sheared};
    static unsigned char h[4096];
    float values[N];
    fill(values, N);
    for (int i = 0; i < 3; i++) {
        struct oct_nifti_form form = form_of(known_um);
        form.to_mm = maps[i];
        write_one("place.nii", &form, values);
        bytes_of("place.nii", h, sizeof(h));
        assert_int_equal(i16(h + 252), i < 2); /* a qform has no shear */
        for (int without = 0; without < 2; without++) {
            if (without && i < 2) {
                FILE *file = fopen("place.nii", "r+b");
                assert_true(file && fseek(file, 254, SEEK_SET) == 0 && fputc(0, file) == 0);
                assert_int_equal(fclose(file), 0); /* the sform is left out: the qform is as good */
            }
            const struct oct_volume_info info = looked("place.nii");
            for (int row = 0; row < 3; row++)
                for (int k = 0; k < 4; k++)
                    assert_true(fabs(info.to_mm[row][k] - maps[i][row][k]) < 1e-6);
            assert_true(fabs(info.um[2] - 4) < 1e-5 && fabs(info.um[0] - 25) < 1e-5);
        }
    }
}

/* Sides beyond NIfTI-1's 16 bits make the file one of NIfTI-2. */
TEST(long_volumes_are_nifti_2)
{
    enum { LONG = 32768 };
    float *values = malloc(LONG * sizeof(float)), *again = malloc(LONG * sizeof(float));
    const struct oct_nifti_form form = {.dims = {1, LONG, 1}, .um = {25, 10, 4}};
    assert_true(values && again);
    fill(values, LONG);
    write_one("long.nii", &form, values);
    const struct oct_volume_info info = looked("long.nii");
    assert_true(info.dims[1] == LONG && info.um[1] == 10);
    must(oct_volume_load("long.nii", &info, again, &failure));
    assert_memory_equal(again, values, LONG * sizeof(float));
    FILE *file = fopen("long.nii", "rb");
    unsigned char start[12];
    assert_true(file && fread(start, 1, sizeof(start), file) == sizeof(start));
    assert_memory_equal(start, "\x1c\x02\0\0n+2\0\r\n\032\n", sizeof(start));
    assert_true(fseek(file, 0, SEEK_END) == 0 && ftell(file) == 544 + 4 * LONG);
    fclose(file);
    free(values);
    free(again);
}

/* ---- displacements ---- */

static const double fixed_map[3][4] = {{0, 0, -0.02, 4}, {0.005, 0, 0, 5}, {0, 0.01, 0, 6}};
static const double moving_map[3][4] = {{0, 0.001, -0.03, 7}, {0.006, 0, 0, 8}, {0, 0.02, 0, 9}};

static double u_of(unsigned axis, unsigned i)
{
    return (double)(float)(sin(i * 0.7 + axis) * (axis + 1));
}

static double place(const double map[4], double d, double m, double v)
{
    return map[0] * d + map[1] * m + map[2] * v + map[3];
}

static void check_displacement(const unsigned char *voxels, const double (*moving)[4])
{
    for (unsigned part = 0; part < 3; part++)
        for (unsigned i = 0; i < N; i++) {
            const unsigned d = i % D, m = i / D % M, v = i / (D * M);
            const double to = place(moving[part], d - u_of(2, i), m - u_of(1, i), v - u_of(0, i));
            const double want = (to - place(fixed_map[part], d, m, v)) * (part < 2 ? -1 : 1);
            const double got = f32(voxels + 4 * ((size_t)part * N + i));
            if (!(fabs(got - want) < 1e-6 * (1 + fabs(want))))
                fail_msg("part %u, voxel %u: %g, not %g", part, i, got, want);
        }
}

TEST(displacements_are_those_of_itk)
{
    static const int dims[8] = {5, D, M, V, 1, 3, 1, 1};
    static unsigned char h[4096];
    static float u[3 * N];
    struct oct_nifti_form form = form_of(known_um);
    form.to_mm = fixed_map;
    for (unsigned i = 0; i < 3 * N; i++)
        u[i] = (float)u_of(i / N, i % N);
    for (int other = 0; other < 2; other++) {
        const char *path = other ? "u.nii.gz" : "u.nii";
        must(oct_nifti_write_displacement(path, false, &form, other ? moving_map : NULL, u,
                                          &failure));
        assert_int_equal(bytes_of(path, h, sizeof(h)), 352 + sizeof(u));
        for (int i = 0; i < 8; i++)
            assert_int_equal(i16(h + 40 + 2 * i), dims[i]);
        assert_true(i16(h + 68) == 1007 && i16(h + 70) == 16 && h[123] == 2);
        check_displacement(h + 352, other ? moving_map : fixed_map);
    }
}

/* ---- whole or not there ---- */

TEST(files_are_whole_or_not_there)
{
    float values[N];
    const struct oct_nifti_form form = form_of(known_um);
    struct oct_error err;
    fill(values, N);
    assert_int_equal(oct_nifti_write("no/such.nii", false, &form, values, &err), OCT_E_IO);
    write_one("there.nii", &form, values);
    must_fail(oct_nifti_write("there.nii", false, &form, values, &failure), OCT_E_IO,
              "exists already");
    assert_int_equal(oct_nifti_write_displacement("there.nii", false, &form, NULL, values, &err),
                     OCT_E_IO);
    looked("there.nii");
}

/* RLIMIT_FSIZE stands for a full disk: the first write beyond it fails. */
TEST(a_full_disk_leaves_nothing)
{
    static float u[3 * N];
    static const char *const names[] = {"full.nii", "full.nii.gz"};
    const struct oct_nifti_form form = form_of(known_um);
    struct rlimit before, small;
    struct oct_error err;
    for (unsigned i = 0; i < 3 * N; i++)
        u[i] = value(i);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (int i = 0; i < 4; i++) {
        const char *path = names[i % 2];
        char work[512];
        small = before;
        small.rlim_cur = 100;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        const enum oct_err e =
            i < 2 ? oct_nifti_write(path, false, &form, u, &err)
                  : oct_nifti_write_displacement(path, false, &form, NULL, u, &err);
        setrlimit(RLIMIT_FSIZE, &before);
        if (e != OCT_E_IO || !strstr(err.text, names[i % 2]) || !strstr(err.text, "too large"))
            fail_msg("code %d, \"%s\"", e, err.text);
        snprintf(work, sizeof(work), "%s.new.%ld", path, (long)getpid());
        assert_true(access(path, F_OK) != 0 && access(work, F_OK) != 0);
    }
}
