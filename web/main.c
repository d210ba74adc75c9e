/* octweb: shows in browsers what octd publishes. */
#include "config/options.h"
#include "config/version.h"
#include "pipeline/base/log.h"
#include "pipeline/base/stdio.h"
#include "viewer/signals.h"
#include "web/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What results may still come of, four times over: nothing is looked back at here. */
#define HISTORY_BYTES ((size_t)128 << 20)

struct given {
    const char **sets; /* owned */
    const char *config;
    bool help, version;
};

static const struct oct_option options[] = {
    {"--config", "FILE", "read this configuration", OCT_OPTION_TEXT,
     .at = offsetof(struct given, config)},
    {"--set", "SECTION.KEY=VALUE", "set one key, over the file; may be repeated", OCT_OPTION_LIST,
     .at = offsetof(struct given, sets)},
    {"--help", NULL, "this text", OCT_OPTION_FLAG, .at = offsetof(struct given, help)},
    {"--version", NULL, "which octweb this is, and with what", OCT_OPTION_FLAG,
     .at = offsetof(struct given, version)},
    {NULL},
};

static void print_help(void)
{
    puts("octweb shows in browsers what octd publishes, and octd's recordings.\n"
         "\n"
         "  octweb [--config FILE] [--set SECTION.KEY=VALUE]...\n"
         "\n"
         "A browser comes in by a link of `octctl allow --web NAME --role look|operate`; `octctl "
         "web`\nstarts octweb and prints one.\n");
    oct_options_print(options, 27);
    puts(
        "\nExit status: 0 done, 1 it failed while working, 2 it was called or configured wrongly.\n"
        "\nConfiguration keys:");
    oct_config_write_help(stdout, NULL);
}

static enum oct_err read_options(struct given *given, struct oct_config *config, int argc,
                                 char **argv, struct oct_error *err)
{
    struct oct_option_shown shown;
    const char *wrong = NULL;
    enum oct_err code = OCT_OK;
    for (int i = 1; i < argc; i++) {
        if (!oct_option_read(options, given, argc, argv, &i, &shown, &wrong))
            return oct_fail(err, OCT_E_ARG, "%s: no such option; see --help", argv[i]);
        if (wrong)
            return oct_fail(err, OCT_E_ARG, "%s: %s needs a value; see --help", argv[i], wrong);
    }
    oct_config_init(config);
    if (given->help || given->version)
        return OCT_OK;
    if (given->config)
        code = oct_config_load(config, given->config, err);
    for (const char **set = given->sets; !code && *set; set++)
        code = oct_config_set_assignment(config, *set, err);
    return code ? code : oct_config_check(config, err);
}

static enum oct_err open_all(struct oct_web *web, struct oct_view_options *look,
                             struct oct_error *err)
{
    enum oct_err code = oct_config_web_tokens(web->config, web->tokens_path, err);
    web->app = calloc(1, sizeof(*web->app));
    if (!code && !web->app)
        code = oct_fail(err, OCT_E_NO_MEMORY, "octweb: out of memory");
    code = code ? code : oct_web_listen(web, err);
    if (code || (code = oct_view_app_open(web->app, look, oct_web_notify, web, err)))
        return code;
    web->encoder = oct_web_encoder_create();
    web->live =
        web->encoder ? oct_web_view_create(&web->app->model, &web->app->model, web->encoder) : NULL;
    return web->live ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "octweb: out of memory");
}

static enum oct_err serve(const struct oct_config *config, struct oct_error *err)
{
    struct oct_web *web = calloc(1, sizeof(*web));
    struct oct_view_options *look = calloc(1, sizeof(*look));
    enum oct_err code = OCT_E_NO_MEMORY;
    if (!web || !look) {
        oct_fail(err, code, "octweb: out of memory");
        goto done;
    }
    look->config = *config;
    look->endpoint = look->config.publish.endpoint;
    snprintf(look->control, sizeof(look->control), "%s", look->config.control.endpoint);
    look->settings = "";
    look->no_errands = true; /* who is behind a pseudonym is for no browser */
    look->history_bytes = HISTORY_BYTES;
    web->config = config;
    web->is_over = oct_signals_came;
    if (!(code = open_all(web, look, err)))
        code = oct_web_serve(web, err);
done:
    if (web) {
        if (web->app) /* its threads notify, as long as there is somebody to */
            oct_view_app_close(web->app);
        if (!oct_web_close(web))
            _exit(oct_exit_status(code)); /* what threads still use is not freed */
        oct_web_view_destroy(web->live);
        oct_web_encoder_destroy(web->encoder);
        free(web->app);
    }
    free(look);
    free(web);
    return code;
}

int main(int argc, char **argv)
{
    struct given given = {.sets = calloc((size_t)argc + 1, sizeof(*given.sets))};
    struct oct_config *config = calloc(1, sizeof(*config));
    struct oct_error err = {0}, blamed = {0};
    oct_stdio_reserve();
    enum oct_err code = given.sets && config
                            ? read_options(&given, config, argc, argv, &err)
                            : oct_fail(&err, OCT_E_NO_MEMORY, "octweb: out of memory");
    if (code == OCT_OK && given.help) {
        print_help();
    } else if (code == OCT_OK && given.version) {
        char with[160];
        snprintf(with, sizeof(with), "libwebsockets %s\n", lws_get_library_version());
        oct_version_write(stdout, "octweb", with);
    } else if (code == OCT_OK) {
        oct_signals_block();
        oct_view_step_back(config->view.nice);
        /* A file that octctl web has written is none that the user knows. */
        const bool is_users = !given.config || strncmp(given.config, "/proc/self/fd/", 14) != 0;
        if ((code = serve(config, &err)) && err.key[0] && is_users) {
            oct_config_blame(config, &err, &blamed);
            err = blamed;
        }
    }
    if (code)
        oct_log(OCT_LOG_ERROR, "%s", err.text);
    free(given.sets);
    free(config);
    return oct_exit_status(code);
}
