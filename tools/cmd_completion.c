/* octctl completion: prints what bash and zsh complete octctl, octd, octview and octgenicam by.
 *
 * The words come from the tables that the commands and --help come from, those of the configuration
 * from its keys; what the others take is read from their own --help when it is asked for.
 * Both scripts have the same functions, in what both shells understand, and a head of their own:
 *
 *     _octctl_context PROGRAM WORD... CURRENT    the kind of what is being typed
 *     _octctl_list PROGRAM KIND                  its words, "WORD:MEANING" a line
 *
 * A kind is words with spaces between, or @files, @folders, @keys, @settings, @commands,
 * "@options COMMAND", @none. */
#include "config/config.h"
#include "formats/export/export.h"
#include "tools/commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char shared[] =
    "# The options of the other programs, NAME ARGUMENT a line, as their help names them.\n"
    "_octctl_help_of() {\n"
    "    \"$1\" --help 2>/dev/null | sed -n 's/^  \\(-.*\\)/\\1/p' | sed 's/  .*//; s/, /\\n/g' |\n"
    "        grep '^--*[a-z]'\n"
    "}\n"
    "\n"
    "# PROGRAM COMMAND OPTION: the kind of its value; nothing where it takes none.\n"
    "_octctl_kind() {\n"
    "    local name argument\n"
    "    case ${1##*/} in\n"
    "    octctl) _octctl_values \"$2\" \"$3\" ;;\n"
    "    *)\n"
    "        _octctl_help_of \"$1\" | while read -r name argument; do\n"
    "            [ \"$name\" = \"$3\" ] || continue\n"
    "            case \"$name $argument\" in\n"
    "            '--backend '*) _octctl_key_values pipeline.backend ;;\n"
    "            *' FILE'* | '-c ') echo @files ;;\n"
    "            *' SECTION.KEY=VALUE') echo @settings ;;\n"
    "            *' '?*) echo @none ;;\n"
    "            esac\n"
    "        done ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "# PROGRAM WORD... CURRENT: the kind of CURRENT.\n"
    "_octctl_context() {\n"
    "    local program=$1 command='' kind='' word='' last='' n=0\n"
    "    [ \"${1##*/}\" = octctl ] || command=${1##*/}\n"
    "    shift\n"
    "    while [ $# -gt 1 ]; do\n"
    "        word=$1\n"
    "        shift\n"
    "        case $word in\n"
    "        -*=*) ;;\n"
    "        -*)\n"
    "            kind=$(_octctl_kind \"$program\" \"$command\" \"$word\")\n"
    "            [ -n \"$kind\" ] || continue\n"
    "            [ $# -gt 1 ] || { echo \"$kind\"; return; }\n"
    "            shift ;;\n"
    "        *)\n"
    "            if [ -z \"$command\" ]; then\n"
    "                command=$word\n"
    "            elif [ \"$n\" -eq 0 ] && _octctl_is_part \"$command $word\"; then\n"
    "                command=\"$command $word\"\n"
    "            else\n"
    "                n=$((n + 1))\n"
    "                last=$word\n"
    "            fi ;;\n"
    "        esac\n"
    "    done\n"
    "    case $1 in\n"
    "    --*=*) _octctl_kind \"$program\" \"$command\" \"${1%%=*}\" ;;\n"
    "    -*) echo \"@options $command\" ;;\n"
    "    *)\n"
    "        case \"$command $n\" in\n"
    "        ' '*) echo @commands ;;\n"
    "        'set 1') _octctl_key_values \"$last\" ;;\n"
    "        *) _octctl_plain \"$command $n\" ;;\n"
    "        esac ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "# PROGRAM KIND: its words, WORD:MEANING a line.\n"
    "_octctl_list() {\n"
    "    case $2 in\n"
    "    @commands) _octctl_commands ;;\n"
    "    @keys) _octctl_keys ;;\n"
    "    @settings) _octctl_keys | sed 's/:/=:/' ;;\n"
    "    @options*)\n"
    "        case ${1##*/} in\n"
    "        octctl)\n"
    "            { # a command's own option stands before a global one of that name\n"
    "                _octctl_options \"${2#@options }\"\n"
    "                _octctl_options ''\n"
    "            } | LC_ALL=C sort -s -u -t: -k1,1 ;;\n"
    "        *) _octctl_help_of \"$1\" | sed 's/ .*//' ;;\n"
    "        esac ;;\n"
    "    @*) ;;\n"
    "    ?*) echo \"$2\" | tr ' ' '\\n' ;;\n"
    "    esac\n"
    "}\n";

