#include "tools/control/status_table.h"

#include "pipeline/base/utf8.h"
#include "tools/alloc.h"
#include "tools/commands.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cjson/cJSON.h>

enum { LABEL_COLUMNS = 20, COLUMNS = 80 }; /* the latter where stdout is no terminal */

/* ---- lines no wider than the terminal ---- */

static size_t columns(void)
{
    struct winsize size;
    const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return is_known ? size.ws_col : COLUMNS;
}

/* Bytes of `text` that take at most n columns. */
static size_t bytes_of(const char *text, size_t n)
{
    size_t i = 0;
    for (size_t seen = 0; text[i]; i++) {
        seen += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (seen > n)
            break;
    }
    return i;
}

/* How much of `text` goes into n columns: up to a comma, so that a name stays with its value, else
 * up to a blank, else the whole first word. */
static size_t cut_at(const char *text, size_t n)
{
    const size_t end = bytes_of(text, n);
    size_t comma = end, blank = end;
    if (text[end] == '\0')
        return end;
    while (comma > 0 && !(text[comma] == ' ' && text[comma - 1] == ','))
        comma--;
    while (blank > 0 && text[blank] != ' ')
        blank--;
    return comma > 0 ? comma : blank > 0 ? blank : strcspn(text, " ");
}

/* Breaks a line to so many columns: behind a comma, else at a blank; a word that is wider stays
 * whole. What follows stands below the value: behind `label` columns, or two more where the line is
 * indented. Control characters become '?'. */
static void print_wrapped(char *line, size_t label, size_t width)
{
    size_t indent = line[0] == ' ' ? label + 2 : label;
    oct_utf8_make_line(line);
    if (indent + 20 > width) /* too narrow for columns */
        indent = 2;
    size_t n = bytes_of(line, width);
    const size_t head = bytes_of(line, indent);
    if (line[n] != '\0')
        n = head + cut_at(line + head, width - indent);
    printf("%.*s\n", (int)n, line);
    for (char *at = line + n; *(at += strspn(at, " ")); at += n) {
        n = cut_at(at, width - indent);
        printf("%*s%.*s\n", (int)indent, "", (int)n, at);
    }
}

/* ---- values ---- */

/* 1234567 as "1,234,567"; fractions keep three digits. */
static void print_number(double value)
{
    char digits[64];
    if (value != floor(value) || fabs(value) >= 1e18) {
        printf("%.6g", value);
        return;
    }
    int n = snprintf(digits, sizeof(digits), "%.0f", fabs(value));
    if (value < 0)
        putchar('-');
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            putchar(',');
        putchar(digits[i]);
    }
}

static void print_bytes(double bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    while (bytes >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1000;
        unit++;
    }
    printf(unit ? "%.2f %s" : "%.0f %s", bytes, units[unit]);
}

static void print_seconds(double seconds)
{
    if (seconds < 60 || seconds > 1e12) {
        printf("%.1f s", seconds);
        return;
    }
    uint64_t s = (uint64_t)seconds;
    if (s >= 86400)
        printf("%" PRIu64 " d ", s / 86400);
    if (s >= 3600)
        printf("%" PRIu64 " h ", s / 3600 % 24);
    printf("%" PRIu64 " min %" PRIu64 " s", s / 60 % 60, s % 60);
}

