/* DICOM as output: what is refused before any work, what stays when the work fails, the bytes of
 * the pixels, and UIDs that name one thing each. test_export_dicom.py reads files with programs of
 * others. */
#include "formats/dicom_file.h"
#include "formats/export/export.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { V = 3, M = 5, D = 7, N = V * M * D };

/* An array in memory; `seed` makes its values. */
struct array {
    unsigned n_read, seed;
    uint32_t fails_at;             /* the plane that cannot be read; 0: none */
    volatile sig_atomic_t *cancel; /* raised by the reading of plane 1; NULL: by nothing */
};

static unsigned value(unsigned seed, size_t i)
{
    return (unsigned)(i * 2654435761u + seed * 40503u) >> 7 & 0xffff;
}

static enum oct_err read_plane(void *context, uint32_t plane, void *pixels, struct oct_error *err);

static struct oct_export_source source_of(struct array *array)
{
    return (struct oct_export_source){
        .form = {.dims = {V, M, D},
                 .axes = {"bscan", "line", "depth"},
                 .um = {25, 10, 4},
                 .name = "bscans",
                 .quantity = "intensity",
                 .unit = "dB",
                 .lo = 10,
                 .hi = 60,
                 .eye = "OD",
                 .pseudonym = "P1",
                 .start_time = "",
                 .software = "octd",
                 .engine = "",
                 .plane_s = 0.01,
                 .refractive_index = 1.38,
                 .acquisition_uid = "0123456789abcdef"},
        .context = array,
        .read = read_plane,
    };
}

/* The values of every test's array; of planes of other sizes the first ones. */
static enum oct_err read_plane(void *context, uint32_t plane, void *pixels, struct oct_error *err)
{
    struct array *array = context;
    array->n_read++;
    if (array->fails_at && plane == array->fails_at)
        return oct_fail(err, OCT_E_IO, "the plane cannot be read");
    if (array->cancel && plane == 1)
        *array->cancel = 1;
    for (size_t i = 0; i < M * D; i++)
        ((unsigned char *)pixels)[i] = (unsigned char)value(array->seed, plane * M * D + i);
    return OCT_OK;
}

static enum oct_err read_u16(void *context, uint32_t plane, void *pixels, struct oct_error *err)
{
    const struct array *array = context;
    (void)err;
    for (size_t i = 0; i < M * D; i++)
        ((uint16_t *)pixels)[i] = (uint16_t)value(array->seed, plane * M * D + i);
    return OCT_OK;
}

static enum oct_err write_to(const char *path, const struct oct_export_source *source,
                             struct oct_error *err)
{
    const struct oct_export_options options = {.force = true};
    return oct_export_dicom.write(path, source, 1, &options, err);
}

/* All bytes of a file, which the caller frees. */
static unsigned char *bytes_of(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    unsigned char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *n = fread(bytes, 1, 1 << 20, file);
    assert_true(*n > 0 && *n < 1 << 20);
    fclose(file);
    return bytes;
}

/* Where the value of the attribute begins: tag, representation, and the length before it. */
static const unsigned char *find(const unsigned char *bytes, size_t n, const char *key)
{
    for (size_t i = 132; i + 8 <= n; i++)
        if (memcmp(bytes + i, key, 6) == 0)
            return bytes + i + 8;
    fail_msg("there is no such attribute");
    return NULL;
}

static void uid_of(const char *path, const char *key, char uid[65])
{
    size_t n;
    unsigned char *bytes = bytes_of(path, &n);
    const unsigned char *at = find(bytes, n, key);
    const unsigned length = at[-2];
    assert_true(length < 65);
    memcpy(uid, at, length);
    uid[length] = '\0';
    free(bytes);
}
#define INSTANCE "\x08\x00\x18\x00UI"
#define STUDY "\x20\x00\x0d\x00UI"
#define SERIES "\x20\x00\x0e\x00UI"
#define PLACE "\x20\x00\x52\x00UI" /* frame of reference */

/* ---- pixels ---- */

