/* What libtiff says of a file, kept instead of printed. Private to formats/ and formats/export/. */
#ifndef OCT_FORMATS_TIFF_FAULT_H
#define OCT_FORMATS_TIFF_FAULT_H

struct TIFFOpenOptions;

struct oct_tiff_fault {
    char text[200]; /* the first error; "": there was none */
};

/* Options of a file whose errors go to *fault, which outlives the file; warnings are left out. The
 * caller frees them (TIFFOpenOptionsFree). NULL: out of memory. */
struct TIFFOpenOptions *oct_tiff_fault_options(struct oct_tiff_fault *fault);

#endif
