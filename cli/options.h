/* cli/options.h: the one option parser of every verb, driven by tables.
 *
 * Long options take their value after '=' or as the next word; '--' ends the options;
 * abbreviations are not accepted. Numbers are read strictly: no spaces, nothing left over,
 * inside their range. The same tables print the help. */
#ifndef GNOMON_CLI_OPTIONS_H
#define GNOMON_CLI_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

typedef enum cli_type {
    CLI_FLAG,   /* int: set to 'flag' */
    CLI_TEXT,   /* const char * */
    CLI_INT,    /* int64_t in [low, high] */
    CLI_SEED,   /* uint64_t, decimal or 0x... */
    CLI_REAL,   /* double, see real_range */
    CLI_SIZE,   /* int64_t bytes >= low, with a suffix */
    CLI_CHOICE, /* int: the value of one of 'choices' */
    CLI_RANGE,  /* cli_range: A:B, either side may be left out */
    CLI_SHAPE,  /* cli_shape: N,D with N -1 for '?' */
    CLI_LIST,   /* cli_list: integers of at least low, with commas between them */
    CLI_FORMAT, /* const char *: a format's name; flag 1: one that is written */
    CLI_CHAR    /* char: one character, or 'tab', 'comma', 'semicolon', 'space' */
} cli_type;

typedef struct cli_range {
    int64_t begin, end; /* -1: left out */
} cli_range;

typedef struct cli_shape {
    int64_t rows, cols;
} cli_shape;

enum { CLI_LIST_MOST = 32 };
typedef struct cli_list {
    int count;
    int64_t value[CLI_LIST_MOST];
} cli_list;

/* A choice's name and number; a list ends with a NULL name. */
typedef struct cli_choice {
    const char *name;
    int value;
} cli_choice;

/* Which reals an option takes. */
typedef enum cli_reals {
    CLI_POSITIVE,      /* x > 0, finite */
    CLI_OPEN_UNIT,     /* 0 < x < 1 */
    CLI_DENSITY_RANGE, /* 2^-30 <= x <= 1 */
    CLI_CLOSED_UNIT,   /* 0 <= x <= 1 */
    CLI_FINITE         /* any */
} cli_reals;

typedef struct cli_option {
    const char *name;  /* the long name without dashes; NULL: none */
    const char *alias; /* another long name of the same option; NULL: none */
    char letter;       /* the short name; 0: none */
    cli_type type;
    void *target;
    int *given;        /* set to 1 when the option is met; may be NULL */
    const char *value; /* what the help calls the value */
    const char *help;
    int64_t low, high;         /* CLI_INT, CLI_SIZE; high 0: no limit */
    cli_reals reals;           /* CLI_REAL */
    const cli_choice *choices; /* CLI_CHOICE, CLI_DEVICE */
    /* The formats alone that hold or take this (GNOMON_HOLDS_..., GNOMON_TAKES_...): the help
     * begins with their names. 0: not of formats. */
    int holds, takes;
    int flag; /* CLI_FLAG: what target is set to */
} cli_option;

/* Options under one heading of the help. */
typedef struct cli_group {
    const char *title;
    const cli_option *options;
    size_t count;
} cli_group;

#define CLI_GROUP(title, options)                              \
    {                                                          \
        title, options, sizeof(options) / sizeof((options)[0]) \
    }

/* All that is to know about a verb to parse its words and to explain it. */
typedef struct cli_verb {
    const char *name;
    const char *synopsis; /* after the name; several lines with '\n' */
    const char *about;    /* paragraphs */
    const cli_group *groups;
    size_t group_count;
    const char *examples; /* lines: a caption, which begins with a capital, then its commands */
    int min_operands, max_operands;
} cli_verb;

/* Reads argv[1] ... into the tables' targets and the operands (room for max_operands).
 * Returns -1 to go on, else the exit code: 0 after --help was printed, 2 after a usage
 * error was told on standard error. */
int cli_parse(const cli_verb *verb, int argc, char **argv, const char **operands,
              int *operand_count);

/* How the user writes the option that the library's argument 'name' is set by, "--nonzeros" or
 * "-k": of the verb that was parsed last. NULL: it has none. Static storage. */
const char *cli_option_of(const char *name);

/* Prints the verb's help to standard output; returns the exit code. */
int cli_print_help(const cli_verb *verb);

/* The name of names[0 .. count) nearest to word, NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *names, size_t count);

#endif
