/* The key table for people: the reference file and --help. */
#include "config/config.h"

#include "analysis/analyses.h"
#include "config/keys.h"
#include "config/options.h"

#include <string.h>

static const char *when_text(enum oct_param_when when, const char *section)
{
    switch (when) {
    case OCT_CONFIG_LIVE:
        return "may change at any time";
    case OCT_CONFIG_IDLE:
        return "may change while idle";
    case OCT_CONFIG_START:
        return strcmp(section, "view") == 0 ? "read at octview's start"
                                            : "read at the daemon's start";
    }
    return "";
}

void oct_key_write_reference(FILE *out, const struct oct_key *key)
{
    char range[128], line[512];
    const struct oct_param *param = key->param;
    oct_param_format_range(param, range, sizeof(range));
    fprintf(out, "\n; %s\n", param->meaning);
    snprintf(line, sizeof(line), "%s; default %s; %s", range,
             param->standard[0] ? param->standard : "nothing",
             when_text(param->when, key->section));
    fputc(';', out);
    oct_write_wrapped(out, 1, ";", line);
    fprintf(out, ";%s =%s%s\n", key->name, param->standard[0] ? " " : "", param->standard);
}

void oct_config_write_reference(FILE *out)
{
    fputs("; octd configuration: every key, with its default. Printed by `octctl reference`.\n"
          ";\n"
          "; \"; text\" explains, \";key = value\" is a key at its default, which holds without "
          "this\n"
          "; file too: take the ';' away to change it.\n"
          "; A ';' first in a line or after a space starts a comment, a '#' only first in a line.\n"
          "; A relative path is taken from the folder of this file. Unknown keys are errors.\n"
          "; --set SECTION.KEY=VALUE on the command line wins over this file.\n",
          out);
    const char *section = "";
    struct oct_key key;
    for (size_t i = 0; oct_key_at(i, &key); i++) {
        if (strcmp(section, key.section) != 0)
            fprintf(out, "\n[%s]\n; %s\n", key.section, oct_key_section_meaning(key.section));
        section = key.section;
        oct_key_write_reference(out, &key);
    }
}

bool oct_config_write_help(FILE *out, const char *section)
{
    struct oct_key key;
    bool is_any = false;
    for (size_t i = 0; oct_key_at(i, &key); i++) {
        char setting[128], range[128], text[512],
            head[] = "                                        ";
        if (section && strcmp(section, key.section) != 0)
            continue;
        oct_param_format_range(key.param, range, sizeof(range));
        snprintf(setting, sizeof(setting), "%s.%s=%s", key.section, key.name, key.param->standard);
        snprintf(text, sizeof(text), "%s (%s)", key.param->meaning, range);
        oct_write_wrapped(out, (size_t)fprintf(out, "  %-38s", setting), head, text);
        is_any = true;
    }
    return is_any;
}

bool oct_config_key_at(size_t i, struct oct_config_key *key)
{
    static const char *const answers[] = {"yes", "no", NULL};
    struct oct_key k;
    if (!oct_key_at(i, &k))
        return false;
    *key = (struct oct_config_key){
        .section = k.section,
        .name = k.name,
        .meaning = k.param->meaning,
        .words = k.param->type == OCT_PARAM_BOOL ? answers : k.param->words,
        .is_path = k.param->type == OCT_PARAM_PATH,
        .is_of_analyses = !strcmp(k.section, "analysis") || oct_analysis_find(k.section),
        .row = k.index};
    return true;
}
