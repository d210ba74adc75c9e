/* The configuration as text: files, their faults, the effective text, the shipped reference. */
#include "test/rig/config_help.h"

#include "config/keys.h"
#include "pipeline/plan/plan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---- */

TEST(a_file_is_read_over_what_is_there)
{
    struct oct_config config;
    config_accept(&config, "# a comment\n; another\n\n[camera]\nsamples = 1024 ; the new camera\n"
                           "  bits=12\n[scan]\nlines : 500\n[camera]\n[record]\n"
                           "pseudonym = x;y#z\neye =\n");
    assert_int_equal(config.camera.samples, 1024);
    assert_int_equal(config.camera.bits, 12);
    assert_int_equal(config.scan.lines, 500);
    assert_int_equal(config.scan.bscans, 240);
    assert_string_equal(config.record.pseudonym, "x;y#z");
    assert_true(oct_config_is_set(&config, "camera.bits"));
    assert_true(oct_config_is_set(&config, "record.eye"));
    assert_false(oct_config_is_set(&config, "scan.bscans"));
    must(oct_config_load_text(&config, "[camera]\nsamples=2000", "more.ini", &failure));
    assert_int_equal(config.camera.samples, 2000);
    assert_int_equal(config.camera.bits, 12);
}

TEST(byte_order_marks_and_crlf_are_fine)
{
    struct oct_config config;
    config_accept(&config,
                  "\xef\xbb\xbf[camera]\r\nsamples = 1024\r\n\r\n[record]\r\ndirectory = /a b\r\n");
    assert_int_equal(config.camera.samples, 1024);
    assert_string_equal(config.record.directory, "/a b");
    config_accept(&config, "");
    config_accept(&config, "\xef\xbb\xbf");
}

