/* The command line of octctl export. */
#ifndef OCT_TOOLS_EXPORT_OPTIONS_H
#define OCT_TOOLS_EXPORT_OPTIONS_H

#include "tools/files/export_source.h"
#include "tools/options.h"

struct oct_export_given {
    const char *to, *dataset, *slab, *sample, *range, *bscans, *spacing, *eye;
    bool pseudonym, force, json;
};

extern const struct oct_option oct_export_options_table[];

/* Fills what the words say; .config, .work and what the format asks for are the caller's. Returns
 * the exit status once it has said on stderr what is wrong. `name`: of the command. */
int oct_export_given_read(const struct oct_export_given *given, struct oct_export_wish *wish,
                          const char *name);

#endif
