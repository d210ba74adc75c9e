#include "viewer/options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LEAST_WIDTH 320
#define LEAST_HEIGHT 240
#define MOST_SIDE 8192

/* What the command line says; 0 and NULL: nothing. */
struct given {
    const char **sets; /* owned */
    const char *config, *connect, *control, *settings, *size, *font, *screenshot, *file;
    uint64_t frames;
    double timeout_s;
    bool operators, full_screen, headless, help, version;
};

#define OPTION(shown, value, kind_of, member, means)                                               \
    .name = shown, .argument = value, .kind = OCT_OPTION_##kind_of,                                \
    .at = offsetof(struct given, member), .meaning = means
const struct oct_option oct_view_option_table[] = {
    {OPTION("--config", "FILE", TEXT, config, "read this configuration")},
    {OPTION("--set", "SECTION.KEY=VALUE", LIST, sets,
            "set one key, over the file; may be repeated")},
    {OPTION("--connect", "ENDPOINT", TEXT, connect,
            "where pictures come from, instead of publish.endpoint")},
    {OPTION("--control", "ENDPOINT", TEXT, control,
            "where commands go, instead of control.endpoint; none: nowhere")},
    {OPTION("--operator", NULL, FLAG, operators,
            "start with the operator profile (recording and contrast only)")},
    {OPTION("--settings", "FILE", TEXT, settings,
            "remembered settings, instead of the user's; none: none")},
    {OPTION("--size", "WxH", TEXT, size,
            "size of the window in pixels (the screen; headless 1280x720)")},
    {OPTION("--full-screen", NULL, FLAG, full_screen, "start in full screen")},
    {OPTION("--font", "FILE", TEXT, font, "a fixed-width font, instead of the one found")},
    {OPTION("--headless", NULL, FLAG, headless, "no display: receive, draw once, write a PNG")},
    {OPTION("--frames", "N", COUNT, frames,
            "headless: pictures to receive first (1); of FILE.h5: the B-scan"),
     .least = 1, .most = 1e9, .needs = "a whole number from 1 to 1000000000"},
    {OPTION("--screenshot", "FILE.png", TEXT, screenshot,
            "headless: where the picture of the window goes")},
    {OPTION("--timeout", "SECONDS", NUMBER, timeout_s, "headless: how long to wait for them (30)"),
     .least = OCT_OPTION_ABOVE_0, .most = 86400, .needs = "seconds, more than 0 and at most 86400"},
    {OPTION("--help", NULL, FLAG, help, "this text")},
    {OPTION("--version", NULL, FLAG, version, "which octview this is, and with what")},
    {.name = NULL},
};

static enum oct_err read_all(struct given *given, int argc, char **argv, struct oct_error *err)
{
    struct oct_option_shown shown;
    const char *wrong = NULL;
    bool ended = false; /* by "--" */
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!ended && strcmp(word, "--") == 0) {
            ended = true;
        } else if (!ended &&
                   oct_option_read(oct_view_option_table, given, argc, argv, &i, &shown, &wrong)) {
            if (wrong)
                return oct_fail(err, OCT_E_ARG, "%s: %s needs %s; see --help", argv[i], wrong,
                                shown.option.needs ? shown.option.needs : "a value");
        } else if (!ended && word[0] == '-') {
            return oct_fail(err, OCT_E_ARG, "%s: no such option; see --help", word);
        } else if (given->file) {
            return oct_fail(err, OCT_E_ARG, "%s: octview shows one recording; see --help", word);
        } else {
            given->file = word;
        }
    }
    return OCT_OK;
}

static enum oct_err read_size(struct oct_view_options *options, const char *text,
                              struct oct_error *err)
{
    char *end = NULL;
    long w = strtol(text, &end, 10), h = 0;
    const char *second = *end == 'x' ? end + 1 : "";
    h = strtol(second, &end, 10);
    if (end == second || *end || w < LEAST_WIDTH || w > MOST_SIDE || h < LEAST_HEIGHT ||
        h > MOST_SIDE)
        return oct_fail(err, OCT_E_ARG,
                        "--size %s: give WIDTHxHEIGHT in pixels, from %dx%d to %dx%d", text,
                        LEAST_WIDTH, LEAST_HEIGHT, MOST_SIDE, MOST_SIDE);
    options->width = (int)w;
    options->height = (int)h;
    return OCT_OK;
}

