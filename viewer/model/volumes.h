/* How many volumes a recording has before octd ends it: octd's setting record.volumes, which the
 * window steps through and shows. */
#ifndef OCT_VIEWER_MODEL_VOLUMES_H
#define OCT_VIEWER_MODEL_VOLUMES_H

#include <stdbool.h>
#include <stddef.h>

struct oct_view_model;

/* Wishes the next of: until it is stopped, 1, 2, 4, 8 volumes. Says why where octd cannot. */
void oct_view_model_next_volumes(struct oct_view_model *model);

/* "4 volumes", "1 volume", "volumes until it is stopped" of a wish's or an answer's text. */
void oct_view_volumes_text(const char *number, char *text, size_t n_bytes);

/* Of octd's setting, to be put behind other words: " of 4" where a volume's number stands before
 * them, else "  (4 volumes each)"; "" where a recording lasts until it is stopped. */
void oct_view_volumes_add(const struct oct_view_model *model, bool is_numbered, char *text,
                          size_t n_bytes);

#endif
