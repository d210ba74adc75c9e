/* What the tests of the configuration share. */
#ifndef OCT_TEST_RIG_CONFIG_HELP_H
#define OCT_TEST_RIG_CONFIG_HELP_H

#include "test/rig/tap.h"

#include "config/config.h"

#include <string.h>

#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        if (!strstr(text, part))                                                                   \
            fail_msg("\"%s\" does not say \"%s\"", text, part);                                    \
    } while (0)

/* Loads text as "lab.ini". The load must fail and leave the config unchanged; *err gets the
 * message. */
void config_refuse(const char *text, struct oct_error *err);

/* Loads the defaults, then the text, which must be accepted. */
void config_accept(struct oct_config *config, const char *text);

void config_write_file(const char *path, const char *text);

/* The same values, those that the reference file ships with another value left out if asked. */
void config_assert_same(const struct oct_config *a, const struct oct_config *b);

#endif