/* Finds where commands go. A viewer of another daemon's pictures must not make this machine's
 * daemon record: the host is then that of the pictures. Where that host cannot be told, there is no
 * control. */
static void choose_control(struct oct_view_options *options, const struct given *given)
{
    const char *configured = options->config.control.endpoint;
    const char *port = strrchr(configured, ':');
    const char *end = given->connect ? strrchr(given->connect, ':') : NULL;
    static const char tcp[] = "tcp://";
    if (given->control)
        snprintf(options->control, sizeof(options->control), "%s",
                 strcmp(given->control, "none") == 0 ? "" : given->control);
    else if (!given->connect || oct_config_is_set(&options->config, "control.endpoint"))
        snprintf(options->control, sizeof(options->control), "%s", configured);
    else if (strncmp(given->connect, tcp, strlen(tcp)) == 0 && end > given->connect + strlen(tcp) &&
             strncmp(configured, tcp, strlen(tcp)) == 0 && port)
        snprintf(options->control, sizeof(options->control), "%.*s%s", (int)(end - given->connect),
                 given->connect, port);
}

/* --set wins over the file wherever it stands, so the file is read first. */
static enum oct_err apply_config(struct oct_view_options *options, const struct given *given,
                                 struct oct_error *err)
{
    enum oct_err code;
    if (given->config && (code = oct_config_load(&options->config, given->config, err)))
        return code;
    for (const char **set = given->sets; *set; set++)
        if ((code = oct_config_set_assignment(&options->config, *set, err)))
            return code;
    if ((code = oct_config_check(&options->config, err)))
        return code;
    options->endpoint = given->connect ? given->connect : options->config.publish.endpoint;
    if (options->endpoint[0] == '\0')
        return oct_fail(err, OCT_E_CONFIG, "publish.endpoint is empty: name one with --connect");
    choose_control(options, given);
    return OCT_OK;
}

static enum oct_err check_together(const struct given *given, struct oct_error *err)
{
    const char *dot = given->screenshot ? strrchr(given->screenshot, '.') : NULL;
    if (given->headless && !given->screenshot)
        return oct_fail(err, OCT_E_ARG, "--headless: say where to draw with --screenshot FILE.png");
    if (!given->headless && given->screenshot)
        return oct_fail(err, OCT_E_ARG, "--screenshot: needs --headless (in a window press S)");
    /* Programs choose a decoder by the name, so only the name of a PNG is accepted. */
    if (given->screenshot && (!dot || strcasecmp(dot, ".png") != 0))
        return oct_fail(err, OCT_E_ARG, "--screenshot %s: only PNG is written; end it in .png",
                        given->screenshot);
    if (!given->headless && (given->frames || given->timeout_s > 0))
        return oct_fail(err, OCT_E_ARG, "--%s: needs --headless",
                        given->frames ? "frames" : "timeout");
    return OCT_OK;
}

enum oct_err oct_view_options_read(struct oct_view_options *options, int argc, char **argv,
                                   struct oct_error *err)
{
    struct given given = {.sets = calloc((size_t)argc + 1, sizeof(*given.sets))};
    enum oct_err code = given.sets ? read_all(&given, argc, argv, err)
                                   : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    *options = (struct oct_view_options){
        .config_path = given.config,
        .sets = given.sets,
        .task = given.help       ? OCT_TASK_HELP
                : given.version  ? OCT_TASK_VERSION
                : given.headless ? OCT_TASK_HEADLESS
                                 : OCT_TASK_WINDOW,
        .settings = given.settings && strcmp(given.settings, "none") == 0 ? "" : given.settings,
        .operators = given.operators,
        .file = given.file,
        .screenshot = given.screenshot,
        .font = given.font,
        .n_frames = given.frames ? given.frames : 1,
        .timeout_s = given.timeout_s > 0 ? given.timeout_s : 30,
        .width = 1280,
        .height = 720,
        .has_size = given.size != NULL,
        .full_screen = given.full_screen,
    };
    oct_config_init(&options->config);
    if (!code && given.size)
        code = read_size(options, given.size, err);
    if (!code && !given.help && !given.version && !(code = check_together(&given, err)))
        code = apply_config(options, &given, err);
    return code;
}

void oct_view_options_finish(struct oct_view_options *options)
{
    free(options->sets);
    options->sets = NULL;
}