TEST(faults_name_file_line_and_key)
{
    static const char *const cases[][2] = {
        {"[camera]\n\nsamples = many\n", "lab.ini:3: [camera] samples: 'many'"},
        {"[camera]\nsampels = 832\n",
         "lab.ini:2: [camera] sampels: no such key; did you mean camera.samples?"},
        {"[camera]\nlines = 3\n",
         "lab.ini:2: [camera] lines: no such key; did you mean scan.lines"},
        {"[camra]\nsamples = 832\n", "lab.ini:1: [camra]: no such section; did you mean [camera]?"},
        {"[camera]\n[empty]\n", "lab.ini:2: [empty]: no such section"},
        {"[ camera ]\n", "lab.ini:1: [ camera ]: no such section"},
        {"samples = 832\n", "lab.ini:1: a key stands before the first [section]"},
        {"[camera]\nsamples = 832\nbits = 12\nsamples = 832\n",
         "lab.ini:4: [camera] samples: given twice, first on line 2"},
        {"[camera]\nsamples\n", "lab.ini:2: is neither"},
        {"[camera\nsamples = 832\n", "lab.ini:1: is neither"},
        {"[camera] samples = 832\n", "lab.ini:1: nothing may follow"},
        {"[camera]\n  samples = 8\n  bits = 99\n", "lab.ini:3: [camera] bits: '99'"},
        {"[camera]\nbad line\nsamples = x\n", "lab.ini:2: is neither"},
        {"[camera]\nsamples = x\nbad line\n", "lab.ini:2: [camera] samples"},
        {"[camera]\nsamples = 832\rbits = 12\n", "lab.ini:2: [camera] samples"},
        {"[record]\ndirectory =\n", "lab.ini:2: [record] directory: must not be empty"},
        {"[record]\npseudonym = a\tb\n", "lab.ini:2: [record] pseudonym: 'a?b' holds a control"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_error err;
        config_refuse(cases[i][0], &err);
        if (strncmp(err.text, cases[i][1], strlen(cases[i][1])))
            fail_msg("\"%s\" does not start with \"%s\"", err.text, cases[i][1]);
    }
}

TEST(long_lines_are_read_whole_or_refused)
{
    struct oct_config config;
    struct oct_error err;
    char path[OCT_CONFIG_STRING_BYTES], text[8192];
    memset(path, 'p', sizeof(path));
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    snprintf(text, sizeof(text), "[calibration]\nwavelengths = %s\nkmap = %s", path, path);
    config_accept(&config, text);
    assert_string_equal(config.calibration.wavelengths, path);
    assert_string_equal(config.calibration.kmap, path);
    snprintf(text, sizeof(text), "[record]\n;%05000d\nspectra = no\n", 0);
    config_accept(&config, text);
    assert_false(config.record.spectra);
    config_accept(&config, "[record]\nspectra = On\n"); /* as a bool takes */
    assert_int_equal(config.record.spectra, OCT_RECORD_SPECTRA);
    snprintf(text, sizeof(text), "[record]\npseudonym = %05000d\nspectra = no\n", 0);
    config_refuse(text, &err);
    assert_has(err.text, "lab.ini:2: is 5012 bytes long: at most");
    snprintf(text, sizeof(text), "[record]\nspectra = %0400d\n", 0);
    config_refuse(text, &err);
    assert_has(err.text, "lab.ini:2: [record] spectra: ");
    assert_has(err.text, "no | yes | as_sent");
}

TEST(paths_in_a_file_start_at_its_folder)
{
    struct oct_config config;
    static const char ini[] = "lab/octd.ini";
    assert_int_equal(mkdir("lab", 0700), 0);
    config_write_file(ini, "[calibration]\nwavelengths = cal/nm.txt\nkmap = ./px.txt\n"
                           "dispersion = /abs/d.txt\nbackground =\n[record]\ndirectory = .\n"
                           "[ingest]\nendpoint = ipc://lines\n");
    oct_config_init(&config);
    must(oct_config_load(&config, ini, &failure));
    assert_string_equal(config.calibration.wavelengths, "lab/cal/nm.txt");
    assert_string_equal(config.calibration.kmap, "lab/px.txt");
    assert_string_equal(config.calibration.dispersion, "/abs/d.txt");
    assert_string_equal(config.calibration.background, "");
    assert_string_equal(config.record.directory, "lab");
    assert_string_equal(config.ingest.endpoint, "ipc://lines");
    must(oct_config_set(&config, "calibration.kmap", "./x", "--set", &failure));
    assert_string_equal(config.calibration.kmap, "./x");

    char joined[32];
    assert_true(oct_key_join_path("/", "a", joined, sizeof(joined)));
    assert_string_equal(joined, "/a");
    assert_true(oct_key_join_path("/d", "././/../a", joined, sizeof(joined)));
    assert_string_equal(joined, "/d/../a");
    assert_false(oct_key_join_path("/0123456789", "01234567890123456789", joined, sizeof(joined)));
}

TEST(files_that_cannot_be_read_are_named)
{
    struct oct_config config;
    struct oct_error err;
    const char *path = "absent.ini";
    oct_config_init(&config);
    assert_int_equal(oct_config_load(&config, path, &err), OCT_E_CONFIG);
    assert_has(err.text, "absent.ini: ");
    assert_has(err.text, "No such file");
    path = "folder.ini";
    assert_int_equal(mkdir(path, 0700), 0);
    must_fail(oct_config_load(&config, path, &failure), OCT_E_CONFIG, "folder.ini: is a folder");
    assert_int_equal(rmdir(path), 0);
    path = "binary.ini";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fwrite("[camera]\nsam\0ples = 1\n", 1, 22, file);
    fclose(file);
    must_fail(oct_config_load(&config, path, &failure), OCT_E_CONFIG,
              "binary.ini:2: holds a zero byte");
    file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < (1 << 20) + 1; i++)
        fputc('\n', file);
    fclose(file);
    must_fail(oct_config_load(&config, path, &failure), OCT_E_CONFIG,
              "binary.ini: is larger than 1 MiB");
    unlink(path);
}

/* ---- the text and the reference ---- */

