/* From the configuration to geometry, display, engine options, calibration and plan. */
#include "test/rig/config_help.h"

#include "config/apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- what the pipeline gets ---- */

TEST(geometry_and_display_follow_the_keys)
{
    struct oct_config config;
    struct oct_geometry g;
    struct oct_display display;
    config_accept(&config,
                  "[camera]\nsamples=2049\n[scan]\nlines=16\nbscans=3\n[pipeline]\n"
                  "crop_first=10\ncrop_last=100\nrange=manual\nmin_db=-5\nmax_db=55\nmin=2\n"
                  "max=9\npercentile_low=1\npercentile_high=98\nsmoothing_bscans=7\n"
                  "[output]\nsample=f32\n");
    must(oct_config_geometry(&config, &g, &failure));
    assert_int_equal(g.padded, 4096);
    assert_int_equal(g.n_lines, 16);
    assert_int_equal(g.n_bscans, 3);
    assert_int_equal(g.crop_first, 10);
    assert_int_equal(g.depth, 90);
    assert_int_equal(g.sample_type, OCT_SAMPLE_F32);
    oct_config_display(&config, &display);
    assert_true(display.log && display.range == OCT_RANGE_MANUAL);
    assert_true(display.lo == -5 && display.hi == 55 && display.smoothing_bscans == 7);
    assert_true(display.percentile_lo == 1 && display.percentile_hi == 98);
    config.pipeline.log = false;
    oct_config_display(&config, &display);
    assert_true(!display.log && display.lo == 2 && display.hi == 9);
    config.pipeline.crop_first = 100;
    must_fail(oct_config_geometry(&config, &g, &failure), OCT_E_CONFIG,
              "pipeline.crop_first is 100");
}

/* Twice upsampled, nothing real lies beyond P2/4; 0 keeps its meaning. */
TEST(the_depth_follows_the_samples)
{
    static const struct {
        const char *samples, *crop_last;
        uint32_t depth;
    } cases[] = {
        {"4", "auto", 1024},       {"832", "auto", 1024},  {"1024", "auto", 1024},
        {"2048", "auto", 1024},    {"2049", "auto", 2048}, {"8192", "auto", 4096},
        {"131072", "auto", 65536}, {"1024", "0", 2048},    {"2049", "0", 4096},
        {"1024", "2048", 2048},    {"2049", "1024", 1024},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_config config;
        struct oct_geometry g;
        struct oct_error err = {.text = ""};
        oct_config_init(&config);
        oct_config_set(&config, "camera.samples", cases[i].samples, "--set", &err);
        must(oct_config_geometry(&config, &g, &failure));
        assert_int_equal(g.crop_last, g.padded / 2); /* nobody said anything */
        oct_config_set(&config, "pipeline.crop_last", cases[i].crop_last, "--set", &err);
        must(oct_config_geometry(&config, &g, &failure));
        assert_int_equal(g.depth, cases[i].depth);
    }
}

