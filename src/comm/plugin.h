/* comm/plugin.h: what libgnomon_comm_NAME.so offers. The plugin moves bytes; it has no algorithm of
 * its own, and calls nothing of the core. */
#ifndef GNOMON_COMM_PLUGIN_H
#define GNOMON_COMM_PLUGIN_H

#include <gnomon/comm.h>

#define GNOMON_COMM_ENTRY "gnomon_comm_entry"

enum { GNOMON_COMM_INTERFACE = 1, GNOMON_COMM_WHY = 256 };

typedef struct gnomon_comm_plugin {
    int interface_version;
    /* Starts the engine and fills *comm; 'why' has the reason for another status than OK. */
    gnomon_status (*open)(gnomon_comm *comm, char why[GNOMON_COMM_WHY]);
} gnomon_comm_plugin;

typedef const gnomon_comm_plugin *(*gnomon_comm_entry_fn)(void);

#endif
