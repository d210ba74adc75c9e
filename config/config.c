#include "config/config.h"

#include "analysis/analyses.h"
#include "config/apply.h"
#include "config/keys.h"
#include "pipeline/plan/plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHY_BYTES 256
#define SECTION_BYTES 64

void oct_config_init(struct oct_config *config)
{
    struct oct_key_section section;
    *config = (struct oct_config){0};
    for (unsigned i = 0; i < oct_n_analyses; i++)
        if (oct_analyses[i]->init)
            oct_analyses[i]->init(config->settings + oct_key_settings_at(oct_analyses[i]));
    for (struct oct_key_sections at = {0}; oct_key_next_section(&at, &section);)
        oct_params_set_defaults(section.params, (char *)config + section.at);
}

/* Splits "section.name"; section: of SECTION_BYTES. Returns the name, or NULL: it is not dotted. */
static const char *split_dotted(const char *dotted, char *section)
{
    size_t n_section = strcspn(dotted, ".");
    if (!dotted[n_section] || n_section >= SECTION_BYTES)
        return NULL;
    memcpy(section, dotted, n_section);
    section[n_section] = '\0';
    return dotted + n_section + 1;
}

bool oct_key_find_dotted(const char *dotted, struct oct_key *key)
{
    char section[SECTION_BYTES];
    const char *name = split_dotted(dotted, section);
    return name && oct_key_find(section, name, key);
}

/* The same, and says why not in `why`. */
static bool find_dotted(const char *dotted, struct oct_key *key, char *why, size_t why_bytes)
{
    char section[SECTION_BYTES];
    const char *name = split_dotted(dotted, section);
    if (!name) {
        snprintf(why, why_bytes, "no such key: a key is SECTION.KEY, such as camera.samples");
        return false;
    }
    if (oct_key_find(section, name, key))
        return true;
    oct_key_explain_unknown(section, name, why, why_bytes);
    return false;
}

bool oct_key_parse(const struct oct_key *key, struct oct_config *config, const char *text,
                   char *why, size_t why_bytes)
{
    return oct_param_parse(key->param, (char *)config + key->at, text, why, why_bytes);
}

size_t oct_key_format(const struct oct_key *key, const struct oct_config *config, char *text,
                      size_t text_bytes)
{
    return oct_param_format(key->param, (const char *)config + key->at, text, text_bytes);
}

enum oct_err oct_config_set(struct oct_config *config, const char *key, const char *value,
                            const char *origin, struct oct_error *err)
{
    char why[WHY_BYTES];
    struct oct_key found;
    if (!find_dotted(key, &found, why, sizeof(why)) ||
        !oct_key_parse(&found, config, value, why, sizeof(why)))
        return oct_fail(err, OCT_E_CONFIG, "%s%s%.100s: %s", origin, oct_key_origin_joint(origin),
                        key, why);
    oct_key_mark(config, &found, oct_key_add_source(config, origin), 0);
    return OCT_OK;
}

enum oct_err oct_config_set_assignment(struct oct_config *config, const char *assignment,
                                       struct oct_error *err)
{
    char key[128];
    size_t n_key = strcspn(assignment, "=");
    if (!assignment[n_key])
        return oct_fail(err, OCT_E_CONFIG, "--set: '%.100s' has no '=': give SECTION.KEY=VALUE",
                        assignment);
    size_t first = strspn(assignment, " \t");
    size_t end = n_key;
    while (end > first && strchr(" \t", assignment[end - 1]))
        end--;
    if (first >= end || end - first >= sizeof(key))
        return oct_fail(err, OCT_E_CONFIG, "--set: '%.100s' names no key: give SECTION.KEY=VALUE",
                        assignment);
    memcpy(key, assignment + first, end - first);
    key[end - first] = '\0';
    return oct_config_set(config, key, assignment + n_key + 1, "--set", err);
}

enum oct_err oct_config_get(const struct oct_config *config, const char *key, char *value,
                            size_t value_bytes, struct oct_error *err)
{
    char why[WHY_BYTES];
    struct oct_key found;
    if (!find_dotted(key, &found, why, sizeof(why)))
        return oct_fail(err, OCT_E_CONFIG, "%.100s: %s", key, why);
    if (oct_key_format(&found, config, value, value_bytes) >= value_bytes)
        return oct_fail(err, OCT_E_ARG, "%.100s: its value is longer than %zu bytes", key,
                        value_bytes);
    return OCT_OK;
}

