/* Spectra in arrays of numpy: every order of axes and type gives the same samples; what is not as
 * it claims is refused with a line. */
#include "formats/recording.h"
#include "test/rig/film_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { V = 5, M = 7, N = 11, ALL = V * M * N };

static uint16_t sample_at(unsigned v, unsigned m, unsigned n)
{
    return (uint16_t)(100 + v * 700 + m * 90 + n * 7 + (v * m * n) % 5);
}

/* ---- files ---- */

static void put_header(struct film_bytes *file, const char *text)
{
    const size_t n = strlen(text) + 1, room = 64 - (10 + n) % 64;
    file->n = 0;
    film_put(file, "\x93NUMPY\x01\x00", 8);
    film_put_u16(file, (uint32_t)(n + room));
    film_put(file, text, n - 1);
    for (size_t i = 0; i < room; i++)
        film_put(file, " ", 1);
    film_put(file, "\n", 1);
}

/* descr: "<u2"; the value as that type keeps it. */
static void put_value(struct film_bytes *file, const char *descr, double value)
{
    unsigned char bytes[8];
    const unsigned n = (unsigned)(descr[2] - '0');
    const float f32 = (float)value;
    uint64_t bits = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
    if (descr[1] == 'f' && n == 8)
        memcpy(&bits, &value, 8);
    if (descr[1] == 'f' && n == 4) {
        uint32_t low;
        memcpy(&low, &f32, 4);
        bits = low;
    }
    for (unsigned i = 0; i < n; i++)
        bytes[descr[0] == '>' ? n - 1 - i : i] = (unsigned char)(bits >> 8 * i);
    film_put(file, bytes, n);
}

/* An array of these axes ('v', 'm', 'n'; 'l' are A-lines of all B-scans), the last fastest, or with
 * Fortran the first. value = sample * scale + offset. */
struct form {
    const char *axes, *descr;
    bool fortran;
    double scale, offset;
};

static unsigned extent_of(char axis)
{
    return axis == 'v' ? V : axis == 'm' ? M : axis == 'n' ? N : V * M;
}

static void write_form(const struct form *f, const char *path)
{
    static struct film_bytes file;
    char text[200], shape[60] = "";
    const unsigned rank = (unsigned)strlen(f->axes);
    for (unsigned i = 0; i < rank; i++)
        snprintf(shape + strlen(shape), sizeof(shape) - strlen(shape), "%u, ",
                 extent_of(f->axes[i]));
    snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", f->descr,
             f->fortran ? "True" : "False", shape);
    put_header(&file, text);
    for (unsigned i = 0; i < ALL; i++) {
        unsigned place[128] = {0}, left = i;
        for (unsigned k = 0; k < rank; k++) {
            const char axis = f->axes[f->fortran ? k : rank - 1 - k];
            place[(unsigned char)axis] = left % extent_of(axis);
            left /= extent_of(axis);
        }
        const unsigned v = strchr(f->axes, 'l') ? place['l'] / M : place['v'];
        const unsigned m = strchr(f->axes, 'l') ? place['l'] % M : place['m'];
        put_value(&file, f->descr, sample_at(v, m, place['n']) * f->scale + f->offset);
    }
    film_write(&file, path, file.n);
}

/* ---- reading ---- */

static struct oct_recording *open_with(const char *path, const char *const *settings,
                                       struct oct_error *err)
{
    struct oct_recording *recording;
    struct oct_config *config = calloc(1, sizeof(*config));
    assert_non_null(config);
    oct_config_init(config);
    for (; settings && *settings; settings++)
        assert_int_equal(oct_config_set_assignment(config, *settings, err), OCT_OK);
    const enum oct_err e = oct_recording_open(&recording, path, config, err);
    assert_true((e == OCT_OK) == (recording != NULL));
    if (recording) {
        assert_int_equal(config->camera.samples, oct_recording_n_samples(recording));
        assert_int_equal(config->scan.lines, oct_recording_n_lines(recording));
    }
    free(config);
    return recording;
}

/* Every sample is `add` more than it was. */
static void check_samples(const char *path, const char *const *settings, unsigned add,
                          const char *what)
{
    static uint16_t spectra[M * N];
    static uint8_t line_valid[M];
    struct oct_raw_frame frame = {.spectra = spectra, .line_valid = line_valid};
    struct oct_error err;
    struct oct_recording *r = open_with(path, settings, &err);
    if (!r)
        fail_msg("%s: %s", what, err.text);
    assert_int_equal(oct_recording_n_bscans(r), V);
    assert_int_equal(oct_recording_n_lines(r), M);
    assert_int_equal(oct_recording_n_samples(r), N);
    for (unsigned turn = 0; turn < 2 * V; turn++) { /* on, and back */
        const unsigned v = turn < V ? turn : 2 * V - 1 - turn;
        bool valid;
        assert_int_equal(oct_recording_read(r, v, &frame, &valid, &err), OCT_OK);
        assert_true(valid && line_valid[M - 1] == 1);
        for (unsigned i = 0; i < M * N; i++)
            if (spectra[i] != sample_at(v, i / N, i % N) + add)
                fail_msg("%s: B-scan %u, sample %u: %u", what, v, i, spectra[i]);
    }
    oct_recording_close(r);
}

