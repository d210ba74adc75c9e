/* Checks and repairs of text from outside that should be UTF-8. Configuration and control refuse
 * other text at their entry; text that cannot be refused (the name of a folder, a file, a device)
 * is repaired where it goes into a reply, a message or a line of the log.
 *
 * Pure functions; any thread. */
#ifndef OCT_PIPELINE_BASE_UTF8_H
#define OCT_PIPELINE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at `text`, at most n_bytes: 1 to 4; 0: there is none (overlong forms,
 * surrogates and numbers beyond U+10FFFF are none). A zero byte is a character of one byte. */
size_t oct_utf8_character(const char *text, size_t n_bytes);

/* How many bytes from the first on are whole characters; n_bytes: all of them. */
size_t oct_utf8_valid_bytes(const char *text, size_t n_bytes);

/* Puts '?' for each byte that is no UTF-8. */
void oct_utf8_repair(char *text);

/* The same, and '?' for control characters (ASCII and C1): one line that cannot control a
 * terminal. */
void oct_utf8_make_line(char *text);

#endif
