/* Recordings: what a file says beside its samples: texts, calibration, sizes, added datasets. */
#include "pipeline/volume/hdf5_image.h"
#include "pipeline/volume/hdf5_make.h"
#include "test/rig/tap.h"
#include "test/rig/volume_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST(texts_come_back_even_very_long_ones)
{
    struct oct_plan plan = volume_plan(101, 9, 2, 33, OCT_SAMPLE_U8);
    struct oct_volume_about about = volume_about;
    struct oct_volume_writer *w;
    struct oct_volume_reader *r;
    size_t n = 300000; /* HDF5 keeps attributes beyond 64 KiB elsewhere */
    char *text = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)('a' + i * i % 23);
    text[n] = '\0';
    about.config_text = text;
    about.start_time = NULL;
    must(oct_volume_create(&w, "text.h5", &plan, &about, true, true, &failure));
    volume_close(w);
    must(oct_volume_open(&r, "text.h5", &failure));
    const struct oct_volume_facts *f = oct_volume_facts(r);
    assert_string_equal(oct_volume_config_text(r), text);
    assert_string_equal(f->software, "octd " OCT_VERSION);
    assert_string_equal(f->eye, "OD");
    assert_string_equal(f->pseudonym, volume_about.pseudonym);
    assert_int_equal(strlen(f->start_time), strlen("2026-01-02T03:04:05Z"));
    assert_int_equal(f->start_time[10], 'T');
    assert_int_equal(f->start_time[19], 'Z');
    oct_volume_reader_destroy(r);
    free(text);
}

TEST(the_calibration_comes_back_to_the_last_bit)
{
    struct oct_plan plan = volume_plan(101, 9, 2, 33, OCT_SAMPLE_U8);
    double wavelengths[101], background[101], kmap[7], *phase;
    uint32_t n = plan.geometry.upsampled;
    struct oct_calibration cal;
    struct oct_volume_reader *r;
    phase = malloc(2 * n * sizeof(*phase));
    for (int i = 0; i < 101; i++) {
        wavelengths[i] = 800 + i / 3.0;
        background[i] = i * 1.1;
    }
    for (int i = 0; i < 7; i++)
        kmap[i] = i / 7.0;
    for (uint32_t q = 0; q < 2 * n; q++)
        phase[q] = cos(q);
    plan.calibration = (struct oct_calibration){
        .wavelengths_nm = wavelengths,
        .n_wavelengths = 101,
        .kmap_px = kmap,
        .n_kmap = 7,
        .dispersion = phase,
        .n_dispersion = n,
        .background = background,
        .n_background = 101,
    };
    volume_close(volume_make("cal.h5", &plan, true, true));
    must(oct_volume_open(&r, "cal.h5", &failure));
    must(oct_volume_calibration(r, &cal, &failure));
    assert_int_equal(cal.n_wavelengths, 101);
    assert_memory_equal(cal.wavelengths_nm, wavelengths, sizeof(wavelengths));
    assert_int_equal(cal.n_kmap, 7);
    assert_memory_equal(cal.kmap_px, kmap, sizeof(kmap));
    assert_int_equal(cal.n_background, 101);
    assert_memory_equal(cal.background, background, sizeof(background));
    assert_int_equal(cal.n_dispersion, n);
    assert_memory_equal(cal.dispersion, phase, 2 * n * sizeof(*phase));
    oct_calibration_finish(&cal);
    oct_volume_reader_destroy(r);
    free(phase);
}

TEST(dispersion_coefficients_are_stored_as_the_phase_they_give)
{
    struct oct_plan plan = volume_plan(101, 9, 2, 33, OCT_SAMPLE_U8);
    struct oct_calibration cal;
    struct oct_volume_reader *r;
    uint32_t n = plan.geometry.upsampled;
    plan.calibration.coefficient[2] = 7.5;
    plan.calibration.coefficient[3] = -3.25;
    volume_close(volume_make("coeff.h5", &plan, true, true));
    must(oct_volume_open(&r, "coeff.h5", &failure));
    must(oct_volume_calibration(r, &cal, &failure));
    assert_int_equal(cal.n_dispersion, n);
    assert_null(cal.wavelengths_nm);
    for (uint32_t q = 0; q < n; q++) {
        double t = 2.0 * q / (n - 1) - 1;
        double theta = 7.5 * t * t - 3.25 * t * t * t; /* contract step 5 */
        assert_true(fabs(cal.dispersion[2 * q] - cos(theta)) < 1e-12);
        assert_true(fabs(cal.dispersion[2 * q + 1] + sin(theta)) < 1e-12);
    }
    oct_calibration_finish(&cal);
    oct_volume_reader_destroy(r);
}

