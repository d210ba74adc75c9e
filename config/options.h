/* The options of a program or a command: one table that says what is accepted, what --help prints,
 * and what is said of everything else.
 *
 * "--name VALUE" and "--name=VALUE" are the same. What begins with a single dash is a plain
 * argument, which getopt would take for an option (`octctl set pipeline.min_db -10`). Of an option
 * that is given twice the last value counts, but for a list. */
#ifndef OCT_CONFIG_OPTIONS_H
#define OCT_CONFIG_OPTIONS_H

#include "analysis/param.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum oct_option_kind {
    OCT_OPTION_FLAG,     /* bool: takes no value */
    OCT_OPTION_TEXT,     /* const char *, into argv */
    OCT_OPTION_NUMBER,   /* double, finite */
    OCT_OPTION_COUNT,    /* uint64_t */
    OCT_OPTION_LIST,     /* const char **: each value is appended to the list, which ends with NULL
                            and has room */
    OCT_OPTION_PARAMS,   /* struct oct_param_texts: an option for each row of a parameter table that
                            is one; of the other members `at` and `params` alone count */
    OCT_OPTION_ARGUMENT, /* a plain argument, for the help alone */
};

struct oct_option {
    const char *name;     /* "--rate"; NULL, and no `params` and no `was`: the table's end */
    const char *argument; /* "R", for the help; NULL: none */
    const char *meaning;  /* for the help; lines end with '\n', but for the last */
    enum oct_option_kind kind;
    size_t at;            /* offset of the value in the struct of the command's values */
    double least, most;   /* of a number or a count; most 0: any */
    const char *standard; /* the default of a number or a count, as it would be given, which the
                             help has behind the meaning; NULL: what the values hold already */
    const char *needs; /* "a + or - for each mirror", said of other values; NULL: what follows from
                           kind, range and argument ("a whole number from 1 to 64", "a file"); as
                           oct_option_at gives it never NULL */
    const char *brief; /* "-c", for "-c VALUE" and "-cVALUE"; NULL: none */
    const char *words; /* for completion: the values that it takes, with spaces between, or one of
                           the names below; NULL: files if `argument` begins with FILE, else none */
    const struct oct_params *params; /* PARAMS */

    /* An old spelling, which is read too and says on stderr what is written now; no help and no
     * completion shows it. Of a row without a name: `meaning` says what is done instead. */
    const char *was;
    /* Returns its value as one of today's, malloc'd, which is kept; NULL: it is none. */
    char *(*from_was)(const char *text);
};

/* What was given for the rows of a parameter table, into argv, each as its row allows; NULL: it was
 * not given. */
#define OCT_OPTION_MOST_PARAMS 32u
struct oct_param_texts {
    const char *text[OCT_OPTION_MOST_PARAMS]; /* [params->n] */
};

/* What was given for the row of that name (as a key). */
const char *oct_param_text(const struct oct_params *params, const struct oct_param_texts *given,
                           const char *name);

/* Stores all that was given into the settings. */
void oct_param_texts_store(const struct oct_params *params, const struct oct_param_texts *given,
                           void *settings);

/* An option as it is written, shown and completed: a row of a parameter table becomes one. */
struct oct_option_shown {
    struct oct_option option; /* `name` and the like point at what follows, or at the table's */
    const struct oct_param *param; /* its row; NULL: it is none */
    bool is_old;                   /* oct_option_read: by its old spelling */
    char name[48], argument[24], meaning[512], needs[128], words[128];
};

/* Stores the defaults that rows have. */
void oct_options_set_defaults(const struct oct_option *table, void *values);

/* Option i of the table with its parameters; false: there are no more. */
bool oct_option_at(const struct oct_option *table, unsigned i, struct oct_option_shown *shown);

#define OCT_WORDS_FILES "@files"
#define OCT_WORDS_FOLDERS "@folders"
#define OCT_WORDS_KEYS "@keys"         /* of the configuration */
#define OCT_WORDS_SETTINGS "@settings" /* KEY=VALUE */
#define OCT_WORDS_FORMATS "@formats"   /* of octctl export */
#define OCT_WORDS_NONE "@none"

#define OCT_OPTION_ABOVE_0 2.3e-308 /* as `least`: the smallest number above */

/* Ends a line that has `at` columns by the words of `text`, each after a blank, in lines of at most
 * 100 columns; each further one begins with `head`, as does what follows a line end in the text. */
void oct_write_wrapped(FILE *out, size_t at, const char *head, const char *text);

/* Prints a line (or several) for each; the meanings begin in that column. */
void oct_options_print(const struct oct_option *options, int column);

/* Whether argv[*i] is an option of the table; *shown is it then. Its value is read; *i is then the
 * last word that belongs to it. *wrong becomes the option as it was written if its value is missing
 * or not what it needs, and stays as it is otherwise. */
bool oct_option_read(const struct oct_option *table, void *values, int argc, char **argv, int *i,
                     struct oct_option_shown *shown, const char **wrong);

/* Reads a whole number or a finite number, nothing before or behind it; false if it is none. */
bool oct_option_u64(const char *text, uint64_t *value);
bool oct_option_double(const char *text, double *value);

/* Up to `most` finite numbers with commas between them; how many, 0: it is no such list. */
unsigned oct_option_doubles(const char *text, double *values, unsigned most);

/* The index of `word` among n names, whatever its case; NULL: 0; -1: it is none of them. */
int oct_option_word(const char *word, const char *const *names, unsigned n);

#endif
