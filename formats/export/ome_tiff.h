/* OME-TIFF, its parts. Private to this room.
 *
 * Each plane is a directory of one strip, not compressed: speckle and detector noise hardly shrink
 * (docs/export.md has figures), readers may map the file, and its size is known before its first
 * byte, so that a file is a BigTIFF exactly when classic TIFF's 32-bit offsets would not reach its
 * end. What the pictures are is said in OME-XML in the first directory's ImageDescription. */
#ifndef OCT_FORMATS_EXPORT_OME_TIFF_H
#define OCT_FORMATS_EXPORT_OME_TIFF_H

#include "formats/export/export.h"

/* The last offset that classic TIFF has room for. */
#define OCT_OME_TIFF_MOST_CLASSIC UINT32_MAX

/* Whether planes run along time (T); else they lie side by side (Z). */
bool oct_ome_is_time(const struct oct_export_form *form);

/* OME-XML by the schema of 2016-06, ASCII: an Image a source, in this order, whose planes are
 * directories that follow one another. The caller frees *xml. OCT_E_NO_MEMORY. */
enum oct_err oct_ome_xml_make(char **xml, const struct oct_export_source *sources, unsigned n,
                              struct oct_error *err);

/* At most so many bytes has the file, less than 1 KB a plane too many; xml_bytes: the OME-XML's. */
uint64_t oct_ome_tiff_most_bytes(const struct oct_export_source *sources, unsigned n,
                                 size_t xml_bytes);

/* As oct_export_ome_tiff.write; a file that may grow beyond most_classic bytes is a BigTIFF. */
enum oct_err oct_ome_tiff_write(const char *path, const struct oct_export_source *sources,
                                unsigned n, const struct oct_export_options *options,
                                uint64_t most_classic, struct oct_error *err);

#endif