static const char bash_head[] =
    "\n"
    "_octctl_complete() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} typed=${COMP_WORDS[COMP_CWORD]}\n"
    "    local kind current prefix head='' cut\n"
    "    local -a words list\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=('')\n"
    "    words[0]=${words[0]/#\\~\\//$HOME/}\n"
    "    current=${words[-1]} prefix=${words[-1]}\n"
    "    kind=$(_octctl_context \"${words[@]}\")\n"
    "    if [[ $prefix == --*=* ]]; then\n"
    "        head=${prefix%%=*}= prefix=${prefix#*=}\n"
    "    fi\n"
    "    if [[ $kind == @settings && $prefix == *=* ]]; then\n"
    "        kind=$(_octctl_key_values \"${prefix%%=*}\")\n"
    "        head+=${prefix%%=*}= prefix=${prefix#*=}\n"
    "    fi\n"
    "    COMPREPLY=()\n"
    "    case $kind in\n"
    "    @files | @folders)\n"
    "        if [[ ! $head ]]; then # a name with blanks is one word to the shell alone\n"
    "            typed=${typed#[\\\"\\']} prefix=${typed//\\\\/}\n"
    "            current=$prefix\n"
    "        fi\n"
    "        prefix=${prefix/#\\~\\//$HOME/}\n"
    "        [[ $kind == @files ]] && mapfile -t list < <(compgen -f -- \"$prefix\")\n"
    "        [[ $kind == @folders ]] && mapfile -t list < <(compgen -d -- \"$prefix\")\n"
    "        compopt -o filenames 2>/dev/null ;;\n"
    "    *)\n"
    "        [[ $kind == @settings ]] && compopt -o nospace 2>/dev/null\n"
    "        mapfile -t list < <(compgen -W \"$(_octctl_list \"${words[0]}\" \"$kind\" |\n"
    "            sed 's/:.*//')\" -- \"$prefix\") ;;\n"
    "    esac\n"
    "    # readline replaces what follows the last of these alone\n"
    "    [[ $COMP_WORDBREAKS == *=* ]] && cut=${current%\"${current##*=}\"}\n"
    "    list=(\"${list[@]/#/$head}\")\n"
    "    COMPREPLY=(\"${list[@]#\"$cut\"}\")\n"
    "}\n"
    "complete -F _octctl_complete octctl octd octview octgenicam\n";

static const char zsh_head[] =
    "\n"
    "_octctl() {\n"
    "    local kind=\"$(_octctl_context \"${(@Q)words[1,CURRENT-1]}\" \"$PREFIX\")\"\n"
    "    local -a list\n"
    "    [[ $PREFIX == --*=* ]] && compset -p $(( ${#PREFIX%%=*} + 1 ))\n"
    "    if [[ $kind == @settings && $PREFIX == *=* ]]; then\n"
    "        kind=\"$(_octctl_key_values \"${PREFIX%%=*}\")\"\n"
    "        compset -p $(( ${#PREFIX%%=*} + 1 ))\n"
    "    fi\n"
    "    case $kind in\n"
    "    @files) _files ;;\n"
    "    @folders) _files -/ ;;\n"
    "    *)\n"
    "        list=(${(f)\"$(_octctl_list \"${(Q)words[1]}\" \"$kind\")\"})\n"
    "        (( $#list )) || return 1\n"
    "        if [[ $kind == @settings ]]; then\n"
    "            _describe key list -S ''\n"
    "        else\n"
    "            _describe word list\n"
    "        fi ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "# From a folder of $fpath this file is the function itself.\n"
    "if [[ $funcstack[1] == _octctl ]]; then\n"
    "    _octctl \"$@\"\n"
    "else\n"
    "    compdef _octctl octctl octd octview octgenicam\n"
    "fi\n";

