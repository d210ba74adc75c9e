/* octctl completion: prints what bash and zsh complete octctl and the other programs by.
 *
 * The scripts ask octctl at each TAB:
 *
 *     octctl completion --list -- PROGRAM WORD... CURRENT
 *
 * CURRENT is the word that is being typed, maybe empty. The first line of the answer is KIND HEAD:
 * HEAD is the beginning of CURRENT that stays ("--set=pipeline.backend="), KIND is @files,
 * @folders, @settings (KEY=, behind which no blank follows) or @words. What may follow HEAD is in
 * the other lines, WORD or WORD:MEANING. octctl's words come from the tables of its commands and of
 * the configuration, the options of the other programs from their own --help. */
#include "config/config.h"
#include "formats/export/export.h"
#include "tools/alloc.h"
#include "tools/commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char bash_script[] =
    "_octctl_complete() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} typed=${COMP_WORDS[COMP_CWORD]} program cut\n"
    "    local -a words list\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=('')\n"
    "    words[0]=${words[0]/#\\~\\//$HOME/}\n"
    "    program=${words[0]}\n"
    "    [[ ${program##*/} == octctl ]] || program=octctl\n"
    "    mapfile -t list < <(\"$program\" completion --list -- \"${words[@]}\" 2>/dev/null)\n"
    "    local kind=${list[0]%% *} head=${list[0]#* } current=${words[-1]}\n"
    "    local prefix=${current#\"$head\"}\n"
    "    list=(\"${list[@]:1}\")\n"
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
    "        mapfile -t list < <(compgen -W \"${list[*]%%:*}\" -- \"$prefix\") ;;\n"
    "    esac\n"
    "    # readline replaces what follows the last of these alone\n"
    "    [[ $COMP_WORDBREAKS == *=* ]] && cut=${current%\"${current##*=}\"}\n"
    "    list=(\"${list[@]/#/$head}\")\n"
    "    COMPREPLY=(\"${list[@]#\"$cut\"}\")\n"
    "}\n"
    "complete -F _octctl_complete octctl octd octview octgenicam octweb\n";

static const char zsh_script[] =
    "_octctl() {\n"
    "    local program=\"${(Q)words[1]}\"\n"
    "    local -a list\n"
    "    [[ ${program:t} == octctl ]] || program=octctl\n"
    "    list=(${(f)\"$(${~program} completion --list -- \\\n"
    "        \"${(@Q)words[1,CURRENT-1]}\" \"$PREFIX\" 2>/dev/null)\"})\n"
    "    local kind=${list[1]%% *} head=${list[1]#* }\n"
    "    list=($list[2,-1])\n"
    "    [[ -n $head ]] && compset -p $#head\n"
    "    case $kind in\n"
    "    @files) _files ;;\n"
    "    @folders) _files -/ ;;\n"
    "    *)\n"
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
    "    compdef _octctl octctl octd octview octgenicam octweb\n"
    "fi\n";

/* ---- the line that is typed ---- */

/* What the first words may be: none yet, `help`, and a command that octctl does not have. */
static const struct oct_command none = {.words = "@commands", .n_most = 1};
static const struct oct_command help = {.name = "help", .words = "@commands", .n_most = 2};
static const struct oct_command unknown = {.name = "", .n_most = 1};

struct line {
    const struct oct_command *command;
    const struct oct_option *globals; /* behind the command's own */
    const char *last;                 /* plain argument behind the command, of n_plain */
    int n_plain;
};

/* Whether the first n letters of `word` are an option of the table; *shown is it then. */
static bool find_option(const struct oct_option *options, const char *word, size_t n,
                        struct oct_option_shown *shown)
{
    for (unsigned i = 0; oct_option_at(options, i, shown); i++) {
        const struct oct_option *o = &shown->option;
        if ((o->name && strlen(o->name) == n && strncmp(o->name, word, n) == 0) ||
            (o->brief && strlen(o->brief) == n && strncmp(o->brief, word, n) == 0))
            return true;
    }
    return false;
}

/* The kind of the option's value, in *shown or static; NULL: it has none. */
static const char *kind_of(const struct line *line, const char *word, size_t n,
                           struct oct_option_shown *shown)
{
    const struct oct_option *o = &shown->option;
    if (!find_option(line->command->options, word, n, shown) &&
        !find_option(line->globals, word, n, shown))
        return NULL;
    if (o->kind == OCT_OPTION_FLAG || o->kind == OCT_OPTION_ARGUMENT)
        return NULL;
    if (o->words)
        return o->words;
    return o->argument && strncmp(o->argument, "FILE", 4) == 0 ? OCT_WORDS_FILES : OCT_WORDS_NONE;
}

static void take_plain(struct line *line, const char *word)
{
    const struct oct_command *next = line->n_plain ? NULL : oct_command_part(line->command, word);
    if (line->command == &none)
        next = strcmp(word, "help") == 0 ? &help : oct_command_find(word);
    if (line->command == &none && !next)
        next = &unknown;
    line->command = next ? next : line->command;
    line->n_plain += !next;
    line->last = word;
}

