/* Words with a tone. Text from octd, from the keyboard and on the screen is UTF-8, whatever the
 * user's locale is. */
#ifndef OCT_VIEWER_MODEL_PHRASE_H
#define OCT_VIEWER_MODEL_PHRASE_H

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

enum oct_view_tone {
    OCT_TONE_PLAIN,
    OCT_TONE_DIM, /* unimportant */
    OCT_TONE_GOOD,
    OCT_TONE_WARN, /* worth a look */
    OCT_TONE_BAD,
};

#define OCT_VIEW_TEXT_BYTES 384

struct oct_view_phrase {
    char text[OCT_VIEW_TEXT_BYTES];
    enum oct_view_tone tone;
};

void oct_view_phrase_set(struct oct_view_phrase *phrase, enum oct_view_tone tone,
                         const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
