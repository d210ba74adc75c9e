/* The configuration: key table, values, single keys, keys that go together. */
#include "analysis/enface/enface.h"
#include "test/rig/config_help.h"

#include "config/keys.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/plan/plan.h"

#include <stdio.h>

/* ---- the table ---- */

TEST(table_is_sound)
{
    const char *section = "";
    struct oct_key key, found;
    size_t n = 0;
    for (; oct_key_at(n, &key); n++) {
        const struct oct_param *param = key.param;
        char why[256], text[OCT_CONFIG_STRING_BYTES];
        static struct oct_config config;
        if (strcmp(section, key.section)) { /* keys of one section stand together */
            for (size_t before = 0; before + 1 < n && oct_key_at(before, &found); before++)
                assert_string_not_equal(found.section, key.section);
            section = key.section;
        }
        assert_true(oct_key_find(key.section, key.name, &found) && found.index == key.index);
        if (!oct_key_parse(&key, &config, param->standard, why, sizeof(why)))
            fail_msg("default of %s.%s: %s", key.section, key.name, why);
        oct_key_format(&key, &config, text, sizeof(text));
        assert_string_equal(text, param->standard);
        assert_true(!param->word ||
                    (param->type == OCT_PARAM_U32 && param->word_value > param->most));
        assert_true(param->type != OCT_PARAM_WORD || param->words);
        assert_true(param->type != OCT_PARAM_FORM || (param->form && param->takes));
        assert_true(param->meaning && strlen(param->meaning) < 98);
        if ((param->when == OCT_CONFIG_LIVE) != (param->applies != 0))
            fail_msg("%s.%s: what applies it, if it is live?", key.section, key.name);
    }
    assert_true(n > 90 && n <= OCT_CONFIG_MAX_ROWS);
}

TEST(defaults_are_those_of_the_contract)
{
    struct oct_config c;
    oct_config_init(&c);
    assert_int_equal(c.camera.samples, 832);
    assert_int_equal(c.camera.bits, 16);
    assert_int_equal(c.scan.lines, 240);
    assert_int_equal(c.scan.bscans, 240);
    assert_true(c.scan.line_rate_hz == 100000 && c.scan.refractive_index == 1.36);
    assert_string_equal(c.calibration.wavelengths, "");
    assert_int_equal(c.pipeline.backend, OCT_BACKEND_AUTO);
    assert_int_equal(c.pipeline.dc, OCT_DC_BSCAN);
    assert_int_equal(c.pipeline.interpolation, OCT_INTERPOLATION_NUFFT);
    assert_true(c.pipeline.nufft_accuracy_db == OCT_STANDARD_ACCURACY_DB);
    assert_int_equal(c.pipeline.crop_first, 0);
    assert_int_equal(c.pipeline.crop_last, OCT_CONFIG_CROP_AUTO);
    assert_true(c.pipeline.log);
    assert_int_equal(c.pipeline.range, OCT_RANGE_PERCENTILE);
    assert_true(c.pipeline.min_db == 0 && c.pipeline.max_db == 60);
    assert_true(c.pipeline.min == 0 && c.pipeline.max == 1e4);
    assert_true(c.pipeline.percentile_low == 30 && c.pipeline.percentile_high == 99.8);
    assert_true(c.pipeline.smoothing_bscans == 30);
    assert_int_equal(c.pipeline.ring_bscans, 128);
    assert_int_equal(c.output.sample, OCT_SAMPLE_U8);
    assert_true(c.daemon.autostart);
    assert_string_equal(c.ingest.endpoint, "tcp://127.0.0.1:5701");
    assert_string_equal(c.publish.endpoint, "tcp://127.0.0.1:5702");
    assert_string_equal(c.control.endpoint, "tcp://127.0.0.1:5703");
    assert_int_equal(c.ingest.queue_messages, 64);
    assert_int_equal(c.publish.queue_bscans, 32);
    assert_string_equal(c.record.directory, ".");
    assert_true(c.record.spectra && c.record.bscans && c.record.sync_interval_s == 1);
    assert_string_equal(c.analysis.run, "enface,quality,cells,surfaces,slab,average,rolloff");
    const struct oct_enface_settings *enface = oct_config_settings(&c, "enface");
    assert_int_equal(enface->projection, OCT_PROJECTION_MEAN);
    assert_true(enface->slab_first == 0.4 && enface->slab_last == 0.6);
    assert_false(oct_config_is_set(&c, "camera.samples"));
    must(oct_config_check(&c, &failure));
}