/* ---- the tables ---- */

/* The first line of the text, behind what stands in single quotes already. */
static void put_quoted(const char *text)
{
    for (const char *c = text; *c && *c != '\n'; c++)
        if (*c == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*c);
}

static void put_row(const char *name, const char *meaning)
{
    fputs(" \\\n        '", stdout);
    put_quoted(name);
    putchar(':');
    put_quoted(meaning);
    putchar('\'');
}

/* The kind of the option's value; NULL: it has none. */
static const char *kind_of(const struct oct_option *o)
{
    if (o->kind == OCT_OPTION_FLAG || o->kind == OCT_OPTION_ARGUMENT)
        return NULL;
    if (o->words)
        return o->words;
    return o->argument && strncmp(o->argument, "FILE", 4) == 0 ? OCT_WORDS_FILES : OCT_WORDS_NONE;
}

static void put_options(const char *command, const struct oct_option *options)
{
    struct oct_option_shown shown;
    bool any = false;
    for (unsigned i = 0; oct_option_at(options, i, &shown); i++) {
        const struct oct_option *o = &shown.option;
        if (strncmp(o->name, "--", 2) != 0) /* a plain argument */
            continue;
        if (!any)
            printf("    '%s')\n        printf '%%s\\n'", command);
        any = true;
        put_row(o->name, o->meaning);
    }
    if (any)
        printf(" ;;\n");
}

/* The formats are those of octctl export. */
static void put_kind(const char *kind)
{
    if (strcmp(kind, OCT_WORDS_FORMATS) != 0) {
        fputs(kind, stdout);
        return;
    }
    for (const struct oct_export_format *const *f = oct_export_formats; *f; f++)
        printf("%s%s", f == oct_export_formats ? "" : " ", (*f)->name);
}

static void put_values(const char *command, const struct oct_option *options)
{
    struct oct_option_shown shown;
    for (unsigned i = 0; oct_option_at(options, i, &shown); i++) {
        const struct oct_option *o = &shown.option;
        const char *kind = kind_of(o);
        if (!kind)
            continue;
        if (command)
            printf("    '%s %s') echo '", command, o->name);
        else if (o->brief)
            printf("    *' %s' | *' %s') echo '", o->name, o->brief);
        else
            printf("    *' %s') echo '", o->name);
        put_kind(kind);
        printf("' ;;\n");
    }
}

/* Words of the first plain argument stand for the others, too, where there may be many. */
static void put_plain(const struct oct_command *command)
{
    const char *name = command->name;
    if (command->parts) {
        printf("    '%s 0') echo '", name);
        for (const struct oct_command *const *part = command->parts; *part; part++)
            printf("%s%s", part == command->parts ? "" : " ", strrchr((*part)->name, ' ') + 1);
        printf("' ;;\n");
    } else if (command->n_most == 0) {
        printf("    '%s '*) echo " OCT_WORDS_NONE " ;;\n", name);
    } else if (command->words && command->n_most > 2) {
        printf("    '%s '*) echo '%s' ;;\n", name, command->words);
    } else if (command->words) {
        printf("    '%s 0') echo '%s' ;;\n    '%s '*) echo " OCT_WORDS_NONE " ;;\n", name,
               command->words, name);
    }
}

/* Calls `put` for each command and each part of one. */
static void put_each(void (*put)(const struct oct_command *command))
{
    for (size_t i = 0; i < oct_command_table.n; i++) {
        const struct oct_command *command = oct_command_table.commands[i];
        put(command);
        for (const struct oct_command *const *part = command->parts; part && *part; part++)
            put(*part);
    }
}

