#define _GNU_SOURCE /* sched_getaffinity */
#include "tools/bench/part.h"

#include <sched.h>
#include <stdio.h>

#include <cjson/cJSON.h>

unsigned oct_bench_n_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

struct oct_bench_row *oct_bench_add(struct oct_bench_rows *rows, const char *part,
                                    const char *limit_is, const char *unit, double goal)
{
    static const unsigned most = sizeof(rows->row) / sizeof(rows->row[0]);
    struct oct_bench_row *row = &rows->row[rows->n < most ? rows->n++ : most - 1];
    *row = (struct oct_bench_row){
        .part = part, .limit_is = limit_is, .unit = unit, .goal = goal, .what = "", .note = ""};
    return row;
}

static void print_head(void)
{
    printf("\n%-9s %-38s %11s %-9s %11s %-26s %6s %6s\n", "part", "what", "measured", "unit",
           "limit", "the limit is", "ratio", "goal");
}

/* The time that a start takes to plan is far less than the rest of it. */
static int count_digits(double value)
{
    return value >= 1000 ? 0 : value > 0 && value < 0.01 ? 5 : 3;
}

static void print_row(const struct oct_bench_row *row)
{
    double ratio = row->limit > 0 ? row->value / row->limit : 0;
    char goal[16] = "-";
    if (row->goal > 0)
        snprintf(goal, sizeof(goal), "%s%.2f", row->less_is_better ? "<" : ">", row->goal);
    printf("%-9s %-38s %11.*f %-9s %11.*f %-26s %6.2f %6s", row->part, row->what,
           count_digits(row->value), row->value, row->unit, count_digits(row->limit), row->limit,
           row->limit_is, ratio, goal);
    printf(row->note[0] ? "  %s\n" : "%s\n", row->note);
    fflush(stdout);
}

static void add_part_row(cJSON *array, const struct oct_bench_row *row)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "part", row->part);
    cJSON_AddStringToObject(object, "what", row->what);
    cJSON_AddStringToObject(object, "unit", row->unit);
    cJSON_AddNumberToObject(object, "value", row->value);
    cJSON_AddStringToObject(object, "limit_is", row->limit_is);
    cJSON_AddNumberToObject(object, "limit", row->limit);
    cJSON_AddNumberToObject(object, "ratio", row->limit > 0 ? row->value / row->limit : 0);
    cJSON_AddNumberToObject(object, "goal", row->goal);
    cJSON_AddBoolToObject(object, "less_is_better", row->less_is_better);
    cJSON_AddStringToObject(object, "note", row->note);
    cJSON_AddItemToArray(array, object);
}

enum oct_err oct_bench_failed(const char *program, cJSON *report, const char *part, enum oct_err e,
                              bool json, struct oct_error *err)
{
    cJSON *failed = cJSON_GetObjectItemCaseSensitive(report, "failed");
    cJSON *object = cJSON_CreateObject();
    if (!failed)
        failed = cJSON_AddArrayToObject(report, "failed");
    cJSON_AddStringToObject(object, "part", part);
    cJSON_AddStringToObject(object, "why", err->text);
    cJSON_AddItemToArray(failed, object);
    fprintf(stderr, "%s: %s: %s\n", program, part, err->text);
    if (!json)
        printf("%-9s failed\n", part);
    return e;
}

/* Of a part that failed. */
static void drop_unmeasured(struct oct_bench_rows *rows, unsigned first)
{
    unsigned n = first;
    for (unsigned i = first; i < rows->n; i++)
        if (rows->row[i].value > 0)
            rows->row[n++] = rows->row[i];
    rows->n = n;
}

enum oct_err oct_bench_run(const char *program, const struct oct_config *config,
                           const struct oct_bench_options *options,
                           const struct oct_bench_entry *parts, unsigned n, const bool *wanted,
                           bool json, cJSON *report)
{
    static struct oct_bench_rows rows; /* large */
    enum oct_err worst = OCT_OK;
    cJSON *array = cJSON_AddArrayToObject(report, "parts");
    rows.n = 0;
    if (!json)
        print_head();
    for (unsigned p = 0; p < n; p++) {
        unsigned before = rows.n;
        struct oct_error why;
        if (!wanted[p])
            continue;
        enum oct_err e = parts[p].run(config, options, &rows, &why);
        if (e) {
            drop_unmeasured(&rows, before);
            worst = oct_bench_failed(program, report, parts[p].name, e, json, &why);
        }
        for (unsigned i = before; i < rows.n; i++) {
            add_part_row(array, &rows.row[i]);
            if (!json)
                print_row(&rows.row[i]);
        }
    }
    return worst;
}

void oct_bench_print_report(const cJSON *report, bool json)
{
    char *text = json ? cJSON_Print(report) : NULL;
    if (text)
        puts(text);
    cJSON_free(text);
}
