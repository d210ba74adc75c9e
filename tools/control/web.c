/* web: starts octweb, and prints a link for whoever asked. */
#define _DEFAULT_SOURCE
#include "tools/control/web.h"

#include "tools/commands.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* octweb of the same folder as this octctl, else of PATH. */
static void find_program(char path[PATH_MAX])
{
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    snprintf(path, PATH_MAX, "octweb");
    if (n <= 0)
        return;
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    if (snprintf(path, PATH_MAX, "%s/octweb", self) >= PATH_MAX || access(path, X_OK) != 0)
        snprintf(path, PATH_MAX, "octweb");
}

/* octweb gets the configuration as it is here, --set and all, through a file of its own. */
static enum oct_err pass_config(const struct oct_config *config, char path[64],
                                struct oct_error *err)
{
    char *text = oct_config_text(config);
    FILE *file = tmpfile();
    if (!text || !file || fputs(text, file) < 0 || fflush(file) != 0) {
        free(text);
        return oct_fail_errno(err, OCT_E_IO, errno, "the configuration for octweb");
    }
    free(text);
    rewind(file);
    const int fd = dup(fileno(file)); /* without close-on-exec; the stream stays open too */
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd < 0 ? oct_fail_errno(err, OCT_E_IO, errno, "the configuration for octweb") : OCT_OK;
}

static int web(struct oct_config *config, int argc, char **argv)
{
    char program[PATH_MAX], given[64];
    const char *user = getenv("USER");
    struct oct_error err;
    int status = oct_options_read(&oct_command_web, NULL, &argc, argv);
    if (status)
        return status;
    enum oct_err code = oct_web_link_print(config, user && oct_web_name_is(user) ? user : "me",
                                           OCT_WEB_OPERATE, &err);
    if (code || (code = pass_config(config, given, &err)))
        return oct_command_fail(argv[0], &err);
    fflush(stdout);
    fputs("octctl web: open it in a browser, once, within the hour; Ctrl+C ends octweb\n", stderr);
    find_program(program);
    execlp(program, "octweb", "--config", given, (char *)NULL);
    oct_fail_errno(&err, OCT_E_IO, errno, "%s", program);
    return oct_command_fail(argv[0], &err);
}

const struct oct_command oct_command_web = {
    .name = "web",
    .usage = "",
    .help = "starts octweb, and prints a link for a browser",
    .run = web,
};
