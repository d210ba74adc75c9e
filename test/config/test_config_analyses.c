/* Keys of analyses: what follows from their names. */
#include "analysis/average/average.h"
#include "analysis/enface/enface.h"
#include "test/rig/config_help.h"

#include "config/analysis.h"

/* ---- cases ---- */

static void set(struct oct_config *config, const char *key, const char *value)
{
    must(oct_config_set(config, key, value, "test", &failure));
}

TEST(a_key_belongs_to_the_analysis_in_its_name)
{
    static const struct {
        const char *analysis, *key;
        bool belongs;
    } cases[] = {
        {"enface", "analysis.enface_projection", true},
        {"enface", "analysis.enface_slab_last", true},
        {"enface_slab", "analysis.enface_slab_last", true}, /* if there were one */
        {"enf", "analysis.enface_projection", false},
        {"enface", "analysis.run", false},
        {"average", "average.bscans", true},
        {"average", "scan.repeats", false},
        {"cells", "cells.radius_px", true},
        {"cells", "surfaces.enabled", false},
        {"surfaces", "surfaces.record", true},
        {"slab", "surfaces.record", true}, /* it goes by that section */
        {"slab", "cells.radius_px", false},
        {"cells", "cells.nothing", false},
        {"cells", "cells", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (oct_config_analysis_has(cases[i].analysis, cases[i].key) != cases[i].belongs)
            fail_msg("%s of %s", cases[i].key, cases[i].analysis);
}

TEST(enabled_puts_to_rest_and_asks)
{
    struct oct_config c;
    oct_config_init(&c);
    assert_true(oct_config_analysis_rests(&c, "cells"));
    assert_false(oct_config_analysis_is_asked(&c, "cells"));
    assert_true(oct_config_analysis_rests(&c, "surfaces"));
    assert_false(oct_config_analysis_rests(&c, "enface")); /* has no such key */
    assert_false(oct_config_analysis_rests(&c, "slab"));   /* `enabled` is not of its own section */
    set(&c, "cells.enabled", "yes");
    set(&c, "surfaces.enabled", "yes");
    assert_false(oct_config_analysis_rests(&c, "cells"));
    assert_true(oct_config_analysis_is_asked(&c, "cells"));
    assert_true(oct_config_analysis_is_asked(&c, "surfaces"));
    set(&c, "cells.enabled", "no");
    set(&c, "surfaces.enabled", "no");
    assert_true(oct_config_analysis_rests(&c, "surfaces"));
    assert_false(oct_config_analysis_rests(&c, "slab"));
    assert_true(oct_config_analysis_rests(&c, "cells"));
    assert_false(oct_config_analysis_is_asked(&c, "cells"));
}

TEST(the_average_is_asked_for_by_a_window_or_repeats)
{
    struct oct_config c;
    oct_config_init(&c);
    assert_false(oct_config_analysis_is_asked(&c, "average"));
    set(&c, "average.bscans", "2");
    assert_true(oct_config_analysis_is_asked(&c, "average"));
    set(&c, "average.bscans", "1");
    set(&c, "scan.repeats", "3");
    assert_true(oct_config_analysis_is_asked(&c, "average"));
}

TEST(record_decides_what_recordings_have)
{
    struct oct_config c;
    oct_config_init(&c);
    assert_false(oct_config_records(&c, "average"));
    assert_false(oct_config_records(&c, "surfaces"));
    assert_false(oct_config_records(&c, "slab"));
    assert_true(oct_config_records(&c, "quality")); /* has no such key */
    set(&c, "average.record", "yes");
    set(&c, "surfaces.record", "yes");
    assert_true(oct_config_records(&c, "average"));
    assert_true(oct_config_records(&c, "surfaces"));
    assert_true(oct_config_records(&c, "slab"));
}

TEST(settings_are_listed_by_their_keys)
{
    struct oct_config c;
    struct oct_config_setting s;
    size_t at = 0, none = 0, all = 0;
    oct_config_init(&c);
    set(&c, "rolloff.min_snr_db", "2.25");
    assert_true(oct_config_analysis_setting(&c, "rolloff", &at, &s));
    assert_string_equal(s.name, "enabled");
    assert_true(s.kind == OCT_SETTING_FLAG && !s.flag);
    assert_true(oct_config_analysis_setting(&c, "rolloff", &at, &s));
    assert_true(oct_config_analysis_setting(&c, "rolloff", &at, &s));
    assert_string_equal(s.name, "min_snr_db");
    assert_true(s.kind == OCT_SETTING_NUMBER && s.number == 2.25);
    assert_true(oct_config_analysis_setting(&c, "rolloff", &at, &s));
    assert_false(oct_config_analysis_setting(&c, "rolloff", &at, &s));
    at = 0;
    assert_true(oct_config_analysis_setting(&c, "enface", &at, &s));
    assert_string_equal(s.name, "projection");
    assert_int_equal(s.kind, OCT_SETTING_TEXT);
    assert_string_equal(s.text, "mean");
    while (oct_config_analysis_setting(&c, "cells", &all, &s))
        assert_string_not_equal(s.name, "radii"); /* an option alone */
    assert_false(oct_config_analysis_setting(&c, "quality", &none, &s));
}

TEST(settings_are_filled_or_zero)
{
    struct oct_config c;
    struct oct_analysis_settings s;
    const struct oct_enface_settings *enface = (const void *)&s;
    const struct oct_average_settings *average = (const void *)&s;
    struct oct_error err = {.text = ""};
    struct oct_image_form form = {.rank = 2, .dims = {16, 32}};
    oct_config_init(&c);
    set(&c, "analysis.enface_slab_first", "0.25");
    set(&c, "average.bscans", "7");
    set(&c, "scan.repeats", "2");
    assert_true(oct_config_analysis(&c, "enface", &s) && enface->slab_first == 0.25);
    assert_true(oct_config_analysis(&c, "cones", &s) && enface->slab_last == 0.6);
    assert_true(oct_config_analysis(&c, "average", &s));
    assert_true(average->bscans == 7 && average->repeats == 2);
    set(&c, "scan.interleave", "2"); /* neighbours are of different places */
    assert_true(oct_config_analysis(&c, "average", &s) && average->repeats == 1);
    assert_false(oct_config_analysis(&c, "quality", &s));
    assert_int_equal(average->bscans, 0);
    must(oct_config_analysis_check(&c, "quality", &form, &failure));
    form.dims[0] = form.dims[1] = 2; /* too few to register */
    assert_int_equal(oct_config_analysis_check(&c, "average", &form, &err), OCT_E_CONFIG);
}