TEST(the_effective_text_reads_back_the_same)
{
    struct oct_config config, again;
    char folder[PATH_MAX], want[PATH_MAX + 16];
    config_accept(&config, "[camera]\nsamples=1024\n[calibration]\nwavelengths=/lab/nm;1.txt\n"
                           "dispersion_a2=0.30000000000000004\ndispersion_a3=-1e-320\n"
                           "[pipeline]\ncrop_last=0\nlog=no\nrange=auto\nsimd=plain\ngpus=0,1\n"
                           "[output]\nsample=f32\n[file]\nheader_bytes=1099511627776\n"
                           "[record]\neye=OS\npseudonym=[x] = \"y\" #1\ndirectory=sub\n");
    char *text = oct_config_text(&config);
    assert_non_null(text);
    oct_config_init(&again);
    must(oct_config_load_text(&again, text, "embedded", &failure));
    assert_non_null(getcwd(folder, sizeof(folder)));
    snprintf(want, sizeof(want), "%s/sub", folder);
    assert_string_equal(again.record.directory, want);
    strcpy(config.record.directory, want);
    config_assert_same(&config, &again);
    assert_true(config.calibration.dispersion_a3 == again.calibration.dispersion_a3);
    char *text_again = oct_config_text(&again);
    assert_string_equal(text, text_again);
    free(text);
    free(text_again);
}

