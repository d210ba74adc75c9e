#include "pipeline/base/json_text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void oct_json_begin(struct oct_json_text *t, char *buffer, size_t buffer_bytes)
{
    *t = (struct oct_json_text){.text = buffer, .room = buffer_bytes, .is_cut = buffer_bytes == 0};
}

size_t oct_json_end(struct oct_json_text *t)
{
    if (t->is_cut)
        t->n = 0;
    if (t->room > 0)
        t->text[t->n] = '\0';
    return t->n;
}

static void append(struct oct_json_text *t, const char *bytes, size_t n)
{
    if (t->is_cut || n >= t->room - t->n) { /* the last byte is the NUL's */
        t->is_cut = true;
        return;
    }
    memcpy(t->text + t->n, bytes, n);
    t->n += n;
}

void oct_json_raw(struct oct_json_text *t, const char *literal)
{
    append(t, literal, strlen(literal));
}

void oct_json_separate(struct oct_json_text *t)
{
    if (t->n > 0 && t->text[t->n - 1] != '{' && t->text[t->n - 1] != '[')
        append(t, ",", 1);
}

void oct_json_u64(struct oct_json_text *t, uint64_t value)
{
    char digits[20];
    size_t first = sizeof(digits);
    do
        digits[--first] = (char)('0' + value % 10);
    while (value /= 10);
    append(t, digits + first, sizeof(digits) - first);
}

/* A locale may have another decimal point. */
static void write_digits(struct oct_json_text *t, char *digits)
{
    size_t point = strspn(digits, "0123456789+-e");
    if (digits[point])
        digits[point] = '.';
    oct_json_raw(t, digits);
}

void oct_json_double(struct oct_json_text *t, double value)
{
    char digits[32];
    if (!isfinite(value)) {
        oct_json_raw(t, "null");
        return;
    }
    snprintf(digits, sizeof(digits), "%.15g", value);
    double read = strtod(digits, NULL); /* rounded up, the largest numbers are infinite */
    if (!isfinite(read) || fabs(read - value) > fmax(fabs(read), fabs(value)) * DBL_EPSILON)
        snprintf(digits, sizeof(digits), "%.17g", value);
    write_digits(t, digits);
}

void oct_json_float(struct oct_json_text *t, float value)
{
    char digits[32];
    if (!isfinite(value)) {
        oct_json_raw(t, "null");
        return;
    }
    if (fabsf(value) < 0x1p24f && value == truncf(value)) {
        if (value < 0)
            oct_json_raw(t, "-");
        oct_json_u64(t, (uint64_t)fabsf(value));
        return;
    }
    snprintf(digits, sizeof(digits), "%.7g", (double)value);
    write_digits(t, digits);
}

/* The letter behind the backslash; 0: there is none for this character. */
static char short_escape(char c)
{
    static const char characters[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *at = c ? strchr(characters, c) : NULL;
    return at ? letters[at - characters] : '\0';
}

void oct_json_string(struct oct_json_text *t, const char *string)
{
    append(t, "\"", 1);
    for (const char *c = string; *c; c++) {
        char escaped[8] = {'\\', short_escape(*c)};
        if (escaped[1])
            append(t, escaped, 2);
        else if ((unsigned char)*c >= 0x20)
            append(t, c, 1);
        else
            append(t, escaped, (size_t)snprintf(escaped, sizeof(escaped), "\\u%04x", *c));
    }
    append(t, "\"", 1);
}

void oct_json_key(struct oct_json_text *t, const char *key)
{
    oct_json_separate(t);
    oct_json_string(t, key);
    append(t, ":", 1);
}

void oct_json_member_u64(struct oct_json_text *t, const char *key, uint64_t value)
{
    oct_json_key(t, key);
    oct_json_u64(t, value);
}

void oct_json_member_double(struct oct_json_text *t, const char *key, double value)
{
    oct_json_key(t, key);
    oct_json_double(t, value);
}

void oct_json_member_string(struct oct_json_text *t, const char *key, const char *string)
{
    oct_json_key(t, key);
    oct_json_string(t, string);
}
