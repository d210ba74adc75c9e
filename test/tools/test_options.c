/* The table of a command's options: what it reads and refuses, and that the manual has it all. */
#include "test/rig/tap.h"
#include "tools/commands.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct values {
    bool flag, other;
    const char *text, *now;
    double number;
    uint64_t count;
    const char **list;
};

static char *turn(const char *text)
{
    return text[0] == 'x' ? NULL : strdup((const char[]){text[1], text[0], '\0'});
}

static const struct oct_option options[] = {
    {"--flag", NULL, "", OCT_OPTION_FLAG, .at = offsetof(struct values, flag), .brief = "-f"},
    {"--flagged", NULL, "", OCT_OPTION_FLAG, .at = offsetof(struct values, other)},
    {"--text", "T", "", OCT_OPTION_TEXT, .at = offsetof(struct values, text)},
    {"--number", "N", "", OCT_OPTION_NUMBER, .at = offsetof(struct values, number),
     .least = OCT_OPTION_ABOVE_0, .most = 10},
    {"--count", "N", "", OCT_OPTION_COUNT, .at = offsetof(struct values, count), .least = 2,
     .most = 5},
    {"--list", "L", "", OCT_OPTION_LIST, .at = offsetof(struct values, list), .brief = "-l"},
    {"--new", "N", "", OCT_OPTION_TEXT, .at = offsetof(struct values, now), .was = "--old",
     .from_was = turn},
    {.was = "--gone",
     .meaning = "leave it out",
     .kind = OCT_OPTION_FLAG,
     .at = offsetof(struct values, other)},
    {"--help-alone", NULL, "", OCT_OPTION_ARGUMENT, .at = 0},
    {NULL},
};

static bool is_plain(const char *argument)
{
    return strcmp(argument, "--plain") == 0;
}

static const struct oct_command command = {
    .name = "test",
    .options = options,
    .n_least = 1,
    .n_most = 3,
    .too_few = "what?",
    .is_plain = is_plain,
};

/* Reads `words`, apart by blanks; the plain ones come back so. */
static int read_words(const char *words, struct values *v, char plain[200])
{
    static char buffer[200];
    static const char *list[10];
    char *argv[20] = {buffer};
    int argc = 1;

    memset(list, 0, sizeof(list));
    *v = (struct values){.number = 1, .count = 3, .list = list};
    snprintf(buffer, sizeof(buffer), "test %s", words);
    for (char *at = strchr(buffer, ' '); at && at[1]; at = strchr(at + 1, ' ')) {
        *at = '\0';
        argv[argc++] = at + 1;
    }
    int status = oct_options_read(&command, v, &argc, argv);
    plain[0] = '\0';
    for (int i = 1; i < argc && status == 0; i++)
        snprintf(plain + strlen(plain), 200 - strlen(plain), "%s%s", i > 1 ? " " : "", argv[i]);
    assert_true(status != 0 || argv[argc] == NULL);
    return status;
}

TEST(a_row_says_what_its_option_needs)
{
    static const struct oct_option rows[] = {
        {"--count", "N", "how many", OCT_OPTION_COUNT, .least = 2, .most = 5, .standard = "4"},
        {"--any", "N", "", OCT_OPTION_COUNT, .at = 0},
        {"--number", "N", "", OCT_OPTION_NUMBER, .least = OCT_OPTION_ABOVE_0, .most = 1e9},
        {"--degrees", "N", "", OCT_OPTION_NUMBER, .least = -0.5, .most = 360},
        {"--file", "FILE.png", "", OCT_OPTION_TEXT, .at = 0},
        {"--folder", "D", "", OCT_OPTION_TEXT, .words = OCT_WORDS_FOLDERS},
        {"--kind", "KIND", "", OCT_OPTION_TEXT, .words = "none all"},
        {"--pair", "A:B", "", OCT_OPTION_TEXT, .words = OCT_WORDS_NONE},
        {"--sides", "+-", "", OCT_OPTION_TEXT, .needs = "a + or - for each"},
        {NULL},
    };
    static const char *const needs[] = {"a whole number from 2 to 5",
                                        "a whole number",
                                        "a number above 0, 1000000000 at most",
                                        "a number from -0.5 to 360",
                                        "a file",
                                        "a folder",
                                        "none all",
                                        "A:B",
                                        "a + or - for each"};
    struct oct_option_shown shown;
    unsigned i = 0;
    uint64_t count = 0;
    for (; oct_option_at(rows, i, &shown); i++)
        assert_string_equal(shown.option.needs, needs[i]);
    assert_int_equal(i, sizeof(needs) / sizeof(needs[0]));
    oct_options_set_defaults(rows, &count);
    assert_int_equal(count, 4);
    oct_option_at(rows, 0, &shown);
    assert_string_equal(shown.option.meaning, "how many (4)");
}

