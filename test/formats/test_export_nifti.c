/* NIfTI as octctl export writes it: which way axes run, what is unknown, what is refused, and
 * what our own reader makes of it. With a folder as argument it writes the files that
 * test/process/test_export_nifti.py reads by nibabel. */
#include "formats/volumes.h"
#include "test/rig/export_rig.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <nifti2_io.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static const uint32_t small[3] = {5, 7, 11};
static const double known_um[3] = {25, 10, 4.5};

static void write_one(const char *path, const struct oct_export_source *source)
{
    must(oct_export_nifti.write(path, source, 1, &export_rig_options, &failure));
}

static struct nifti_1_header header_of(const char *path)
{
    struct nifti_1_header header;
    gzFile file = gzopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(gzread(file, &header, sizeof(header)), sizeof(header));
    gzclose(file);
    return header;
}

/* ---- which way axes run ---- */

static void check_direction(const struct nifti_1_header *h, int file_axis, int row, float mm)
{
    const float *rows[3] = {h->srow_x, h->srow_y, h->srow_z};
    for (int i = 0; i < 3; i++)
        assert_true(rows[i][file_axis] == (i == row ? -mm : 0.0F));
    assert_true(h->pixdim[file_axis + 1] == mm);
}

/* Left, posterior, inferior: the same for both eyes, for A-lines run as a fundus is looked at. */
TEST(axes_are_those_of_a_fundus)
{
    static const char *const eyes[] = {"OD", "OS", ""};
    static const char *const said[] = {
        "eye OD; axes PLI by convention, origin unknown; bscans, dB",
        "eye OS; axes PLI by convention, origin unknown; bscans, dB",
        "eye unknown; axes PLI by convention, origin unknown; bscans, dB"};
    const char *path = "eye.nii";
    for (int i = 0; i < 3; i++) {
        struct export_rig rig;
        export_rig_init(&rig, "bscan line depth", small, known_um, OCT_EXPORT_F32);
        rig.source.form.eye = eyes[i];
        write_one(path, &rig.source);
        const struct nifti_1_header h = header_of(path);
        check_direction(&h, 0, 1, 0.0045F);
        check_direction(&h, 1, 0, 0.01F);
        check_direction(&h, 2, 2, 0.025F);
        assert_true(h.sform_code == 1 && h.qform_code == 1 && h.pixdim[0] == 1);
        assert_true(h.srow_x[3] == 0 && h.srow_y[3] == 0 && h.srow_z[3] == 0);
        assert_int_equal(h.xyzt_units, 2);
        assert_string_equal(h.descrip, said[i]);
    }
}

/* Other orders of the same axes keep each axis's direction. */
TEST(directions_go_by_names)
{
    const char *path = "order.nii";
    struct export_rig rig;
    export_rig_init(&rig, "depth bscan line", small, known_um, OCT_EXPORT_F32);
    write_one(path, &rig.source);
    const struct nifti_1_header h = header_of(path);
    check_direction(&h, 0, 0, 0.0045F);
    check_direction(&h, 1, 2, 0.01F);
    check_direction(&h, 2, 1, 0.025F);
    assert_true(h.qform_code == 1);
    export_rig_init(&rig, "line bscan depth", small, known_um, OCT_EXPORT_F32);
    write_one(path, &rig.source);
    assert_true(header_of(path).pixdim[0] == -1); /* a left-handed one is said so */
}

TEST(what_has_no_direction_has_no_form)
{
    const double um[3] = {25, 10, NAN}, slab_um[3] = {NAN, 25, 10};
    const uint32_t slab[3] = {1, 5, 7};
    const char *path = "none.nii";
    struct export_rig rig;
    export_rig_init(&rig, "bscan line sample", small, um, OCT_EXPORT_U16);
    write_one(path, &rig.source);
    struct nifti_1_header h = header_of(path);
    assert_true(h.sform_code == 0 && h.qform_code == 0 && h.pixdim[1] == 1);
    assert_string_equal(h.descrip, "eye unknown; pixdim[1] is no length; bscans, dB");
    export_rig_init(&rig, "what bscan line", small, known_um, OCT_EXPORT_F32);
    write_one(path, &rig.source);
    h = header_of(path);
    assert_true(h.sform_code == 0 && h.qform_code == 0 && h.pixdim[3] == 0.025F);
    export_rig_init(&rig, "volume bscan line", slab, slab_um, OCT_EXPORT_F32);
    rig.source.form.eye = "OS";
    write_one(path, &rig.source);
    h = header_of(path);
    assert_true(h.sform_code == 1);
    check_direction(&h, 0, 0, 0.01F);
    check_direction(&h, 1, 2, 0.025F);
    assert_true(strstr(h.descrip, "axes LIP by convention") && strstr(h.descrip, "pixdim[3]"));
}

/* ---- there and back ---- */

TEST(our_own_reader_reads_it)
{
    static const char *const names[] = {"own.nii", "own.nii.gz"};
    enum { N = 5 * 7 * 11 };
    float values[N];
    uint8_t u8[N];
    struct oct_volume_info info;
    export_rig_fill(OCT_EXPORT_U8, 0, N, u8);
    for (int i = 0; i < 4; i++) {
        struct export_rig rig;
        const char *path = names[i % 2];
        export_rig_init(&rig, "bscan line depth", small, known_um, OCT_EXPORT_U8);
        rig.source.form.lo = i < 2 ? -10 : NAN;
        rig.source.form.hi = i < 2 ? 41 : NAN;
        write_one(path, &rig.source);
        must(oct_volume_look(path, &info, &failure));
        assert_memory_equal(info.dims, small, sizeof(small));
        for (int k = 0; k < 3; k++)
            assert_true(fabs(info.um[k] - known_um[k]) < 1e-5);
        assert_true(fabs(info.to_mm[0][1] + 0.01) < 1e-8 && info.to_mm[0][0] == 0);
        must(oct_volume_load(path, &info, values, &failure));
        for (int k = 0; k < N; k++)
            assert_true(fabs((double)values[k] - (i < 2 ? u8[k] / 5.0 - 10 : u8[k])) < 1e-5);
    }
}