TEST(every_order_of_axes_gives_the_same_samples)
{
    static const struct {
        const char *axes, *settings[3];
    } cases[] = {
        {"vmn", {NULL}},
        {"vnm", {"file.transpose=yes"}},
        {"nmv", {"file.transpose=all"}},
        {"ln", {"scan.lines=7"}},
        {"nl", {"scan.lines=7", "file.transpose=yes"}},
        {"nl", {"scan.lines=7", "file.transpose=all"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (unsigned fortran = 0; fortran < 2; fortran++) {
            static const char *const types[] = {"<u2", ">u2", "<f4"};
            for (unsigned t = 0; t < 3; t++) {
                const struct form form = {cases[i].axes, types[t], fortran, 1, 0};
                write_form(&form, "order.npy");
                check_samples("order.npy", cases[i].settings, 0, form.axes);
            }
        }
}

TEST(every_type_becomes_u16_by_its_rule)
{
    static const struct {
        const char *descr;
        double scale, offset; /* of the file */
        unsigned add;         /* what the rule leaves */
        const char *settings[4];
    } cases[] = {
        {"<u2", 1, 0, 0, {NULL}},
        {">u2", 1, 0, 0, {NULL}},
        {"<i2", 1, -1000, 31768, {NULL}},
        {">i2", 1, -32768, 0, {NULL}},
        {"<i2", 1, 0, 0, {"file.scale=1"}},
        {"<i2", 2, 0, 3, {"file.scale=0.5", "file.offset=3"}},
        {"<u4", 1, 0, 0, {NULL}},
        {">i4", 1, 0, 0, {NULL}},
        {"<i4", 1, -1000, 31768, {NULL}},
        {">u8", 1, 0, 0, {NULL}},
        {"<i8", 1, 0, 0, {NULL}},
        {"<f4", 1, 0, 0, {NULL}},
        {">f4", 1, 0, 0, {NULL}},
        {"<f4", 0.25, -3, 9, {"file.scale=4", "file.offset=21"}},
        {">f8", 1, 0, 0, {NULL}},
        {"<f8", 1e-3, 0, 0, {"file.scale=1000"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct form form = {"vmn", cases[i].descr, false, cases[i].scale, cases[i].offset};
        write_form(&form, "type.npy");
        check_samples("type.npy", cases[i].settings, cases[i].add, cases[i].descr);
    }
}

/* 0 .. 65535 for least .. largest, and nothing else: within half a step of the line between. */
TEST(values_of_any_range_fill_that_of_u16)
{
    static uint16_t spectra[M * N];
    static uint8_t line_valid[M];
    struct oct_raw_frame frame = {.spectra = spectra, .line_valid = line_valid};
    const double least = sample_at(0, 0, 0), most = sample_at(V - 1, M - 1, N - 1);
    static const char *const types[] = {"<f4", ">f8", "<i4", ">i8"};
    for (unsigned t = 0; t < 4; t++) {
        const struct form form = {"vmn", types[t], false, types[t][1] == 'f' ? 1e-3 : 1e5, -7};
        struct oct_error err;
        bool valid;
        write_form(&form, "range.npy");
        struct oct_recording *r = open_with("range.npy", NULL, &err);
        if (!r)
            fail_msg("%s: %s", types[t], err.text);
        assert_non_null(strstr(oct_recording_input(r)->scaling, "value * "));
        for (unsigned v = 0; v < V; v++) {
            assert_int_equal(oct_recording_read(r, v, &frame, &valid, &err), OCT_OK);
            for (unsigned i = 0; i < M * N; i++) {
                const double line = (sample_at(v, i / N, i % N) - least) / (most - least) * 65535;
                if (fabs(spectra[i] - line) > 0.51)
                    fail_msg("%s: %u where %g lies", types[t], spectra[i], line);
            }
        }
        oct_recording_close(r);
    }
}

/* ---- what is refused ---- */

static void refuse_file(const char *path, const char *const *settings, const char *says)
{
    static uint16_t spectra[M * N];
    static uint8_t line_valid[M];
    struct oct_raw_frame frame = {.spectra = spectra, .line_valid = line_valid};
    struct oct_error err = {.text = ""};
    struct oct_recording *r = open_with(path, settings, &err);
    enum oct_err e = err.code;
    for (unsigned v = 0; r && v < V; v++) {
        bool valid;
        e = oct_recording_read(r, v, &frame, &valid, &err);
        if (e)
            break;
    }
    if (!e || err.code != e || !strstr(err.text, says) || !strstr(err.text, path))
        fail_msg("\"%s\" where \"%s\" was wanted", err.text, says);
    oct_recording_close(r);
}

static void refuse(const char *text, const char *const *settings, const char *says)
{
    static struct film_bytes file;
    put_header(&file, text);
    for (unsigned i = 0; i < ALL; i++)
        film_put_u16(&file, i);
    film_write(&file, "refused.npy", file.n);
    refuse_file("refused.npy", settings, says);
}

#define U2 "'descr': '<u2', 'fortran_order': False, "

TEST(malformed_files_are_refused)
{
    static const char *const lines[] = {"scan.lines=6", NULL};
    static const char *const samples[] = {"camera.samples=7", NULL};
    static const char *const other[] = {"camera.samples=12", NULL};
    static const struct {
        const char *text, *const *settings, *says;
    } cases[] = {
        {"{" U2 "'shape': (5, 7, 12)}", NULL, "truncated .npy file"},
        {"{" U2 "'shape': (5, 7, 131073)}", NULL, "beyond what can be processed"},
        {"{" U2 "'shape': (1048577, 7, 11)}", NULL, "beyond what can be processed"},
        {"{" U2 "'shape': (5, 65537, 11)}", NULL, "scan.lines divides"},
        {"{" U2 "'shape': (1048576, 65536, 4096)}", NULL, "truncated .npy file"},
        {"{" U2 "'shape': (1, 65536, 131072)}", NULL, "beyond what can be processed"},
        {"{" U2 "'shape': (4294967296, 4294967296, 16)}", NULL, "scan.lines divides"},
        {"{" U2 "'shape': (4294967296, 4294967296)}", NULL, "beyond what can be"},
        {"{" U2 "'shape': (18446744073709551617, 7, 11)}", NULL, "a shape that cannot be"},
        {"{" U2 "'shape': (-5, 7, 11)}", NULL, "a shape that cannot be"},
        {"{" U2 "'shape': (5, 7 11)}", NULL, "a shape that cannot be"},
        {"{" U2 "'shape': (5, 7, 11", NULL, "a shape that cannot be"},
        {"{" U2 "'shape': (0, 7, 11)}", NULL, "or empty"},
        {"{" U2 "'shape': (5, 7, 3)}", NULL, "beyond what can be processed"},
        {"{" U2 "'shape': (385,)}", NULL, "has 1 axes"},
        {"{" U2 "'shape': ()}", NULL, "has 0 axes"},
        {"{" U2 "'shape': (1, 5, 7, 11)}", NULL, "has 4 axes"},
        {"{" U2 "'shape': (35, 11)}", lines, "no whole number"},
        {"{" U2 "'shape': (5, 7, 11)}", samples, "set file.transpose=yes"},
        {"{" U2 "'shape': (5, 7, 11)}", other, "camera.samples = 11, but"},
        {"{" U2 "}", NULL, "no shape"},
        {"{'descr': '<u2', 'fortran_order': 0, 'shape': (5, 7, 11)}", NULL, "no order of axes"},
        {"{'fortran_order': False, 'shape': (5, 7, 11)}", NULL, "has no type"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (5, 7, 11)}", NULL, "type '<c8'"},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (5, 7, 11)}", NULL, "type '<f2'"},
        {"{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (5, 7, 11)}", NULL, "type ["},
        {"{'descr': '<u4', 'fortran_order': False, 'shape': (5, 7, 11)}", NULL, "truncated"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refuse(cases[i].text, cases[i].settings, cases[i].says);
}

TEST(damaged_headers_are_refused)
{
    static struct film_bytes file;
    put_header(&file, "{" U2 "'shape': (5, 7, 11)}");
    film_write(&file, "short.npy", 9);
    refuse_file("short.npy", NULL, "ends in its header");
    film_write(&file, "header.npy", 40);
    refuse_file("header.npy", NULL, "ends in its header");
    file.bytes[6] = 9;
    film_write(&file, "version.npy", file.n);
    refuse_file("version.npy", NULL, "version 9");
    file.bytes[6] = 2;
    film_set_u32(&file, 8, 0x7fffffff);
    film_write(&file, "long.npy", file.n);
    refuse_file("long.npy", NULL, "more than 64 KiB");
}

TEST(values_that_do_not_fit_are_refused)
{
    static const char *const twice[] = {"file.scale=30", NULL};
    static const char *const less[] = {"file.scale=1", "file.offset=-2000", NULL};
    static const char *const lonely[] = {"file.offset=5", NULL};
    struct form form = {"vmn", "<f4", false, 1, 0};
    const char *path = "values.npy";
    struct oct_error err;
    write_form(&form, path);
    refuse_file(path, twice, "beyond 0 to 65535");
    refuse_file(path, less, "beyond 0 to 65535");
    assert_null(open_with(path, lonely, &err));
    assert_true(err.code == OCT_E_CONFIG && strstr(err.text, "without file.scale"));
    form.offset = NAN;
    write_form(&form, path);
    refuse_file(path, NULL, "no numbers");
    refuse_file(path, twice, "a value that is no number");
    form = (struct form){"vmn", "<f8", false, 0, 0.5};
    write_form(&form, path);
    refuse_file(path, NULL, "all its values are 0.5");
    form = (struct form){"vmn", "<f8", false, 1e-322, 0};
    write_form(&form, path);
    refuse_file(path, NULL, "set file.scale");
}
