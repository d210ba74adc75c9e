/* octgenicam: any GenICam camera as the source of octd's A-lines. docs/camera-drivers.md */
#include "config/config.h"
#include "tools/genicam/genicam.h"
#include "tools/genicam/push.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: octgenicam [--camera ID] [--set FEATURE=VALUE]... [--config FILE] [--to ENDPOINT]\n"
    "       octgenicam --list\n"
    "\n"
    "pushes the frames of a GenICam camera (GigE Vision, USB3 Vision) into octd: each row of a\n"
    "frame is an A-line, its width camera.samples. Frames that are lost become gaps.\n"
    "\n"
    "  --list             print the cameras that answer and end: ID, protocol, address, vendor,\n"
    "                     model, serial number\n"
    "  --fake             with --list: aravis' simulated camera Fake_1 too\n"
    "  --camera ID        an ID of --list, or an address (the first camera that answers)\n"
    "  --set FEATURE=VALUE  set a feature of the camera (Width, Height, PixelFormat, ...);\n"
    "                     FEATURE alone executes a command; repeatable, in this order\n"
    "  -c, --config FILE  octd's configuration: where octd takes lines, keys, camera.samples\n"
    "  --to ENDPOINT      where octd takes lines (ingest.endpoint)\n"
    "  --wait S           wait at most S seconds for octd (10)\n"
    "  --frames N         end after N frames\n"
    "  --reconnect        wait for a camera that goes away and begin a new acquisition with it\n"
    "  -h, --help         this text\n"
    "  --version          version\n"
    "\n"
    "SIGINT and SIGTERM end the acquisition. Pixel formats: Mono8, Mono10, Mono12, Mono14, "
    "Mono16,\n"
    "Mono12p, Mono12Packed.\n";

struct given {
    struct oct_push_options push;
    const char *config_path;
    bool list, fake, help, version;
};

static int misuse(const char *what, const char *which)
{
    fprintf(stderr, "octgenicam: %s%s; see octgenicam --help\n", which, what);
    return 2;
}

static bool read_number(const char *text, double least, double most, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return *text && !*end && errno == 0 && *value >= least && *value <= most;
}

/* An option that takes a value. 0, or the exit status. */
static int take_value(struct given *g, const char *name, const char *value)
{
    struct oct_push_options *o = &g->push;
    double number;
    if (!value)
        return misuse(": needs a value", name);
    if (strcmp(name, "--camera") == 0) {
        o->camera = value;
    } else if (strcmp(name, "--to") == 0) {
        o->endpoint = value;
    } else if (strcmp(name, "--config") == 0 || strcmp(name, "-c") == 0) {
        g->config_path = value;
    } else if (strcmp(name, "--set") == 0) {
        if (o->n_sets == OCT_PUSH_MOST_SETS)
            return misuse(": too many", name);
        o->sets[o->n_sets++] = value;
    } else if (strcmp(name, "--wait") == 0) {
        if (!read_number(value, 0, 1e9, &o->wait_s))
            return misuse(": needs a number of seconds", name);
    } else if (strcmp(name, "--frames") == 0) {
        if (!read_number(value, 1, 0x1p53, &number) || number != floor(number))
            return misuse(": needs a number of frames, at least 1", name);
        o->n_frames = (uint64_t)number;
    } else {
        return misuse(": no such option", name);
    }
    return 0;
}

static int read_arguments(struct given *g, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--list") == 0)
            g->list = true;
        else if (strcmp(name, "--fake") == 0)
            g->fake = true;
        else if (strcmp(name, "--reconnect") == 0)
            g->push.reconnect = true;
        else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
            g->help = true;
        else if (strcmp(name, "--version") == 0)
            g->version = true;
        else if (name[0] != '-')
            return misuse(": takes options alone", name);
        else {
            const int status = take_value(g, name, argv[i + 1]);
            if (status)
                return status;
            i++;
        }
    }
    return 0;
}

/* Without a file, the defaults of octd's; samples and lines of a B-scan are then not known. */
static enum oct_err read_config(struct given *g, struct oct_config *config, struct oct_error *err)
{
    struct oct_push_options *o = &g->push;
    oct_config_init(config);
    if (g->config_path) {
        const enum oct_err e = oct_config_load(config, g->config_path, err);
        if (e)
            return e;
        o->samples = config->camera.samples;
    }
    if (!o->endpoint)
        o->endpoint = config->ingest.endpoint;
    if (strncmp(o->endpoint, "shm://", 6) == 0)
        o->most_lines = config->scan.lines; /* a slot takes a B-scan */
    if (config->security.client_key[0]) {
        o->client_key = config->security.client_key;
        o->server_public = config->security.server_public;
    }
    return OCT_OK;
}

static void block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static int push(struct given *g)
{
    struct oct_error err = {.text = ""};
    struct oct_config *config = malloc(sizeof(*config));
    if (!config) {
        fprintf(stderr, "octgenicam: out of memory\n");
        return 1;
    }
    block_signals(); /* before aravis and ZeroMQ make threads, which inherit it */
    enum oct_err e = read_config(g, config, &err);
    e = e ? e : oct_push_run(&g->push, &err);
    free(config);
    if (e)
        fprintf(stderr, "octgenicam: %s\n", err.text);
    return oct_exit_status(e);
}

int main(int argc, char **argv)
{
    struct given given = {.push = {.wait_s = 10}};
    char aravis[32];
    const int status = read_arguments(&given, argc, argv);
    if (status)
        return status;
    if (given.help)
        return fputs(usage, stdout) < 0;
    if (given.version) {
        oct_genicam_version(aravis, sizeof(aravis));
        return printf("octgenicam " OCT_VERSION ", aravis %s\n", aravis) < 0;
    }
    if (!given.list)
        return push(&given);
    if (oct_genicam_list(stdout, given.fake) > 0)
        return 0;
    fprintf(stderr, "octgenicam: no GenICam camera answers\n");
    return 1;
}
