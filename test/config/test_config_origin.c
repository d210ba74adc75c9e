/* Errors of keys that were read long ago still name file, line and key. */
#include "test/rig/config_help.h"

#include "config/apply.h"

#include <stdio.h>
#include <unistd.h>

#define assert_starts(text, start)                                                                 \
    do {                                                                                           \
        if (strncmp(text, start, strlen(start)))                                                   \
            fail_msg("\"%s\" does not start with \"%s\"", text, start);                            \
    } while (0)

static void load(struct oct_config *config, const char *text, const char *name)
{
    must(oct_config_load_text(config, text, name, &failure));
}

static void set(struct oct_config *config, const char *key, const char *value, const char *origin)
{
    must(oct_config_set(config, key, value, origin, &failure));
}

/* The check and the geometry as a program does them. */
static enum oct_err check(const struct oct_config *config, struct oct_error *err)
{
    struct oct_geometry g;
    enum oct_err e = oct_config_check(config, err);
    return e ? e : oct_config_geometry(config, &g, err);
}

TEST(keys_that_do_not_go_together_name_file_and_line)
{
    static const char *const cases[][2] = {
        {"[calibration]\nwavelengths=/a\nkmap=/b\n",
         "lab.ini:3: [calibration] kmap: calibration.wavelengths and calibration.kmap are both"},
        {"[calibration]\nkmap=/b\n\nwavelengths=/a\n", "lab.ini:4: [calibration] wavelengths: "},
        {"[calibration]\ndispersion=/a\ndispersion_a3=1\n",
         "lab.ini:3: [calibration] dispersion_a3: "},
        {"\n[pipeline]\ndc=file\n", "lab.ini:3: [pipeline] dc: calibration.background is missing"},
        {"\n[pipeline]\nwindow=flat\n",
         "lab.ini:3: [pipeline] window: calibration.background is missing: pipeline.window=flat "
         "needs it (octctl background records one)"},
        {"[pipeline]\nflatten=yes\nwindow=hann\n",
         "lab.ini:2: [pipeline] flatten: calibration.background is missing: pipeline.flatten=yes"},
        {"[pipeline]\nmin_db=60\n", "lab.ini:2: [pipeline] min_db: is 60: it must be less than"},
        {"[pipeline]\nmin_db=70\nlog=no\nmax_db=65\n", "lab.ini:4: [pipeline] max_db: "},
        {"[pipeline]\nmax=0\n", "lab.ini:2: [pipeline] max: pipeline.min is 0"},
        {"[pipeline]\npercentile_low=99.8\n", "lab.ini:2: [pipeline] percentile_low: is 99.8"},
        {"[record]\nspectra=no\nbscans=no\n", "lab.ini:3: [record] bscans: "},
        {"[camera]\nsamples=832\n[pipeline]\ncrop_last=5000\n",
         "lab.ini:4: [pipeline] crop_last: is 5000: 832 samples"},
        {"[pipeline]\ncrop_first=9\ncrop_last=9\n",
         "lab.ini:3: [pipeline] crop_last: pipeline.crop_first is 9"},
        {"[camera]\nsamples=131072\n[scan]\nlines=65536\n", "lab.ini:4: [scan] lines: is 65536"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_config config;
        struct oct_error err = {.text = ""};
        config_accept(&config, cases[i][0]);
        assert_int_equal(check(&config, &err), OCT_E_CONFIG);
        assert_int_equal(err.code, OCT_E_CONFIG);
        assert_starts(err.text, cases[i][1]);
    }
}

TEST(the_key_given_last_is_blamed_wherever_it_came_from)
{
    struct oct_config config, copy;
    struct oct_error err;
    oct_config_init(&config);
    config.pipeline.crop_last = 5000; /* as if the default were wrong */
    assert_int_equal(check(&config, &err), OCT_E_CONFIG);
    assert_starts(err.text, "pipeline.crop_last is 5000");
    config_accept(&config, "[pipeline]\nmin_db=70\nmax_db=80\n");
    load(&config, "\n\n[pipeline]\nmin_db=75\n", "more.ini");
    copy = config;
    set(&copy, "pipeline.max_db", "75", "--set");
    assert_int_equal(check(&copy, &err), OCT_E_CONFIG);
    assert_starts(err.text, "--set pipeline.max_db: pipeline.min_db is 75: it must");
    set(&copy, "pipeline.min_db", "76", "control");
    assert_int_equal(check(&copy, &err), OCT_E_CONFIG);
    assert_starts(err.text, "control: pipeline.min_db: is 76: it must");
    load(&config, "[pipeline]\nmax_db=75\n", "third.ini"); /* the copy's history is its own */
    assert_int_equal(check(&config, &err), OCT_E_CONFIG);
    assert_starts(err.text, "third.ini:2: [pipeline] max_db: ");
    /* A value that is refused changes nothing, of its origin neither. */
    assert_int_equal(oct_config_set(&config, "pipeline.max_db", "x", "--set", &err), OCT_E_CONFIG);
    assert_starts(err.text, "--set pipeline.max_db: 'x'");
    assert_int_equal(check(&config, &err), OCT_E_CONFIG);
    assert_starts(err.text, "third.ini:2: ");
}

TEST(origins_go_along_with_an_overlay_in_their_order)
{
    struct oct_config config, over;
    struct oct_error err;
    config_accept(&config, "[pipeline]\nmax_db=50\nmin_db=10\n");
    oct_config_init(&over);
    /* The table has min_db before max_db: given the other way round here. */
    load(&over, "[pipeline]\nmax_db=30\n\nmin_db=40\n", "over.ini");
    oct_config_overlay(&config, &over);
    assert_true(config.pipeline.min_db == 40 && config.pipeline.max_db == 30);
    assert_int_equal(check(&config, &err), OCT_E_CONFIG);
    assert_starts(err.text, "over.ini:4: [pipeline] min_db: is 40");
    config_accept(&config, "[pipeline]\nmax_db=50\n");
    oct_config_init(&over);
    load(&over, "[pipeline]\nmin_db=40\n\nmax_db=30\n", "over.ini");
    oct_config_overlay(&config, &over);
    assert_int_equal(check(&config, &err), OCT_E_CONFIG);
    assert_starts(err.text, "over.ini:4: [pipeline] max_db: ");
}

TEST(more_files_than_names_are_kept_still_name_the_key)
{
    struct oct_config config;
    struct oct_error err;
    char name[32];
    oct_config_init(&config);
    for (int i = 0; i < 3 * OCT_CONFIG_MAX_SOURCES; i++) {
        snprintf(name, sizeof(name), "lab%d.ini", i);
        load(&config, "[pipeline]\nmin_db=60\n", name);
        assert_int_equal(check(&config, &err), OCT_E_CONFIG);
        char want[64];
        snprintf(want, sizeof(want), "%s:2: [pipeline] min_db: is 60", name);
        assert_starts(err.text,
                      i < OCT_CONFIG_MAX_SOURCES ? want : "pipeline.min_db: is 60: it must");
    }
    assert_true(oct_config_is_set(&config, "pipeline.min_db"));
    for (int i = 0; i < 100; i++) /* one source however often */
        set(&config, "pipeline.min_db", "60", "lab3.ini");
    assert_int_equal(check(&config, &err), OCT_E_CONFIG);
    assert_starts(err.text, "lab3.ini: pipeline.min_db: is 60");
}

TEST(long_names_are_cut_at_their_beginning_and_the_fault_is_told)
{
    struct oct_config config;
    struct oct_error err;
    char name[600], text[700];
    memset(name, 'n', sizeof(name));
    strcpy(name + sizeof(name) - 10, "/long.ini");
    oct_config_init(&config);
    load(&config, "[pipeline]\nmin_db=60\n", name);
    assert_int_equal(check(&config, &err), OCT_E_CONFIG);
    assert_has(err.text, "nnn/long.ini:2: [pipeline] min_db: is 60: it must be less than "
                         "pipeline.max_db (60: not set, built in)");
    struct oct_plan *plan;
    snprintf(text, sizeof(text), "[calibration]\nkmap=/%.330s\n", name);
    load(&config, text, name);
    assert_int_equal(oct_config_plan(&config, &plan, &err), OCT_E_CONFIG);
    assert_has(err.text, "nnn/long.ini:2: [calibration] kmap: /nnn");
    assert_has(err.text, "File name too long");
}

/* A config of 8 samples from ./lab.ini; `lines` start at its line 5. */
static void load_small(struct oct_config *config, const char *lines)
{
    static const char ini[] = "./lab.ini";
    char text[512];
    snprintf(text, sizeof(text), "[camera]\nsamples=8\n\n[calibration]\n%s", lines);
    config_write_file(ini, text);
    oct_config_init(config);
    must(oct_config_load(config, ini, &failure));
    unlink(ini);
}

TEST(calibration_faults_name_file_line_key_and_path)
{
    static const struct {
        const char *lines, *table, *says, *reason;
    } cases[] = {
        {"wavelengths=absent.txt\n", NULL, "/lab.ini:5: [calibration] wavelengths: ./",
         "/absent.txt: cannot be opened: No such file or directory"},
        {"dispersion_a2=0\nkmap=t.txt\n", "1\nx\n", "/lab.ini:6: [calibration] kmap: ./",
         "/t.txt:2: 'x' is not one number"},
        {"wavelengths=t.txt\n", "800\n801\n", "/lab.ini:5: [calibration] wavelengths: has 2 values",
         "/t.txt)"},
        {"wavelengths=t.txt\n", "8\n7\n6\n7\n4\n3\n2\n1\n",
         "/lab.ini:5: [calibration] wavelengths: value 4: ", "/t.txt)"},
        {"kmap=t.txt\n", "1\n1\n", "/lab.ini:5: [calibration] kmap: value 2: ", "/t.txt)"},
        {"kmap=t.txt\ndispersion=t.txt\n", "1 0\n", "/lab.ini:5: [calibration] kmap: ./",
         "is not one number"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_config config;
        struct oct_plan *plan;
        struct oct_error err = {.text = ""};
        load_small(&config, cases[i].lines);
        const char *path = "t.txt";
        if (cases[i].table)
            config_write_file(path, cases[i].table);
        assert_int_equal(oct_config_plan(&config, &plan, &err), OCT_E_CONFIG);
        assert_has(err.text, cases[i].says);
        assert_has(err.text, cases[i].reason);
        unlink(path);
    }
    struct oct_config config;
    struct oct_plan *plan;
    struct oct_error err;
    oct_config_init(&config);
    set(&config, "calibration.kmap", "no/such.txt", "--set");
    assert_int_equal(oct_config_plan(&config, &plan, &err), OCT_E_CONFIG);
    assert_starts(err.text, "--set calibration.kmap: no/such.txt: cannot be opened: No such");
    oct_config_init(&config); /* nothing given: nothing to blame but the key */
    assert_int_equal(oct_config_plan(&config, &plan, &err), OCT_E_CONFIG);
    assert_starts(err.text, "calibration.wavelengths is not set: ");
}

TEST(a_count_that_a_later_key_spoils_blames_that_key)
{
    struct oct_config config;
    struct oct_plan *plan;
    struct oct_error err;
    const char *path = "t.txt";
    config_write_file(path, "8\n7\n6\n5\n4\n3\n2\n1\n");
    load_small(&config, "wavelengths=t.txt\n");
    set(&config, "camera.samples", "16", "--set");
    assert_int_equal(oct_config_plan(&config, &plan, &err), OCT_E_CONFIG);
    assert_starts(err.text, "--set camera.samples: calibration.wavelengths has 8 values");
    assert_has(err.text, "/t.txt)");
    unlink(path);
}

TEST(a_number_that_nobody_set_is_said_to_be_built_in)
{
    struct oct_config config;
    struct oct_plan *plan;
    struct oct_error err;
    const char *path = "t.txt";
    config_write_file(path, "8\n7\n6\n5\n4\n3\n2\n1\n");
    oct_config_init(&config);
    set(&config, "calibration.wavelengths", path, "--set");
    must_fail(oct_config_plan(&config, &plan, &failure), OCT_E_CONFIG,
              "it must have camera.samples (832: not set, built in) or P2 (");
    set(&config, "camera.samples", "832", "--set");
    must_fail(oct_config_plan(&config, &plan, &failure), OCT_E_CONFIG,
              "it must have camera.samples (832) or P2 (");
    unlink(path);
    /* Not of another number, however the program came by it, and never beyond the room there is. */
    struct oct_error why;
    oct_fail(&why, OCT_E_CONFIG, "scan.lines (8) scan.lines (240");
    oct_error_go_on(&why, OCT_E_CONFIG, "scan.lines", ") or so");
    oct_config_init(&config);
    oct_config_blame(&config, &why, &err);
    assert_string_equal(err.text, "scan.lines (8) scan.lines (240: not set, built in) or so");
    config.scan.lines = 8;
    oct_config_blame(&config, &why, &err);
    assert_string_equal(err.text, "scan.lines (8) scan.lines (240) or so");
    oct_config_init(&config);
    for (int n = 0; n + 17 < (int)sizeof(why.text); n++) {
        oct_fail(&why, OCT_E_CONFIG, "%*sscan.lines (240", n, "");
        oct_error_go_on(&why, OCT_E_CONFIG, "scan.lines", ")");
        oct_config_blame(&config, &why, &err);
        assert_has(err.text, "scan.lines (240");
        assert_int_equal(err.text[strlen(err.text) - 1], ')');
    }
}

TEST(a_path_with_a_number_sign_gets_a_hint)
{
    static const char hint[] = "a '#' starts a comment only first in a line";
    struct oct_config config;
    struct oct_plan *plan;
    struct oct_error err;
    load_small(&config, "kmap = k.txt # measured in May\n");
    assert_int_equal(oct_config_plan(&config, &plan, &err), OCT_E_CONFIG);
    assert_has(err.text, "/k.txt # measured in May: cannot be opened");
    assert_has(err.text, hint);
    /* Not where the name is right, was meant, or the file is there and wrong inside. */
    load_small(&config, "kmap = k#1.txt\n");
    assert_int_equal(oct_config_plan(&config, &plan, &err), OCT_E_CONFIG);
    assert_null(strstr(err.text, hint));
    set(&config, "calibration.kmap", "/absent #1", "--set");
    assert_int_equal(oct_config_plan(&config, &plan, &err), OCT_E_CONFIG);
    assert_null(strstr(err.text, hint));
    load_small(&config, "kmap = k #1.txt\n");
    const char *path = "k #1.txt";
    config_write_file(path, "1\nx\n");
    assert_int_equal(oct_config_plan(&config, &plan, &err), OCT_E_CONFIG);
    assert_has(err.text, "k #1.txt:2: ");
    assert_null(strstr(err.text, hint));
    unlink(path);
}

TEST(other_errors_stay_as_they_are)
{
    struct oct_config config;
    struct oct_error why = {.code = OCT_E_NO_MEMORY, .text = "out of memory for the plan"}, err;
    config_accept(&config, "[pipeline]\nmin_db=1\nmin=2\n");
    assert_int_equal(oct_config_blame(&config, &why, &err), OCT_E_NO_MEMORY);
    assert_int_equal(err.code, OCT_E_NO_MEMORY);
    assert_string_equal(err.text, why.text);
    assert_int_equal(oct_config_blame(&config, &why, NULL), OCT_E_NO_MEMORY);
    /* What the text names is not searched: the error says which keys may be at fault. */
    oct_fail_key(&why, OCT_E_CONFIG, "pipeline.min_db", "pipeline.min: pipeline.min_db is odd");
    oct_config_blame(&config, &why, &err);
    assert_string_equal(err.text, "lab.ini:2: [pipeline] min_db: "
                                  "pipeline.min: pipeline.min_db is odd");
    oct_fail(&why, OCT_E_CONFIG, "pipeline.min_db is odd");
    oct_config_blame(&config, &why, &err);
    assert_string_equal(err.text, "pipeline.min_db is odd");
    oct_fail_key(&why, OCT_E_CONFIG, "pipeline.none pipeline", "pipeline.none is no key");
    oct_config_blame(&config, &why, &err);
    assert_string_equal(err.text, "pipeline.none is no key");
    /* Told once: the blamed error blames nothing more. */
    oct_fail_key(&why, OCT_E_CONFIG, "pipeline.min_db pipeline.min", "both are odd");
    oct_config_blame(&config, &why, &err);
    assert_string_equal(err.text, "lab.ini:3: [pipeline] min: both are odd");
    oct_config_blame(&config, &err, &why);
    assert_string_equal(why.text, err.text);
}
