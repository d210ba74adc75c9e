/* The overlays, in the order of drawing; a line each. No guards: overlay.h and overlay.c say what a
 * line becomes. */
OVERLAY(average)
OVERLAY(sharpened)
OVERLAY(layers)
OVERLAY(guide_lines)
OVERLAY(enface)
OVERLAY(slab)
OVERLAY(marks)
OVERLAY(cones)
OVERLAY(cells)
OVERLAY(rolloff)