TEST(engine_options_name_the_cache_folder)
{
    struct oct_config config;
    struct oct_engine_options options;
    char dir[64];
    config_accept(&config, "[pipeline]\nthreads=3\nbatch=5\nsimd=avx2\ngpus=1\n");
    char *cache = getenv("XDG_CACHE_HOME") ? strdup(getenv("XDG_CACHE_HOME")) : NULL;
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    setenv("XDG_CACHE_HOME", "/cache", 1);
    setenv("HOME", "/home/lab", 1);
    oct_config_engine_options(&config, &options, dir, sizeof(dir));
    assert_int_equal(options.n_threads, 3);
    assert_int_equal(options.max_batch, 5);
    assert_string_equal(options.simd, "avx2");
    assert_string_equal(options.gpus, "1");
    assert_string_equal(options.wisdom_dir, "/cache/octd");
    setenv("XDG_CACHE_HOME", "relative", 1);
    oct_config_engine_options(&config, &options, dir, sizeof(dir));
    assert_string_equal(options.wisdom_dir, "/home/lab/.cache/octd");
    oct_config_engine_options(&config, &options, dir, 8);
    assert_null(options.wisdom_dir);
    unsetenv("HOME");
    oct_config_engine_options(&config, &options, dir, sizeof(dir));
    assert_null(options.wisdom_dir);
    if (cache)
        setenv("XDG_CACHE_HOME", cache, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    if (home)
        setenv("HOME", home, 1);
    free(cache);
    free(home);
}

TEST(calibration_files_are_read_into_a_plan)
{
    struct oct_config config;
    struct oct_calibration cal;
    struct oct_plan *plan;
    config_accept(&config, "[camera]\nsamples=8\n[scan]\nlines=2\nbscans=1\n"
                           "[calibration]\ndispersion_a2=1.5\ndispersion_a5=-2\n");
    const char *path = "nm.txt";
    config_write_file(path, "800\n800.1\n800.2\n800.3\n800.4\n800.5\n800.6\n800.7\n");
    must(oct_config_set(&config, "calibration.wavelengths", path, "test", &failure));
    must(oct_config_calibration(&config, &cal, &failure));
    assert_int_equal(cal.n_wavelengths, 8);
    assert_true(cal.wavelengths_nm[7] == 800.7);
    assert_true(cal.coefficient[2] == 1.5 && cal.coefficient[5] == -2 && cal.coefficient[3] == 0);
    assert_null(cal.background);
    oct_calibration_finish(&cal);
    must(oct_config_plan(&config, &plan, &failure));
    assert_int_equal(plan->geometry.n_samples, 8);
    assert_int_equal(plan->chain.dc, OCT_DC_BSCAN);
    oct_plan_destroy(plan);
    unlink(path);
}

TEST(nufft_is_planned_with_its_accuracy)
{
    static const struct {
        const char *accuracy_db;
        unsigned n_taps;
    } cases[] = {{"-80", 8}, {"-110", 8}, {"-70", 6}, {"-40", 4}};
    const char *path = "map.txt";
    config_write_file(path, "0\n7\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_config config;
        struct oct_plan *plan;
        struct oct_error err = {.text = ""};
        config_accept(&config, "[camera]\nsamples=8\n[scan]\nlines=2\nbscans=1\n"
                               "[pipeline]\ninterpolation=nufft\n");
        oct_config_set(&config, "calibration.kmap", path, "test", &err);
        oct_config_set(&config, "pipeline.nufft_accuracy_db", cases[i].accuracy_db, "test", &err);
        must(oct_config_plan(&config, &plan, &failure)); /* crop_last=auto fits */
        assert_int_equal(plan->chain.interpolation, OCT_INTERPOLATION_NUFFT);
        assert_int_equal(plan->spread.n_taps, cases[i].n_taps);
        assert_true(oct_shaping_is_none(&plan->chain.shaping));
        assert_int_equal(plan->geometry.crop_last, plan->geometry.upsampled / 4);
        oct_plan_destroy(plan);
    }
    unlink(path);
}

TEST(a_window_is_planned_with_its_width_and_source)
{
    struct oct_config config;
    struct oct_plan *plan;
    struct oct_error err = {.text = ""};
    char map[4096], light[4096];
    snprintf(map, sizeof(map), "%s", "map.txt");
    snprintf(light, sizeof(light), "%s", "light.txt");
    config_write_file(map, "0\n7\n");
    config_write_file(light, "1\n2\n3\n4\n4\n3\n2\n1\n");
    config_accept(&config, "[camera]\nsamples=8\n[scan]\nlines=2\nbscans=1\n"
                           "[pipeline]\nwindow=gauss\nwindow_width=0.75\nflatten=yes\n");
    oct_config_set(&config, "calibration.kmap", map, "test", &err);
    oct_config_set(&config, "calibration.background", light, "test", &err);
    must(oct_config_check(&config, &failure));
    must(oct_config_plan(&config, &plan, &failure));
    assert_int_equal(plan->chain.shaping.window, OCT_WINDOW_GAUSS);
    assert_true(plan->chain.shaping.width == 0.75 && plan->chain.shaping.flatten);
    oct_plan_destroy(plan);
    config_write_file(light, "1\n2\n3\n");
    assert_int_equal(oct_config_plan(&config, &plan, &err), OCT_E_CONFIG);
    assert_has(err.text, "light.txt");
    assert_has(err.text, "has 3 values: with pipeline.window it must have camera.samples (8)");
    config_write_file(light, "0\n0\n0\n0\n0\n0\n0\n-1\n");
    must_fail(oct_config_plan(&config, &plan, &failure), OCT_E_CONFIG, "no light");
    unlink(map);
    unlink(light);
}

TEST(depths_that_nufft_cannot_have_name_file_and_line)
{
    static const char *const cases[][2] = {
        {"interpolation=nufft\ncrop_last=1025\n",
         "lab.ini:7: [pipeline] crop_last: is 1025: with pipeline.interpolation=nufft it must be "
         "at most 1024 (P2/4, beyond which nothing real lies); use auto, or linear or cubic"},
        {"crop_last=0\ninterpolation=nufft\n",
         "lab.ini:7: [pipeline] interpolation: pipeline.crop_last is 2048: with"},
    };
    const char *path = "map.txt";
    config_write_file(path, "0\n7\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_config config;
        struct oct_plan *plan;
        struct oct_error err = {.text = ""};
        char text[256];
        snprintf(text, sizeof(text), "[camera]\nsamples=8\n[scan]\nlines=2\n[pipeline]\n%s",
                 cases[i][0]);
        oct_config_init(&config);
        must(oct_config_load_text(&config, text, "lab.ini", &failure));
        oct_config_set(&config, "calibration.kmap", path, "test", &err);
        must_fail(oct_config_plan(&config, &plan, &failure), OCT_E_CONFIG, cases[i][1]);
    }
    unlink(path);
}

TEST(calibration_faults_name_key_and_file)
{
    static const struct {
        const char *key, *text, *says;
    } cases[] = {
        {"calibration.wavelengths", NULL, "No such file"},
        {"calibration.kmap", "1\nx\n", "faulty.txt:2: "},
        {"calibration.background", "1 2\n", "faulty.txt:1: "},
        {"calibration.dispersion", "1\n", "faulty.txt:1: "},
        {"calibration.wavelengths", "800\n801\n", "2 values"},              /* too few */
        {"calibration.wavelengths", "8\n7\n6\n7\n4\n3\n2\n1\n", "value 4"}, /* not monotonic */
        {"calibration.dispersion", "1 0\n1 0\n", "2 values"},               /* too few */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_config config;
        struct oct_plan *plan = (struct oct_plan *)&config;
        struct oct_error err = {.text = ""};
        char fine[4096], path[4096];
        config_accept(&config, "[camera]\nsamples=8\n[scan]\nlines=2\nbscans=1\n");
        snprintf(fine, sizeof(fine), "%s", "fine.txt");
        snprintf(path, sizeof(path), "%s", "faulty.txt");
        config_write_file(fine, "800\n800.1\n800.2\n800.3\n800.4\n800.5\n800.6\n800.7\n");
        if (cases[i].text)
            config_write_file(path, cases[i].text);
        else
            unlink(path);
        if (strcmp(cases[i].key, "calibration.kmap"))
            must(oct_config_set(&config, "calibration.wavelengths", fine, "test", &failure));
        must(oct_config_set(&config, cases[i].key, path, "test", &failure));
        enum oct_err code = oct_config_plan(&config, &plan, &err);
        if (code != OCT_E_CONFIG)
            fail_msg("case %zu: code %d %s", i, (int)code, err.text);
        assert_null(plan);
        assert_has(err.text, cases[i].key);
        assert_has(err.text, "faulty.txt");
        assert_has(err.text, cases[i].says);
        unlink(path);
        unlink(fine);
    }
}
