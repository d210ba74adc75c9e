/* OME-TIFF as it is written: which files are BigTIFF, what is refused, what is left of a file that
 * fails, and text that XML cannot hold. With a folder as argument it writes the files that
 * test/process/test_export_ome_tiff.py reads by tifffile and PIL. */
#include "formats/export/ome_tiff.h"
#include "test/rig/export_rig.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint32_t small[3] = {5, 7, 11};
static const double known_um[3] = {25, 10, 4.5};

static void write_all(const char *path, const struct oct_export_source *sources, unsigned n,
                      uint64_t most_classic)
{
    must(oct_ome_tiff_write(path, sources, n, &export_rig_options, most_classic, &failure));
}

static uint64_t bytes_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

/* 42: classic TIFF, 43: BigTIFF, both little-endian. */
static int version_of(const char *path)
{
    unsigned char start[4];
    FILE *file = fopen(path, "rb");
    assert_true(file && fread(start, 1, sizeof(start), file) == sizeof(start));
    fclose(file);
    assert_true(start[0] == 'I' && start[1] == 'I' && start[3] == 0);
    return start[2];
}

static char *xml_of(const struct oct_export_source *sources, unsigned n)
{
    char *xml;
    must(oct_ome_xml_make(&xml, sources, n, &failure));
    return xml;
}

/* ---- sizes ---- */

/* The bound holds for both kinds and many planes, and is not far above. */
TEST(the_size_is_known_in_advance)
{
    static const uint32_t sides[][3] = {{5, 7, 11}, {300, 1, 1}, {1, 1, 4096}, {40, 64, 512}};
    const char *path = "size.ome.tif";
    for (unsigned i = 0; i < sizeof(sides) / sizeof(*sides); i++) {
        struct export_rig rig;
        export_rig_init(&rig, "bscan line depth", sides[i], known_um, OCT_EXPORT_F32);
        rig.source.form.plane_s = 0.004;
        char *xml = xml_of(&rig.source, 1);
        const uint64_t most = oct_ome_tiff_most_bytes(&rig.source, 1, strlen(xml));
        for (int is_big = 0; is_big < 2; is_big++) {
            write_all(path, &rig.source, 1, most - (uint64_t)is_big);
            assert_int_equal(version_of(path), is_big ? 43 : 42);
            assert_true(bytes_of(path) <= most);
            assert_true(bytes_of(path) + 1024ull * sides[i][0] + 64 > most);
        }
        free(xml);
    }
}

/* 4 GiB of pixels and what directories add decide, not pixels alone. */
TEST(the_limit_is_classic_tiffs)
{
    const uint32_t below[3] = {2047, 1024, 2048}, beyond[3] = {2048, 1024, 2048};
    struct export_rig rig;
    export_rig_init(&rig, "bscan line depth", below, known_um, OCT_EXPORT_U8);
    assert_true(oct_ome_tiff_most_bytes(&rig.source, 1, 1000) <= OCT_OME_TIFF_MOST_CLASSIC);
    export_rig_init(&rig, "bscan line depth", beyond, known_um, OCT_EXPORT_U8);
    assert_true(oct_ome_tiff_most_bytes(&rig.source, 1, 1000) > OCT_OME_TIFF_MOST_CLASSIC);
    export_rig_init(&rig, "bscan line depth", below, known_um, OCT_EXPORT_F32);
    assert_true(oct_ome_tiff_most_bytes(&rig.source, 1, 1000) >
                4ull * OCT_OME_TIFF_MOST_CLASSIC - (1ull << 24));
}

/* ---- text ---- */

TEST(text_is_ascii_and_well_formed)
{
    struct export_rig rig;
    export_rig_init(&rig, "bscan line depth", small, known_um, OCT_EXPORT_U8);
    rig.source.form.pseudonym = "A<b>&\"'\x01\xff\xc3\xa4\xef\xbf\xbf\xf0\x9f\x91\x81";
    rig.source.form.name = "analysis/a\"b";
    char *xml = xml_of(&rig.source, 1);
    assert_non_null(strstr(xml, "<M K=\"pseudonym\">A&#60;b&#62;&#38;&#34;&#39;??&#228;?&#128065;"
                                "</M>"));
    assert_non_null(strstr(xml, "Name=\"analysis/a&#34;b\""));
    for (const char *c = xml; *c; c++)
        assert_true(*c >= 0x20 && *c < 0x7f);
    free(xml);
}

