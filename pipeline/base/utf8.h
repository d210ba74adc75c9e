/* Text of others: what is UTF-8, and what is made of that which is not. Configuration and control
 * refuse other text where it comes in; what cannot be refused (the name of a folder, a file, a
 * device) is repaired where a reply, a message or a line of the log is made of it.
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

/* The same for control characters (ASCII's and C1): one line that steers no terminal. */
void oct_utf8_make_line(char *text);

#endif
