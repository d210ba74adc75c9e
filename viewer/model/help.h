/* The help: which keys there are and what they do, in columns of letters. No SDL. */
#ifndef OCT_VIEWER_MODEL_HELP_H
#define OCT_VIEWER_MODEL_HELP_H

#include "viewer/model/model.h"

#define OCT_VIEW_MOST_HELP 384
#define OCT_VIEW_HELP_BYTES 96

/* A piece of text that is drawn in one line. */
struct oct_view_help_text {
    char text[OCT_VIEW_HELP_BYTES];
    unsigned column, line; /* of letters, of lines, from the upper left corner of the help */
    bool is_key;           /* else it is what keys do */
};

struct oct_view_help {
    struct oct_view_help_text text[OCT_VIEW_MOST_HELP];
    unsigned n;
    unsigned n_letters, n_lines; /* of all of it */
    bool is_cut;                 /* the window is too small: not all of the words are there */
};

/* Arranges the help for a window of so many letters and lines, of which it takes no more: in the
 * most columns that need not break a line, else in the fewest that fit, else in two of cut lines.
 * The operator profile's is of its keys alone. */
void oct_view_help_arrange(struct oct_view_help *help, const struct oct_view_model *model,
                           unsigned n_letters, unsigned n_lines);

#endif
