#define _GNU_SOURCE /* getopt_long */
#include "viewer/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LEAST_WIDTH 320
#define LEAST_HEIGHT 240
#define MOST_SIDE 8192
#define MOST_FRAMES 1000000000ul
#define MOST_TIMEOUT_S 86400.0

enum {
    OPT_CONFIG = 256,
    OPT_SET,
    OPT_CONNECT,
    OPT_HEADLESS,
    OPT_FRAMES,
    OPT_SCREENSHOT,
    OPT_TIMEOUT,
    OPT_SIZE,
    OPT_FONT,
    OPT_FULL_SCREEN,
    OPT_CONTROL,
    OPT_SETTINGS,
    OPT_OPERATOR,
    OPT_HELP,
    OPT_VERSION,
};

static const struct option long_options[] = {
    {"config", required_argument, NULL, OPT_CONFIG},
    {"set", required_argument, NULL, OPT_SET},
    {"connect", required_argument, NULL, OPT_CONNECT},
    {"headless", no_argument, NULL, OPT_HEADLESS},
    {"frames", required_argument, NULL, OPT_FRAMES},
    {"screenshot", required_argument, NULL, OPT_SCREENSHOT},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"size", required_argument, NULL, OPT_SIZE},
    {"font", required_argument, NULL, OPT_FONT},
    {"full-screen", no_argument, NULL, OPT_FULL_SCREEN},
    {"control", required_argument, NULL, OPT_CONTROL},
    {"settings", required_argument, NULL, OPT_SETTINGS},
    {"operator", no_argument, NULL, OPT_OPERATOR},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {0},
};

/* What the first pass over argv finds beside the options themselves. */
struct found {
    const char *config_path;
    const char *connect, *control;
    bool headless, frames, timeout;
};

static enum oct_err read_frames(const char *text, uint64_t *n_frames, struct oct_error *err)
{
    char *end;

    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || n < 1 || n > MOST_FRAMES)
        return oct_fail(err, OCT_E_ARG, "--frames %s: give a whole number from 1 to %lu", text,
                        MOST_FRAMES);
    *n_frames = n;
    return OCT_OK;
}

static enum oct_err read_timeout(const char *text, double *timeout_s, struct oct_error *err)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value > 0) || value > MOST_TIMEOUT_S)
        return oct_fail(err, OCT_E_ARG, "--timeout %s: give seconds, more than 0 and at most %.0f",
                        text, MOST_TIMEOUT_S);
    *timeout_s = value;
    return OCT_OK;
}

static enum oct_err read_size(const char *text, int *width, int *height, struct oct_error *err)
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
    *width = (int)w;
    *height = (int)h;
    return OCT_OK;
}

static enum oct_err take(struct oct_view_options *options, struct found *found, int option,
                         char **argv, struct oct_error *err)
{
    switch (option) {
    case OPT_CONFIG:
        found->config_path = optarg;
        return OCT_OK;
    case OPT_SET:
        return OCT_OK; /* apply_config sets it, after the file */
    case OPT_CONNECT:
        found->connect = optarg;
        return OCT_OK;
    case OPT_HEADLESS:
        found->headless = true;
        return OCT_OK;
    case OPT_FRAMES:
        found->frames = true;
        return read_frames(optarg, &options->n_frames, err);
    case OPT_SCREENSHOT:
        options->screenshot = optarg;
        return OCT_OK;
    case OPT_TIMEOUT:
        found->timeout = true;
        return read_timeout(optarg, &options->timeout_s, err);
    case OPT_SIZE:
        options->has_size = true;
        return read_size(optarg, &options->width, &options->height, err);
    case OPT_FONT:
        options->font = optarg;
        return OCT_OK;
    case OPT_FULL_SCREEN:
        options->full_screen = true;
        return OCT_OK;
    case OPT_CONTROL:
        found->control = optarg;
        return OCT_OK;
    case OPT_SETTINGS:
        options->settings = strcmp(optarg, "none") == 0 ? "" : optarg;
        return OCT_OK;
    case OPT_OPERATOR:
        options->operators = true;
        return OCT_OK;
    case OPT_HELP:
        options->task = OCT_TASK_HELP;
        return OCT_OK;
    case OPT_VERSION:
        options->task = OCT_TASK_VERSION;
        return OCT_OK;
    case ':':
        return oct_fail(err, OCT_E_ARG, "%s: a value is missing; see --help", argv[optind - 1]);
    default:
        /* A short option may stand amid others, so that optind has not moved past it yet. */
        if (optopt > 0 && optopt < 256)
            return oct_fail(err, OCT_E_ARG, "-%c: no such option; see --help", optopt);
        return oct_fail(err, OCT_E_ARG, "%s: no such option; see --help", argv[optind - 1]);
    }
}

