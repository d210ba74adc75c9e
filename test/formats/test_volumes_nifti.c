/* NIfTI as input: every version, type, order of bytes and packing gives the voxels and the places
 * that went in; what is damaged, cut or no volume is refused in one line. The files are made here
 * byte by byte. */
#include "formats/volumes.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { D = 7, M = 5, V = 3, N = D * M * V };

/* What a header says; its fields are those of nifti1.h. */
struct header {
    bool is_2, is_big;
    int64_t dim[8];
    double pixdim[8];
    int datatype, units, qform, sform;
    double slope, inter, offset;
    double quatern[3], at[3], srow[3][4];
    const char *magic;
};

static struct header plain(bool is_2)
{
    return (struct header){.is_2 = is_2,
                           .dim = {3, D, M, V, 1, 1, 1, 1},
                           .pixdim = {1, 0.004, 0.01, 0.025},
                           .datatype = 16,
                           .units = 2 | 8,
                           .offset = is_2 ? 544 : 352,
                           .magic = is_2 ? "n+2\0\r\n\032\n" : "n+1"};
}

/* ---- making ---- */

static struct film_bytes file;

static void put_bits(const struct header *h, uint64_t bits, unsigned n)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < n; i++)
        bytes[i] = (unsigned char)(bits >> 8 * (h->is_big ? n - 1 - i : i));
    film_put(&file, bytes, n);
}

static void put_integer(const struct header *h, int64_t value, unsigned n)
{
    put_bits(h, (uint64_t)value, n);
}

static void put_float(const struct header *h, double value, unsigned n)
{
    const float f32 = (float)value;
    uint32_t low;
    uint64_t bits;
    memcpy(&low, &f32, sizeof(low));
    memcpy(&bits, &value, sizeof(bits));
    put_bits(h, n == 4 ? low : bits, n);
}

static void skip_to(size_t at)
{
    static const char zeros[600];
    assert_true(at >= file.n && at - file.n <= sizeof(zeros));
    film_put(&file, zeros, at - file.n);
}

static void put_floats(const struct header *h, const double *values, unsigned count, unsigned n)
{
    for (unsigned i = 0; i < count; i++)
        put_float(h, values[i], n);
}

static void put_header_1(const struct header *h)
{
    put_integer(h, 348, 4);
    skip_to(40);
    for (int i = 0; i < 8; i++)
        put_integer(h, h->dim[i], 2);
    skip_to(70);
    put_integer(h, h->datatype, 2);
    skip_to(76);
    put_floats(h, h->pixdim, 8, 4);
    put_float(h, h->offset, 4);
    put_float(h, h->slope, 4);
    put_float(h, h->inter, 4);
    skip_to(123);
    put_integer(h, h->units, 1);
    skip_to(252);
    put_integer(h, h->qform, 2);
    put_integer(h, h->sform, 2);
    put_floats(h, h->quatern, 3, 4);
    put_floats(h, h->at, 3, 4);
    put_floats(h, h->srow[0], 12, 4);
    skip_to(344);
    film_put(&file, h->magic, 4);
    skip_to(352);
}

static void put_header_2(const struct header *h)
{
    put_integer(h, 540, 4);
    film_put(&file, h->magic, 8);
    put_integer(h, h->datatype, 2);
    skip_to(16);
    for (int i = 0; i < 8; i++)
        put_integer(h, h->dim[i], 8);
    skip_to(104);
    put_floats(h, h->pixdim, 8, 8);
    put_integer(h, (int64_t)h->offset, 8);
    put_float(h, h->slope, 8);
    put_float(h, h->inter, 8);
    skip_to(344);
    put_integer(h, h->qform, 4);
    put_integer(h, h->sform, 4);
    put_floats(h, h->quatern, 3, 8);
    put_floats(h, h->at, 3, 8);
    put_floats(h, h->srow[0], 12, 8);
    skip_to(500);
    put_integer(h, h->units, 4);
    skip_to(544);
}

static const struct {
    int datatype;
    char kind;
    unsigned bytes;
} types[] = {{2, 'u', 1}, {256, 'i', 1},  {512, 'u', 2},  {4, 'i', 2},  {768, 'u', 4},
             {8, 'i', 4}, {1280, 'u', 8}, {1024, 'i', 8}, {16, 'f', 4}, {64, 'f', 8}};
enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

static double value(unsigned type, unsigned i)
{
    const int64_t random = (int64_t)(i * 2654435761u >> (types[type].bytes == 1 ? 25 : 18));
    if (types[type].kind == 'f')
        return i == 4 ? (double)NAN : (double)random / 64 - 100;
    return types[type].kind == 'i' ? (double)(random - 60) : (double)random;
}

