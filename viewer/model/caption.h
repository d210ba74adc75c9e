/* What a snapshot shows, in words that go into its file: a line for people and a JSON text for
 * programs; and what its file is called after. Pure. */
#ifndef OCT_VIEWER_MODEL_CAPTION_H
#define OCT_VIEWER_MODEL_CAPTION_H

#include "viewer/model/model.h"

#define OCT_VIEW_NAME_WORDS_BYTES 160
#define OCT_VIEW_CAPTION_LINE_BYTES 1024
#define OCT_VIEW_CAPTION_JSON_BYTES 8192

struct oct_view_caption {
    char name[OCT_VIEW_NAME_WORDS_BYTES]; /* "", "-OD", "-OD-P7": safe as a part of a file's name */
    char line[OCT_VIEW_CAPTION_LINE_BYTES];
    char json[OCT_VIEW_CAPTION_JSON_BYTES]; /* docs/octview.1 lists its members */
};

/* Of the shown picture. The pseudonym is in the name and in the texts where has_pseudonym, else
 * nowhere. `shows`: "window", or "picture": the picture alone. */
void oct_view_caption_make(struct oct_view_caption *caption, const struct oct_view_model *model,
                           bool has_pseudonym, const char *shows);

/* Appends "-TEXT" to a file's name: ASCII letters, digits, '.', '_' and '-' stay, as do letters
 * outside ASCII that are whole and visible; everything else is a '_'. "" appends nothing. */
void oct_view_caption_name_add(char *name, size_t n_bytes, const char *text);

#endif
