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
    const char *out;
    const char *words[MOST_WORDS]; /* for octview */
    int n_words;
};

static void add(struct snapshot *s, const char *option, const char *value)
{
    if (s->n_words + 2 < MOST_WORDS) {
        s->words[s->n_words++] = option;
        s->words[s->n_words++] = value;
    }
}

/* Options that octview has too go to it as they are: it checks them and says what is wrong. */
static int read_options(struct snapshot *s, int argc, char **argv)
{
    static const char *const passed[] = {"--frames", "--size", "--timeout", "--font", "--settings"};

    for (int i = 1; i < argc; i++) {
        const char *value = NULL;
        size_t k = 0, n = sizeof(passed) / sizeof(passed[0]);
        while (k < n && !oct_option_value(argc, argv, &i, passed[k], &value))
            k++;
        if (k < n && !value)
            return oct_command_misuse(argv[0], "%s needs a value", passed[k]);
        if (k < n)
            add(s, passed[k], value);
        else if (strncmp(argv[i], "--", 2) == 0)
            return oct_command_misuse(argv[0], "unknown option '%s'", argv[i]);
        else if (s->out)
            return oct_command_misuse(argv[0], "unexpected argument '%s'", argv[i]);
        else
            s->out = argv[i];
    }
    return s->out ? 0 : oct_command_misuse(argv[0], "say where to: OUT.png");
}

/* The configuration as a file without a name that the new program inherits. */
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

/* The octview that was built or installed with this octctl. */
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

int oct_cmd_snapshot(struct oct_config *config, int argc, char **argv)
{
    struct snapshot s = {.words = {"octview", "--headless"}, .n_words = 2};
    char viewer[PATH_MAX], configuration[64];
    struct oct_error err;

    int status = read_options(&s, argc, argv);
    if (status)
        return status;
    add(&s, "--screenshot", s.out);
    if (hand_over(config, configuration, sizeof(configuration), &err))
        return oct_command_fail(argv[0], &err);
    add(&s, "--config", configuration);
    find_viewer(viewer);
    s.words[s.n_words] = NULL;
    execvp(viewer, (char *const *)s.words);
    oct_fail_errno(&err, OCT_E_IO, errno,
                   "cannot start %s (it must stand beside octctl or in PATH)", viewer);
    return oct_command_fail(argv[0], &err);
}