static void put_options_of(const struct oct_command *command)
{
    put_options(command->name, command->options);
}

static void put_values_of(const struct oct_command *command)
{
    put_values(command->name, command->options);
}

static void put_part(const struct oct_command *command)
{
    for (const struct oct_command *const *part = command->parts; part && *part; part++)
        printf("    '%s') return 0 ;;\n", (*part)->name);
}

static void put_commands(void)
{
    printf("\n_octctl_commands() {\n    printf '%%s\\n'");
    for (size_t i = 0; i < oct_command_table.n; i++)
        put_row(oct_command_table.commands[i]->name, oct_command_table.commands[i]->help);
    put_row("help", "what octctl or a command takes");
    printf("\n}\n\n# COMMAND; none: the options of all commands\n_octctl_options() {\n"
           "    case $1 in\n");
    put_each(put_options_of);
    put_options("", oct_command_table.options);
    printf("    esac\n}\n\n# COMMAND OPTION\n_octctl_values() {\n    case \"$1 $2\" in\n");
    put_each(put_values_of);
    put_values(NULL, oct_command_table.options);
    printf("    esac\n}\n\n# \"COMMAND N\": of its plain argument N, from 0\n_octctl_plain() {\n"
           "    case $1 in\n");
    put_each(put_plain);
    printf("    'help 0') echo @commands ;;\n    'help '* | 'octd '* | 'octgenicam '*) "
           "echo " OCT_WORDS_NONE " ;;\n"
           "    *) echo " OCT_WORDS_FILES " ;;\n    esac\n}\n\n# \"COMMAND WORD\"\n"
           "_octctl_is_part() {\n    case $1 in\n");
    put_each(put_part);
    printf("    esac\n    return 1\n}\n");
}

static void put_keys(void)
{
    struct oct_config_key key;
    char name[128];
    printf("\n_octctl_keys() {\n    printf '%%s\\n'");
    for (size_t i = 0; oct_config_key_at(i, &key); i++) {
        snprintf(name, sizeof(name), "%s.%s", key.section, key.name);
        put_row(name, key.meaning);
    }
    printf("\n}\n\n# KEY: the kind of its value\n_octctl_key_values() {\n    case $1 in\n");
    for (size_t i = 0; oct_config_key_at(i, &key); i++) {
        if (!key.words && !key.is_path)
            continue;
        printf("    '%s.%s') echo '%s", key.section, key.name, key.is_path ? OCT_WORDS_FILES : "");
        for (const char *const *word = key.words; word && *word; word++)
            printf("%s%s", word == key.words ? "" : " ", *word);
        printf("' ;;\n");
    }
    printf("    *) echo " OCT_WORDS_NONE " ;;\n    esac\n}\n\n");
}

static int run(struct oct_config *config, int argc, char **argv)
{
    static const char *const shells[] = {"bash", "zsh"};
    (void)config;
    const int status = oct_options_read(&oct_command_completion, NULL, &argc, argv);
    if (status)
        return status;
    const int shell = oct_option_word(argv[1], shells, 2);
    if (shell < 0)
        return oct_command_misuse(argv[0], "'%s' is no shell of it: bash or zsh", argv[1]);
    if (shell == 1)
        printf("#compdef octctl octd octview octgenicam\n");
    printf("# Completion of octctl and its like in %s; made by octctl completion %s.\n",
           shells[shell], shells[shell]);
    put_commands();
    put_keys();
    fputs(shared, stdout);
    fputs(shell == 1 ? zsh_head : bash_head, stdout);
    return 0;
}

const struct oct_command oct_command_completion = {
    .name = "completion",
    .usage = "bash|zsh",
    .help = "prints what a shell completes these programs by",
    .n_least = 1,
    .n_most = 1,
    .too_few = "for which shell, bash or zsh?",
    .words = "bash zsh",
    .run = run,
};
