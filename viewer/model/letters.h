/* Text from octd, from the keyboard and on the screen is UTF-8, whatever the user's locale is. */
#ifndef OCT_VIEWER_MODEL_LETTERS_H
#define OCT_VIEWER_MODEL_LETTERS_H

#include <stdbool.h>

/* Replaces control characters and bytes that are no UTF-8 by '?', and removes a letter that the end
 * of the text cuts. */
void oct_view_letters_clean(char *text);

/* Whether the text is UTF-8 without control characters. */
bool oct_view_letters_are(const char *text);

/* Sets LC_ALL to a UTF-8 locale where the user's is none, for the libraries that ask the
 * environment (X11's input methods, tables of composed letters): in another locale, an é composed
 * of two keys is lost. Called before other threads start. */
void oct_view_letters_set_locale(void);

#endif
