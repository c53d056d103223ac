/* io/temporaries.h: temporary files, and the list of their names, by which a signal handler
 * can remove them (gnomon_io_abandon_all in gnomon/io.h). */
#ifndef GNOMON_IO_TEMPORARIES_H
#define GNOMON_IO_TEMPORARIES_H

#include "base/error.h"

/* Notes that 'name' in the folder open as folder_fd is temporary. Returns a ticket for
 * gnomon_temporary_forget, -1 when the table is full (the file is then just not noted). */
int gnomon_temporary_note(int folder_fd, const char *name);
/* -1 is allowed. To be called once the file is renamed or removed, before folder_fd closes. */
void gnomon_temporary_forget(int ticket);

/* A text that no other process or call makes; O_EXCL has the last word. */
enum { GNOMON_TEMPORARY_UNIQUE = 40 };
void gnomon_temporary_unique(char text[GNOMON_TEMPORARY_UNIQUE]);

/* Opens a file in TMPDIR, else /tmp, that has no name any more; *fd is the caller's to close. */
gnomon_status gnomon_temporary_nameless(gnomon_context *ctx, int *fd);

#endif