TEST(dates_are_dates_or_left_out)
{
    static const char *const good[] = {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678Z",
                                       "2026-01-02T03:04:05"};
    static const char *const bad[] = {"",
                                      "2026",
                                      "2026-01-02",
                                      "2026-01-02 03:04:05",
                                      "2026-01-02T03:04:05.Z",
                                      "2026-01-02T03:04:05Z<",
                                      "02.01.2026 03:04:05 Z"};
    struct export_rig rig;
    export_rig_init(&rig, "bscan line depth", small, known_um, OCT_EXPORT_U8);
    for (unsigned i = 0; i < 10; i++) {
        char wanted[80];
        rig.source.form.start_time = i < 3 ? good[i] : bad[i - 3];
        snprintf(wanted, sizeof(wanted), "<AcquisitionDate>%s</AcquisitionDate>",
                 rig.source.form.start_time);
        char *xml = xml_of(&rig.source, 1);
        assert_true((strstr(xml, i < 3 ? wanted : "<AcquisitionDate") != NULL) == (i < 3));
        free(xml);
    }
}

TEST(lengths_that_are_none_are_left_out)
{
    const double wrong[] = {NAN, 0, -1, INFINITY};
    struct export_rig rig;
    for (int i = 0; i < 4; i++) {
        const double um[3] = {25, wrong[i], 4.5};
        export_rig_init(&rig, "bscan line depth", small, um, OCT_EXPORT_U8);
        char *xml = xml_of(&rig.source, 1);
        assert_null(strstr(xml, "PhysicalSizeX"));
        assert_non_null(strstr(xml, "PhysicalSizeY=\"4.5\" PhysicalSizeYUnit=\"&#181;m\""));
        assert_non_null(strstr(xml, "PhysicalSizeZ=\"25\""));
        free(xml);
    }
}

TEST(missing_planes_are_named)
{
    static const uint8_t valid[6][5] = {{1, 1, 1, 1, 1}, {0, 1, 1, 1, 1}, {1, 0, 0, 1, 0},
                                        {0, 0, 0, 0, 0}, {1, 1, 1, 1, 0}, {0, 0, 1, 0, 0}};
    static const char *const said[6] = {NULL, ">0<", ">1-2,4<", ">0-4<", ">4<", ">0-1,3-4<"};
    struct export_rig rig;
    export_rig_init(&rig, "bscan line depth", small, known_um, OCT_EXPORT_U8);
    for (int i = 0; i < 6; i++) {
        char wanted[64];
        rig.source.form.plane_valid = valid[i];
        char *xml = xml_of(&rig.source, 1);
        snprintf(wanted, sizeof(wanted), "missing_planes\"%s", said[i] ? said[i] : "");
        assert_true((strstr(xml, wanted) != NULL) == (said[i] != NULL));
        assert_true((strstr(xml, "missing_planes") != NULL) == (said[i] != NULL));
        free(xml);
    }
}

/* ---- faults ---- */

static void refused(const struct oct_export_source *source, enum oct_err code, const char *says)
{
    const char *path = "refused.ome.tif";
    must_fail(oct_export_ome_tiff.write(path, source, 1, &export_rig_options, &failure), code,
              says);
    assert_int_equal(access(path, F_OK), -1);
}

TEST(what_cannot_be_is_refused)
{
    const uint32_t none[3] = {0, 7, 11}, flat[3] = {5, 0, 11}, many[3] = {1000001, 1, 1},
                   wide[3] = {1, 1u << 20, 1u << 10};
    struct export_rig rig;
    export_rig_init(&rig, "bscan line depth", none, known_um, OCT_EXPORT_U8);
    refused(&rig.source, OCT_E_ARG, "holds nothing");
    export_rig_init(&rig, "bscan line depth", flat, known_um, OCT_EXPORT_U8);
    refused(&rig.source, OCT_E_ARG, "holds nothing");
    export_rig_init(&rig, "bscan line depth", many, known_um, OCT_EXPORT_U8);
    refused(&rig.source, OCT_E_ARG, "1000001 planes");
    export_rig_init(&rig, "bscan line depth", wide, known_um, OCT_EXPORT_F32);
    refused(&rig.source, OCT_E_ARG, "4294967296 bytes");
    export_rig_init(&rig, "bscan line depth", small, known_um, OCT_EXPORT_U8);
    rig.fails_at = 3;
    refused(&rig.source, OCT_E_IO, "plane 3 cannot be read");
}

static void count(void *context, uint64_t done, uint64_t all)
{
    uint64_t *calls = context;
    assert_true(done == calls[0] + 1 && all == 10);
    calls[0] = done;
}

TEST(cancelled_leaves_nothing)
{
    volatile sig_atomic_t cancel = 0;
    uint64_t calls[1] = {0};
    struct export_rig rigs[2];
    struct oct_export_source sources[2];
    struct oct_error err = {.text = ""};
    struct oct_export_options options = {
        .force = true, .cancel = &cancel, .progress = count, .progress_context = calls};
    const char *path = "cancelled.ome.tif";
    for (int i = 0; i < 2; i++) {
        export_rig_init(&rigs[i], "bscan line depth", small, known_um, OCT_EXPORT_U16);
        sources[i] = rigs[i].source;
    }
    assert_int_equal(oct_export_ome_tiff.write(path, sources, 2, &options, &err), OCT_OK);
    assert_int_equal(calls[0], 10);
    options.force = false;
    must_fail(oct_export_ome_tiff.write(path, sources, 2, &options, &failure), OCT_E_IO,
              "exists already");
    unlink(path);
    cancel = 1;
    assert_int_equal(oct_export_ome_tiff.write(path, sources, 2, &options, &err), OCT_E_CLOSED);
    assert_int_equal(access(path, F_OK), -1);
}

