/* The site's list of scans, scan.choices: "Volume: | Star: pattern=radial | Disc: pattern=circle
 * width_um=3400". An entry names keys of section [scan] and their values, separated by spaces;
 * other keys stay as they are configured.
 *
 * No state; as struct oct_config, for the thread that owns it. */
#ifndef OCT_CONFIG_SCAN_CHOICES_H
#define OCT_CONFIG_SCAN_CHOICES_H

#include "config/config.h"

#define OCT_MOST_SCAN_CHOICES 16u
#define OCT_SCAN_CHOICE_BYTES 32u /* of a name, with its NUL */

/* The name of choice i, from 0; false: there are no more. */
bool oct_scan_choice_name(const struct oct_config *config, unsigned i,
                          char name[OCT_SCAN_CHOICE_BYTES]);

/* Sets what the choice of that name says. OCT_E_ARG: there is none; OCT_E_CONFIG: a key that there
 * is not, or a value that it does not take; the configuration then stays as it was. */
enum oct_err oct_scan_choose(struct oct_config *config, const char *name, struct oct_error *err);

/* Sets a key of section [scan]: what a change of the scan may set. `lines` and `bscans` are of
 * these. OCT_E_CONFIG: there is no such key, or it does not take that value. */
enum oct_err oct_scan_set_key(struct oct_config *config, const char *key, const char *value,
                              struct oct_error *err);

/* Takes section [scan] from another configuration, with where its keys came from: whether one was
 * given at all is part of what it says (oct_config_is_set). */
void oct_scan_copy(struct oct_config *to, const struct oct_config *from);

/* Whether the configuration as it stands describes a scan: its keys fit together. */
enum oct_err oct_scan_config_check(const struct oct_config *config, struct oct_error *err);

/* Whether each choice has a name of its own and says a scan. OCT_E_CONFIG names scan.choices. */
enum oct_err oct_scan_choices_check(const struct oct_config *config, struct oct_error *err);

#endif