TEST(bytes_written_are_counted_once)
{
    enum { V = 50 };
    struct oct_plan plan = volume_plan(101, 9, V, 33, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = volume_make("bytes.h5", &plan, true, true);
    uint64_t metadata = oct_volume_bytes(w);
    assert_true(metadata > 1000 && metadata < 1 << 20);
    for (uint32_t v = 0; v < V; v++) {
        volume_add(w, &plan, v, true, true);
        volume_sync(w); /* partial blocks go out many times */
    }
    uint64_t row = 101 * 9 * 2 + 9 * 33 + 9 + 5 * 8 + 4 * 4 + 1;
    assert_int_equal(oct_volume_bytes(w) - metadata, V * row);
    volume_close(w);
}

TEST(a_block_pushed_in_parts_and_then_whole_counts_once)
{
    enum { V = 13 };
    /* Four rows fill a block of the queue and begin the next. */
    struct oct_plan plan = volume_plan(832, 340, V, 1, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = volume_make("parts.h5", &plan, true, false);
    uint64_t metadata = oct_volume_bytes(w);
    for (uint32_t v = 0; v < V; v++) {
        volume_add(w, &plan, v, true, false);
        if (v % 6 == 0)
            volume_sync(w);
    }
    volume_sync(w);
    uint64_t row = 832 * 340 * 2 + 340 + 3 * 8 + 3 * 4 + 1;
    assert_int_equal(oct_volume_bytes(w) - metadata, V * row);
    volume_close(w);
}

TEST(nothing_can_be_added_twice_or_to_nothing)
{
    struct oct_plan plan = volume_plan(101, 9, 2, 33, OCT_SAMPLE_U8);
    struct oct_error err;
    double value = 4.5;
    volume_close(volume_make("add.h5", &plan, true, true));
    assert_int_equal(oct_volume_add_f64("add.h5", "/truth/seed", &value, 0, NULL, NULL, &err),
                     OCT_OK);
    must_fail(oct_volume_add_f64("add.h5", "/truth/seed", &value, 0, NULL, NULL, &failure),
              OCT_E_IO, "add.h5: cannot add /truth/seed");
    assert_int_equal(oct_volume_add_f64("none.h5", "/truth/seed", &value, 0, NULL, NULL, &err),
                     OCT_E_IO);
    assert_int_equal(oct_volume_add_f64("add.h5", "/t", &value, 4, NULL, NULL, &err), OCT_E_ARG);
    volume_expect("add.h5", &plan.geometry, (const uint8_t[]){0, 0}, true, true);
}

/* libhdf5 may fail to close a file, and then keeps it for good. An image that comes to lie where
 * that one's lay is another file all the same. */
TEST(an_image_is_never_taken_for_the_one_before_it)
{
    static struct oct_hdf5_image image; /* static: the file that stays open points at it */
    char reason[160] = "";
    oct_hdf5_lock();
    oct_hdf5_image_init(&image, -1, 0);
    hid_t stale = oct_hdf5_image_open(&image, H5F_ACC_TRUNC, 1, reason, sizeof(reason));
    assert_true(stale >= 0);
    hid_t group = H5Gcreate2(stale, "of_the_stale_one", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(group >= 0 && H5Gclose(group) >= 0 && H5Fflush(stale, H5F_SCOPE_LOCAL) >= 0);
    oct_hdf5_image_finish(&image);
    oct_hdf5_image_init(&image, -1, 0);
    hid_t next = oct_hdf5_image_open(&image, H5F_ACC_TRUNC, 1, reason, sizeof(reason));
    if (next < 0)
        fail_msg("refused: %s", reason);
    assert_int_equal(H5Lexists(next, "of_the_stale_one", H5P_DEFAULT), 0);
    assert_true(H5Fclose(next) >= 0);
    hid_t again = oct_hdf5_image_open(&image, H5F_ACC_RDONLY, 1, reason, sizeof(reason));
    assert_true(again >= 0);
    assert_int_equal(H5Lexists(again, "of_the_stale_one", H5P_DEFAULT), 0);
    assert_true(H5Fclose(again) >= 0 && H5Fclose(stale) >= 0);
    oct_hdf5_image_finish(&image);
    oct_hdf5_unlock();
}

TEST(datasets_of_too_many_dimensions_are_refused)
{
    const uint64_t dims[OCT_HDF5_MOST_RANK + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct oct_hdf5_reason reason = {.text = ""};
    struct oct_hdf5_image image;
    oct_hdf5_lock();
    oct_hdf5_image_init(&image, -1, 0);
    const hid_t file =
        oct_hdf5_image_open(&image, H5F_ACC_TRUNC, 1, reason.text, sizeof(reason.text));
    assert_true(file >= 0);
    assert_true(oct_hdf5_make_dataset(file, "nine", H5T_IEEE_F32LE, OCT_HDF5_MOST_RANK + 1, dims,
                                      NULL, &reason) < 0);
    assert_string_equal(reason.text, "a dataset of rank 9: at most 8");
    const hid_t most = oct_hdf5_make_dataset(file, "eight", H5T_IEEE_F32LE, OCT_HDF5_MOST_RANK,
                                             dims, NULL, &reason);
    assert_true(most >= 0);
    assert_true(H5Dclose(most) >= 0 && H5Fclose(file) >= 0);
    oct_hdf5_image_finish(&image);
    oct_hdf5_unlock();
}