enum oct_err oct_config_when(const char *key, enum oct_param_when *when, unsigned *applies,
                             struct oct_error *err)
{
    char why[WHY_BYTES];
    struct oct_key found;
    if (!find_dotted(key, &found, why, sizeof(why)))
        return oct_fail(err, OCT_E_CONFIG, "%.100s: %s", key, why);
    *when = found.param->when;
    *applies = found.param->applies;
    return OCT_OK;
}

bool oct_config_is_set(const struct oct_config *config, const char *key)
{
    char why[WHY_BYTES];
    struct oct_key found;
    return find_dotted(key, &found, why, sizeof(why)) && oct_key_is_marked(config, &found);
}

/* The key that was given next after `order`; false: none was. */
static bool next_given(const struct oct_config *config, uint32_t order, struct oct_key *next)
{
    uint32_t least = UINT32_MAX;
    size_t found = OCT_CONFIG_MAX_ROWS;
    for (size_t k = 0; k < OCT_CONFIG_MAX_ROWS; k++)
        if (config->origins[k].order > order && config->origins[k].order <= least) {
            least = config->origins[k].order;
            found = k;
        }
    return oct_key_row(found, next);
}

void oct_config_overlay(struct oct_config *config, const struct oct_config *over)
{
    char value[OCT_CONFIG_STRING_BYTES], why[WHY_BYTES];
    struct oct_key key;
    for (uint32_t order = 0; next_given(over, order, &key);
         order = over->origins[key.index].order) {
        oct_key_format(&key, over, value, sizeof(value));
        oct_key_parse(&key, config, value, why, sizeof(why)); /* it was parsed before */
        oct_key_copy_origin(config, over, &key);
    }
}

/* Pairs of keys of which the first must be less than the second. */
static enum oct_err check_orders(const struct oct_config *config, struct oct_error *err)
{
    struct oct_key low, high;
    for (size_t row = 0; oct_key_next(&row, &low);) {
        char keys[OCT_ERROR_KEY_BYTES], names[2][OCT_ERROR_KEY_BYTES / 2];
        double values[2];
        if (!low.param->below || !oct_key_find(low.section, low.param->below, &high))
            continue;
        for (unsigned i = 0; i < 2; i++) {
            const struct oct_key *key = i ? &high : &low;
            memcpy(&values[i], (const char *)config + key->at + key->param->at, sizeof(double));
            snprintf(names[i], sizeof(names[i]), "%s.%s", key->section, key->name);
        }
        if (values[0] < values[1])
            continue;
        snprintf(keys, sizeof(keys), "%s %s", names[0], names[1]);
        oct_fail_key(err, OCT_E_CONFIG, keys, "%s is %.15g: it must be less than %s (%.15g",
                     names[0], values[0], names[1], values[1]);
        return oct_error_go_on(err, OCT_E_CONFIG, names[1], ")");
    }
    return OCT_OK;
}

/* The order of the first coefficient that is not 0; 0: all are. */
static int first_coefficient(const struct oct_config *config)
{
    const double a[] = {config->calibration.dispersion_a2, config->calibration.dispersion_a3,
                        config->calibration.dispersion_a4, config->calibration.dispersion_a5};
    for (int i = 0; i < (int)(sizeof(a) / sizeof(a[0])); i++)
        if (a[i] < 0 || a[i] > 0)
            return i + 2;
    return 0;
}

static enum oct_err check_flatten(const struct oct_config *config, struct oct_error *err)
{
    bool is_flat = config->pipeline.window == OCT_WINDOW_FLAT;
    if (config->calibration.background[0] || !(is_flat || config->pipeline.flatten))
        return OCT_OK;
    return oct_fail_key(err, OCT_E_CONFIG,
                        is_flat ? "calibration.background pipeline.window"
                                : "calibration.background pipeline.flatten",
                        "calibration.background is missing: pipeline.%s needs it (octctl "
                        "background records one)",
                        is_flat ? "window=flat" : "flatten=yes");
}

static enum oct_err check_scan(const struct oct_config *config, struct oct_error *err)
{
    const uint32_t repeats = config->scan.repeats, interleave = config->scan.interleave;
    const uint32_t n_lines = config->scan.lines, line_repeats = config->scan.line_repeats;
    if (config->scan.bscans % repeats != 0)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.repeats scan.bscans",
                            "scan.repeats is %u: it must divide scan.bscans (%u)", repeats,
                            config->scan.bscans);
    if (config->scan.bscans / repeats % interleave != 0)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.interleave scan.repeats scan.bscans",
                            "scan.interleave is %u and scan.repeats %u: their product must divide "
                            "scan.bscans (%u)",
                            interleave, repeats, config->scan.bscans);
    if (n_lines % line_repeats != 0)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.line_repeats scan.lines",
                            "scan.line_repeats is %u: it must divide scan.lines (%u)", line_repeats,
                            n_lines);
    return OCT_OK;
}

