/* Recordings that others made, that are damaged, or that lie. */
#include "pipeline/volume/hdf5_probe.h"
#include "test/rig/tap.h"
#include "test/rig/volume_cases.h"

#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- making files as another program would ---- */

struct foreign {
    hid_t type;   /* in the file */
    hid_t memory; /* of values */
    const void *values;
    int rank;
    hsize_t dims[4];
    hsize_t chunk[4]; /* [0] 0: contiguous */
    bool gzip;
};

static void put_foreign(hid_t file, const char *name, const struct foreign *f)
{
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(f->rank, f->dims, NULL);
    H5Pset_create_intermediate_group(links, 1);
    if (f->chunk[0])
        H5Pset_chunk(properties, f->rank, f->chunk);
    if (f->gzip)
        H5Pset_deflate(properties, 4);
    hid_t set = H5Dcreate2(file, name, f->type, space, links, properties, H5P_DEFAULT);
    assert_true(set >= 0);
    if (f->values)
        assert_true(H5Dwrite(set, f->memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, f->values) >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(properties);
    H5Pclose(links);
}

static hid_t new_file(const char *path)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

/* A file with the one dataset; opening it must be refused with `reason` in the message. */
static void expect_refused(const char *name, const struct foreign *f, const char *reason)
{
    struct oct_volume_reader *r;
    struct oct_error err = {0};
    hid_t file = new_file("refused.h5");
    struct foreign good = {.type = H5T_STD_U16LE, .rank = 3, .dims = {2, 3, 8}};
    if (strcmp(name, "/spectra") != 0)
        put_foreign(file, "/spectra", &good);
    put_foreign(file, name, f);
    H5Fclose(file);
    enum oct_err e = oct_volume_open(&r, "refused.h5", &err);
    if (e != OCT_E_FORMAT || r || !strstr(err.text, reason) || !strstr(err.text, "refused.h5: "))
        fail_msg("%s: code %d, \"%s\", wanted \"%s\"", name, (int)e, err.text, reason);
}

/* ---- files of others ---- */

TEST(packed_and_big_endian_arrays_of_others_are_read)
{
    uint16_t spectra[3][4][8], got[4][8];
    double pictures[3][4][5];
    float image[4][5];
    uint8_t mask[4];
    for (int v = 0; v < 3; v++)
        for (int j = 0; j < 4; j++) {
            for (int i = 0; i < 8; i++)
                spectra[v][j][i] = (uint16_t)(v * 1000 + j * 8 + i + 1);
            for (int i = 0; i < 5; i++)
                pictures[v][j][i] = v - j * 0.5 + i;
        }
    hid_t file = new_file("packed.h5");
    put_foreign(file, "/spectra",
                &(struct foreign){
                    H5T_STD_U16BE, H5T_NATIVE_UINT16, spectra, 3, {3, 4, 8}, {2, 3, 5}, true});
    put_foreign(
        file, "/bscans",
        &(struct foreign){H5T_IEEE_F64BE, H5T_NATIVE_DOUBLE, pictures, 3, {3, 4, 5}, {0}, false});
    H5Fclose(file);

    struct oct_volume_reader *r;
    struct oct_error err;
    struct oct_calibration cal;
    struct oct_raw_frame frame = {.spectra = &got[0][0], .line_valid = mask};
    bool valid = false;
    must(oct_volume_open(&r, "packed.h5", &failure));
    const struct oct_volume_facts *f = oct_volume_facts(r);
    assert_int_equal(f->n_bscans, 3);
    assert_int_equal(f->n_lines, 4);
    assert_int_equal(f->n_samples, 8);
    assert_int_equal(f->depth, 5);
    assert_int_equal(f->sample_type, OCT_SAMPLE_F32);
    assert_true(f->whole);
    assert_string_equal(f->software, "");
    assert_null(oct_volume_config_text(r));
    for (uint32_t v = 0; v < 3; v++) {
        assert_int_equal(oct_volume_read_spectra(r, v, &frame, &valid, &err), OCT_OK);
        assert_true(valid);
        assert_memory_equal(got, spectra[v], sizeof(got));
        assert_memory_equal(mask, "\1\1\1\1", 4);
        assert_int_equal(oct_volume_read_image(r, v, image, &valid, &err), OCT_OK);
        for (int i = 0; i < 20; i++)
            assert_true(image[i / 5][i % 5] == (float)pictures[v][i / 5][i % 5]);
        assert_int_equal(oct_volume_read_image_lines(r, v, 2, 2, image, &err), OCT_OK);
        for (int i = 0; i < 10; i++)
            assert_true(image[i / 5][i % 5] == (float)pictures[v][2 + i / 5][i % 5]);
    }
    assert_int_equal(oct_volume_read_spectra(r, 3, &frame, &valid, &err), OCT_E_ARG);
    assert_int_equal(oct_volume_calibration(r, &cal, &err), OCT_OK);
    assert_null(cal.wavelengths_nm);
    oct_calibration_finish(&cal);
    oct_volume_reader_destroy(r);
}

TEST(eight_bit_spectra_and_lines_of_zeros_without_a_mask)
{
    uint8_t spectra[2][3][4] = {{{1, 2, 3, 4}, {0}, {5, 0, 0, 0}}, {{0}, {1}, {1}}};
    uint32_t missing[2] = {1, 0};
    uint16_t got[3][4];
    uint8_t mask[3];
    hid_t file = new_file("eight.h5");
    put_foreign(file, "/spectra",
                &(struct foreign){.type = H5T_STD_U8LE,
                                  .memory = H5T_NATIVE_UINT8,
                                  .values = spectra,
                                  .rank = 3,
                                  .dims = {2, 3, 4}});
    put_foreign(file, "/frames/missing_lines",
                &(struct foreign){.type = H5T_STD_I64BE,
                                  .memory = H5T_NATIVE_UINT32,
                                  .values = missing,
                                  .rank = 1,
                                  .dims = {2}});
    H5Fclose(file);
    struct oct_volume_reader *r;
    struct oct_error err;
    struct oct_raw_frame frame = {.spectra = &got[0][0], .line_valid = mask};
    bool valid;
    must(oct_volume_open(&r, "eight.h5", &failure));
    assert_int_equal(oct_volume_facts(r)->missing_lines, 1);
    assert_int_equal(oct_volume_read_spectra(r, 0, &frame, &valid, &err), OCT_OK);
    assert_int_equal(got[0][3], 4);
    assert_memory_equal(mask, "\1\0\1", 3);
    assert_int_equal(frame.info.missing_lines, 1);
    assert_int_equal(oct_volume_read_spectra(r, 1, &frame, &valid, &err), OCT_OK);
    assert_memory_equal(mask, "\1\1\1", 3); /* none is missing: a dark line is a dark line */
    assert_int_equal(oct_volume_read_image(r, 0, got, &valid, &err), OCT_E_ARG);
    oct_volume_reader_destroy(r);
}

TEST(attributes_of_any_kind_do_no_harm)
{
    struct foreign good = {.type = H5T_STD_U16LE, .rank = 3, .dims = {2, 3, 8}};
    hid_t file = new_file("attributes.h5");
    put_foreign(file, "/spectra", &good);
    hid_t scalar = H5Screate(H5S_SCALAR), text = H5Tcopy(H5T_C_S1);
    hsize_t two = 2;
    hid_t pair = H5Screate_simple(1, &two, NULL);
    H5Tset_size(text, 6);
    int number = 7;
    hid_t a = H5Acreate2(file, "software", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, H5T_NATIVE_INT, &number);
    H5Aclose(a);
    a = H5Acreate2(file, "eye", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, text, "ODODOD"); /* no NUL, and longer than it may be */
    H5Aclose(a);
    a = H5Acreate2(file, "pseudonym", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, text, "a\n\033[2J");
    H5Aclose(a);
    a = H5Acreate2(file, "config", text, pair, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, text, "abcdefghijkl");
    H5Aclose(a);
    H5Tset_size(text, H5T_VARIABLE);
    a = H5Acreate2(file, "start_time", text, scalar, H5P_DEFAULT, H5P_DEFAULT); /* never written */
    H5Aclose(a);
    H5Tclose(text);
    H5Sclose(pair);
    H5Sclose(scalar);
    H5Fclose(file);
    struct oct_volume_reader *r;
    must(oct_volume_open(&r, "attributes.h5", &failure));
    assert_string_equal(oct_volume_facts(r)->software, "");
    assert_string_equal(oct_volume_facts(r)->eye, "ODODOD");
    assert_string_equal(oct_volume_facts(r)->pseudonym, "a??[2J");
    assert_string_equal(oct_volume_facts(r)->start_time, "");
    assert_null(oct_volume_config_text(r));
    oct_volume_reader_destroy(r);
}

/* ---- files that are refused ---- */

TEST(gap_columns_of_different_lengths_are_refused)
{
    static const char *const names[] = {"/gaps/acquisition", "/gaps/first_line", "/gaps/n_lines",
                                        "/gaps/reason"};
    const uint32_t values[4] = {1, 1, 1, 1};
    for (int odd = 0; odd < 4; odd++)
        for (hsize_t length = 0; length < 6; length++) {
            struct foreign good = {.type = H5T_STD_U16LE, .rank = 3, .dims = {2, 3, 8}};
            struct oct_volume_reader *r;
            struct oct_error err = {0};
            hid_t file = new_file("gaps.h5");
            put_foreign(file, "/spectra", &good);
            for (int i = 0; i < 4; i++) {
                struct foreign column = {.type = H5T_STD_U32LE,
                                         .memory = H5T_NATIVE_UINT32,
                                         .values = i == odd && length != 4 ? NULL : values,
                                         .rank = 1,
                                         .dims = {i == odd ? length : 4}};
                put_foreign(file, names[i], &column);
            }
            H5Fclose(file);
            enum oct_err e = oct_volume_open(&r, "gaps.h5", &err);
            assert_int_equal(e, length == 4 ? OCT_OK : OCT_E_FORMAT);
            assert_true(length == 4 || strstr(err.text, "/gaps/") != NULL);
            oct_volume_reader_destroy(r);
        }
}

TEST(arrays_of_a_wrong_shape_or_type_are_refused_with_the_reason)
{
    const hid_t u8 = H5T_STD_U8LE, u16 = H5T_STD_U16LE, f64 = H5T_IEEE_F64LE;
    const hsize_t many = (hsize_t)1 << 40;
    hid_t text = H5Tcopy(H5T_C_S1);
    const struct {
        const char *name, *reason;
        struct foreign f;
    } cases[] = {
        {"/spectra", "axes", {.type = u16, .rank = 2, .dims = {2, 3}}},
        {"/spectra", "axes", {.type = u16, .rank = 4, .dims = {2, 3, 8, 1}}},
        {"/spectra", "unsigned", {.type = H5T_STD_I16LE, .rank = 3, .dims = {2, 3, 8}}},
        {"/spectra", "unsigned", {.type = f64, .rank = 3, .dims = {2, 3, 8}}},
        {"/spectra", "unsigned", {.type = H5T_STD_U32LE, .rank = 3, .dims = {2, 3, 8}}},
        {"/spectra", "neither integers", {.type = text, .rank = 3, .dims = {2, 3, 8}}},
        {"/spectra", "empty", {.type = u16, .rank = 3, .dims = {0, 3, 8}}},
        {"/spectra", "beyond", {.type = u16, .rank = 3, .dims = {2, 3, 3}}},
        {"/spectra", "beyond", {.type = u16, .rank = 3, .dims = {many, 3, 8}, .chunk = {1, 1, 1}}},
        {"/spectra", "beyond", {.type = u16, .rank = 3, .dims = {1, many, 8}, .chunk = {1, 1, 1}}},
        {"/spectra",
         "beyond",
         {.type = u16, .rank = 3, .dims = {1, 65536, 131072}, .chunk = {1, 1, 8}}},
        {"/spectra",
         "chunks",
         {.type = u16, .rank = 3, .dims = {999, 999, 9999}, .chunk = {99, 999, 9999}}},
        {"/bscans", "/spectra", {.type = u8, .rank = 3, .dims = {2, 4, 8}}},
        {"/bscans", "/spectra", {.type = u8, .rank = 3, .dims = {3, 3, 8}}},
        {"/bscans", "floats or", {.type = H5T_STD_I8LE, .rank = 3, .dims = {2, 3, 8}}},
        {"/bscans", "beyond", {.type = u8, .rank = 3, .dims = {2, 3, 0}}},
        {"/bscans/x", "dataset", {.type = u8, .rank = 3, .dims = {2, 3, 8}}},
        {"/frames/valid", "rows", {.type = u8, .rank = 1, .dims = {3}}},
        {"/frames/valid", "axes", {.type = u8, .rank = 2, .dims = {2, 3}}},
        {"/frames/sequence", "integers", {.type = f64, .rank = 1, .dims = {2}}},
        {"/frames/line_valid", "[2][3]", {.type = u8, .rank = 2, .dims = {2, 4}}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_refused(cases[i].name, &cases[i].f, cases[i].reason);
    H5Tclose(text);
}

TEST(a_calibration_of_a_wrong_shape_is_refused)
{
    struct foreign good = {.type = H5T_STD_U16LE, .rank = 3, .dims = {2, 3, 8}};
    struct foreign bad = {.type = H5T_IEEE_F64LE, .rank = 2, .dims = {8, 3}};
    struct foreign fine = {.type = H5T_IEEE_F32BE, .rank = 1, .dims = {8}};
    hid_t file = new_file("calibration.h5");
    put_foreign(file, "/spectra", &good);
    put_foreign(file, "/calibration/wavelengths_nm", &fine);
    put_foreign(file, "/calibration/dispersion", &bad);
    H5Fclose(file);
    struct oct_volume_reader *r;
    struct oct_calibration cal;
    must(oct_volume_open(&r, "calibration.h5", &failure));
    must_fail(oct_volume_calibration(r, &cal, &failure), OCT_E_FORMAT,
              "calibration.h5: /calibration/dispersion");
    assert_null(cal.wavelengths_nm);
    oct_volume_reader_destroy(r);
}

TEST(what_is_no_recording_is_refused_with_the_reason)
{
    struct oct_volume_reader *r;
    struct oct_error err;
    must_fail(oct_volume_open(&r, "none.h5", &failure), OCT_E_IO, "none.h5: ");
    assert_null(r);
    assert_int_equal(oct_volume_open(&r, ".", &err), OCT_E_FORMAT);
    assert_int_equal(mkfifo("pipe.h5", 0600), 0);
    assert_int_equal(oct_volume_open(&r, "pipe.h5", &err), OCT_E_FORMAT);
    FILE *out = fopen("text.h5", "w");
    fputs("this is no HDF5 file\n", out);
    fclose(out);
    must_fail(oct_volume_open(&r, "text.h5", &failure), OCT_E_FORMAT,
              "text.h5: not an HDF5 file (21 bytes)");
    fclose(fopen("nothing.h5", "w"));
    assert_int_equal(oct_volume_open(&r, "nothing.h5", &err), OCT_E_FORMAT);
    H5Fclose(new_file("other.h5"));
    must_fail(oct_volume_open(&r, "other.h5", &failure), OCT_E_FORMAT,
              "neither /spectra nor /bscans");
}

/* ---- damage ---- */

static void write_bytes(const char *path, const unsigned char *data, size_t bytes)
{
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, bytes, out), bytes);
    fclose(out);
}

/* Opens and reads everything there is, as octctl would; whatever comes is fine but a crash. */
static enum oct_err read_everything(const char *path, struct oct_error *err)
{
    struct oct_volume_reader *r;
    struct oct_calibration cal;
    bool valid;
    enum oct_err e = oct_volume_open(&r, path, err);
    if (e != OCT_OK)
        return e;
    const struct oct_volume_facts *f = oct_volume_facts(r);
    size_t n_depth = (size_t)f->n_lines * f->depth * sizeof(float);
    struct oct_raw_frame frame = {
        .spectra = malloc((size_t)f->n_lines * f->n_samples * 2 + 1),
        .line_valid = malloc(f->n_lines),
    };
    void *pixels = malloc(n_depth + 1);
    for (uint32_t v = 0; v < f->n_bscans && v < 50 && e == OCT_OK; v++) {
        if (f->n_samples)
            e = oct_volume_read_spectra(r, v, &frame, &valid, err);
        if (e == OCT_OK && f->depth)
            e = oct_volume_read_image(r, v, pixels, &valid, err);
    }
    if (oct_volume_calibration(r, &cal, err) == OCT_OK)
        oct_calibration_finish(&cal);
    free(pixels);
    free(frame.spectra);
    free(frame.line_valid);
    oct_volume_reader_destroy(r);
    return e;
}

static unsigned char *make_recording(size_t *bytes)
{
    struct oct_plan plan = volume_plan(64, 5, 6, 16, OCT_SAMPLE_F32);
    double wavelengths[64];
    struct oct_volume_writer *w;
    for (int i = 0; i < 64; i++)
        wavelengths[i] = 800 + i;
    plan.calibration.wavelengths_nm = wavelengths;
    plan.calibration.n_wavelengths = 64;
    unlink("whole.h5");
    must(oct_volume_create(&w, "whole.h5", &plan, &volume_about, true, true, &failure));
    for (uint32_t v = 0; v < 6; v++)
        must(volume_put(w, &plan.geometry, v, true, true, &failure));
    must(oct_volume_close(w, &failure));
    return volume_slurp("whole.h5", bytes);
}

TEST(a_truncated_recording_is_refused_at_any_length)
{
    size_t bytes;
    struct oct_error err;
    unsigned char *data = make_recording(&bytes);
    assert_int_equal(read_everything("whole.h5", &err), OCT_OK);
    for (size_t n = 0; n < bytes; n += n < 4096 ? 61 : 1021) {
        write_bytes("cut.h5", data, n);
        enum oct_err e = read_everything("cut.h5", &err);
        if (e != OCT_E_FORMAT || !strstr(err.text, "cut.h5: "))
            fail_msg("%zu bytes: code %d, %s", n, (int)e, err.text);
    }
    write_bytes("cut.h5", data, bytes - 1);
    must_fail(read_everything("cut.h5", &failure), OCT_E_FORMAT, "truncated");
    free(data);
}

/* One bit pattern at one place. libhdf5 itself crashes or loops on some of these: the reader must
 * come back with a line all the same. */
static enum oct_err read_flipped(unsigned char *data, size_t bytes, size_t i, unsigned char flip)
{
    struct oct_error err;
    data[i] ^= flip;
    write_bytes("flip.h5", data, bytes);
    data[i] ^= flip;
    enum oct_err e = read_everything("flip.h5", &err);
    if (e != OCT_OK && ((e != OCT_E_FORMAT && e != OCT_E_IO) || !strstr(err.text, "flip.h5: ")))
        fail_msg("byte %zu ^ %02x: code %d, %s", i, flip, (int)e, err.text);
    return e;
}

TEST(damaged_metadata_never_crashes_the_reader)
{
    size_t bytes;
    unsigned char *data = make_recording(&bytes);
    unsigned n_refused = 0, n_tried = 0;
    for (size_t i = 0; i + 4 <= bytes; i++) {
        bool dense = memcmp(data + i, "HEAP", 4) == 0 || memcmp(data + i, "GCOL", 4) == 0 ||
                     memcmp(data + i, "TREE", 4) == 0 || memcmp(data + i, "SNOD", 4) == 0;
        if (i % 61 == 0 && data[i] != 0) {
            n_refused += read_flipped(data, bytes, i, 0xff) != OCT_OK;
            n_tried++;
        }
        for (size_t k = 0; dense && k < 12 && i + k < bytes; k++, n_tried++)
            n_refused += read_flipped(data, bytes, i + k, 0x80) != OCT_OK;
    }
    print_message("# %u of %u refused\n", n_refused, n_tried);
    assert_true(n_refused > 20 && n_refused < n_tried);
    free(data);
}

static void look_and_crash(const char *path)
{
    (void)path;
    abort();
}

static void look_for_ever(const char *path)
{
    for (volatile const char *p = path; p; p = path)
        ;
}

static void look_and_end(const char *path)
{
    (void)path;
}

TEST(a_look_that_crashes_or_never_ends_is_survived)
{
    struct oct_error err;
    assert_int_equal(oct_hdf5_probe("x.h5", look_and_end, &err), OCT_OK);
    must_fail(oct_hdf5_probe("x.h5", look_and_crash, &failure), OCT_E_FORMAT, "x.h5: damaged");
    assert_int_equal(oct_hdf5_probe("x.h5", look_for_ever, &err), OCT_E_FORMAT);
    signal(SIGCHLD, SIG_IGN);
    assert_int_equal(oct_hdf5_probe("x.h5", look_and_end, &err), OCT_OK);
    assert_int_equal(oct_hdf5_probe("x.h5", look_and_crash, &err), OCT_E_FORMAT);
    signal(SIGCHLD, SIG_DFL);
}

static volatile sig_atomic_t is_cancelled;

static void raise_flag(int number)
{
    (void)number;
    is_cancelled = 1;
}

/* Ends after a minute, or with its parent's wish. */
static void look_and_wait(const char *path)
{
    (void)path;
    kill(getppid(), SIGTERM);
    for (;;)
        pause();
}

TEST(a_look_ends_when_its_program_is_told_to)
{
    struct oct_error err;
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    const time_t began = time(NULL);
    /* Caught. */
    sigaction(SIGTERM, &(const struct sigaction){.sa_handler = raise_flag}, NULL);
    oct_hdf5_probe_cancel(&is_cancelled);
    must_fail(oct_hdf5_probe("x.h5", look_and_wait, &failure), OCT_E_CLOSED, "x.h5: interrupted");
    assert_int_equal(is_cancelled, 1);
    is_cancelled = 0;
    assert_int_equal(oct_hdf5_probe("x.h5", look_and_end, &err), OCT_OK);
    /* Blocked. */
    sigprocmask(SIG_BLOCK, &term, NULL);
    assert_int_equal(oct_hdf5_probe("x.h5", look_and_wait, &err), OCT_E_CLOSED);
    sigprocmask(SIG_UNBLOCK, &term, NULL);
    assert_int_equal(is_cancelled, 1);
    oct_hdf5_probe_cancel(NULL);
    signal(SIGTERM, SIG_DFL);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    assert_true(time(NULL) - began < 30);             /* each would take a minute by itself */
}