/* The limit of a file's size stands for a disk that is full, wherever in the file it comes. */
TEST(a_full_disk_is_an_error)
{
    const uint32_t dims[3] = {20, 64, 64};
    const char *path = "full.ome.tif";
    struct rlimit before;
    struct export_rig rig;
    export_rig_init(&rig, "bscan line depth", dims, known_um, OCT_EXPORT_F32);
    write_all(path, &rig.source, 1, OCT_OME_TIFF_MOST_CLASSIC);
    const uint64_t all = bytes_of(path);
    unlink(path);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (uint64_t bytes = 1; bytes < all; bytes += bytes + 1000 < all ? all / 40 : 7) {
        struct oct_error err = {.text = ""};
        const struct rlimit less = {.rlim_cur = bytes, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
        const enum oct_err e =
            oct_export_ome_tiff.write(path, &rig.source, 1, &export_rig_options, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(e, OCT_E_IO);
        assert_non_null(strstr(err.text, path));
        assert_int_equal(access(path, F_OK), -1);
    }
}

/* ---- files for others ---- */

static const char *in(const char *folder, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void label(struct oct_export_form *form)
{
    static const uint8_t valid[] = {1, 1, 0, 1, 1};
    form->lo = -10;
    form->hi = 50;
    form->eye = "OS";
    form->pseudonym = "S\xc3\xa4-17 <1>";
    form->start_time = "2026-01-02T03:04:05.678Z";
    form->plane_s = 0.004;
    form->refractive_index = 1.36;
    form->plane_valid = valid;
}

static int write_for_others(const char *folder)
{
    const double spectra_um[3] = {25, 10, NAN}, slab_um[3] = {NAN, 25, 10};
    const uint32_t slab[3] = {1, 5, 7}, long_side[3] = {3, 70000, 2};
    struct export_rig bscans, floats, spectra, enface, times, long_one;
    export_rig_init(&bscans, "bscan line depth", small, known_um, OCT_EXPORT_U8);
    label(&bscans.source.form);
    export_rig_init(&floats, "bscan line depth", small, known_um, OCT_EXPORT_F32);
    export_rig_init(&spectra, "bscan line sample", small, spectra_um, OCT_EXPORT_U16);
    export_rig_init(&enface, "volume bscan line", slab, slab_um, OCT_EXPORT_F32);
    export_rig_init(&times, "volume bscan line", small, slab_um, OCT_EXPORT_U16);
    times.source.form.plane_s = 1.5;
    export_rig_init(&long_one, "bscan line depth", long_side, known_um, OCT_EXPORT_U8);
    const struct oct_export_source series[] = {bscans.source, enface.source, spectra.source,
                                               times.source};
    write_all(in(folder, "u8.ome.tif"), &bscans.source, 1, OCT_OME_TIFF_MOST_CLASSIC);
    write_all(in(folder, "big.ome.tif"), &bscans.source, 1, 1000);
    write_all(in(folder, "f32.ome.tif"), &floats.source, 1, OCT_OME_TIFF_MOST_CLASSIC);
    write_all(in(folder, "series.ome.tif"), series, 4, OCT_OME_TIFF_MOST_CLASSIC);
    write_all(in(folder, "long.ome.tif"), &long_one.source, 1, OCT_OME_TIFF_MOST_CLASSIC);
    return 0;
}

/* 4.3 GB, two series: the second lies beyond 4 GiB. */
static int write_4_gb(const char *folder)
{
    const uint32_t dims[3] = {2110, 1000, 2050}, slab[3] = {5, 1000, 2000};
    struct export_rig rigs[2];
    export_rig_init(&rigs[0], "bscan line depth", dims, known_um, OCT_EXPORT_U8);
    export_rig_init(&rigs[1], "bscan line sample", slab, known_um, OCT_EXPORT_U16);
    const struct oct_export_source series[] = {rigs[0].source, rigs[1].source};
    struct oct_error err = {.text = ""};
    if (oct_export_ome_tiff.write(in(folder, "4gb.ome.tif"), series, 2, &export_rig_options,
                                  &err) == OCT_OK)
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[2], "4gb") == 0)
        return write_4_gb(argv[1]);
    if (argc > 1)
        return write_for_others(argv[1]);
    return test_run();
}
