#include "test/rig/config_help.h"

#include "config/keys.h"

#include <stdio.h>
#include <stdlib.h>

void config_refuse(const char *text, struct oct_error *err)
{
    struct oct_config config, before;
    oct_config_init(&config);
    before = config;
    *err = (struct oct_error){.text = ""};
    if (oct_config_load_text(&config, text, "lab.ini", err) != OCT_E_CONFIG)
        fail_msg("accepted: %s", text);
    assert_int_equal(err->code, OCT_E_CONFIG);
    assert_memory_equal(&config, &before, sizeof(config));
}

void config_accept(struct oct_config *config, const char *text)
{
    oct_config_init(config);
    must(oct_config_load_text(config, text, "lab.ini", &failure));
}

void config_write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void config_assert_same(const struct oct_config *a, const struct oct_config *b)
{
    struct oct_key key;
    for (size_t i = 0; oct_key_at(i, &key); i++) {
        char text_a[OCT_CONFIG_STRING_BYTES], text_b[OCT_CONFIG_STRING_BYTES];
        oct_key_format(&key, a, text_a, sizeof(text_a));
        oct_key_format(&key, b, text_b, sizeof(text_b));
        if (strcmp(text_a, text_b))
            fail_msg("%s.%s: '%s' is not '%s'", key.section, key.name, text_a, text_b);
    }
}
