#define _GNU_SOURCE /* sched_getaffinity */
#include "tools/bench/part.h"

#include <sched.h>
#include <stdio.h>

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

void oct_bench_print_head(void)
{
    printf("\n%-9s %-38s %11s %-9s %11s %-26s %6s %6s\n", "part", "what", "measured", "unit",
           "limit", "the limit is", "ratio", "goal");
}

/* The time that a start takes to plan is far less than the rest of it. */
static int count_digits(double value)
{
    return value >= 1000 ? 0 : value > 0 && value < 0.01 ? 5 : 3;
}

void oct_bench_print_row(const struct oct_bench_row *row)
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