/* ---- values ---- */

struct value_case {
    const char *key, *value;
    const char *kept; /* as oct_config_get says it; NULL: refused */
    const char *says; /* part of the refusal */
};

static const struct value_case value_cases[] = {
    {"camera.samples", "2048", "2048", NULL},
    {"camera.samples", " 4 ", "4", NULL},
    {"camera.samples", "131072", "131072", NULL},
    {"camera.samples", "3", NULL, "4 to 131072"},
    {"camera.samples", "131073", NULL, "4 to 131072"},
    {"camera.samples", "4294967300", NULL, "4 to 131072"},
    {"camera.samples", "18446744073709551620", NULL, "4 to 131072"},
    {"camera.samples", "-832", NULL, "'-832'"},
    {"camera.samples", "+832", NULL, "'+832'"},
    {"camera.samples", "832px", NULL, "'832px'"},
    {"camera.samples", "832.0", NULL, "4 to 131072"},
    {"camera.samples", "0x340", NULL, "4 to 131072"},
    {"camera.samples", "8 32", NULL, "4 to 131072"},
    {"camera.samples", "", NULL, "4 to 131072"},
    {"file.header_bytes", "1099511627776", "1099511627776", NULL},
    {"file.header_bytes", "1099511627777", NULL, "0 to 1099511627776"},
    {"file.header_bytes", "-1", NULL, "0 to 1099511627776"},
    {"scan.line_rate_hz", "70000.5", "70000.5", NULL},
    {"scan.line_rate_hz", "7e4", "70000", NULL},
    {"scan.line_rate_hz", "0.1", NULL, "1 to 1000000000"},
    {"scan.line_rate_hz", "nan", NULL, "1 to 1000000000"},
    {"scan.line_rate_hz", "inf", NULL, "1 to 1000000000"},
    {"scan.line_rate_hz", "1e999", NULL, "1 to 1000000000"},
    {"scan.line_rate_hz", "0x10", NULL, "1 to 1000000000"},
    {"scan.line_rate_hz", "70,5", NULL, "'70,5'"},
    {"scan.line_rate_hz", "7e4 Hz", NULL, "'7e4 Hz'"},
    {"scan.line_rate_hz", "1e", NULL, "'1e'"},
    {"calibration.dispersion_over", "spectrum", "spectrum", NULL},
    {"calibration.dispersion_over", "camera", NULL, "grid | spectrum"},
    {"calibration.dispersion_a2", "-12.25", "-12.25", NULL},
    {"calibration.dispersion_a3", "0.1", "0.1", NULL},
    {"calibration.dispersion_a3", "0.30000000000000004", "0.30000000000000004", NULL},
    {"pipeline.percentile_low", "0", "0", NULL},
    {"pipeline.percentile_high", "100", "100", NULL},
    {"pipeline.percentile_high", "100.1", NULL, "0 to 100"},
    {"pipeline.percentile_low", "-0.1", NULL, "0 to 100"},
    {"pipeline.smoothing_bscans", "-1", NULL, "0 to 1000000"},
    {"pipeline.log", "Yes", "yes", NULL},
    {"pipeline.log", "true", "yes", NULL},
    {"pipeline.log", "on", "yes", NULL},
    {"pipeline.log", "1", "yes", NULL},
    {"pipeline.log", "no", "no", NULL},
    {"pipeline.log", "FALSE", "no", NULL},
    {"pipeline.log", "off", "no", NULL},
    {"pipeline.log", "0", "no", NULL},
    {"pipeline.log", "y", NULL, "yes | no"},
    {"pipeline.log", "2", NULL, "yes | no"},
    {"pipeline.log", "", NULL, "yes | no"},
    {"pipeline.backend", "cuda", "cuda", NULL},
    {"pipeline.backend", "gpu", NULL, "auto | cpu | cuda"},
    {"pipeline.dc", "file", "file", NULL},
    {"analysis.run", "", "", NULL},
    {"analysis.run", "enface", "enface", NULL},
    {"analysis.run", " B_2,enface,b_2 ", "B_2,enface,b_2", NULL},
    {"analysis.run", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", NULL},
    {"analysis.run", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", NULL, "more than 16"},
    {"analysis.run", "enface,quality,enface", NULL, "twice"},
    {"analysis.run", "enface,enf,enface2", "enface,enf,enface2", NULL},
    {"analysis.run", "enface,", NULL, "list of names"},
    {"analysis.run", ",enface", NULL, "list of names"},
    {"analysis.run", "enface, quality", NULL, "list of names"},
    {"analysis.run", "en-face", NULL, "list of names"},
    {"analysis.run", "/etc", NULL, "list of names"},
    {"analysis.enface_projection", "slab", "slab", NULL},
    {"analysis.enface_projection", "sum", NULL, "mean | max | slab"},
    {"analysis.enface_slab_last", "1.01", NULL, "0 to 1"},
    {"pipeline.dc", "File", NULL, "bscan | file | none"},
    {"pipeline.interpolation", "cubic", "cubic", NULL},
    {"pipeline.interpolation", "nufft", "nufft", NULL},
    {"pipeline.interpolation", "exact", NULL, "linear | cubic | nufft"},
    {"pipeline.nufft_accuracy_db", "-100", "-100", NULL},
    {"pipeline.window", "blackman", "blackman", NULL},
    {"pipeline.window", "kaiser", NULL, "none | hann | hamming | blackman | gauss | flat"},
    {"pipeline.window_width", "0.05", "0.05", NULL},
    {"pipeline.window_width", "2.1", NULL, "0.05 to 2"},
    {"pipeline.flatten", "yes", "yes", NULL},
    {"pipeline.nufft_accuracy_db", "-111", NULL, "-110 to -40 dB"},
    {"pipeline.nufft_accuracy_db", "80", NULL, "-110 to -40 dB"},
    {"pipeline.simd", "avx2", "avx2", NULL},
    {"pipeline.simd", "sse", NULL, "auto | avx512 | avx2 | plain"},
    {"pipeline.range", "manual", "manual", NULL},
    {"pipeline.crop_last", "auto", "auto", NULL},
    {"pipeline.crop_last", "0", "0", NULL},
    {"pipeline.crop_last", "131072", "131072", NULL},
    {"pipeline.crop_last", "131073", NULL, "auto | 0 to 131072"},
    {"pipeline.crop_last", "4294967295", NULL, "auto | 0 to 131072"},
    {"pipeline.crop_last", "all", NULL, "auto | 0 to 131072"},
    {"pipeline.crop_first", "auto", NULL, "0 to 131071"},
    {"output.sample", "f32", "f32", NULL},
    {"output.sample", "u16", NULL, "u8 | f32 | c64"},
    {"pipeline.gpus", "", "", NULL},
    {"pipeline.gpus", "0,1,15", "0,1,15", NULL},
    {"pipeline.gpus", "0,", NULL, "device numbers"},
    {"pipeline.gpus", ",0", NULL, "device numbers"},
    {"pipeline.gpus", "all", NULL, "device numbers"},
    {"record.eye", "OD", "OD", NULL},
    {"record.eye", "", "", NULL},
    {"record.eye", "left", NULL, "OD | OS"},
    {"record.pseudonym", "P-017; second visit", "P-017; second visit", NULL},
    {"record.pseudonym", "P-017 ;second", NULL, "comment"},
    {"record.pseudonym", ";P", NULL, "comment"},
    {"record.pseudonym", "a\nb", NULL, "control character"},
    {"record.pseudonym", "a\tb", NULL, "control character"},
    {"record.pseudonym", "a\033[1m", NULL, "control character"},
    {"record.directory", "data/today", "data/today", NULL},
    {"record.directory", "", NULL, "must not be empty"},
    {"calibration.wavelengths", "", "", NULL},
    {"ingest.endpoint", "tcp://*:5701", "tcp://*:5701", NULL},
    {"ingest.endpoint", "tcp://[::1]:5701", "tcp://[::1]:5701", NULL},
    {"ingest.endpoint", "tcp://127.0.0.1:*", "tcp://127.0.0.1:*", NULL},
    {"ingest.endpoint", "ipc:///run/octd/lines", "ipc:///run/octd/lines", NULL},
    {"ingest.endpoint", "shm://lab-1", "shm://lab-1", NULL},
    {"ingest.endpoint", "shm://", NULL, "no name"},
    {"ingest.endpoint", "shm:///dev/shm/x", NULL, "other characters"},
    {"publish.endpoint", "shm://lab-1", NULL, "tcp:// or ipc://"},
    {"ingest.endpoint", "inproc://lines", NULL, "tcp:// or ipc://"}, /* within a process */
    {"ingest.endpoint", "", NULL, "must not be empty"},
    {"ingest.endpoint", "127.0.0.1:5701", NULL, "tcp:// or ipc://"},
    {"ingest.endpoint", "http://localhost:80", NULL, "tcp:// or ipc://"},
    {"ingest.endpoint", "ipc://", NULL, "nothing after"},
    {"ingest.endpoint", "tcp://localhost", NULL, "tcp://HOST:PORT"},
    {"ingest.endpoint", "tcp://:5701", NULL, "tcp://HOST:PORT"},
    {"ingest.endpoint", "tcp://localhost:65536", NULL, "0 to 65535"},
    {"ingest.endpoint", "tcp://localhost:57o1", NULL, "0 to 65535"},
    {"ingest.endpoint", "tcp://local host:1", NULL, "space"},
    {"publish.queue_bscans", "0", NULL, "1 to 65536"},
    {"ingest.queue_messages", "0", NULL, "1 to 1000000"},
};

TEST(values_are_checked_by_type_and_range)
{
    for (size_t i = 0; i < sizeof(value_cases) / sizeof(value_cases[0]); i++) {
        const struct value_case *v = &value_cases[i];
        struct oct_config config, before;
        struct oct_error err = {.text = ""};
        char kept[OCT_CONFIG_STRING_BYTES];
        oct_config_init(&config);
        before = config;
        enum oct_err code = oct_config_set(&config, v->key, v->value, "--set", &err);
        if (v->kept) {
            if (code)
                fail_msg("%s=%s: %s", v->key, v->value, err.text);
            must(oct_config_get(&config, v->key, kept, sizeof(kept), &failure));
            assert_string_equal(kept, v->kept);
            assert_true(oct_config_is_set(&config, v->key));
        } else {
            if (code != OCT_E_CONFIG)
                fail_msg("%s=%s was accepted", v->key, v->value);
            assert_int_equal(strncmp(err.text, "--set ", 6), 0);
            assert_int_equal(strncmp(err.text + 6, v->key, strlen(v->key)), 0);
            assert_has(err.text, v->says);
            assert_memory_equal(&config, &before, sizeof(config));
        }
    }
}

TEST(long_strings_are_refused_not_cut)
{
    struct oct_config config;
    struct oct_error err;
    char text[OCT_CONFIG_STRING_BYTES + 8];
    oct_config_init(&config);
    memset(text, 'a', sizeof(text));
    text[0] = '/';
    text[OCT_CONFIG_STRING_BYTES - 1] = '\0';
    must(oct_config_set(&config, "record.directory", text, "--set", &failure));
    assert_string_equal(config.record.directory, text);
    text[OCT_CONFIG_STRING_BYTES - 1] = 'a';
    text[OCT_CONFIG_STRING_BYTES] = '\0';
    must_fail(oct_config_set(&config, "record.directory", text, "--set", &failure), OCT_E_CONFIG,
              "1024 bytes long: at most 1023");
    text[128] = '\0';
    must_fail(oct_config_set(&config, "record.pseudonym", text, "--set", &failure), OCT_E_CONFIG,
              "128 bytes long: at most 127");
    text[127] = '\0';
    must(oct_config_set(&config, "record.pseudonym", text, "--set", &failure));
    snprintf(text, sizeof(text), "ipc:///%0107d", 0);
    must_fail(oct_config_set(&config, "ingest.endpoint", text, "--set", &failure), OCT_E_CONFIG,
              "too long for a socket");
    assert_int_equal(oct_config_get(&config, "record.pseudonym", text, 5, &err), OCT_E_ARG);
}

TEST(unknown_keys_name_the_nearest)
{
    static const char *const cases[][2] = {
        {"camera.sampels", "did you mean camera.samples?"},
        {"camera.lines", "did you mean scan.lines?"},
        {"camera.sample", "did you mean camera.samples?"},
        {"pipeline.croplast", "did you mean pipeline.crop_last?"},
        {"record.endpoint", ".endpoint?"},
        {"camra.samples", "did you mean [camera]?"},
        {"camera.qqqqqqqqqq", "no such key"},
        {"zzzzzzz.samples", "no such section"},
        {"samples", "SECTION.KEY"},
        {"", "SECTION.KEY"},
        {".", "no such section"},
        {"camera.", "no such key"},
    };
    struct oct_config config;
    oct_config_init(&config);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_error err = {.text = ""};
        char value[64];
        enum oct_param_when when;
        unsigned applies;
        assert_int_equal(oct_config_set(&config, cases[i][0], "1", "control", &err), OCT_E_CONFIG);
        assert_has(err.text, "control: ");
        assert_has(err.text, cases[i][1]);
        must_fail(oct_config_get(&config, cases[i][0], value, sizeof(value), &failure),
                  OCT_E_CONFIG, cases[i][1]);
        assert_int_equal(oct_config_when(cases[i][0], &when, &applies, &err), OCT_E_CONFIG);
        assert_false(oct_config_is_set(&config, cases[i][0]));
    }
    struct oct_error err = {.text = ""};
    assert_int_equal(oct_config_set(&config, "camera.qqqqqqqqqq", "1", "x", &err), OCT_E_CONFIG);
    assert_null(strstr(err.text, "did you mean"));
}

TEST(assignments_are_split_at_the_first_equals_sign)
{
    struct oct_config config;
    oct_config_init(&config);
    must(oct_config_set_assignment(&config, "camera.samples=1024", &failure));
    assert_int_equal(config.camera.samples, 1024);
    must(oct_config_set_assignment(&config, " record.directory = a=b ", &failure));
    assert_string_equal(config.record.directory, "a=b");
    static const char *const bad[] = {"camera.samples", "", "=5", "  =5", "camera.samples=x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        must_fail(oct_config_set_assignment(&config, bad[i], &failure), OCT_E_CONFIG, "--set");
    }
    assert_int_equal(config.camera.samples, 1024);
}

TEST(when_a_key_may_change_and_what_applies_it)
{
    static const struct {
        const char *key;
        enum oct_param_when when;
        unsigned applies;
    } cases[] = {
        {"pipeline.range", OCT_CONFIG_LIVE, OCT_APPLIES_DISPLAY | OCT_APPLIES_FORECAST},
        {"pipeline.min_db", OCT_CONFIG_LIVE, OCT_APPLIES_DISPLAY},
        {"pipeline.max", OCT_CONFIG_LIVE, OCT_APPLIES_DISPLAY},
        {"pipeline.percentile_low", OCT_CONFIG_LIVE, OCT_APPLIES_DISPLAY | OCT_APPLIES_FORECAST},
        {"pipeline.smoothing_bscans", OCT_CONFIG_LIVE, OCT_APPLIES_DISPLAY},
        {"record.directory", OCT_CONFIG_LIVE, OCT_APPLIES_RECORDING | OCT_APPLIES_FORECAST},
        {"record.bscans", OCT_CONFIG_LIVE, OCT_APPLIES_RECORDING | OCT_APPLIES_FORECAST},
        {"record.eye", OCT_CONFIG_LIVE, OCT_APPLIES_RECORDING},
        {"record.volumes", OCT_CONFIG_LIVE, OCT_APPLIES_RECORDING | OCT_APPLIES_RECORDER},
        {"daemon.drain_s", OCT_CONFIG_LIVE, OCT_APPLIES_DAEMON},
        {"analysis.enface_projection", OCT_CONFIG_LIVE, OCT_APPLIES_ANALYSIS},
        {"analysis.enface_slab_last", OCT_CONFIG_LIVE, OCT_APPLIES_ANALYSIS},
        {"analysis.run", OCT_CONFIG_IDLE, 0},
        {"pipeline.log", OCT_CONFIG_IDLE, 0},
        {"camera.samples", OCT_CONFIG_IDLE, 0},
        {"pipeline.ring_bscans", OCT_CONFIG_IDLE, 0},
        {"calibration.kmap", OCT_CONFIG_IDLE, 0},
        {"daemon.autostart", OCT_CONFIG_START, 0},
        {"ingest.endpoint", OCT_CONFIG_START, 0},
        {"publish.endpoint", OCT_CONFIG_START, 0},
        {"control.endpoint", OCT_CONFIG_START, 0},
        {"ingest.queue_messages", OCT_CONFIG_START, 0},
        {"publish.queue_bscans", OCT_CONFIG_START, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum oct_param_when when;
        unsigned applies;
        must(oct_config_when(cases[i].key, &when, &applies, &failure));
        if (when != cases[i].when || applies != cases[i].applies)
            fail_msg("%s", cases[i].key);
    }
}

/* ---- several keys together ---- */

TEST(keys_that_do_not_go_together_are_refused)
{
    static const char *const cases[][2] = {
        {"[calibration]\nwavelengths=/a\nkmap=/b\n", "calibration.kmap"},
        {"[calibration]\ndispersion=/a\ndispersion_a3=1\n", "calibration.dispersion"},
        {"[pipeline]\ndc=file\n", "calibration.background"},
        {"[scan]\nrepeats=7\n", "[scan] repeats"},
        {"[scan]\nrepeats=8\ninterleave=7\n", "[scan] interleave"},
        {"[scan]\nline_repeats=7\n", "[scan] line_repeats"},
        {"[pipeline]\nmin_db=60\n", "[pipeline] min_db"},
        {"[pipeline]\nmax=0\n", "[pipeline] max"},
        {"[pipeline]\npercentile_low=99.8\n", "[pipeline] percentile_low"},
        {"[record]\nspectra=no\nbscans=no\n", "record.spectra"},
        {"[analysis]\nenface_slab_first=0.6\n", "[analysis] enface_slab_first: is 0.6: it must be "
                                                "less than analysis.enface_slab_last (0.6"},
        {"[analysis]\nenface_slab_last=0.3\n", "[analysis] enface_slab_last"},
    };
    struct oct_config config;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        config_accept(&config, cases[i][0]);
        must_fail(oct_config_check(&config, &failure), OCT_E_CONFIG, cases[i][1]);
    }
    config_accept(&config,
                  "[calibration]\nkmap=/b\nbackground=/c\n[pipeline]\ndc=file\nmin_db=59.9\n"
                  "[record]\nspectra=no\n"
                  "[scan]\nbscans=60\nrepeats=4\ninterleave=5\nlines=30\nline_repeats=15\n");
    must(oct_config_check(&config, &failure));
}
