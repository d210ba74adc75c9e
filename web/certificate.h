/* The TLS certificate. */
#ifndef OCT_WEB_CERTIFICATE_H
#define OCT_WEB_CERTIFICATE_H

#include "pipeline/base/err.h"

/* Makes a self-signed one and its key where neither file exists: P-256, ten years, for this
 * machine's name and `names` ("a,b"). */
enum oct_err oct_web_certificate_make(const char *certificate, const char *key, const char *names,
                                      struct oct_error *err);

/* "AB:CD:...": SHA-256, as browsers show it. text: of 96 bytes. */
enum oct_err oct_web_certificate_fingerprint(const char *certificate, char text[96],
                                             struct oct_error *err);

#endif