static void make(const struct header *h)
{
    unsigned type = 0;
    while (type < N_TYPES - 1 && types[type].datatype != h->datatype)
        type++;
    file.n = 0;
    if (h->is_2)
        put_header_2(h);
    else
        put_header_1(h);
    if (h->offset > (double)file.n && h->offset < 1000)
        skip_to((size_t)h->offset);
    for (unsigned i = 0; i < N; i++)
        if (types[type].kind == 'f')
            put_float(h, value(type, i), types[type].bytes);
        else
            put_integer(h, (int64_t)value(type, i), types[type].bytes);
}

static void pack(const char *path)
{
    gzFile stream = gzopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(gzwrite(stream, file.bytes, (unsigned)file.n), file.n);
    assert_int_equal(gzclose(stream), Z_OK);
}

/* ---- reading ---- */

static struct oct_volume_info looked(const char *path)
{
    struct oct_volume_info info;
    must(oct_volume_look(path, &info, &failure));
    assert_true(info.is_nifti && !info.is_db && !info.is_linear && !info.eye[0]);
    return info;
}

static void load(const char *path, float *values)
{
    const struct oct_volume_info info = looked(path);
    assert_true(info.dims[0] == V && info.dims[1] == M && info.dims[2] == D);
    must(oct_volume_load(path, &info, values, &failure));
}

/* By look, or by load after it. */
static void refused(const char *path, enum oct_err code, const char *says)
{
    static float values[2 * N];
    struct oct_volume_info info;
    struct oct_error err = {.text = ""};
    enum oct_err e = oct_volume_look(path, &info, &err);
    if (!e && (uint64_t)info.dims[0] * info.dims[1] * info.dims[2] <= N)
        e = oct_volume_load(path, &info, values, &err);
    if (e != code || !strstr(err.text, says) || !strstr(err.text, path) || strchr(err.text, '\n'))
        fail_msg("%s: code %d, \"%s\" instead of %d, \"%s\"", path, e, err.text, code, says);
}

static void refuse(const struct header *h, const char *says)
{
    make(h);
    film_write(&file, "refused.nii", file.n);
    refused("refused.nii", OCT_E_FORMAT, says);
    pack("refused.nii.gz");
    refused("refused.nii.gz", OCT_E_FORMAT, says);
}

/* ---- voxels ---- */

static void check_values(const char *path, unsigned type, double slope, double inter)
{
    float values[N];
    load(path, values);
    for (unsigned i = 0; i < N; i++) {
        const float want = (float)(slope * value(type, i) + inter);
        if (values[i] != want && !(isnan(values[i]) && isnan(want)))
            fail_msg("%s: voxel %u is %g, not %g", path, i, (double)values[i], (double)want);
    }
}

TEST(voxels_of_every_kind)
{
    for (unsigned k = 0; k < 4 * N_TYPES; k++) {
        struct header h = plain(k & 1);
        h.is_big = k & 2;
        h.datatype = types[k / 4].datatype;
        make(&h);
        film_write(&file, "kind.img", file.n); /* the name says nothing */
        check_values("kind.img", k / 4, 1, 0);
        pack("kind.gz");
        check_values("kind.gz", k / 4, 1, 0);
    }
}

TEST(scales_apply)
{
    struct header h = plain(false);
    static const double scales[][4] = {
        {2.5, -7, 2.5, -7}, {-0.5, 0, -0.5, 0}, {0, 9, 1, 0}, {NAN, NAN, 1, 0}, {NAN, 3, 1, 0}};
    h.datatype = 4;
    for (unsigned i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
        h.slope = scales[i][0];
        h.inter = scales[i][1];
        make(&h);
        film_write(&file, "scale.nii", file.n);
        check_values("scale.nii", 3, scales[i][2], scales[i][3]);
    }
    h.slope = INFINITY;
    refuse(&h, "scl_slope or scl_inter is not finite");
    h.slope = 2;
    h.inter = NAN;
    refuse(&h, "scl_slope or scl_inter is not finite");
}

TEST(further_axes_of_one_are_no_axes)
{
    struct header h = plain(true);
    h.dim[0] = 5;
    make(&h);
    film_write(&file, "five.nii", file.n);
    check_values("five.nii", 8, 1, 0);
    h.dim[5] = 3;
    refuse(&h, "has 5 axes, 3 along axis 5");
    h.dim[0] = 2;
    refuse(&h, "has 2 axes; a volume has 3");
    h.dim[0] = 1;
    refuse(&h, "has 1 axes; a volume has 3");
}