/* Reads the words before the current one. Returns the kind of the value that an option at their end
 * waits for (as kind_of), else NULL. */
static const char *take_words(struct line *line, int n, char **words,
                              struct oct_option_shown *shown)
{
    for (int i = 0; i < n; i++) {
        const char *kind;
        if (words[i][0] != '-')
            take_plain(line, words[i]);
        else if (!strchr(words[i], '=') &&
                 (kind = kind_of(line, words[i], strlen(words[i]), shown)) && ++i == n)
            return kind;
    }
    return NULL;
}

static const char *kind_of_plain(const struct line *line)
{
    const struct oct_command *c = line->command;
    if (c->parts && line->n_plain == 0)
        return "@parts";
    if (c == &oct_command_set && line->n_plain == 1)
        return "@values";
    if (c == &help && line->n_plain == 1 && strcmp(line->last, "keys") == 0)
        return "@sections";
    if (c->n_most == 0 && !c->parts)
        return OCT_WORDS_NONE;
    /* Words of the first plain argument stand for the others, too, where there may be many. */
    if (c->words)
        return line->n_plain == 0 || c->n_most > 2 ? c->words : OCT_WORDS_NONE;
    return OCT_WORDS_FILES;
}

/* ---- the answer ---- */

/* A line of it: the meaning's first line, where there is one. */
static void put_word(const char *word, const char *end, const char *meaning)
{
    printf("%s%s%s%.*s\n", word, end, *meaning ? ":" : "", (int)strcspn(meaning, "\n"), meaning);
}

/* but: not those that the command has itself, or does not read; NULL: all. */
static void put_options(const struct oct_option *options, const struct oct_command *but)
{
    struct oct_option_shown shown, other;
    for (unsigned i = 0; oct_option_at(options, i, &shown); i++) {
        const struct oct_option *o = &shown.option;
        if (o->name && strncmp(o->name, "--", 2) == 0 &&
            !(but && (find_option(but->options, o->name, strlen(o->name), &other) ||
                      !oct_command_reads(but, o->name))))
            put_word(o->name, "", o->meaning);
    }
}

static void put_commands(const struct oct_command *const *commands)
{
    for (; *commands; commands++) {
        const char *space = strrchr((*commands)->name, ' ');
        put_word(space ? space + 1 : (*commands)->name, "", (*commands)->help);
    }
}

/* All keys, or the values of the one that is named. */
static void put_keys(const char *end, const char *named)
{
    struct oct_config_key key;
    char name[128];
    for (size_t i = 0; oct_config_key_at(i, &key); i++) {
        snprintf(name, sizeof(name), "%s.%s", key.section, key.name);
        if (!named)
            put_word(name, end, key.meaning);
        for (const char *const *word = named ? key.words : NULL; word && *word; word++)
            if (strcmp(name, named) == 0)
                puts(*word);
    }
}

static void put_sections(void)
{
    struct oct_config_key key;
    const char *before = "";
    for (size_t i = 0; oct_config_key_at(i, &key); before = key.section, i++)
        if (strcmp(before, key.section) != 0)
            put_word(key.section, "", "");
}

static bool is_path(const char *named)
{
    struct oct_config_key key;
    char name[128];
    for (size_t i = 0; oct_config_key_at(i, &key); i++) {
        snprintf(name, sizeof(name), "%s.%s", key.section, key.name);
        if (key.is_path && strcmp(name, named) == 0)
            return true;
    }
    return false;
}

static void answer(const struct line *line, const char *kind, const char *key, const char *head,
                   size_t n_head)
{
    static const char *const said[] = {OCT_WORDS_FILES, OCT_WORDS_FOLDERS, OCT_WORDS_SETTINGS};
    if (strcmp(kind, "@values") == 0 && is_path(key))
        kind = OCT_WORDS_FILES;
    printf("%s %.*s\n", oct_option_word(kind, said, 3) < 0 ? "@words" : kind, (int)n_head, head);
    if (strcmp(kind, "@commands") == 0) {
        put_commands(oct_command_table.commands);
        if (line->command == &help) {
            put_word("conventions", "", "what options mean in all commands");
            put_word("keys", "", "the configuration's, with their defaults");
        } else {
            put_word("help", "", "what octctl or a command takes");
        }
    } else if (strcmp(kind, "@parts") == 0) {
        put_commands(line->command->parts);
    } else if (strcmp(kind, "@options") == 0) {
        put_options(line->command->options, NULL);
        put_options(line->globals, line->command);
    } else if (strcmp(kind, "@sections") == 0) {
        put_sections();
    } else if (strcmp(kind, OCT_WORDS_KEYS) == 0) {
        put_keys("", NULL);
    } else if (strcmp(kind, OCT_WORDS_SETTINGS) == 0) {
        put_keys("=", NULL);
    } else if (strcmp(kind, "@values") == 0) {
        put_keys("", key);
    } else if (strcmp(kind, OCT_WORDS_FORMATS) == 0) {
        for (const struct oct_export_format *const *f = oct_export_formats; *f; f++)
            puts((*f)->name);
    } else if (kind[0] != '@') {
        for (const char *c = kind; *c; c++)
            putchar(*c == ' ' ? '\n' : *c);
        putchar('\n');
    }
}