static void check_pixels(const char *path, const struct array *array, unsigned n_value,
                         bool is_upright)
{
    size_t n;
    unsigned char *bytes = bytes_of(path, &n);
    const size_t length = N * n_value + N * n_value % 2;
    assert_true(n > length + 12);
    const unsigned char *header = bytes + n - length - 12, *pixels = header + 12;
    const unsigned char expected[12] = {
        0xe0, 0x7f, 0x10, 0, 'O', n_value == 2 ? 'W' : 'B', 0, 0, (unsigned char)length, 0, 0, 0};
    assert_memory_equal(header, expected, 12);
    if (N * n_value % 2)
        assert_int_equal(bytes[n - 1], 0);
    for (unsigned v = 0, at = 0; v < V; v++)
        for (unsigned y = 0; y < (is_upright ? M : D); y++)
            for (unsigned x = 0; x < (is_upright ? D : M); x++, at++) {
                const unsigned i = v * M * D + (is_upright ? y * D + x : x * D + y);
                const unsigned is =
                    n_value == 1 ? pixels[at] : pixels[2 * at] + 256u * pixels[2 * at + 1];
                assert_int_equal(is, value(array->seed, i) & (n_value == 1 ? 0xff : 0xffff));
            }
    free(bytes);
}

TEST(pixels_are_those_of_the_source_depth_downwards)
{
    for (int upright = 0; upright < 2; upright++)
        for (unsigned n_value = 1; n_value <= 2; n_value++) {
            struct array array = {.seed = n_value};
            struct oct_export_source source = source_of(&array);
            source.form.is_upright = upright;
            if (n_value == 2) {
                source.form.sample = OCT_EXPORT_U16;
                source.read = read_u16;
            }
            must(write_to("a.dcm", &source, &failure));
            check_pixels("a.dcm", &array, n_value, upright);
        }
}

/* ---- refusals ---- */

static char long_name[66];
static const struct refusal {
    const char *says;
    struct oct_export_form with; /* members that are not 0 replace those of source_of */
} refusals[] = {
    {"--sample u8", {.sample = OCT_EXPORT_F32}},
    {"reconstruct them first", {.axes = {"bscan", "line", "sample"}}},
    {"reconstruct them first", {.axes = {"bscan", "sample", "depth"}}},
    {"--eye", {.eye = ""}},
    {"--eye", {.eye = "od"}},
    {"identity", {.acquisition_uid = ""}},
    {"--pixel-um", {.um = {NAN, 10, 4}}},
    {"--pixel-um", {.um = {25, NAN, 4}}},
    {"--pixel-um", {.um = {25, 10, NAN}}},
    {"--pixel-um", {.um = {25, 10, -4}}},
    {"--pixel-um", {.um = {-25, 10, 4}}},
    {"--pixel-um", {.um = {25, INFINITY, 4}}},
    {"--pixel-um", {.um = {INFINITY, 10, 4}}},
    {"--bscans", {.dims = {1, 65536, 1}}},
    {"--bscans", {.dims = {1, 1, 65536}}},
    {"--bscans", {.dims = {100001, 1, 1}}},
    {"4.3 GB of pixels", {.dims = {65536, 256, 256}}},
    {"4.29 GB", {.dims = {1, 65535, 65535}, .sample = OCT_EXPORT_U16}},
    {"pixels", {.dims = {100000, 65535, 65535}}},
    {"patient ID", {.pseudonym = "A\\B"}},
    {"patient ID", {.pseudonym = "A\nB"}},
    {"patient ID", {.pseudonym = "A\x7f"}},
    {"patient ID", {.pseudonym = "A\xff"}},
    {"patient ID", {.pseudonym = "\xc3"}},
    {"patient ID", {.pseudonym = long_name}},
};

static void apply(const struct oct_export_form *with, struct oct_export_form *form)
{
    if (with->dims[0])
        memcpy(form->dims, with->dims, sizeof(form->dims));
    if (with->axes[0])
        memcpy(form->axes, with->axes, sizeof(form->axes));
    if (with->um[0] != 0)
        memcpy(form->um, with->um, sizeof(form->um));
    if (with->sample)
        form->sample = with->sample;
    form->eye = with->eye ? with->eye : form->eye;
    form->pseudonym = with->pseudonym ? with->pseudonym : form->pseudonym;
    form->acquisition_uid = with->acquisition_uid ? with->acquisition_uid : form->acquisition_uid;
}

TEST(what_dicom_cannot_say_is_refused_before_any_work)
{
    struct oct_error err;
    memset(long_name, 'x', sizeof(long_name) - 1);
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        struct array array = {0};
        struct oct_export_source source = source_of(&array);
        apply(&refusals[i].with, &source.form);
        err.text[0] = '\0';
        if (write_to("refused.dcm", &source, &err) != OCT_E_ARG ||
            !strstr(err.text, refusals[i].says) || !strstr(err.text, "refused.dcm"))
            fail_msg("%zu: code %d, \"%s\"", i, err.code, err.text);
        assert_int_equal(array.n_read, 0);
        assert_true(access("refused.dcm", F_OK) != 0);
    }
}

/* One picture has no distance to the next; 64 letters are letters, not bytes; a pseudonym of spaces
 * is none. */