static enum oct_err check_together(const struct oct_config *config, struct oct_error *err)
{
    enum oct_err code;
    if (config->calibration.wavelengths[0] && config->calibration.kmap[0])
        return oct_fail_key(
            err, OCT_E_CONFIG, "calibration.wavelengths calibration.kmap",
            "calibration.wavelengths and calibration.kmap are both given: keep one");
    int coefficient = first_coefficient(config);
    if (config->calibration.dispersion[0] && coefficient) {
        char keys[OCT_ERROR_KEY_BYTES];
        snprintf(keys, sizeof(keys), "calibration.dispersion calibration.dispersion_a%d",
                 coefficient);
        return oct_fail_key(err, OCT_E_CONFIG, keys,
                            "calibration.dispersion and calibration.dispersion_a%d are both given: "
                            "keep the file or the coefficients",
                            coefficient);
    }
    if (config->pipeline.dc == OCT_DC_FILE && !config->calibration.background[0])
        return oct_fail_key(err, OCT_E_CONFIG, "calibration.background pipeline.dc",
                            "calibration.background is missing: pipeline.dc=file needs it");
    if ((code = check_flatten(config, err)))
        return code;
    if ((code = check_orders(config, err)))
        return code;
    if ((code = check_scan(config, err)))
        return code;
    if ((config->security.client_key[0] == '\0') != (config->security.server_public[0] == '\0'))
        return oct_fail_key(
            err, OCT_E_CONFIG, "security.client_key security.server_public",
            "security.client_key and security.server_public belong together: give both "
            "or none");
    if (!config->record.spectra && !config->record.bscans)
        return oct_fail_key(err, OCT_E_CONFIG, "record.spectra record.bscans",
                            "record.spectra and record.bscans are both no: nothing would be "
                            "recorded, set one to yes");
    return OCT_OK;
}

enum oct_err oct_config_check(const struct oct_config *config, struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    return check_together(config, &why) ? oct_config_blame(config, &why, err) : OCT_OK;
}

bool oct_key_join_path(const char *folder, const char *path, char *joined, size_t joined_bytes)
{
    while (path[0] == '.' && path[1] == '/') {
        path += 2;
        path += strspn(path, "/");
    }
    if (!strcmp(path, "."))
        path = "";
    size_t n_folder = strlen(folder);
    bool has_slash = n_folder > 0 && folder[n_folder - 1] == '/';
    int length =
        snprintf(joined, joined_bytes, "%s%s%s", folder, *path && !has_slash ? "/" : "", path);
    return length >= 0 && (size_t)length < joined_bytes;
}

/* A relative path is useless to a reader of the text elsewhere. It stays relative when the working
 * folder is gone, or has a name that an INI file cannot hold. */
static void make_absolute(char *path, size_t path_bytes)
{
    char folder[OCT_CONFIG_STRING_BYTES], joined[OCT_CONFIG_STRING_BYTES];
    if (!path[0] || path[0] == '/' || !getcwd(folder, sizeof(folder)))
        return;
    size_t limit = path_bytes < sizeof(joined) ? path_bytes : sizeof(joined);
    if (oct_key_join_path(folder, path, joined, limit) && !oct_param_bad_text(joined))
        memcpy(path, joined, strlen(joined) + 1);
}

char *oct_config_text(const struct oct_config *config)
{
    struct oct_config effective = *config; /* a file records the values used, not "auto" */
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);
    if (!out)
        return NULL;
    const char *section = "";
    effective.pipeline.crop_last = oct_config_crop_last(config);
    struct oct_key key;
    for (size_t row = 0; oct_key_next(&row, &key);) {
        char value[OCT_CONFIG_STRING_BYTES];
        if (strcmp(section, key.section))
            fprintf(out, "%s[%s]\n", section[0] ? "\n" : "", key.section);
        section = key.section;
        oct_key_format(&key, &effective, value, sizeof(value));
        if (key.param->type == OCT_PARAM_PATH)
            make_absolute(value, sizeof(value));
        fprintf(out, "%s =%s%s\n", key.name, value[0] ? " " : "", value);
    }
    bool failed = ferror(out) != 0;
    if (fclose(out) || failed) {
        free(text);
        return NULL;
    }
    return text;
}
