/* Header.xml of Thorlabs' .oct files. Private to this room and its tests. Any thread.
 *
 * Thorlabs publishes no description. Where the meaning of each was read: Thorlabs' own MATLAB
 * functions that come with ThorImage OCT (OCTFileGetRawData.m) for
 *
 *     DataFiles/DataFile  a file data\NAME.data: attributes Type, SizeZ (samples, fastest), SizeX
 *                         (A-lines), ApoRegionEnd0; text: its name in the archive
 *     Instrument          RawDataIsSigned, BytesPerPixel, BinaryToElectronCountScaling
 *     _Cam1               in names: of the second camera of a PS-OCT
 *
 * and published readers, which agree with one another, for
 *
 *     ApoRegionStart0, ScanRegionStart0, ScanRegionEnd0, a first file of apodisation alone
 *                         OCT_reader.py and OCT_converter.py (A-lines of DataFile)
 *     Image/SizeReal      mm: TU Delft's functions in Python (J. de Wit, 2019), which transform the
 * N                         samples by N steps of the chirp and lay the first N/2 pixels over SizeZ
 *     Image/PixelSpacing, Acquisition/Timestamp (s since 1970), Instrument/CentralWavelength (nm)
 *                         TU Delft's and others' functions, and headers printed with them
 *     Instrument/SourceBandwidth (nm), CameraLineRate (Hz)
 *                         readers for Ganymede and Telesto in C++ and MATLAB
 *
 * Not verified against a file of Thorlabs: that SizeReal/SizeZ and PixelSpacing/SizeZ have been
 * divided by Acquisition/RefractiveIndex. */
#ifndef OCT_FORMATS_INPUT_THORLABS_HEADER_H
#define OCT_FORMATS_INPUT_THORLABS_HEADER_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_THORLABS_MOST_HEADER ((size_t)32 << 20) /* bytes; 500 B-scans have 150 kB */

struct oct_thorlabs_file {
    char entry[64];                     /* "data\Spectral0.data", as the archive names it */
    char name[40];                      /* "Spectral0" */
    char type[16];                      /* "Raw", "Real", "Colored" */
    uint64_t n_samples, n_lines, bytes; /* SizeZ, SizeX, BytesPerPixel; 0: not said */
    bool has_apo, has_scan, has_more;   /* regions of A-lines; more than one scan */
    uint64_t apo_first, apo_end, scan_first, scan_end;
};

struct oct_thorlabs_header {
    struct oct_thorlabs_file *files;
    size_t n_files;
    bool is_signed;
    /* NaN: not said. */
    double bytes, bits, electrons; /* of a sample; electrons of a count */
    double lambda_nm, width_nm, line_rate_hz, refractive_index, timestamp_s;
    double x_mm, y_mm, z_mm, z_spacing_mm; /* z: of the picture, in tissue */
    double z_px;                           /* that it has along the depth */
    size_t room;
};

/* xml[n_bytes] may be anything. OCT_E_FORMAT: it is no XML of Thorlabs, or has a document type.
 * oct_thorlabs_header_finish must follow in any case. */
enum oct_err oct_thorlabs_header_read(struct oct_thorlabs_header *header, const char *name,
                                      const char *xml, size_t n_bytes, struct oct_error *err);
void oct_thorlabs_header_finish(struct oct_thorlabs_header *header);

/* By its name, "Chirp"; NULL: there is none. */
const struct oct_thorlabs_file *oct_thorlabs_header_find(const struct oct_thorlabs_header *header,
                                                         const char *name);

#endif
