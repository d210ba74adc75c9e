/* The archive and the worklist: DCMTK's programs (Debian's dcmtk: echoscu, storescu, findscu), run
 * as children. What comes from the network is read by them alone, within bounds of time, memory and
 * files; what they leave is read as bytes of a stranger (formats/dicom_texts.h). A child dies with
 * this process. Main thread; no other thread may make children meanwhile. */
#ifndef OCT_TOOLS_DICOM_PEER_H
#define OCT_TOOLS_DICOM_PEER_H

#include "config/config.h"
#include "formats/dicom_texts.h"

#include <signal.h>

enum oct_dicom_peer { OCT_DICOM_ARCHIVE, OCT_DICOM_WORKLIST };

/* All end within the time that their timeouts give (dicom.timeout_s), or when *cancel is not 0
 * (NULL: nobody does; OCT_E_CLOSED). OCT_E_CONFIG: the key is empty, or TLS lacks its files;
 * OCT_E_STATE: the program is not installed; OCT_E_IO: the other side is not there, refuses or is
 * silent. The message names no patient. */

/* C-ECHO. */
enum oct_err oct_dicom_echo(const struct oct_config *config, enum oct_dicom_peer peer,
                            const volatile sig_atomic_t *cancel, struct oct_error *err);

/* C-STORE of a whole file. OCT_OK: the archive says that it has it. */
enum oct_err oct_dicom_store(const struct oct_config *config, const char *path,
                             const volatile sig_atomic_t *cancel, struct oct_error *err);

/* C-FIND. query: words of findscu's, up to NULL: "-W" or "-S", then what is wanted by -k. Answers
 * are kept in a folder of their own in `folder` (mode 0700) until take has seen each, and removed.
 * texts: as oct_dicom_texts_read; take (its error ends it) gets them filled. A thousand answers are
 * taken, *is_cut: there were more. */
#define OCT_DICOM_MOST_ANSWERS 1000u
enum oct_err
oct_dicom_find(const struct oct_config *config, enum oct_dicom_peer peer, const char *const *query,
               const char *folder, const struct oct_dicom_text *texts, unsigned n,
               enum oct_err (*take)(void *context, bool is_whole, struct oct_error *err),
               void *context, bool *is_cut, const volatile sig_atomic_t *cancel,
               struct oct_error *err);

#endif
