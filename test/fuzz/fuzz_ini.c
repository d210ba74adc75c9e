/* Configuration: a file, or (an input that begins with '@') assignments, one a line, as --set and
 * the control socket give them. What is accepted must read back the same. */
#include "config/apply.h"
#include "config/config.h"
#include "test/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* "FILE: Loading it gives the same values" (config.h). */
static void check_round_trip(const struct oct_config *config)
{
    static struct oct_config again;
    struct oct_error err;
    char *text = oct_config_text(config);
    fuzz_must(text != NULL);
    oct_config_init(&again);
    fuzz_must(oct_config_load_text(&again, text, "text", &err) == OCT_OK);
    char *second = oct_config_text(&again);
    fuzz_must(second && strcmp(text, second) == 0);
    free(text);
    free(second);
}

static void check_error(enum oct_err e, const struct oct_error *err)
{
    fuzz_must(e == OCT_OK || (err->code == e && err->text[0]));
}

static void use(const struct oct_config *config)
{
    struct oct_geometry geometry;
    struct oct_error err = {0}, blamed = {0};
    enum oct_err e = oct_config_check(config, &err);
    check_error(e, &err);
    e = oct_config_geometry(config, &geometry, &err);
    check_error(e, &err);
    if (e)
        fuzz_must(oct_config_blame(config, &err, &blamed) == e);
    check_round_trip(config);
}

static void assign(struct fuzz_input *in)
{
    static struct oct_config config, before;
    struct oct_error err = {0};
    oct_config_init(&config);
    for (int i = 0; in->left > 0 && i < 40; i++) {
        char *line = fuzz_piece(in, true, NULL);
        before = config;
        enum oct_err e = oct_config_set_assignment(&config, line, &err);
        check_error(e, &err);
        if (e) /* "A function that fails leaves the config as it was" */
            fuzz_must(memcmp(&before, &config, sizeof(config)) == 0);
        free(line);
    }
    use(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oct_config config;
    struct fuzz_input in = {data, size};
    struct oct_error err = {0};
    const char *path = fuzz_path(0, "octd.ini");
    if (size > 0 && data[0] == '@') {
        fuzz_take(&in, 1);
        assign(&in);
        return 0;
    }
    fuzz_write_file(path, data, size);
    oct_config_init(&config);
    enum oct_err e = oct_config_load(&config, path, &err);
    check_error(e, &err);
    use(&config);
    return 0;
}
