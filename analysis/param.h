/* Parameters: a row says all that is known of one, beside the analysis whose settings hold it.
 *
 * The configuration's keys, the options of commands, their checks, help and completion, octd.ini,
 * the status and what a result's file says of how it was made all read that row: a default, a
 * range, a unit or a word stands in no other place. Values are read and written in the C locale,
 * which every program of ours keeps. Tables are constant; all functions are thread-safe. */
#ifndef OCT_ANALYSIS_PARAM_H
#define OCT_ANALYSIS_PARAM_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_PARAM_TEXT_BYTES 1024 /* of a text, with its NUL */

enum oct_param_type {
    OCT_PARAM_U32,
    OCT_PARAM_U64,
    OCT_PARAM_F64,
    OCT_PARAM_BOOL,
    OCT_PARAM_WORD, /* an int or an enum: index into words, plus first */
    OCT_PARAM_TEXT, /* this and the next: char[OCT_PARAM_TEXT_BYTES] */
    OCT_PARAM_PATH, /* relative to the folder of the file that says it */
    OCT_PARAM_FORM, /* what no other is: read and written by a form of its own */
};

/* When a running daemon accepts a change of a key. */
enum oct_param_when {
    OCT_CONFIG_LIVE,  /* at once */
    OCT_CONFIG_IDLE,  /* only while idle (stop first) */
    OCT_CONFIG_START, /* only at the daemon's start */
};

/* What of a running daemon takes over a changed LIVE key; flags, several may be set. */
enum oct_param_applies {
    OCT_APPLIES_DISPLAY = 1 << 0,   /* the engine's display limits: the next B-scan */
    OCT_APPLIES_RECORDING = 1 << 1, /* the recorder reads the key when the next recording starts */
    OCT_APPLIES_ANALYSIS = 1 << 2,  /* the stages beside the stream: their next B-scan */
    OCT_APPLIES_FORECAST = 1 << 3,  /* the forecast is made anew */
    OCT_APPLIES_DAEMON = 1 << 4,    /* the daemon reads the key when it next needs it */
    OCT_APPLIES_RECORDER = 1 << 5,  /* the recording under way, too */
};

struct oct_param;

/* How values of a kind of its own are read and written. */
struct oct_param_form {
    /* False: nothing is stored; `why` says what is wrong, "": the caller says what it takes. */
    bool (*parse)(const struct oct_param *param, const char *text, void *value, char *why,
                  size_t why_bytes);
    void (*format)(const void *value, char *text, size_t text_bytes);
};

/* A part of a picture, "X,Y,W,H" in whole pixels; empty: all. */
struct oct_region {
    uint32_t x, y, width, height; /* width 0: all */
};
extern const struct oct_param_form oct_param_region;
#define OCT_PARAM_TAKES_REGION "X,Y,W,H in pixels, or nothing"

/* Frames (or lines) first, first + step, ... before last, counted from 0; last 0: all. */
struct oct_span {
    uint32_t first, last, step;
};
static inline struct oct_span oct_span_of(struct oct_span given, uint32_t n)
{
    return given.last > 0 ? given : (struct oct_span){0, n, 1};
}
static inline uint32_t oct_span_count(struct oct_span span)
{
    return (span.last - span.first + span.step - 1) / span.step;
}

/* A double within least..most; empty, or "none": NaN. */
extern const struct oct_param_form oct_param_number_or_none;

struct oct_param {
    const char *name;   /* as a key */
    const char *option; /* as an option, without "--"; NULL: the name with '-' for '_' */
    enum oct_param_type type;
    size_t at;          /* of the value, in the settings */
    double least, most; /* of a number; of a text: its length in bytes, most 0: all that fits */
    const char *below;  /* F64: the row of its section that must be more; NULL: none */
    const char *const *words; /* WORD: up to NULL; TEXT: the only ones it takes, NULL: any */
    int first;                /* WORD: the value of words[0] */
    const char *standard;     /* the default, as it would stand in a file */
    const char *word;         /* U32: stands for word_value, beside least..most; or NULL */
    uint32_t word_value;
    const struct oct_param_form *form; /* FORM */
    const char *(*bad)(const char *);  /* TEXT: why it cannot be ("lacks a port"), NULL: it can */
    const char *takes;   /* TEXT, FORM: what it takes, for messages; NULL: text of that length */
    const char *unit;    /* NULL: none */
    const char *meaning; /* one line */
    bool is_option;      /* of the commands of its analysis, too */
    bool is_no_key;      /* an option alone */
    enum oct_param_when when;
    unsigned applies; /* LIVE: flags of enum oct_param_applies, at least one; else 0 */
};

/* The rows of one settings struct. */
struct oct_params {
    const struct oct_param *rows;
    unsigned n;
};
#define OCT_PARAMS(table)                                                                          \
    {                                                                                              \
        .rows = (table), .n = sizeof(table) / sizeof((table)[0])                                   \
    }

/* Of the members of a settings struct; the member's type decides the value's. */
#define OCT_PARAM(shown_name, settings, member)                                                    \
    .name = shown_name, .at = offsetof(settings, member),                                          \
    .type = _Generic(((settings *)0)->member, uint32_t                                             \
                     : OCT_PARAM_U32, uint64_t                                                     \
                     : OCT_PARAM_U64, double                                                       \
                     : OCT_PARAM_F64, bool                                                         \
                     : OCT_PARAM_BOOL, char *                                                      \
                     : OCT_PARAM_TEXT)
#define OCT_PARAM_CHOICE(shown_name, settings, member, names)                                      \
    .name = shown_name, .at = offsetof(settings, member), .type = OCT_PARAM_WORD, .words = names
#define OCT_PARAM_OF_FORM(shown_name, settings, member, its_form)                                  \
    .name = shown_name, .at = offsetof(settings, member), .type = OCT_PARAM_FORM, .form = its_form
#define OCT_PARAM_LIVE .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS

/* Checks `text` against the type and the range and stores it into the settings. Spaces at both ends
 * are dropped. False: nothing is stored and `why` (of why_bytes) says what is wrong and what is
 * allowed. */
bool oct_param_parse(const struct oct_param *param, void *settings, const char *text, char *why,
                     size_t why_bytes);

/* Whether that would store it; nothing is. */
bool oct_param_allows(const struct oct_param *param, const char *text);

/* The value as it would stand in a file: oct_param_parse reads back the same. Returns its length,
 * or that which it would have had, as snprintf does. */
size_t oct_param_format(const struct oct_param *param, const void *settings, char *text,
                        size_t text_bytes);

/* What it takes: "4 to 131072 samples", "auto | cpu | cuda", "yes | no", ... */
void oct_param_format_range(const struct oct_param *param, char *text, size_t text_bytes);

void oct_params_set_defaults(const struct oct_params *params, void *settings);

/* OCT_E_CONFIG: a value that none of its row's may be: "cells: threshold is 0: it takes ...". */
enum oct_err oct_params_check(const struct oct_params *params, const void *settings,
                              const char *name, struct oct_error *err);

/* Whether all values are the same in both. */
bool oct_params_are_same(const struct oct_params *params, const void *a, const void *b);

/* Returns why an INI file cannot hold the text, as the end of a sentence ("holds a control
 * character"), or NULL if it can. */
const char *oct_param_bad_text(const char *text);

/* Returns why these bytes cannot be text at all ("is not UTF-8: ..."), or NULL. */
const char *oct_param_bad_encoding(const char *text);

#endif
