#include "pipeline/base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define GROUPS "/sys/fs/cgroup"

/* The number at a file's beginning; infinite where there is none ("max"). */
static double number_in(const char *path)
{
    double value = INFINITY;
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%lf", &value) != 1)
        value = INFINITY;
    if (file)
        fclose(file);
    return value;
}

/* The number behind `name` in a file of lines; NaN where there is none. */
static double number_of(const char *path, const char *name)
{
    double value = NAN;
    char line[128];
    const size_t n = strlen(name);
    FILE *file = fopen(path, "r");
    while (file && isnan(value) && fgets(line, sizeof(line), file))
        if (strncmp(line, name, n) == 0 && sscanf(line + n, "%*[: \t]%lf", &value) != 1)
            value = NAN;
    if (file)
        fclose(file);
    return value;
}

/* Of one folder of control groups. */
static double left_in_group(const char *folder)
{
    static const char *const reclaimed[] = {"inactive_file", "active_file"};
    char path[512];
    snprintf(path, sizeof(path), "%s/memory.max", folder);
    double left = number_in(path);
    snprintf(path, sizeof(path), "%s/memory.current", folder);
    left -= number_in(path); /* infinite where the group is not there: no number, no limit */
    snprintf(path, sizeof(path), "%s/memory.stat", folder);
    for (int i = 0; i < 2; i++) {
        const double bytes = number_of(path, reclaimed[i]);
        left += isnan(bytes) ? 0 : bytes;
    }
    return isfinite(left) ? fmax(0, left) : INFINITY;
}

/* This process's group and those above it. */
static double left_in_groups(void)
{
    char folder[384] = GROUPS, line[320];
    double least = INFINITY;
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(folder, sizeof(folder), GROUPS "%s", line + 3);
        }
    if (file)
        fclose(file);
    while (strlen(folder) >= strlen(GROUPS)) {
        least = fmin(least, left_in_group(folder));
        *strrchr(folder, '/') = '\0';
    }
    return least;
}

static double left_of_limit(int resource, const char *taken)
{
    struct rlimit limit;
    const double kib = number_of("/proc/self/status", taken);
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || isnan(kib))
        return INFINITY;
    return fmax(0, (double)limit.rlim_cur - kib * 1024);
}

double oct_memory_available_bytes(const char **limit)
{
    const double kib = number_of("/proc/meminfo", "MemAvailable");
    const struct {
        const char *name;
        double bytes;
    } all[] = {
        {"of the machine's memory", isnan(kib) ? INFINITY : kib * 1024},
        {"of the control group's memory", left_in_groups()},
        {"of the limit of address space", left_of_limit(RLIMIT_AS, "VmSize")},
        {"of the limit of data", left_of_limit(RLIMIT_DATA, "VmData")},
    };
    unsigned least = 0;
    for (unsigned i = 1; i < sizeof(all) / sizeof(all[0]); i++)
        least = all[i].bytes < all[least].bytes ? i : least;
    if (limit)
        *limit = all[least].name;
    return all[least].bytes;
}
