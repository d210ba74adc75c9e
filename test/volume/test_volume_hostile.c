/* Recordings that point elsewhere: at pipes that never end, at devices, at other files, at code to
 * be loaded. None is followed, and each is refused at once, in one line. What others make in good
 * faith is still read. */
#include "pipeline/base/clock.h"
#include "pipeline/volume/volume.h"
#include "test/rig/tap.h"

#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { V = 2, M = 3, N = 8 };
static const hsize_t extent[3] = {V, M, N};

static hid_t new_file(const char *path)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

/* /spectra, 1, 2, 3, ..., stored as `properties` say. */
static void put_spectra(hid_t file, const char *name, hid_t properties, bool filled)
{
    uint16_t values[V * M * N];
    for (int i = 0; i < V * M * N; i++)
        values[i] = (uint16_t)(i + 1);
    hid_t space = H5Screate_simple(3, extent, NULL);
    hid_t set = H5Dcreate2(file, name, H5T_STD_U16LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(set >= 0);
    if (filled)
        assert_true(H5Dwrite(set, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
    H5Sclose(space);
}

/* At once, not after the limit of a child that hangs. */
static void expect_refused(const char *path, const char *reason)
{
    struct oct_volume_reader *r;
    struct oct_error err = {0};
    uint64_t began_ns = oct_clock_ns();
    enum oct_err e = oct_volume_open(&r, path, &err);
    double took_s = (double)(oct_clock_ns() - began_ns) * 1e-9;
    if (e != OCT_E_FORMAT || r || !strstr(err.text, reason) || !strstr(err.text, path) ||
        strchr(err.text, '\n') || took_s > 5)
        fail_msg("%s: code %d after %.1f s, \"%s\", wanted \"%s\"", path, (int)e, took_s, err.text,
                 reason);
}

static void expect_read(const char *path)
{
    struct oct_volume_reader *r;
    uint16_t got[M * N];
    uint8_t mask[M];
    bool valid;
    struct oct_raw_frame frame = {.spectra = got, .line_valid = mask};
    must(oct_volume_open(&r, path, &failure));
    for (uint32_t v = 0; v < V; v++) {
        must(oct_volume_read_spectra(r, v, &frame, &valid, &failure));
        for (uint32_t i = 0; i < M * N; i++)
            assert_int_equal(got[i], v * M * N + i + 1);
    }
    oct_volume_reader_destroy(r);
}

/* ---- values in other files ---- */

TEST(external_storage_is_refused_whatever_it_points_at)
{
    static const char *const places[] = {"pipe", "/dev/zero", "/dev/tty", "plain.bin", "missing"};
    assert_int_equal(mkfifo("pipe", 0600), 0);
    fclose(fopen("plain.bin", "w"));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        hid_t file = new_file("external.h5"), properties = H5Pcreate(H5P_DATASET_CREATE);
        assert_true(H5Pset_external(properties, places[i], 0, H5F_UNLIMITED) >= 0);
        put_spectra(file, "/spectra", properties, false);
        H5Pclose(properties);
        H5Fclose(file);
        expect_refused("external.h5", "/spectra: its values lie in other files");
    }
}

TEST(a_table_in_external_storage_is_refused_too)
{
    const hsize_t rows = V;
    hid_t file = new_file("column.h5"), properties = H5Pcreate(H5P_DATASET_CREATE);
    put_spectra(file, "/spectra", H5P_DEFAULT, true);
    H5Gclose(H5Gcreate2(file, "/frames", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    hid_t space = H5Screate_simple(1, &rows, NULL);
    H5Pset_external(properties, "pipe", 0, H5F_UNLIMITED);
    H5Dclose(H5Dcreate2(file, "/frames/valid", H5T_STD_U8LE, space, H5P_DEFAULT, properties,
                        H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(properties);
    H5Fclose(file);
    expect_refused("column.h5", "/frames/valid: its values lie in other files");
}

TEST(virtual_datasets_are_refused)
{
    static const char *const sources[] = {"pipe", "source.h5", ".", "frames-%b.h5"};
    hid_t source = new_file("source.h5");
    put_spectra(source, "/spectra", H5P_DEFAULT, true);
    H5Fclose(source);
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        hid_t file = new_file("virtual.h5"), properties = H5Pcreate(H5P_DATASET_CREATE);
        hid_t space = H5Screate_simple(3, extent, NULL);
        if (strchr(sources[i], '%')) { /* as many files as there are */
            const hsize_t most[3] = {H5S_UNLIMITED, M, N}, none[3] = {0, 0, 0};
            const hsize_t step[3] = {1, 1, 1}, all[3] = {H5S_UNLIMITED, 1, 1}, one[3] = {1, M, N};
            hid_t open_space = H5Screate_simple(3, extent, most);
            hid_t from = H5Screate_simple(3, one, NULL);
            H5Sselect_hyperslab(open_space, H5S_SELECT_SET, none, step, all, one);
            assert_true(H5Pset_virtual(properties, open_space, sources[i], "/spectra", from) >= 0);
            H5Dclose(H5Dcreate2(file, "/spectra", H5T_STD_U16LE, open_space, H5P_DEFAULT,
                                properties, H5P_DEFAULT));
            H5Sclose(from);
            H5Sclose(open_space);
        } else {
            assert_true(H5Pset_virtual(properties, space, sources[i], "/spectra", space) >= 0);
            put_spectra(file, "/spectra", properties, false);
        }
        H5Sclose(space);
        H5Pclose(properties);
        H5Fclose(file);
        expect_refused("virtual.h5", "/spectra: its values lie in other files");
    }
}

TEST(links_out_of_the_file_are_not_followed)
{
    static const char *const targets[] = {"pipe", "source.h5", "/dev/zero"};
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        hid_t file = new_file("linked.h5");
        H5Lcreate_external(targets[i], "/spectra", file, "/spectra", H5P_DEFAULT, H5P_DEFAULT);
        H5Fclose(file);
        expect_refused("linked.h5", "/spectra: it is a link into another file");

        file = new_file("group.h5");
        put_spectra(file, "/spectra", H5P_DEFAULT, true);
        H5Lcreate_external(targets[i], "/", file, "/frames", H5P_DEFAULT, H5P_DEFAULT);
        H5Fclose(file);
        expect_refused("group.h5", "it is a link into another file");

        file = new_file("round.h5"); /* by way of a soft link */
        H5Lcreate_external(targets[i], "/", file, "/away", H5P_DEFAULT, H5P_DEFAULT);
        H5Lcreate_soft("/away/spectra", file, "/spectra", H5P_DEFAULT, H5P_DEFAULT);
        H5Fclose(file);
        expect_refused("round.h5", "/spectra: cannot be opened");
    }
}

TEST(soft_links_that_lead_nowhere_are_refused)
{
    hid_t file = new_file("soft.h5");
    H5Lcreate_soft("/spectra", file, "/spectra", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    expect_refused("soft.h5", "/spectra: cannot be opened");
}

/* ---- code ---- */

static size_t pass_through(unsigned flags, size_t n_values, const unsigned values[], size_t n_bytes,
                           size_t *room, void **buffer)
{
    (void)flags;
    (void)n_values;
    (void)values;
    (void)room;
    (void)buffer;
    return n_bytes;
}

TEST(a_filter_that_is_not_libhdf5s_own_is_refused_even_if_it_is_there)
{
    const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, 32000, 1,    1,
                                 "lzf\033[2J",     NULL,  NULL, pass_through};
    const hsize_t chunk[3] = {1, M, N};
    assert_true(H5Zregister(&filter) >= 0);
    hid_t file = new_file("filter.h5"), properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(properties, 3, chunk);
    assert_true(H5Pset_filter(properties, 32000, 0, 0, NULL) >= 0);
    put_spectra(file, "/spectra", properties, true);
    H5Pclose(properties);
    H5Fclose(file);
    expect_refused("filter.h5", "packed with filter 32000 (lzf?[2J)");
}

/* ---- types ---- */

TEST(committed_and_wild_types_are_refused)
{
    hid_t types[5] = {H5Tvlen_create(H5T_STD_U16LE), H5Tcreate(H5T_OPAQUE, 1u << 30),
                      H5Tcreate(H5T_COMPOUND, 1u << 20), H5Tcopy(H5T_STD_U16LE),
                      H5Tenum_create(H5T_STD_U16LE)};
    H5Tinsert(types[2], "a", 0, H5T_STD_U16LE);
    H5Tset_size(types[3], 1u << 20); /* an integer of a mebibyte */
    uint16_t one = 1;
    H5Tenum_insert(types[4], "one", &one);
    for (int i = 0; i < 5; i++) {
        hid_t file = new_file("type.h5"), space = H5Screate_simple(3, extent, NULL);
        hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_alloc_time(properties, H5D_ALLOC_TIME_LATE);
        assert_true(H5Tcommit2(file, "/type", types[i], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >=
                    0);
        hid_t set =
            H5Dcreate2(file, "/spectra", types[i], space, H5P_DEFAULT, properties, H5P_DEFAULT);
        assert_true(set >= 0);
        H5Dclose(set);
        H5Pclose(properties);
        H5Sclose(space);
        H5Fclose(file);
        H5Tclose(types[i]);
        expect_refused("type.h5", i == 3 ? "absurd size" : "neither integers nor floats");
    }
}

TEST(extents_whose_product_overflows_are_refused)
{
    static const hsize_t cases[][3] = {
        {UINT64_C(1) << 32, UINT64_C(1) << 32, 8},
        {UINT64_C(1) << 62, 4, 4},
        {2, UINT64_C(1) << 63, 2},
        {3, 3, UINT64_C(6148914691236517206)}, /* 9 times it is 2 */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const hsize_t most[3] = {H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED};
        const hsize_t chunk[3] = {1, 1, 8}, small[3] = {1, 1, 8};
        hid_t file = new_file("product.h5"), properties = H5Pcreate(H5P_DATASET_CREATE);
        hid_t space = H5Screate_simple(3, small, most);
        H5Pset_chunk(properties, 3, chunk);
        hid_t set = H5Dcreate2(file, "/spectra", H5T_STD_U16LE, space, H5P_DEFAULT, properties,
                               H5P_DEFAULT);
        assert_true(set >= 0);
        H5Dset_extent(set, cases[i]); /* may be refused: then it is a small one */
        H5Dclose(set);
        H5Sclose(space);
        H5Pclose(properties);
        H5Fclose(file);
        struct oct_volume_reader *r;
        struct oct_error err = {0};
        enum oct_err e = oct_volume_open(&r, "product.h5", &err);
        assert_true(e == OCT_E_FORMAT || (e == OCT_OK && oct_volume_facts(r)->n_samples == 8));
        oct_volume_reader_destroy(r);
    }
}

/* ---- no files ---- */

TEST(what_is_no_plain_file_is_refused_at_once)
{
    static const char *const names[] = {"pipe", "/dev/zero", "/dev/null", ".", "/dev/full"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        expect_refused(names[i], "not a file");
}

/* ---- good faith ---- */

TEST(packed_checked_linked_and_prefixed_files_are_still_read)
{
    const hsize_t chunk[3] = {1, 2, 5};
    hid_t file = new_file("good.h5"), properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(properties, 3, chunk);
    H5Pset_shuffle(properties);
    H5Pset_deflate(properties, 6);
    H5Pset_fletcher32(properties);
    put_spectra(file, "/scan", properties, true);
    H5Lcreate_soft("/scan", file, "/spectra", H5P_DEFAULT, H5P_DEFAULT);
    H5Pclose(properties);
    H5Fclose(file);
    expect_read("good.h5");

    hid_t creation = H5Pcreate(H5P_FILE_CREATE); /* another program's bytes come first */
    H5Pset_userblock(creation, 2048);
    file = H5Fcreate("prefixed.h5", H5F_ACC_TRUNC, creation, H5P_DEFAULT);
    put_spectra(file, "/spectra", H5P_DEFAULT, true);
    H5Fclose(file);
    H5Pclose(creation);
    expect_read("prefixed.h5");
    assert_int_equal(truncate("prefixed.h5", 4096), 0);
    expect_refused("prefixed.h5", "damaged or truncated HDF5 file");
}

int main(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return test_run();
}
