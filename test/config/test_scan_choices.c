/* The site's list of scans, scan.choices. */
#include "test/rig/config_help.h"

#include "config/scan_choices.h"

#include <string.h>

#define CHOICES                                                                                    \
    "scan.choices=Volume: | Star : pattern=radial  width_um=900|Spot:pattern=line bscans=4"

static void configure(struct oct_config *config, const char *choices)
{
    oct_config_init(config);
    must(oct_config_set_assignment(config, "scan.width_um=700", &failure));
    must(oct_config_set_assignment(config, choices, &failure));
}

TEST(a_choice_sets_what_it_names_and_leaves_the_rest)
{
    struct oct_config config, chosen;
    char name[OCT_SCAN_CHOICE_BYTES];
    configure(&config, CHOICES);
    must(oct_scan_choices_check(&config, &failure));
    static const char *const names[] = {"Volume", "Star", "Spot"};
    for (unsigned i = 0; i < 3; i++) {
        assert_true(oct_scan_choice_name(&config, i, name));
        assert_string_equal(name, names[i]);
    }
    assert_false(oct_scan_choice_name(&config, 3, name));
    chosen = config;
    must(oct_scan_choose(&chosen, "Star", &failure));
    assert_int_equal(chosen.scan.pattern, OCT_SCAN_RADIAL);
    assert_true(chosen.scan.width_um == 900 && chosen.scan.bscans == config.scan.bscans);
    chosen = config;
    must(oct_scan_choose(&chosen, "Spot", &failure));
    assert_true(chosen.scan.width_um == 700 && chosen.scan.bscans == 4);
    chosen = config;
    must(oct_scan_choose(&chosen, "Volume", &failure));
    assert_memory_equal(&chosen.scan, &config.scan, sizeof(config.scan));
    must_fail(oct_scan_choose(&chosen, "Sta", &failure), OCT_E_ARG, "'Sta' is no scan");
}

TEST(a_list_that_says_no_scans_is_refused_with_what_is_wrong)
{
    static const struct {
        const char *choices, *words;
    } wrong[] = {
        {"Volume", "at most 16 entries"},
        {"Volume:|", NULL},
        {"Volume:||Star:", "at most 16 entries"},
        {": pattern=line", "at most 16 entries"},
        {"A: | B: | A: pattern=line", "two entries are named 'A'"},
        {"A: pattern=zigzag", "A: "},
        {"A: pattern", "'pattern' is no KEY=VALUE"},
        {"A: choices=B:", "no key of a scan"},
        {"A: samples=9", "samples"},
        {"A: record.directory=/tmp", "record.directory"},
        {"A: pattern=spiral phase=20", "scan.phase"},
        {"A: pattern=file positions=p.txt", "whole path"},
        {"A: pattern=file positions=/p.txt", NULL},
        {"A: repeats=7", "scan.repeats: is 7"},
        {"A name that is far too long for a button of the window: pattern=line", "at most 31"},
        {"a:|b:|c:|d:|e:|f:|g:|h:|i:|j:|k:|l:|m:|n:|o:|p:|q:", "at most 16 entries"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct oct_config config;
        char text[256] = "scan.choices=";
        strcat(text, wrong[i].choices);
        configure(&config, text);
        if (wrong[i].words)
            must_fail(oct_scan_choices_check(&config, &failure), OCT_E_CONFIG, wrong[i].words);
        else
            must(oct_scan_choices_check(&config, &failure));
    }
}
