#include "formats/tiff_fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <tiffio.h>

static int keep(TIFF *tiff, void *context, const char *module, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));
static int keep(TIFF *tiff, void *context, const char *module, const char *format, va_list args)
{
    struct oct_tiff_fault *fault = context;
    (void)tiff;
    (void)module;
    if (!fault->text[0])
        vsnprintf(fault->text, sizeof(fault->text), format, args);
    return 1;
}

static int ignore(TIFF *tiff, void *context, const char *module, const char *format, va_list args)
{
    (void)tiff;
    (void)context;
    (void)module;
    (void)format;
    (void)args;
    return 1;
}

struct TIFFOpenOptions *oct_tiff_fault_options(struct oct_tiff_fault *fault)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (options) {
        TIFFOpenOptionsSetErrorHandlerExtR(options, keep, fault);
        TIFFOpenOptionsSetWarningHandlerExtR(options, ignore, NULL);
    }
    return options;
}
