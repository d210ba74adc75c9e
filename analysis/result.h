/* Results: what an analysis found, declared once as a table of fields beside it. A field is a
 * member of a struct with its name, unit and meaning; a struct is what is found once (a pair of
 * volumes), or a row of many (a cell in a frame). CSV, HDF5, JSON and the lines that a person reads
 * are written from the same table, each where its writer is called with it (formats/result_files.h,
 * oct_result_print). Columns of HDF5 carry unit and meaning; attributes, JSON and CSV the name
 * alone, which therefore ends in its unit. Tables are constant; all functions are thread-safe. */
#ifndef OCT_ANALYSIS_RESULT_H
#define OCT_ANALYSIS_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum oct_result_type {
    OCT_RESULT_U8,
    OCT_RESULT_U32,
    OCT_RESULT_U64,
    OCT_RESULT_F32,
    OCT_RESULT_F64, /* NaN: not known */
    OCT_RESULT_BOOL,
    OCT_RESULT_WORD, /* an enum: the index of its word */
    OCT_RESULT_TEXT, /* const char *; NULL: not known */
};

/* Writers, as flags. */
enum { OCT_RESULT_CSV = 1 << 0, OCT_RESULT_H5 = 1 << 1, OCT_RESULT_JSON = 1 << 2 };

struct oct_result_field {
    const char *name; /* "spacing_um"; a '.' leads into an object of JSON: "before.ncc" */
    const char *h5;   /* the attribute, or the dataset; NULL: the name with '_' for '.' */
    enum oct_result_type type;
    size_t at;                /* of the member, in bytes */
    const char *const *words; /* WORD */
    const char *unit;         /* "um"; NULL: none */
    const char *meaning;      /* NULL: the name says it */
    unsigned n;               /* of numbers: values of a list; 0: one value, no list */
    unsigned not_in;          /* writers that leave it out */
    bool is_optional;         /* of JSON and attributes: absent, and not null, where not known */
    bool zero_is_none;        /* of counts: 0 is not known */
};

struct oct_result_fields {
    const struct oct_result_field *fields;
    unsigned n;
};
#define OCT_RESULT_FIELDS(table)                                                                   \
    {                                                                                              \
        .fields = (table), .n = sizeof(table) / sizeof((table)[0])                                 \
    }

/* A member of a struct; its type decides. A list of numbers decays to its first. */
#define OCT_RESULT(shown_name, of, member)                                                         \
    .name = shown_name, .at = offsetof(of, member),                                                \
    .type = _Generic(((of *)0)->member, uint8_t                                                    \
                     : OCT_RESULT_U8, uint32_t                                                     \
                     : OCT_RESULT_U32, uint64_t                                                    \
                     : OCT_RESULT_U64, float                                                       \
                     : OCT_RESULT_F32, double                                                      \
                     : OCT_RESULT_F64, bool                                                        \
                     : OCT_RESULT_BOOL, const char *                                               \
                     : OCT_RESULT_TEXT)
#define OCT_RESULT_LIST(shown_name, of, member)                                                    \
    .name = shown_name, .at = offsetof(of, member), .type = OCT_RESULT_F64,                        \
    .n = sizeof(((of *)0)->member) / sizeof(double)
#define OCT_RESULT_NAMED(shown_name, of, member, its_words)                                        \
    .name = shown_name, .at = offsetof(of, member), .type = OCT_RESULT_WORD, .words = its_words

/* Rows of one table. */
struct oct_result_rows {
    const struct oct_result_fields *fields;
    uint64_t n;
    size_t row_bytes; /* of the struct */

    /* Fills row i of row_bytes, in order from 0. NULL: `context` has them. */
    void (*fill)(const void *context, uint64_t i, void *row);
    const void *context;
};

/* Rows of an array of the struct. */
#define OCT_RESULT_ROWS(its_fields, array, count)                                                  \
    {                                                                                              \
        .fields = &(its_fields), .n = (count), .row_bytes = sizeof(*(array)), .context = (array)   \
    }

/* Whether the value is known. */
bool oct_result_is_known(const struct oct_result_field *field, const void *data);

/* Value i of a list, or the value (i 0), as a number: a BOOL is 0 or 1, a WORD its index. */
double oct_result_number(const struct oct_result_field *field, const void *data, unsigned i);

/* The text or the word. */
const char *oct_result_text(const struct oct_result_field *field, const void *data);

const struct oct_result_field *oct_result_find(const struct oct_result_fields *fields,
                                               const char *name);

/* Prints a sentence with values in it:
 *     {frames}      a count, a text or a word; "-": not known
 *     {ncc:.4f}     a number, as printf's %.4f or %.4g shows it, but never "-0.00"
 *     {100*share:.3g}  a multiple of it
 *     {tracks:s}    "s" unless it is 1
 *     {has_um?} {has_um!}   nothing, where the flag is set, or is not
 *     [...]         what is between is left out if a value in it is not known, or a flag in it is
 *                   not as it should be; within one another no further
 * A brace or a bracket stands for itself where it is doubled. */
void oct_result_print(FILE *file, const char *sentence, const struct oct_result_fields *fields,
                      const void *data);

#endif