/* "auto" follows the samples; in a recording stands what was computed. */
TEST(the_effective_text_has_the_depth_that_auto_stands_for)
{
    static const struct {
        const char *given, *says;
    } cases[] = {
        {"", "\ncrop_last = 1024\n"},
        {"[camera]\nsamples=1024\n", "\ncrop_last = 1024\n"},
        {"[camera]\nsamples=2049\n", "\ncrop_last = 2048\n"},
        {"[camera]\nsamples=131072\n[pipeline]\ncrop_last=auto\n", "\ncrop_last = 65536\n"},
        {"[pipeline]\ncrop_last=0\n", "\ncrop_last = 0\n"},
        {"[pipeline]\ncrop_last=700\n", "\ncrop_last = 700\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_config config;
        config_accept(&config, cases[i].given);
        char *text = oct_config_text(&config);
        assert_non_null(text);
        assert_has(text, cases[i].says);
        free(text);
    }
}

static char *reference(size_t *n_bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, n_bytes);
    assert_non_null(out);
    oct_config_write_reference(out);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* A file that was copied as it is shipped sets nothing: there is one set of defaults. */
TEST(the_reference_sets_nothing)
{
    struct oct_config config, defaults;
    size_t n_bytes;
    char *text = reference(&n_bytes);
    oct_config_init(&defaults);
    config_accept(&config, text);
    struct oct_key key;
    for (size_t i = 0; oct_key_at(i, &key); i++)
        if (oct_key_is_marked(&config, &key))
            fail_msg("octd.ini sets %s.%s", key.section, key.name);
    config_assert_same(&config, &defaults);
    free(text);
}

TEST(the_reference_uncommented_sets_every_key)
{
    struct oct_config config, defaults;
    size_t n_bytes, n_keys = 0;
    char *text = reference(&n_bytes);
    for (char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (line[0] == ';' && line[1] >= 'a' && line[1] <= 'z')
            line[0] = ' ';
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 100);
    config_accept(&config, text);
    oct_config_init(&defaults);
    config_assert_same(&config, &defaults);
    struct oct_key key;
    for (; oct_key_at(n_keys, &key); n_keys++)
        if (!oct_key_is_marked(&config, &key))
            fail_msg("octd.ini does not hold %s.%s", key.section, key.name);
    assert_int_equal(config.n_given, n_keys);
    free(text);
}

TEST(the_shipped_file_is_the_reference)
{
    char path[4096];
    const char *top = getenv("OCT_TOP");
    snprintf(path, sizeof(path), "%s/config/octd.ini", top ? top : ".");
    size_t n_bytes;
    char *text = reference(&n_bytes);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s is missing: octctl reference > config/octd.ini", path);
    char *shipped = calloc(1, n_bytes + 2);
    assert_non_null(shipped);
    size_t n_shipped = fread(shipped, 1, n_bytes + 1, file);
    fclose(file);
    if (n_shipped != n_bytes || memcmp(shipped, text, n_bytes))
        fail_msg("%s is not what the key table says: octctl reference > config/octd.ini", path);
    free(shipped);
    free(text);
}

TEST(help_has_a_line_for_every_key)
{
    char *text = NULL;
    size_t n_bytes, n_settings = 0;
    FILE *out = open_memstream(&text, &n_bytes);
    assert_non_null(out);
    assert_true(oct_config_write_help(out, NULL));
    assert_false(oct_config_write_help(out, "frob"));
    assert_int_equal(fclose(out), 0);
    for (const char *line = text; line < text + n_bytes; line = strchr(line, '\n') + 1) {
        assert_true(strcspn(line, "\n") <= 100);
        n_settings += strncmp(line, "   ", 3) != 0;
    }
    struct oct_key key;
    size_t n_keys = 0;
    for (; oct_key_at(n_keys, &key); n_keys++) {
        char want[128];
        snprintf(want, sizeof(want), "  %s.%s=%s ", key.section, key.name, key.param->standard);
        assert_has(text, want);
    }
    assert_int_equal(n_settings, n_keys);
    free(text);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Changes, drops, doubles and swaps bytes and lines of the reference. */
static size_t mutate(char *text, size_t n, size_t capacity, uint64_t *random)
{
    static const char spice[] = "\n\r\t ;#=[]:\0\xef\xbb\xbf\xff"
                                "0-.eyn";
    size_t n_changes = 1 + next_random(random) % 12;
    for (size_t i = 0; i < n_changes; i++) {
        size_t at = next_random(random) % n;
        size_t run = 1 + next_random(random) % 60;
        switch (next_random(random) % 4) {
        case 0:
            text[at] = (char)next_random(random);
            break;
        case 1:
            text[at] = spice[next_random(random) % (sizeof(spice) - 1)];
            break;
        case 2: /* drop */
            if (at + run < n) {
                memmove(text + at, text + at + run, n - at - run);
                n -= run;
            }
            break;
        default: /* double */
            if (at + run < n && n + run < capacity) {
                memmove(text + at + run, text + at, n - at);
                n += run;
            }
            break;
        }
    }
    return n;
}

TEST(damaged_files_are_loaded_or_refused_with_a_line)
{
    size_t n_reference, n_loaded = 0, n_refused = 0;
    char *source = reference(&n_reference);
    uint64_t random = 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < n_reference; i++) /* live keys: more to hit */
        if (source[i] == ';' && source[i + 1] >= 'a' && source[i + 1] <= 'z')
            source[i] = ' ';
    for (int round = 0; round < 3000; round++) {
        struct oct_config config, again;
        struct oct_error err = {.text = ""};
        size_t capacity = n_reference + 1024;
        char *text = malloc(capacity);
        assert_non_null(text);
        memcpy(text, source, n_reference);
        size_t n = mutate(text, n_reference, capacity - 1, &random);
        text = realloc(text, n + 1); /* the exact size: ASan sees a byte too far */
        assert_non_null(text);
        text[n] = '\0';
        oct_config_init(&config);
        if (oct_config_load_text(&config, text, "lab.ini", &err) == OCT_OK) {
            n_loaded++;
            char *effective = oct_config_text(&config);
            assert_non_null(effective);
            oct_config_init(&again);
            must(oct_config_load_text(&again, effective, "embedded", &failure));
            char *effective_again = oct_config_text(&again);
            assert_string_equal(effective, effective_again);
            free(effective);
            free(effective_again);
        } else {
            n_refused++;
            assert_int_equal(strncmp(err.text, "lab.ini:", 8), 0);
            assert_true(strtol(err.text + 8, NULL, 10) >= 1);
        }
        free(text);
    }
    free(source);
    assert_true(n_loaded > 100 && n_refused > 100);
}
