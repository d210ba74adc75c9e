/* octctl calibrate PART: from a lab's own measurements to files that octd takes. */
#include "tools/commands.h"

#include <stdio.h>

/* In the order of --help. */
static const struct oct_command *const parts[] = {
    &oct_command_calibrate_kmap,
    &oct_command_calibrate_dispersion,
    &oct_command_calibrate_report,
    &oct_command_calibrate_scan,
    NULL,
};

static int run(struct oct_config *config, int argc, char **argv)
{
    const struct oct_command *part = oct_command_part(&oct_command_calibrate, argv[1]);
    char name[40];
    if (argc < 2)
        return oct_command_misuse(argv[0], "what is to be found?");
    if (!part)
        return oct_command_misuse(argv[0], "'%s' is no part of it", argv[1]);
    snprintf(name, sizeof(name), "%s", part->name);
    argv[1] = name;
    return part->run(config, argc - 1, argv + 1);
}

const struct oct_command oct_command_calibrate = {
    .name = "calibrate",
    .usage = "PART ...",
    .keys = "",
    .help = "finds k map, dispersion and the mirrors' lag from a lab's own measurements",
    .parts = parts,
    .run = run,
};