TEST(what_dicom_can_just_say_is_written)
{
    struct oct_error err = {.text = ""};
    char greek[2 * 64 + 1] = "";
    for (unsigned i = 0; i < 64; i++)
        memcpy(greek + (size_t)2 * i, "\xce\xb1", 3);
    const struct oct_export_form forms[] = {{.dims = {1, M, D}, .um = {NAN, 10, 4}},
                                            {.pseudonym = greek},
                                            {.pseudonym = "   "},
                                            {.pseudonym = ""}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct array array = {0};
        struct oct_export_source source = source_of(&array);
        apply(&forms[i], &source.form);
        if (write_to("good.dcm", &source, &err) != OCT_OK)
            fail_msg("%zu: %s", i, err.text);
    }
}

/* Texts of files of other programs: control characters, half a character, far too long. */
TEST(any_text_of_a_file_makes_a_file)
{
    static char long_text[4000];
    static const char *const texts[] = {"a\nb\\c", "\xff\xfe", "\xce",
                                        "%s%n",    "\x1b[31m", long_text};
    struct oct_error err = {.text = ""};
    size_t n;
    memset(long_text, 'x', sizeof(long_text) - 1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct array array = {0};
        struct oct_export_source source = source_of(&array);
        source.form.software = source.form.name = source.form.unit = texts[i];
        source.form.quantity = texts[i];
        source.form.plane_s = i % 2 ? INFINITY : 1e-300;
        source.form.refractive_index = INFINITY;
        if (write_to("text.dcm", &source, &err) != OCT_OK)
            fail_msg("%zu: %s", i, err.text);
        unsigned char *bytes = bytes_of("text.dcm", &n);
        static const char software[] = "\x18\x00\x20\x10LO";
        const unsigned char *at = find(bytes, n, software);
        assert_true(at[-2] <= 64);
        for (unsigned k = 0; k < at[-2]; k++)
            assert_true(at[k] >= ' ' && at[k] < 127 && at[k] != '\\');
        free(bytes);
    }
}

/* ---- names ---- */

static void write_named(const char *name, struct oct_export_source *source)
{
    must(write_to(name, source, &failure));
}

static bool same_uid(const char *one, const char *other, const char *key)
{
    char a[65], b[65];
    uid_of(one, key, a);
    uid_of(other, key, b);
    assert_true(strncmp(a, "2.25.", 5) == 0 && strlen(a) >= 43 && strlen(a) <= 44);
    assert_true(a[5] != '0' && strspn(a + 5, "0123456789") == strlen(a + 5));
    return strcmp(a, b) == 0;
}

TEST(the_same_export_twice_is_the_same_file)
{
    struct array array = {.seed = 9};
    struct oct_export_source source = source_of(&array);
    size_t n_a, n_b;
    write_named("a.dcm", &source);
    write_named("b.dcm", &source);
    unsigned char *a = bytes_of("a.dcm", &n_a), *b = bytes_of("b.dcm", &n_b);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    free(a);
    free(b);
}

/* Another pixel, another spacing or another eye make another instance of the same study. */
TEST(every_difference_makes_another_instance_of_one_study)
{
    struct array array = {.seed = 9}, other = {.seed = 10};
    struct oct_export_source a = source_of(&array), differ[5];
    write_named("a.dcm", &a);
    for (int i = 0; i < 5; i++)
        differ[i] = source_of(&array);
    differ[0].context = &other;
    differ[1].form.um[0] = 26;
    differ[2].form.eye = "OS";
    differ[3].form.hi = 61;
    differ[4].form.name = "enface";
    for (int i = 0; i < 5; i++) {
        write_named("b.dcm", &differ[i]);
        assert_true(!same_uid("a.dcm", "b.dcm", INSTANCE));
        assert_true(same_uid("a.dcm", "b.dcm", STUDY));
        assert_true(same_uid("a.dcm", "b.dcm", PLACE));
        assert_int_equal(same_uid("a.dcm", "b.dcm", SERIES), i < 4);
    }
}

TEST(another_recording_is_another_study)
{
    struct array array = {.seed = 9};
    struct oct_export_source source = source_of(&array);
    write_named("a.dcm", &source);
    source.form.acquisition_uid = "0123456789abcdee";
    write_named("b.dcm", &source);
    assert_true(!same_uid("a.dcm", "b.dcm", INSTANCE));
    assert_true(!same_uid("a.dcm", "b.dcm", STUDY));
    assert_true(!same_uid("a.dcm", "b.dcm", SERIES));
    assert_true(!same_uid("a.dcm", "b.dcm", PLACE));
}

/* ---- failures on the way ---- */

