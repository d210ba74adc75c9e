#include "config/version.h"

#include <cjson/cJSON.h>
#include <fftw3.h>
#include <hdf5.h>
#include <string.h>
#include <zmq.h>

/* inih has no macro for its version: the Makefile asks pkg-config. */
#ifndef OCT_INIH_VERSION
#define OCT_INIH_VERSION ""
#endif

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

#ifdef OCT_HAS_CUDA
#define ENGINES "cpu, cuda"
#else
#define ENGINES "cpu"
#endif

/* FFTW gives its version only within a string, "fftw-3.3.10-sse2-avx". */
static void write_fftw(FILE *out)
{
    const char *dash = strchr(fftwf_version, '-');
    const char *number = dash ? dash + 1 : fftwf_version;
    fprintf(out, "FFTW %.*s\n", (int)strcspn(number, "-"), number);
}

void oct_version_write(FILE *out, const char *program, const char *own_libraries)
{
    fprintf(out, "%s %s\nlibzmq %d.%d.%d\n%s", program, OCT_VERSION, ZMQ_VERSION_MAJOR,
            ZMQ_VERSION_MINOR, ZMQ_VERSION_PATCH, own_libraries);
    fprintf(out, "inih%s\n", OCT_INIH_VERSION[0] ? " " OCT_INIH_VERSION : "");
    write_fftw(out);
    fprintf(out, "HDF5 %d.%d.%d\ncJSON %d.%d.%d\n%s\nengines: %s\n", H5_VERS_MAJOR, H5_VERS_MINOR,
            H5_VERS_RELEASE, CJSON_VERSION_MAJOR, CJSON_VERSION_MINOR, CJSON_VERSION_PATCH,
            COMPILER, ENGINES);
}