TEST(headers_may_leave_the_place_of_voxels_out)
{
    struct header h = plain(false);
    h.offset = 0;
    make(&h);
    film_write(&file, "zero.nii", file.n);
    check_values("zero.nii", 8, 1, 0);
    h.offset = 416; /* behind an extension */
    make(&h);
    film_write(&file, "extended.nii", file.n);
    check_values("extended.nii", 8, 1, 0);
}

/* ---- places ---- */

static void check_space(const struct header *h, const double um[3], const double to_mm[3][4])
{
    make(h);
    film_write(&file, "space.nii", file.n);
    const struct oct_volume_info info = looked("space.nii");
    for (int i = 0; i < 3; i++) {
        assert_true(isnan(um[i]) ? isnan(info.um[i]) : fabs(info.um[i] - um[i]) < 1e-5 * um[i]);
        for (int k = 0; k < 4; k++)
            if (!(fabs(info.to_mm[i][k] - to_mm[i][k]) < 1e-6))
                fail_msg("row %d, column %d is %g, not %g", i, k, info.to_mm[i][k], to_mm[i][k]);
    }
}

/* A quarter turn about x, (1/sqrt(2), 1/sqrt(2), 0, 0): y goes to z, z to -y. */
TEST(places_are_those_of_the_header)
{
    const double spaced[3][4] = {{0.004, 0, 0, 0}, {0, 0.01, 0, 0}, {0, 0, 0.025, 0}};
    const double turned[3][4] = {{0.004, 0, 0, 1}, {0, 0, -0.025, 2}, {0, 0.01, 0, 3}};
    const double flipped[3][4] = {{0.004, 0, 0, 1}, {0, 0, 0.025, 2}, {0, 0.01, 0, 3}};
    const double sheared[3][4] = {{0.5, 0.25, 0, -4}, {0, 2, 0, 5}, {0, 0, 3, 6}};
    const double um[3] = {25, 10, 4};
    for (int is_2 = 0; is_2 < 2; is_2++) {
        struct header h = plain(is_2);
        check_space(&h, um, spaced);
        h.qform = 1;
        h.quatern[0] = sqrt(0.5);
        for (int i = 0; i < 3; i++)
            h.at[i] = i + 1;
        check_space(&h, um, turned);
        h.pixdim[0] = -1;
        check_space(&h, um, flipped);
        h.sform = 2;
        memcpy(h.srow, sheared, sizeof(h.srow));
        check_space(&h, um, sheared);
        h.srow[1][1] = 0; /* no map at all: the qform's is left */
        check_space(&h, um, flipped);
        h.srow[1][1] = NAN;
        h.quatern[1] = INFINITY;
        check_space(&h, um, spaced);
    }
}

/* Doubles of NIfTI-2 that are beyond doubles as micrometres, or are 0 then. */
TEST(sizes_that_cannot_be_are_unknown)
{
    const double ones[3][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
    const double um[3] = {NAN, NAN, NAN};
    static const double sizes[] = {1e307, 1e-320, 1e-7, 1e7, INFINITY};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct header h = plain(true);
        h.pixdim[1] = h.pixdim[2] = h.pixdim[3] = sizes[i];
        h.sform = 1;
        h.srow[0][0] = h.srow[1][1] = h.srow[2][2] = 1e200;
        check_space(&h, um, ones);
    }
}

TEST(units_are_those_of_the_header)
{
    static const struct {
        int units;
        double size, um;
    } cases[] = {{1, 4e-6, 4}, {2, 0.004, 4}, {3 | 16, 4, 4}, {0, 0.004, 4}, {0, -0.5, 500},
                 {2, 1, 1000}, {0, 1, NAN},   {0, 0, NAN},    {2, NAN, NAN}};
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct header h = plain(i % 2);
        h.units = cases[i].units;
        h.pixdim[1] = h.pixdim[2] = h.pixdim[3] = cases[i].size;
        make(&h);
        film_write(&file, "units.nii", file.n);
        const struct oct_volume_info info = looked("units.nii");
        for (int axis = 0; axis < 3; axis++) {
            const double mm = isnan(cases[i].um) ? 1 : cases[i].um / 1000;
            assert_true(isnan(cases[i].um) ? isnan(info.um[axis])
                                           : fabs(info.um[axis] / cases[i].um - 1) < 1e-5);
            assert_true(fabs(info.to_mm[axis][axis] / mm - 1) < 1e-5);
        }
    }
}

/* ---- what is refused ---- */

