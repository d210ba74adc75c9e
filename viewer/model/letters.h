/* Letters are UTF-8 here, whatever the user's locale: those that come from octd, from the keyboard,
 * and those that are drawn. */
#ifndef OCT_VIEWER_MODEL_LETTERS_H
#define OCT_VIEWER_MODEL_LETTERS_H

#include <stdbool.h>

/* Control characters, and bytes that are no UTF-8, become '?'; a letter that the end cuts goes. */
void oct_view_letters_clean(char *text);

/* Whether it is all letters: UTF-8 without control characters. */
bool oct_view_letters_are(const char *text);

/* Gives the libraries that ask the environment (X11's input methods, tables of composed letters) a
 * locale of UTF-8 where the user's is none: in another one, é composed of two keys is lost. To be
 * called before there are other threads. */
void oct_view_letters_set_locale(void);

#endif
