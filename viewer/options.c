#define _GNU_SOURCE /* getopt_long */
#include "viewer/options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LEAST_WIDTH 320
#define LEAST_HEIGHT 240
#define MOST_SIDE 8192
#define MOST_FRAMES 1000000000ul
#define MOST_TIMEOUT_S 86400.0

/* What the first pass over argv finds: the options, and what is beside them. */
struct found {
    struct oct_view_options *options;
    const char *config_path, *connect, *control, *frames, *timeout, *size, *settings;
    bool headless, help, version;
};

static enum oct_err read_frames(struct oct_view_options *options, const char *text,
                                struct oct_error *err)
{
    char *end;

    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || n < 1 || n > MOST_FRAMES)
        return oct_fail(err, OCT_E_ARG, "--frames %s: give a whole number from 1 to %lu", text,
                        MOST_FRAMES);
    options->n_frames = n;
    return OCT_OK;
}

static enum oct_err read_timeout(struct oct_view_options *options, const char *text,
                                 struct oct_error *err)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value > 0) || value > MOST_TIMEOUT_S)
        return oct_fail(err, OCT_E_ARG, "--timeout %s: give seconds, more than 0 and at most %.0f",
                        text, MOST_TIMEOUT_S);
    options->timeout_s = value;
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

/* TEXT and FLAG are written to their place; SET is applied after the file. */
enum kind { TEXT, FLAG, SET };

static const struct row {
    const char *name;
    enum kind kind;
    bool is_beside; /* in struct found; else in the options */
    size_t at;
    enum oct_err (*read)(struct oct_view_options *options, const char *text,
                         struct oct_error *err); /* NULL: the text is taken as it is */
} rows[] = {
#define OPTION(member) false, offsetof(struct oct_view_options, member)
#define BESIDE(member) true, offsetof(struct found, member)
    {"config", TEXT, BESIDE(config_path), NULL},
    {"set", SET, false, 0, NULL},
    {"connect", TEXT, BESIDE(connect), NULL},
    {"headless", FLAG, BESIDE(headless), NULL},
    {"frames", TEXT, BESIDE(frames), read_frames},
    {"screenshot", TEXT, OPTION(screenshot), NULL},
    {"timeout", TEXT, BESIDE(timeout), read_timeout},
    {"size", TEXT, BESIDE(size), read_size},
    {"font", TEXT, OPTION(font), NULL},
    {"full-screen", FLAG, OPTION(full_screen), NULL},
    {"control", TEXT, BESIDE(control), NULL},
    {"settings", TEXT, BESIDE(settings), NULL},
    {"operator", FLAG, OPTION(operators), NULL},
    {"help", FLAG, BESIDE(help), NULL},
    {"version", FLAG, BESIDE(version), NULL},
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]), FIRST = 256 };

/* The next option of argv, FIRST and its row's index, as getopt_long returns it. */
static int next_option(int argc, char **argv)
{
    struct option all[N_ROWS + 1] = {{0}};

    for (int i = 0; i < N_ROWS; i++)
        all[i] = (struct option){
            rows[i].name, rows[i].kind == FLAG ? no_argument : required_argument, NULL, FIRST + i};
    return getopt_long(argc, argv, ":", all, NULL);
}

static enum oct_err take(struct found *found, int option, char **argv, struct oct_error *err)
{
    if (option == ':')
        return oct_fail(err, OCT_E_ARG, "%s: a value is missing; see --help", argv[optind - 1]);
    /* A short option may stand amid others, so that optind has not moved past it yet. */
    if (option < FIRST && optopt > 0 && optopt < FIRST)
        return oct_fail(err, OCT_E_ARG, "-%c: no such option; see --help", optopt);
    if (option < FIRST)
        return oct_fail(err, OCT_E_ARG, "%s: no such option; see --help", argv[optind - 1]);
    const struct row *row = &rows[option - FIRST];
    char *at = (row->is_beside ? (char *)found : (char *)found->options) + row->at;
    if (row->kind == TEXT)
        *(const char **)at = optarg;
    else if (row->kind == FLAG)
        *(bool *)at = true;
    return row->read ? row->read(found->options, optarg, err) : OCT_OK;
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
    while ((option = next_option(argc, argv)) != -1)
        if (rows[option - FIRST].kind == SET &&
            (code = oct_config_set_assignment(&options->config, optarg, err)))
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
    struct found found = {.options = options};
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
    while ((option = next_option(argc, argv)) != -1)
        if ((code = take(&found, option, argv, err)))
            return code;
    if (found.help || found.version) {
        options->task = found.help ? OCT_TASK_HELP : OCT_TASK_VERSION;
        return OCT_OK;
    }
    options->has_size = found.size != NULL;
    if (found.settings)
        options->settings = strcmp(found.settings, "none") == 0 ? "" : found.settings;
    if (optind < argc)
        options->file = argv[optind++];
    if (optind < argc)
        return oct_fail(err, OCT_E_ARG, "%s: octview shows one recording; see --help",
                        argv[optind]);
    if ((code = check_together(options, &found, err)))
        return code;
    return apply_config(options, &found, argc, argv, err);
}
