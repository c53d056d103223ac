/* io/temporaries.h: the names of temporary files that exist now, so that a signal handler
 * can remove them (gnomon_io_abandon_all in gnomon/io.h). */
#ifndef GNOMON_IO_TEMPORARIES_H
#define GNOMON_IO_TEMPORARIES_H

/* Notes that 'name' in the folder open as folder_fd is temporary. Returns a ticket for
 * gnomon_temporary_forget, -1 when the table is full (the file is then just not noted). */
int gnomon_temporary_note(int folder_fd, const char *name);
/* -1 is allowed. To be called once the file is renamed or removed, before folder_fd closes. */
void gnomon_temporary_forget(int ticket);

#endif
