/* Finds the existing key that is nearest to a mistyped one. */
#include "config/config.h"
#include "config/keys.h"

#include <string.h>

#define MAX_NAME 48 /* longer than any key; a longer word resembles none of them */

/* Edits (insert, drop, replace a character) that turn a into b. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[MAX_NAME + 1];
    size_t n_a = strlen(a), n_b = strlen(b);
    if (n_a > MAX_NAME || n_b > MAX_NAME)
        return MAX_NAME;
    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[n_b];
}

/* A third of the letters may be wrong, two of short words (a swap of neighbours is two edits). */
static size_t tolerance(const char *word)
{
    size_t third = strlen(word) / 3;
    return third < 2 ? (strlen(word) > 2 ? 2 : 1) : third;
}

size_t oct_word_edits(const char *typed, const char *known)
{
    const size_t n = edit_distance(typed, known);
    return n <= tolerance(typed) ? n : SIZE_MAX;
}

static bool nearest_key(const char *section, const char *name, struct oct_key *nearest)
{
    struct oct_key key;
    size_t most = 2 * (tolerance(name) + 1), least = most;
    for (size_t row = 0; oct_key_next(&row, &key);) {
        /* Another section counts as an edit and a half: one slip here is likelier than the right
         * name elsewhere, which is likelier than two slips here. */
        bool elsewhere = strcmp(section, key.section) != 0;
        size_t distance = 2 * edit_distance(name, key.name) + (elsewhere ? 3 : 0);
        if (distance < least) {
            least = distance;
            *nearest = key;
        }
    }
    return least < most;
}

static const char *nearest_section(const char *section)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    struct oct_key_section one;
    for (struct oct_key_sections at = {0}; oct_key_next_section(&at, &one);) {
        size_t distance = oct_word_edits(section, one.name);
        if (distance < least) {
            least = distance;
            nearest = one.name;
        }
    }
    return nearest;
}

void oct_key_explain_unknown(const char *section, const char *name, char *why, size_t why_bytes)
{
    if (!oct_key_section_meaning(section)) {
        const char *near = nearest_section(section);
        if (near)
            snprintf(why, why_bytes, "no such section; did you mean [%s]?", near);
        else
            snprintf(why, why_bytes, "no such section");
        return;
    }
    struct oct_key near = {.name = NULL};
    if (nearest_key(section, name, &near))
        snprintf(why, why_bytes, "no such key; did you mean %s.%s?", near.section, near.name);
    else
        snprintf(why, why_bytes, "no such key");
}