static void looks_empty(const char *name)
{
    char work[600];
    const char *path = name;
    snprintf(work, sizeof(work), "%s.new.%ld", path, (long)getpid());
    assert_true(access(path, F_OK) != 0 && access(work, F_OK) != 0);
}

TEST(a_failure_on_the_way_leaves_nothing)
{
    volatile sig_atomic_t cancel = 0;
    const struct oct_export_options options = {.cancel = &cancel};
    struct array broken = {.fails_at = 2}, cancelled = {.cancel = &cancel};
    struct oct_export_source source = source_of(&broken);
    struct oct_error err;
    assert_int_equal(oct_export_dicom.write("x.dcm", &source, 1, &options, &err), OCT_E_IO);
    assert_string_equal(err.text, "the plane cannot be read");
    looks_empty("x.dcm");
    source.context = &cancelled;
    assert_int_equal(oct_export_dicom.write("x.dcm", &source, 1, &options, &err), OCT_E_CLOSED);
    assert_int_equal(cancelled.n_read, 2);
    looks_empty("x.dcm");
}

/* RLIMIT_FSIZE stands for a full disk: in the header, and when what is buffered is written. */
TEST(a_full_disk_leaves_nothing)
{
    struct array array = {0};
    struct oct_export_source source = source_of(&array);
    struct rlimit before, small;
    struct oct_error err;
    size_t n;
    write_named("whole.dcm", &source);
    free(bytes_of("whole.dcm", &n));
    const rlim_t limits[] = {100, n - 1};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (int i = 0; i < 2; i++) {
        small = before;
        small.rlim_cur = limits[i];
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        const enum oct_err e = write_to("full.dcm", &source, &err);
        setrlimit(RLIMIT_FSIZE, &before);
        if (e != OCT_E_IO || !strstr(err.text, "full.dcm") || !strstr(err.text, "too large"))
            fail_msg("code %d, \"%s\"", e, err.text);
        looks_empty("full.dcm");
    }
}

TEST(what_is_there_stays_without_force)
{
    const struct oct_export_options options = {.force = false};
    struct array array = {.seed = 9};
    struct oct_export_source source = source_of(&array);
    struct oct_error err;
    write_named("there.dcm", &source);
    array.n_read = 0;
    assert_int_equal(oct_export_dicom.write("there.dcm", &source, 1, &options, &err), OCT_E_IO);
    assert_int_equal(array.n_read, 0);
}

/* ---- the data set ---- */

static enum oct_err encode(struct oct_dicom_set *set, struct oct_error *err)
{
    unsigned char *bytes;
    size_t n;
    oct_dicom_put_text(set, 0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.77.1.5.4");
    oct_dicom_put_text(set, 0x00080018, "UI", "2.25.1");
    const enum oct_err e = oct_dicom_encode(set, &bytes, &n, err);
    assert_int_equal(bytes != NULL, e == OCT_OK);
    free(bytes);
    oct_dicom_set_destroy(set);
    return e;
}

/* The first is reported, whatever follows it. */
TEST(a_value_that_is_none_is_refused_with_its_tag)
{
    static const struct {
        uint32_t tag;
        const char *vr, *text, *says;
    } cases[] = {
        {0x0020000d, "UI", "2.25.x", "(0020,000d)"}, {0x00280030, "DS", "nan", "(0028,0030)"},
        {0x00080060, "CS", "opt", "(0008,0060)"},    {0x00080020, "DA", "yesterday", "(0008,0020)"},
        {0x00280008, "IS", "many", "(0028,0008)"},
    };
    struct oct_error err;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_dicom_set *set = oct_dicom_set_create();
        assert_non_null(set);
        oct_dicom_put_text(set, cases[i].tag, cases[i].vr, cases[i].text);
        oct_dicom_put_text(set, 0x00081090, "CS", "lower case");
        if (encode(set, &err) != OCT_E_FORMAT || !strstr(err.text, cases[i].says))
            fail_msg("%s: \"%s\"", cases[i].text, err.text);
    }
}

TEST(items_end_as_they_begin)
{
    struct oct_error err;
    struct oct_dicom_set *set = oct_dicom_set_create();
    oct_dicom_end(set);
    assert_int_equal(encode(set, &err), OCT_E_STATE);
    set = oct_dicom_set_create();
    oct_dicom_begin(set, 0x00082218);
    assert_int_equal(encode(set, &err), OCT_E_STATE);
    set = oct_dicom_set_create();
    oct_dicom_begin(set, 0x00082218);
    oct_dicom_end(set);
    assert_int_equal(encode(set, &err), OCT_OK);
}