/* words[0 .. n - 1]: WORD... CURRENT, which is "--option=VALUE", an option or a value; VALUE is
 * "KEY=VALUE" where settings are typed. */
static void complete(struct line *line, int n, char **words)
{
    const char *current = words[n - 1], *equals = strchr(current, '=');
    struct oct_option_shown shown;
    const char *kind = take_words(line, n - 1, words, &shown);
    char *key = NULL;
    size_t n_head = 0;
    if (!kind && strncmp(current, "--", 2) == 0 && equals) {
        n_head = (size_t)(equals + 1 - current);
        kind = kind_of(line, current, n_head - 1, &shown);
        kind = kind ? kind : OCT_WORDS_NONE;
    } else if (!kind) {
        kind = current[0] == '-' ? "@options" : kind_of_plain(line);
    }
    if (strcmp(kind, OCT_WORDS_SETTINGS) == 0 && (equals = strchr(current + n_head, '='))) {
        key = oct_alloc_text("%.*s", (int)(equals - current - (long)n_head), current + n_head);
        n_head = (size_t)(equals + 1 - current);
        kind = "@values";
    }
    answer(line, kind, key ? key : line->last, current, n_head);
    free(key);
}

/* ---- the other programs ---- */

/* Appends an option, "--config FILE" or "--help", to the table. */
static void add_option(struct oct_option **table, size_t *n, const char *text)
{
    const size_t n_name = strcspn(text, " ");
    const char *argument = text + n_name + (text[n_name] == ' ');
    struct oct_option o = {.name = oct_alloc_text("%.*s", (int)n_name, text),
                           .argument = "",
                           .meaning = "",
                           .kind = *argument ? OCT_OPTION_TEXT : OCT_OPTION_FLAG};
    if (strcmp(o.name, "--backend") == 0)
        o.words = "auto cpu cuda";
    else if (strcmp(argument, "SECTION.KEY=VALUE") == 0)
        o.words = OCT_WORDS_SETTINGS;
    else if (strncmp(argument, "FILE", 4) == 0)
        o.words = OCT_WORDS_FILES;
    *table = oct_alloc_more(*table, *n + 2, sizeof(o));
    (*table)[(*n)++] = o;
    (*table)[*n] = (struct oct_option){NULL};
}

/* The options of the program that is being typed, "  -c, --config FILE  meaning" in its help. */
static struct oct_option *read_help(const char *program, size_t *n)
{
    struct oct_option *table = NULL;
    char *line = NULL, *end;
    size_t room = 0;
    char *command = oct_alloc_text("'%s' --help 2>/dev/null", program);
    FILE *pipe = strchr(program, '\'') ? NULL : popen(command, "re"); /* NOLINT(cert-env33-c) */
    while (pipe && getline(&line, &room, pipe) > 0) {
        if (strncmp(line, "  -", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        if ((end = strstr(line + 2, "  ")))
            *end = '\0';
        for (char *name = line + 2; name; name = end) {
            if ((end = strstr(name, ", "))) {
                *end = '\0';
                end += 2;
            }
            if (name[1] == '-')
                add_option(&table, n, name);
        }
        if (strncmp(line, "  -c", 4) == 0 && *n > 0)
            table[*n - 1].brief = "-c";
    }
    if (pipe)
        pclose(pipe);
    free(command);
    free(line);
    return table;
}

/* words[0 .. n - 1]: PROGRAM WORD... CURRENT. */
static int list(int n, char **words)
{
    if (n < 2)
        return 2;
    const char *slash = strrchr(words[0], '/'), *name = slash ? slash + 1 : words[0];
    if (strcmp(name, "octctl") == 0) {
        struct line line = {.command = &none, .globals = oct_command_table.options};
        complete(&line, n - 1, words + 1);
        return 0;
    }
    size_t n_options = 0;
    struct oct_option *options = read_help(words[0], &n_options);
    const struct oct_command command = {
        .name = name, .options = options, .n_most = strcmp(name, "octview") == 0};
    struct line line = {.command = &command};
    complete(&line, n - 1, words + 1);
    for (size_t i = 0; i < n_options; i++)
        free((char *)options[i].name);
    free(options);
    return 0;
}

/* ---- the command ---- */

static int run_completion(struct oct_config *config, int argc, char **argv)
{
    static const char *const shells[] = {"bash", "zsh"};
    (void)config;
    if (argc > 1 && strcmp(argv[1], "--list") == 0)
        return list(argc - 2, argv + 2);
    const int status = oct_options_read(&oct_command_completion, NULL, &argc, argv);
    if (status)
        return status;
    const int shell = oct_option_word(argv[1], shells, 2);
    if (shell < 0)
        return oct_command_misuse(argv[0], "'%s' is no shell of it: bash or zsh", argv[1]);
    if (shell == 1)
        printf("#compdef octctl octd octview octgenicam octweb\n");
    printf("# Completion of octctl and its like in %s; made by octctl completion %s.\n%s",
           shells[shell], shells[shell], shell == 1 ? zsh_script : bash_script);
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
    .run = run_completion,
};
