/* snapshot: a picture of the viewer's window as a PNG. octview draws it; octctl finds octview
 * beside itself or in PATH and hands it its own configuration, whole. */
#define _GNU_SOURCE /* memfd_create, execvpe */
#include "tools/commands.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_WORDS 24

struct snapshot {
    const char *size, *frames, *timeout, *font, *settings; /* as given; NULL: not */
    const char *words[MOST_WORDS];                         /* for octview */
    int n_words;
};

/* They are passed to octview, which has the same options, or has them as they were, and checks
 * them. */
static const struct oct_option options[] = {
    {"--size", "WxH", "of the window in pixels (1280x720)", OCT_OPTION_TEXT,
     .at = offsetof(struct snapshot, size)},
    {"--n-frames", "N", "pictures to receive first (1)", OCT_OPTION_TEXT,
     .at = offsetof(struct snapshot, frames), .was = "--frames"},
    {"--timeout", "S", "wait at most S seconds for them (30)", OCT_OPTION_TEXT,
     .at = offsetof(struct snapshot, timeout)},
    {"--font", "FILE", "a fixed-width font", OCT_OPTION_TEXT,
     .at = offsetof(struct snapshot, font)},
    {"--settings", "FILE", "the viewer's settings, instead of the user's", OCT_OPTION_TEXT,
     .at = offsetof(struct snapshot, settings)},
    {NULL},
};

static void add_argument(struct snapshot *s, const char *option, const char *value)
{
    if (s->n_words + 2 < MOST_WORDS) {
        s->words[s->n_words++] = option;
        s->words[s->n_words++] = value;
    }
}

static void add_options(struct snapshot *s)
{
    for (const struct oct_option *o = options; o->name; o++) {
        const char *value = *(const char **)(void *)((char *)s + o->at);
        if (value)
            add_argument(s, o->was ? o->was : o->name, value);
    }
}

/* Writes the configuration to a file without a name, which octview inherits. */
static enum oct_err hand_over(const struct oct_config *config, char *path, size_t n_bytes,
                              struct oct_error *err)
{
    char *text = oct_config_text(config);
    int fd = text ? memfd_create("octd.ini", 0) : -1;
    size_t n = text ? strlen(text) : 0;
    enum oct_err code = OCT_OK;

    if (fd < 0 || write(fd, text, n) != (ssize_t)n)
        code = oct_fail_errno(err, OCT_E_IO, text ? errno : ENOMEM, "snapshot: configuration");
    snprintf(path, n_bytes, "/proc/self/fd/%d", fd);
    free(text);
    return code;
}

/* Finds the octview that was built or installed with this octctl. */
static void find_viewer(char path[PATH_MAX])
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    snprintf(path, PATH_MAX, "octview");
    if (n <= 0)
        return;
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    snprintf(slash ? slash : self, sizeof(self) - (size_t)(slash ? slash - self : 0), "/octview");
    if (access(self, X_OK) == 0)
        memcpy(path, self, sizeof(self));
}

static int run_snapshot(struct oct_config *config, int argc, char **argv)
{
    struct snapshot s = {.words = {"octview", "--headless"}, .n_words = 2};
    char viewer[PATH_MAX], configuration[64];
    struct oct_error err;

    int status = oct_options_read(&oct_command_snapshot, &s, &argc, argv);
    if (status)
        return status;
    add_options(&s);
    add_argument(&s, "--screenshot", argv[1]);
    if (hand_over(config, configuration, sizeof(configuration), &err))
        return oct_command_fail(argv[0], &err);
    add_argument(&s, "--config", configuration);
    find_viewer(viewer);
    s.words[s.n_words] = NULL;
    execvp(viewer, (char *const *)s.words);
    oct_fail_errno(&err, OCT_E_IO, errno,
                   "cannot start %s (it must stand beside octctl or in PATH)", viewer);
    return oct_command_fail(argv[0], &err);
}

const struct oct_command oct_command_snapshot = {
    .name = "snapshot",
    .usage = "OUT.png",
    .help = "a picture of the viewer's window",
    .options = options,
    .n_least = 1,
    .n_most = 1,
    .too_few = "say where to: OUT.png",
    .run = run_snapshot,
};