/* Finds where commands go. A viewer of another daemon's pictures must not make this machine's
 * daemon record: the host is then that of the pictures. Where that host cannot be told, there is no
 * control. */
static void choose_control(struct oct_view_options *options, const struct found *found)
{
    const char *configured = options->config.control.endpoint;
    const char *port = strrchr(configured, ':');
    const char *end = found->connect ? strrchr(found->connect, ':') : NULL;
    static const char tcp[] = "tcp://";

    if (found->control)
        snprintf(options->control, sizeof(options->control), "%s",
                 strcmp(found->control, "none") == 0 ? "" : found->control);
    else if (!found->connect || oct_config_is_set(&options->config, "control.endpoint"))
        snprintf(options->control, sizeof(options->control), "%s", configured);
    else if (strncmp(found->connect, tcp, strlen(tcp)) == 0 && end > found->connect + strlen(tcp) &&
             strncmp(configured, tcp, strlen(tcp)) == 0 && port)
        snprintf(options->control, sizeof(options->control), "%.*s%s", (int)(end - found->connect),
                 found->connect, port);
}

/* --set wins over the file wherever it stands, so the file is read first. */
static enum oct_err apply_config(struct oct_view_options *options, const struct found *found,
                                 int argc, char **argv, struct oct_error *err)
{
    enum oct_err code;
    int option;

    if (found->config_path && (code = oct_config_load(&options->config, found->config_path, err)))
        return code;
    optind = 0; /* glibc: start anew */
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1)
        if (option == OPT_SET && (code = oct_config_set_assignment(&options->config, optarg, err)))
            return code;
    if ((code = oct_config_check(&options->config, err)))
        return code;
    options->endpoint = found->connect ? found->connect : options->config.publish.endpoint;
    if (options->endpoint[0] == '\0')
        return oct_fail(err, OCT_E_CONFIG, "publish.endpoint is empty: name one with --connect");
    choose_control(options, found);
    return OCT_OK;
}

/* Programs choose a decoder by the name, so only the name of a PNG is accepted. */
static bool names_a_png(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot && strcasecmp(dot, ".png") == 0;
}

static enum oct_err check_together(struct oct_view_options *options, const struct found *found,
                                   struct oct_error *err)
{
    if (found->headless && !options->screenshot)
        return oct_fail(err, OCT_E_ARG, "--headless: say where to draw with --screenshot FILE.png");
    if (!found->headless && options->screenshot)
        return oct_fail(err, OCT_E_ARG, "--screenshot: needs --headless (in a window press S)");
    if (options->screenshot && !names_a_png(options->screenshot))
        return oct_fail(err, OCT_E_ARG, "--screenshot %s: only PNG is written; end it in .png",
                        options->screenshot);
    if (!found->headless && (found->frames || found->timeout))
        return oct_fail(err, OCT_E_ARG, "--%s: needs --headless",
                        found->frames ? "frames" : "timeout");
    if (found->headless)
        options->task = OCT_TASK_HEADLESS;
    return OCT_OK;
}

enum oct_err oct_view_options_read(struct oct_view_options *options, int argc, char **argv,
                                   struct oct_error *err)
{
    struct found found = {0};
    enum oct_err code;
    int option;

    memset(options, 0, sizeof(*options));
    options->task = OCT_TASK_WINDOW;
    options->n_frames = 1;
    options->timeout_s = 30;
    options->width = 1280;
    options->height = 720;
    oct_config_init(&options->config);
    optind = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1)
        if ((code = take(options, &found, option, argv, err)))
            return code;
    if (options->task == OCT_TASK_HELP || options->task == OCT_TASK_VERSION)
        return OCT_OK;
    if (optind < argc)
        options->file = argv[optind++];
    if (optind < argc)
        return oct_fail(err, OCT_E_ARG, "%s: octview shows one recording; see --help",
                        argv[optind]);
    if ((code = check_together(options, &found, err)))
        return code;
    return apply_config(options, &found, argc, argv, err);
}