TEST(what_is_no_volume_is_refused_by_name)
{
    static const int others[] = {0, 1, 32, 128, 1536, 1792, 2048, 2304, -5};
    for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct header h = plain(i % 2);
        h.datatype = others[i];
        refuse(&h, others[i] == 128 ? "voxels of type 128 (RGB24)" : "voxels of type");
    }
    for (int is_2 = 0; is_2 < 2; is_2++) {
        struct header h = plain(is_2);
        h.magic = is_2 ? "ni2\0\r\n\032\n" : "ni1";
        refuse(&h, "a pair of files, .hdr and .img");
        h.magic = is_2 ? "n+2\0\n\n\032\n" : "\0\0\0";
        refuse(&h, is_2 ? "without the mark of NIfTI-2" : "Analyze 7.5");
    }
    file.n = 0;
    film_put(&file, "no volume at all", 16);
    pack("text.gz");
    refused("text.gz", OCT_E_FORMAT, "no NIfTI inside");
    film_write(&file, "text.nii", file.n);
    refused("text.nii", OCT_E_FORMAT, "no volume: neither");
    film_write(&file, "empty.nii", 0);
    refused("empty.nii", OCT_E_FORMAT, "no volume: neither");
    refused("absent.nii", OCT_E_IO, "cannot open");
}

TEST(sides_that_cannot_be_are_refused)
{
    struct header h = plain(false);
    h.dim[0] = 8;
    refuse(&h, "a number of axes");
    h.dim[0] = 0;
    refuse(&h, "a number of axes");
    h = plain(false);
    h.dim[2] = 0;
    refuse(&h, "0 voxels along axis 2");
    h.dim[2] = -3;
    refuse(&h, "-3 voxels along axis 2");
    h = plain(false);
    h.dim[1] = h.dim[2] = h.dim[3] = 32767;
    refuse(&h, "truncated NIfTI file");
    h = plain(true);
    h.dim[1] = INT64_MAX;
    refuse(&h, "voxels along axis 1");
    h.dim[1] = h.dim[2] = h.dim[3] = UINT32_MAX; /* 2^96 */
    refuse(&h, "truncated NIfTI file");
    h.dim[1] = (int64_t)1 << 31;
    h.dim[2] = (int64_t)1 << 31;
    h.dim[3] = 4;
    refuse(&h, "truncated NIfTI file");
}

/* Before anything is loaded. */
static void refuse_place(const struct header *h)
{
    struct oct_volume_info info;
    struct oct_error err = {.text = ""};
    refuse(h, "NIfTI file: ");
    assert_int_equal(oct_volume_look("refused.nii", &info, &err), OCT_E_FORMAT);
}

TEST(places_that_cannot_be_are_refused)
{
    static const double offsets[] = {-1, 100, 347, 352.5, 1e30, 1e9, NAN, INFINITY, -INFINITY};
    for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        struct header h = plain(false);
        h.offset = offsets[i];
        refuse_place(&h);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct header h = plain(true);
        h.offset = offsets[i];
        refuse_place(&h);
        h.offset = 0x1p62;
        refuse_place(&h);
    }
}

static size_t size_of(const char *path, unsigned char *bytes, size_t room)
{
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    const size_t n = fread(bytes, 1, room, stream);
    fclose(stream);
    return n;
}

/* Wherever they end; packed ones whatever byte of the checksum is changed. */
TEST(truncated_files_are_refused)
{
    static unsigned char bytes[1 << 16];
    static struct film_bytes packed;
    for (int is_2 = 0; is_2 < 2; is_2++) {
        const struct header h = plain(is_2);
        make(&h);
        for (size_t n = 8; n<file.n; n += n> 300 && n < 600 ? 1 : 13) {
            film_write(&file, "cut.nii", n);
            refused("cut.nii", OCT_E_FORMAT, "truncated");
        }
        pack("whole.gz");
        packed.n = 0;
        film_put(&packed, bytes, size_of("whole.gz", bytes, sizeof(bytes)));
        for (size_t n = 8; n < packed.n; n++) {
            film_write(&packed, "cut.gz", n);
            refused("cut.gz", OCT_E_FORMAT, "");
        }
        for (size_t back = 1; back <= 8; back++) {
            packed.bytes[packed.n - back] ^= 0x10;
            film_write(&packed, "wrong.gz", packed.n);
            refused("wrong.gz", OCT_E_FORMAT, "damaged or truncated by gzip's checks");
            packed.bytes[packed.n - back] ^= 0x10;
        }
    }
}

TEST(a_file_that_changes_meanwhile_is_refused)
{
    static float values[N];
    struct header h = plain(false);
    make(&h);
    film_write(&file, "other.nii", file.n);
    const struct oct_volume_info info = looked("other.nii");
    h.dim[1] = M;
    h.dim[2] = D;
    make(&h);
    film_write(&file, "other.nii", file.n);
    must_fail(oct_volume_load("other.nii", &info, values, &failure), OCT_E_FORMAT,
              "has changed meanwhile");
}