/* ---- faults ---- */

static void refused(const struct oct_export_source *source, enum oct_err code, const char *says)
{
    static const char *const names[] = {"refused.nii", "refused.nii.gz"};
    for (int i = 0; i < 2; i++) {
        const char *path = names[i];
        must_fail(oct_export_nifti.write(path, source, 1, &export_rig_options, &failure), code,
                  says);
        assert_int_equal(access(path, F_OK), -1);
    }
}

/* Never a silent 1. */
TEST(unknown_lengths_are_refused)
{
    static const char *const says[3] = {"how far bscans of bscans", "how far lines of bscans",
                                        "how far depths of bscans"};
    static const double wrong[] = {NAN, 0, -1, INFINITY};
    struct export_rig rig;
    for (int axis = 0; axis < 3; axis++)
        for (int i = 0; i < 4; i++) {
            export_rig_init(&rig, "bscan line depth", small, known_um, OCT_EXPORT_F32);
            rig.source.form.um[axis] = wrong[i];
            refused(&rig.source, OCT_E_ARG, says[axis]);
            refused(&rig.source, OCT_E_ARG, "--pixel-um");
        }
}

TEST(what_fails_leaves_nothing)
{
    const uint32_t none[3] = {5, 0, 11};
    volatile sig_atomic_t cancel = 1;
    const struct oct_export_options options = {.force = true, .cancel = &cancel};
    struct export_rig rig;
    struct oct_error err;
    export_rig_init(&rig, "bscan line depth", none, known_um, OCT_EXPORT_F32);
    refused(&rig.source, OCT_E_ARG, "holds nothing");
    export_rig_init(&rig, "bscan line depth", small, known_um, OCT_EXPORT_F32);
    rig.fails_at = 4;
    refused(&rig.source, OCT_E_IO, "plane 4 cannot be read");
    rig.fails_at = UINT32_MAX;
    assert_int_equal(oct_export_nifti.write("cancelled.nii", &rig.source, 1, &options, &err),
                     OCT_E_CLOSED);
    assert_int_equal(access("cancelled.nii", F_OK), -1);
}

TEST(a_full_disk_is_an_error)
{
    static const char *const names[] = {"full.nii", "full.nii.gz"};
    const uint32_t dims[3] = {20, 64, 64};
    struct rlimit before;
    struct stat st;
    struct export_rig rig;
    export_rig_init(&rig, "bscan line depth", dims, known_um, OCT_EXPORT_F32);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (int i = 0; i < 2; i++) {
        const char *path = names[i];
        write_one(path, &rig.source);
        assert_int_equal(stat(path, &st), 0);
        for (off_t bytes = 1; bytes < st.st_size; bytes += st.st_size / 9 + 1) {
            struct oct_error err = {.text = ""};
            const struct rlimit less = {.rlim_cur = (rlim_t)bytes, .rlim_max = before.rlim_max};
            assert_int_equal(unlink(path) != 0, bytes > 1);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
            const enum oct_err e =
                oct_export_nifti.write(path, &rig.source, 1, &export_rig_options, &err);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
            assert_int_equal(e, OCT_E_IO);
            assert_non_null(strstr(err.text, path));
        }
    }
}

/* ---- files for others ---- */

static void put(const char *folder, const char *name, const char *axes, const uint32_t dims[3],
                const double um[3], enum oct_export_sample sample, const char *eye)
{
    char path[4096];
    struct oct_error err = {.text = ""};
    struct export_rig rig;
    export_rig_init(&rig, axes, dims, um, sample);
    rig.source.form.eye = eye;
    if (strncmp(name, "scaled", 6) == 0) {
        rig.source.form.lo = -10;
        rig.source.form.hi = 41;
        rig.source.form.plane_s = 0.004;
    }
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (oct_export_nifti.write(path, &rig.source, 1, &export_rig_options, &err) != OCT_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
}

static int write_for_others(const char *folder)
{
    const double spectra_um[3] = {25, 10, NAN}, slab_um[3] = {NAN, 25, 10};
    const uint32_t slab[3] = {1, 5, 7}, long_side[3] = {3, 40000, 2};
    const char *axes = "bscan line depth";
    put(folder, "f32.nii", axes, small, known_um, OCT_EXPORT_F32, "OD");
    put(folder, "f32.nii.gz", axes, small, known_um, OCT_EXPORT_F32, "OS");
    put(folder, "u8.nii.gz", axes, small, known_um, OCT_EXPORT_U8, "");
    put(folder, "u16.nii", axes, small, known_um, OCT_EXPORT_U16, "");
    put(folder, "scaled.nii.gz", axes, small, known_um, OCT_EXPORT_U8, "OD");
    put(folder, "spectra.nii", "bscan line sample", small, spectra_um, OCT_EXPORT_U16, "OD");
    put(folder, "slab.nii.gz", "volume bscan line", slab, slab_um, OCT_EXPORT_F32, "OS");
    put(folder, "long.nii", axes, long_side, known_um, OCT_EXPORT_U8, "OD");
    put(folder, "long.nii.gz", axes, long_side, known_um, OCT_EXPORT_F32, "OD");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return write_for_others(argv[1]);
    return test_run();
}