TEST(values_are_read_in_either_form_and_the_rest_stays)
{
    struct values v;
    char plain[200];
    assert_int_equal(read_words("a", &v, plain), 0);
    assert_string_equal(plain, "a");
    assert_true(!v.flag && !v.text && v.number == 1 && v.count == 3 && !v.list[0]);
    assert_int_equal(read_words("--flag a --text T -10 --number=2.5 --count 5 --plain", &v, plain),
                     0);
    assert_string_equal(plain, "a -10 --plain");
    assert_true(v.flag && !v.other && v.number == 2.5 && v.count == 5);
    assert_string_equal(v.text, "T");
    assert_int_equal(read_words("--text=--flag --text --text a -f", &v, plain), 0);
    assert_string_equal(v.text, "--text"); /* the last counts, whatever it looks like */
    assert_true(v.flag);
    assert_int_equal(read_words("-l 1 -l2 --list 3 --list=4 a", &v, plain), 0);
    assert_string_equal(plain, "a");
    const char *const wanted[] = {"1", "2", "3", "4"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(v.list[i], wanted[i]);
    assert_null(v.list[4]);
}

/* An old spelling is read, turned into a value of today, and told; the text is in argv. */
TEST(old_spellings_are_read_and_told)
{
    static const struct {
        const char *words, *value, *said;
    } cases[] = {
        {"a --new 12", "12", ""},
        {"a --old 12", "21", "octctl test: --old is now --new N\n"},
        {"a --old=12", "21", "octctl test: --old is now --new N\n"},
        {"--gone a", NULL, "octctl test: --gone is no more: leave it out\n"},
    };
    struct values v;
    char plain[200], said[200];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        FILE *file = tmpfile();
        const int before = dup(STDERR_FILENO);
        assert_true(file && before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
        const int status = read_words(cases[i].words, &v, plain);
        dup2(before, STDERR_FILENO);
        close(before);
        rewind(file);
        said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
        fclose(file);
        assert_int_equal(status, 0);
        assert_string_equal(plain, "a");
        assert_string_equal(said, cases[i].said);
        assert_true(v.other == (cases[i].value == NULL));
        if (cases[i].value)
            assert_string_equal(v.now, cases[i].value);
        if (strstr(cases[i].words, "--old"))
            free((char *)v.now);
    }
}

TEST(everything_else_is_misuse)
{
    static const char *const wrong[] = {
        "",
        "a b c d",
        "--frob a",
        "--fla a",
        "--flag=1 a",
        "a --text",
        "a --number",
        "--number x a",
        "--number 0 a",
        "--number 10.1 a",
        "--number= a",
        "--number nan a",
        "--number 1x a",
        "--count 1 a",
        "--count 6 a",
        "--count -3 a",
        "--count 3.5 a",
        "--help-alone a",
        "a --list",
        "a -l",
        "--textual x a",
        "a --old",
        "--old xy a",
        "--gone=1 a",
    };
    struct values v;
    char plain[200];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (read_words(wrong[i], &v, plain) != 2)
            fail_msg("'%s' was taken", wrong[i]);
}

/* Whether the manual has the option, with or without what man needs for a dash. */
static bool manual_has(const char *manual, const char *name)
{
    char escaped[100] = "";
    for (const char *c = name; *c; c++)
        snprintf(escaped + strlen(escaped), sizeof(escaped) - strlen(escaped), "%s%c",
                 *c == '-' ? "\\" : "", *c);
    return strstr(manual, escaped) != NULL;
}

static bool takes_its_default(const struct oct_option *table, const struct oct_option *o)
{
    static _Alignas(16) char values[1 << 16];
    char *words[] = {"octctl", (char *)o->name, (char *)o->standard};
    struct oct_option_shown shown;
    const char *wrong = NULL;
    int i = 1;
    return oct_option_read(table, values, 3, words, &i, &shown, &wrong) && !wrong;
}

TEST(the_manual_has_every_option)
{
    static const struct oct_command *const commands[] = {&oct_command_recon,
                                                         &oct_command_synth,
                                                         &oct_command_replay,
                                                         &oct_command_info,
                                                         &oct_command_check,
                                                         &oct_command_status,
                                                         &oct_command_doctor,
                                                         &oct_command_record,
                                                         &oct_command_snapshot,
                                                         &oct_command_background,
                                                         &oct_command_keygen,
                                                         &oct_command_allow,
                                                         &oct_command_bench,
                                                         &oct_command_set,
                                                         &oct_command_get,
                                                         &oct_command_shutdown,
                                                         &oct_command_start,
                                                         &oct_command_stop,
                                                         &oct_command_cones,
                                                         &oct_command_register_volumes,
                                                         &oct_command_calibrate_kmap,
                                                         &oct_command_register,
                                                         &oct_command_correlate,
                                                         &oct_command_surfaces,
                                                         &oct_command_export,
                                                         &oct_command_calibrate_dispersion,
                                                         &oct_command_calibrate_report};
    char path[PATH_MAX];
    const char *top = getenv("OCT_TOP");
    snprintf(path, sizeof(path), "%s/docs/octctl.1", top ? top : ".");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *manual = calloc(1, 1 << 20);
    assert_non_null(manual);
    assert_true(fread(manual, 1, (1 << 20) - 1, file) > 1000);
    fclose(file);
    struct oct_option_shown shown;
    const struct oct_option *o = &shown.option;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        for (unsigned k = 0; oct_option_at(commands[i]->options, k, &shown); k++)
            if (o->name && o->kind != OCT_OPTION_ARGUMENT && !manual_has(manual, o->name))
                fail_msg("docs/octctl.1 lacks %s of octctl %s", o->name, commands[i]->name);
            else if (o->standard)
                assert_true(takes_its_default(commands[i]->options, o));
    free(manual);
}

TEST(words_and_lists_of_numbers)
{
    static const char *const names[] = {"one", "two"};
    double values[3];
    assert_int_equal(oct_option_word(NULL, names, 2), 0);
    assert_int_equal(oct_option_word("TWO", names, 2), 1);
    assert_int_equal(oct_option_word("tw", names, 2), -1);
    assert_int_equal(oct_option_doubles("1,-2.5,3e2", values, 3), 3);
    assert_true(values[0] == 1 && values[1] == -2.5 && values[2] == 300);
    assert_int_equal(oct_option_doubles("7", values, 3), 1);
    static const char *const wrong[] = {"", ",", "1,", ",1", "1,,2", "1;2", "1,2,3,4", "nan"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(oct_option_doubles(wrong[i], values, 3), 0);
}
