/* Writes JSON text into a buffer of the caller: no allocations, for headers that are made per
 * B-scan. Appending never fails; what does not fit is remembered, and then the whole text is empty.
 *
 *     struct oct_json_text t;
 *     oct_json_begin(&t, buffer, sizeof(buffer));
 *     oct_json_raw(&t, "{");
 *     oct_json_member_u64(&t, "bscan", 5);
 *     oct_json_raw(&t, "}");
 *     size_t n = oct_json_end(&t); // {"bscan":5}
 *
 * Numbers and strings come out as cJSON's unformatted printer writes them. One thread a text. */
#ifndef OCT_PIPELINE_BASE_JSON_TEXT_H
#define OCT_PIPELINE_BASE_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_json_text {
    char *text;
    size_t n, room; /* bytes written, and all there are, with the NUL */
    bool is_cut;    /* something did not fit */
};

void oct_json_begin(struct oct_json_text *t, char *buffer, size_t buffer_bytes);

/* NUL-terminates. Returns the bytes of the text; 0, and an empty text, if it did not fit. */
size_t oct_json_end(struct oct_json_text *t);

/* The bytes as they are: brackets, and whole literals. */
void oct_json_raw(struct oct_json_text *t, const char *literal);

/* Puts a comma where one must stand before the next member or item: not after an opening
 * bracket. */
void oct_json_separate(struct oct_json_text *t);

/* A separator, the name of a member, a colon. */
void oct_json_key(struct oct_json_text *t, const char *key);

void oct_json_u64(struct oct_json_text *t, uint64_t value); /* all 64 bits */

/* 15 digits where those give back the value but for its last bit, else 17. JSON has no number for
 * infinities and NaN: null. */
void oct_json_double(struct oct_json_text *t, double value);

/* As oct_json_double; whole numbers below 2^24 exactly, others with seven digits: for many. */
void oct_json_float(struct oct_json_text *t, float value);

/* In quotes, with '"', '\' and control characters escaped. Bytes from 0x80 stay as they are. */
void oct_json_string(struct oct_json_text *t, const char *string);

/* A member: key and value. */
void oct_json_member_u64(struct oct_json_text *t, const char *key, uint64_t value);
void oct_json_member_double(struct oct_json_text *t, const char *key, double value);
void oct_json_member_string(struct oct_json_text *t, const char *key, const char *string);

#endif
