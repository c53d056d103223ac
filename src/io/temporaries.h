/* io/temporaries.h: temporary files, and the list of their names, by which a signal handler
 * can remove them (gnomon_io_abandon_all in gnomon/io.h). */
#ifndef GNOMON_IO_TEMPORARIES_H
#define GNOMON_IO_TEMPORARIES_H

#include "base/error.h"

#include <sys/types.h>

/* Notes that 'name' in the folder open as folder_fd is temporary. Returns a ticket for
 * gnomon_temporary_forget, -1 when the table is full (the file is then just not noted). */
int gnomon_temporary_note(int folder_fd, const char *name);
/* -1 is allowed. To be called once the file is renamed or removed, before folder_fd closes. */
void gnomon_temporary_forget(int ticket);

/* Makes a temporary file to replace 'base' in the folder open as folder_fd, no wider than mode, and
 * locks it for as long as *fd or a duplicate of it is open. name gets its name. Names are a few
 * fixed ones for each base, so that what a killed process left is found: a file of such a name that
 * no process has locked is removed. Where files can't be locked nothing is removed. Returns a
 * ticket in *ticket, as gnomon_temporary_note. 0 or an errno. */
enum { GNOMON_TEMPORARY_NAME = 256 };
int gnomon_temporary_beside(int folder_fd, const char *base, mode_t mode,
                            char name[GNOMON_TEMPORARY_NAME], int *ticket, int *fd);

/* A text that no other process or call makes; O_EXCL has the last word. */
enum { GNOMON_TEMPORARY_UNIQUE = 40 };
void gnomon_temporary_unique(char text[GNOMON_TEMPORARY_UNIQUE]);

/* Opens a file without a name in TMPDIR, else in /tmp; *fd is the caller's to close. Where the file
 * system has no files without names, it has one for a moment. */
gnomon_status gnomon_temporary_nameless(gnomon_context *ctx, int *fd);
/* The same in a folder; NULL: TMPDIR, else /tmp. */
gnomon_status gnomon_temporary_nameless_in(gnomon_context *ctx, const char *folder, int *fd);

#endif
