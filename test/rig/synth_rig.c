#include "test/rig/synth_rig.h"

#include "tools/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct folder {
    char path[256], before[256];
};

int oct_synth_enter(void **state)
{
    struct folder *f = calloc(1, sizeof(*f));
    const char *top = getenv("TMPDIR");

    snprintf(f->path, sizeof(f->path), "%s/synth-XXXXXX", top ? top : "/tmp");
    if (!getcwd(f->before, sizeof(f->before)) || !mkdtemp(f->path) || chdir(f->path))
        return -1;
    *state = f;
    return 0;
}

int oct_synth_leave(void **state)
{
    struct folder *f = *state;
    char command[300];
    int status = chdir(f->before);

    snprintf(command, sizeof(command), "rm -r '%s'", f->path);
    if (system(command))
        status = -1;
    free(f);
    return status;
}

int oct_synth_run(struct oct_synth_geometry geometry, const char *const arguments[8])
{
    struct oct_config *config = calloc(1, sizeof(*config));
    char words[9][300], *argv[10];
    int argc = 1, status;

    oct_config_init(config);
    config->camera.samples = geometry.n_samples;
    config->scan.lines = geometry.n_lines;
    config->scan.bscans = geometry.n_bscans;
    strcpy(words[0], "synth");
    argv[0] = words[0];
    for (; arguments[argc - 1]; argc++) {
        snprintf(words[argc], sizeof(words[argc]), "%s", arguments[argc - 1]);
        argv[argc] = words[argc];
    }
    argv[argc] = NULL;
    status = oct_command_synth.run(config, argc, argv);
    free(config);
    return status;
}