static void print_microseconds(double us)
{
    if (us < 1000)
        printf("%.0f us", us);
    else if (us < 1e6)
        printf("%.2f ms", us / 1e3);
    else
        printf("%.2f s", us / 1e6);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static void print_nested(const char *key, const cJSON *object);

/* Takes the unit from the end of the key, where all of octd names it. */
static void print_value(const char *key, const cJSON *value)
{
    if (cJSON_IsString(value))
        printf("%s", value->valuestring[0] ? value->valuestring : "-");
    else if (cJSON_IsBool(value))
        printf("%s", cJSON_IsTrue(value) ? "yes" : "no");
    else if (cJSON_IsObject(value))
        print_nested(key, value);
    else if (!cJSON_IsNumber(value))
        printf("-");
    else if (ends_with(key, "bytes") || ends_with(key, "bytes_free") ||
             strncmp(key, "bytes_", 6) == 0)
        print_bytes(value->valuedouble);
    else if (ends_with(key, "_us"))
        print_microseconds(value->valuedouble);
    else if (ends_with(key, "_s") && !ends_with(key, "_um_s")) /* speeds are um/s */
        print_seconds(value->valuedouble);
    else
        print_number(value->valuedouble);
}

/* "messages_bad" and its like: counts by reason. */
static bool counts_by_reason(const char *key)
{
    return strcmp(key, "dropped") == 0 || strncmp(key, "messages_", 9) == 0 ||
           strncmp(key, "bscans_", 7) == 0 || strncmp(key, "lines_", 6) == 0 ||
           strcmp(key, "refused") == 0;
}

static void print_member(const char *key, const cJSON *member)
{
    const char *name = member->string ? member->string : "";
    printf("%s ", name);
    if (cJSON_IsObject(member)) /* cJSON bounds the depth of nesting */
        print_nested(name, member);
    else
        print_value(ends_with(key, "_us") || !name[0] ? key : name, member);
}

/* Counts by reason: the sum, then the reasons that occurred. Anything else: name and value. */
static void print_nested(const char *key, const cJSON *object) /* NOLINT(misc-no-recursion) */
{
    bool counts = counts_by_reason(key);
    double sum = 0;
    const cJSON *member;
    cJSON_ArrayForEach(member, object)
    {
        counts = counts && cJSON_IsNumber(member);
        sum += cJSON_IsNumber(member) ? member->valuedouble : 0;
    }
    if (counts)
        print_number(sum);
    const char *before = counts ? " (" : "";
    cJSON_ArrayForEach(member, object)
    {
        if (counts && member->valuedouble == 0)
            continue;
        printf("%s", before);
        print_member(key, member);
        before = ", ";
    }
    if (counts && sum != 0)
        putchar(')');
}

/* ---- the summary ---- */

static const cJSON *item(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static const char *text_of(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(item(object, key));
    return text ? text : "";
}

/* A number, or the sum of an object's numbers; 0 where there is none. */
static double count_of(const cJSON *object, const char *key)
{
    const cJSON *value = item(object, key), *member;
    double sum = cJSON_IsNumber(value) ? value->valuedouble : 0;
    cJSON_ArrayForEach(member, value)
    {
        sum += cJSON_IsNumber(member) ? member->valuedouble : 0;
    }
    return sum;
}

static void print_label(const char *label)
{
    printf("%-*s ", LABEL_COLUMNS, label);
}

static void print_state(const cJSON *status)
{
    const char *state = text_of(status, "state"), *phase = text_of(status, "phase");
    const cJSON *degraded = item(status, "degraded"), *member;
    print_label("state");
    printf("%s", state[0] ? state : "-");
    if (phase[0] && strcmp(phase, state) != 0)
        printf(", %s", phase);
    cJSON_ArrayForEach(member, degraded)
    {
        printf("; degraded: %s", cJSON_IsString(member) ? member->valuestring : "?");
    }
    putchar('\n');
    if (text_of(status, "last_error")[0]) {
        print_label("last error");
        printf("%s\n", text_of(status, "last_error"));
    }
}

static void print_recording(const cJSON *status)
{
    const cJSON *record = item(status, "record");
    if (!cJSON_IsObject(record))
        return;
    print_label("recording");
    if (!cJSON_IsTrue(item(record, "active"))) {
        puts("no");
        return;
    }
    if (cJSON_IsTrue(item(record, "waiting_for_volume"))) {
        printf("waits for the next volume");
    } else {
        printf("%s, ", text_of(record, "file"));
        print_number(count_of(record, "bscans_in_file"));
        printf(" B-scans in it");
    }
    if (count_of(record, "volumes") > 0)
        printf(", %.0f of %.0f volumes",
               count_of(record, "volumes_written") - count_of(record, "volumes_incomplete"),
               count_of(record, "volumes"));
    printf(", for ");
    print_seconds(count_of(record, "elapsed_s"));
    putchar('\n');
}

static void print_lines(const cJSON *status)
{
    double rate_hz = count_of(item(status, "forecast"), "in_hz");
    if (!item(status, "lines_received"))
        return;
    print_label("lines");
    print_number(count_of(status, "lines_received"));
    printf(" received");
    if (rate_hz > 0) {
        printf(", ");
        print_number(round(rate_hz));
        printf(" a second");
    }
    putchar('\n');
}

/* Prints what the camera driver does wrong, and the cure. */
static void print_driver(const cJSON *status)
{
    const cJSON *fault = item(item(status, "source"), "fault");
    if (!text_of(fault, "text")[0])
        return;
    print_label("camera driver");
    printf("%s: %s\n", text_of(fault, "text"), text_of(fault, "cure"));
}

static void print_losses(const cJSON *status)
{
    const struct {
        double n;
        const char *what;
    } losses[] = {
        {count_of(status, "lines_missing") - count_of(status, "lines_cut"), "lines missing"},
        {count_of(status, "lines_dropped"), "lines dropped"},
        {count_of(status, "bscans_dropped"), "B-scans dropped"},
        {count_of(status, "bscans_unsaved"), "B-scans not saved"},
        {count_of(status, "messages_bad"), "messages refused"},
    };
    const char *before = "";
    if (!item(status, "lines_received"))
        return;
    print_label("losses");
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        if (!(losses[i].n > 0))
            continue;
        printf("%s", before);
        print_number(losses[i].n);
        printf(" %s", losses[i].what);
        before = ", ";
    }
    puts(before[0] ? "" : "none");
}

/* ": 14 of 16 in the mean, 3 left out, score 0.82" */
static void print_average(const cJSON *average)
{
    const cJSON *score = item(average, "score");
    printf(": %.0f of %.0f in the mean, %.0f left out", count_of(average, "averaged"),
           count_of(average, "bscans"), count_of(average, "rejected"));
    if (cJSON_IsNumber(score))
        printf(", score %.2f", score->valuedouble);
}

static bool has_number(const cJSON *numbers, const char *name)
{
    return cJSON_IsNumber(item(numbers, name));
}

/* ": a mirror at 412.3 px, FWHM 6.12 px, 15.31 um, SNR 52.1 dB; -5.10 dB/mm, 12 points" */
static void print_rolloff(const cJSON *numbers)
{
    if (!has_number(numbers, "depth_px")) {
        printf(": no mirror");
    } else {
        printf(": a mirror at %.1f px, FWHM %.2f px", count_of(numbers, "depth_px"),
               count_of(numbers, "fwhm_px"));
        if (has_number(numbers, "fwhm_um"))
            printf(", %.2f um", count_of(numbers, "fwhm_um"));
        printf(", SNR %.1f dB", count_of(numbers, "snr_db"));
    }
    if (has_number(numbers, "db_per_mm"))
        printf("; %.2f dB/mm, %.0f points", count_of(numbers, "db_per_mm"),
               count_of(numbers, "points"));
    else if (has_number(numbers, "db_per_100px"))
        printf("; %.2f dB/100 px, %.0f points", count_of(numbers, "db_per_100px"),
               count_of(numbers, "points"));
}

/* One line an analysis at work: how many B-scans it analysed of those it saw, and what is wrong. */
static void print_analyses(const cJSON *status)
{
    const cJSON *analysis;
    cJSON_ArrayForEach(analysis, item(status, "analysis"))
    {
        const char *error = text_of(analysis, "error");
        if (cJSON_IsTrue(item(analysis, "at_rest")))
            continue;
        print_label(text_of(analysis, "name"));
        print_number(count_of(analysis, "done"));
        printf(" of ");
        print_number(count_of(analysis, "seen"));
        printf(" B-scans");
        if (strcmp(text_of(analysis, "name"), "average") == 0)
            print_average(item(status, "average"));
        if (strcmp(text_of(analysis, "name"), "rolloff") == 0)
            print_rolloff(item(analysis, "numbers"));
        if (cJSON_IsTrue(item(analysis, "late")))
            printf(", does not follow: skips %.0f %%, %.1f ms for one",
                   100 * count_of(analysis, "late_share"), count_of(analysis, "bscan_ms"));
        if (count_of(analysis, "busy_s") > 1) {
            printf(", at work at one for ");
            print_seconds(count_of(analysis, "busy_s"));
        }
        if (error[0])
            printf("; %s: %s", cJSON_IsTrue(item(analysis, "failing")) ? "failing" : "last fault",
                   error);
        putchar('\n');
    }
}

static void print_bscans(const cJSON *status)
{
    if (!item(status, "bscans_done"))
        return;
    print_label("B-scans");
    print_number(count_of(status, "bscans_done"));
    printf(" done, ");
    print_number(count_of(status, "bscans_written"));
    printf(" recorded\n");
    print_label("latency");
    print_nested("latency_us", item(status, "latency_us"));
    putchar('\n');
}

static void print_disk(const cJSON *status)
{
    const cJSON *left = item(item(status, "record"), "disk_left_s");
    if (!cJSON_IsNumber(item(status, "disk_bytes_free")))
        return;
    print_label("disk");
    print_bytes(count_of(status, "disk_bytes_free"));
    printf(" free");
    if (cJSON_IsNumber(left)) {
        printf(", room for ");
        print_seconds(left->valuedouble);
        printf(" of recording");
    } else {
        printf(", room for an unknown time: no line rate has been measured");
    }
    putchar('\n');
}

/* ---- the groups ---- */

struct group {
    const char *title;
    const char *keys; /* a space before and behind each */
};

static const struct group groups[] = {
    {"daemon", " state phase pending degraded last_error uptime_s version pid config_changed "
               "config_file_changed "},
    {"lines in", " source lines_received lines_missing lines_cut lines_dropped lines_late "
                 "lines_duplicate messages_received messages_bad messages_missed "
                 "messages_duplicate messages_reordered messages_ignored slots_reclaimed "
                 "acquisitions "},
    {"B-scans out", " bscans_begun bscans_done bscans_dropped bscans_in_flight bscans_published "
                    "bscans_not_published latency_us "},
    {"recording", " record record_account record_total record_last volumes_written "
                  "volumes_incomplete bscans_written bscans_unsaved bytes_written "
                  "disk_bytes_free "},
    {"analyses", " analysis average "},
    {"machine", " backend engine_now engine memory_locked forecast "},
    {"set-up", " geometry scan pixels endpoints security "},
};
enum { N_GROUPS = sizeof(groups) / sizeof(groups[0]) };

static int group_of(const char *key)
{
    char word[64];
    if ((size_t)snprintf(word, sizeof(word), " %s ", key) >= sizeof(word))
        return N_GROUPS;
    for (int g = 0; g < N_GROUPS; g++)
        if (strstr(groups[g].keys, word))
            return g;
    return N_GROUPS;
}

static void print_row(const cJSON *member)
{
    char label[32];
    snprintf(label, sizeof(label), "%s", member->string);
    for (char *c = label; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    /* The value shows its unit itself. */
    if (ends_with(label, " us"))
        label[strlen(label) - 3] = '\0';
    else if (ends_with(label, " s"))
        label[strlen(label) - 2] = '\0';
    printf("  %-*s ", LABEL_COLUMNS, label);
    if (member->child)
        print_nested(member->string, member);
    else
        print_value(member->string, member);
    putchar('\n');
}

/* A row for each of an array's objects that say their name: what else they say. */
static void print_named(const cJSON *array)
{
    const cJSON *member, *value;
    cJSON_ArrayForEach(member, array)
    {
        const char *before = "";
        char label[64];
        snprintf(label, sizeof(label), "%s %s", array->string, text_of(member, "name"));
        printf("  %-*s ", LABEL_COLUMNS, label);
        cJSON_ArrayForEach(value, member)
        {
            if (!value->string || strcmp(value->string, "name") == 0)
                continue;
            printf("%s", before);
            print_member("", value);
            before = ", ";
        }
        putchar('\n');
    }
}

/* The groups and their keys, each once. */
static void print_groups(const cJSON *status)
{
    const cJSON *member;
    for (int g = 0; g <= N_GROUPS; g++) {
        bool titled = false;
        cJSON_ArrayForEach(member, status)
        {
            if (!member->string || strcmp(member->string, "ok") == 0 ||
                group_of(member->string) != g)
                continue;
            if (!titled)
                printf("\n%s\n", g < N_GROUPS ? groups[g].title : "more");
            titled = true;
            if (cJSON_IsArray(member) && text_of(member->child, "name")[0])
                print_named(member);
            else
                print_row(member);
        }
    }
}

void oct_status_table_print(const cJSON *status, bool all)
{
    FILE *const terminal = stdout;
    char *text = NULL;
    size_t n_bytes = 0;
    stdout = oct_alloc_check(open_memstream(&text, &n_bytes)); /* glibc: a variable as others */
    print_state(status);
    print_recording(status);
    print_lines(status);
    print_bscans(status);
    print_driver(status);
    print_losses(status);
    print_disk(status);
    print_analyses(status);
    if (all)
        print_groups(status);
    fclose(stdout);
    stdout = terminal;
    const size_t width = columns();
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        print_wrapped(line, LABEL_COLUMNS + 1, width);
    }
    free(text);
}
