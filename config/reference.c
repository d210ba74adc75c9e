/* The key table for people: the reference file and --help. */
#include "config/config.h"

#include "config/keys.h"

#include <string.h>

static const char *when_text(enum oct_config_when when, const char *section)
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

/* A comment of many words in lines of at most 100 columns. */
static void write_wrapped(FILE *out, const char *text)
{
    size_t column = 1;
    fputc(';', out);
    while (*text) {
        size_t n_word = strcspn(text, " ");
        if (column + 1 + n_word > 100) {
            fputs("\n;", out);
            column = 1;
        }
        fprintf(out, " %.*s", (int)n_word, text);
        column += 1 + n_word;
        text += n_word;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

void oct_key_write_reference(FILE *out, const struct oct_key *key)
{
    char range[128], line[512];
    oct_key_format_range(key, range, sizeof(range));
    fprintf(out, "\n; %s\n", key->meaning);
    snprintf(line, sizeof(line), "%s; default %s; %s", range,
             key->standard[0] ? key->standard : "nothing", when_text(key->when, key->section));
    write_wrapped(out, line);
    fprintf(out, ";%s =%s%s\n", key->name, key->standard[0] ? " " : "", key->standard);
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
    for (size_t s = 0; s < oct_n_key_sections; s++) {
        fprintf(out, "\n[%s]\n; %s\n", oct_key_sections[s].name, oct_key_sections[s].meaning);
        for (size_t i = 0; i < oct_n_keys; i++)
            if (!strcmp(oct_keys[i].section, oct_key_sections[s].name))
                oct_key_write_reference(out, &oct_keys[i]);
    }
}

void oct_config_write_help(FILE *out)
{
    for (size_t i = 0; i < oct_n_keys; i++) {
        char setting[128], range[128];
        const struct oct_key *key = &oct_keys[i];
        oct_key_format_range(key, range, sizeof(range));
        snprintf(setting, sizeof(setting), "%s.%s=%s", key->section, key->name, key->standard);
        fprintf(out, "  %-38s %s (%s)\n", setting, key->meaning, range);
    }
}

bool oct_config_key_at(size_t i, struct oct_config_key *key)
{
    static const char *const answers[] = {"yes", "no", NULL};
    if (i >= oct_n_keys)
        return false;
    const struct oct_key *k = &oct_keys[i];
    *key = (struct oct_config_key){.section = k->section,
                                   .name = k->name,
                                   .meaning = k->meaning,
                                   .words = k->type == OCT_KEY_BOOL ? answers : k->names,
                                   .is_path = k->type == OCT_KEY_PATH};
    return true;
}
