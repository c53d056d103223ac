/* gnomon: the command. One verb a file; this one finds the verb. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_named verbs[] = {
    {"project", cli_project, "project points to fewer dimensions"},
    {"dim", cli_dim, "the dimension k that each bound requires"},
    {"operator", cli_operator, "print a block of a random operator, or its descriptor"},
    {"distortion", cli_distortion, "measure how a sketch changed norms and distances"},
    {"neighbors", cli_neighbors_run, "nearest neighbours, exact or with guaranteed recall"},
    {"index", cli_index, "build, query and change an index for nearest neighbours"},
    {"join", cli_join_run, "all pairs of points within a distance"},
    {"dedup", cli_dedup, "remove near-duplicate documents"},
    {"svd", cli_svd, "leading singular values and vectors"},
    {"transform", cli_transform, "project new points to the components of an svd"},
    {"lstsq", cli_lstsq, "least squares, with bounds on the error"},
    {"hosvd", cli_hosvd, "Tucker decomposition of a tensor (randomized HOSVD)"},
    {"convert", cli_convert, "convert points between file formats"},
    {"info", cli_info, "describe a file, or this machine's devices and formats"},
    {"help", NULL, NULL},
    {NULL, NULL, NULL},
};

static void print_help(FILE *stream)
{
    char members[CLI_FORMATS_TEXT];
    fputs("Usage: gnomon VERB [options]\n"
          "\n"
          "Random projections of high-dimensional points, and what is built on them: nearest\n"
          "neighbours, similarity joins, low-rank factorisations and least squares.\n"
          "\n"
          "Verbs:\n",
          stream);
    cli_list_verbs(stream, verbs);
    fputs("\n"
          "  gnomon help VERB, gnomon VERB --help    a verb's options and examples\n"
          "  gnomon --version                        the version\n"
          "\n"
          "Data goes to -o or standard output, reports to standard error; '-' is standard input\n"
          "or output. One array of a file with several is named after a colon:\n",
          stream);
    fprintf(stream, "%s.\n", cli_format_members(members));
    fputs("Exit codes: 0 done, 1 a negative answer, 2 usage, 3 bad data, 4 file trouble,\n"
          "5 out of memory, 6 device, 130 interrupted.\n"
          "\n"
          "Examples:\n"
          "  Project points to 64 dimensions\n"
          "    gnomon project points.npy -k 64 -o sketch.npy\n"
          "  Measure how that changed norms and distances\n"
          "    gnomon distortion points.npy sketch.npy\n"
          "  Find how many dimensions keep all distances of 60000 points within 20 %\n"
          "    gnomon dim --points 60000 --eps 0.2\n",
          stream);
}

static int run_help(int argc, char **argv)
{
    static char help[] = "--help";
    /* the verbs of an index are two words */
    const int words_of_verb = argc > 2 && strcmp(argv[1], "index") == 0 ? 2 : 1;
    if (argc > words_of_verb + 1) {
        fprintf(stderr, "gnomon help: one word too many: %s\n", argv[words_of_verb + 1]);
        return CLI_EXIT_USAGE;
    }
    if (argc == 3) {
        char *words[] = {argv[1], argv[2], help, NULL};
        return cli_run_verb("gnomon", verbs, 3, words);
    }
    if (argc == 2) {
        char *words[] = {argv[1], help, NULL};
        return cli_run_verb("gnomon", verbs, 2, words);
    }
    print_help(stdout);
    return cli_flush_output("help");
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CLI_EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        printf("gnomon %s\n", gnomon_version());
        return cli_flush_output("--version");
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return run_help(1, argv + 1);
    if (strcmp(word, "help") == 0) return run_help(argc - 1, argv + 1);
    return cli_run_verb("gnomon", verbs, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    /* Products are divided by our own threads. OpenBLAS would start one for each core of the
     * machine, whatever --threads and a container's limit say, and keep 128 MiB of addresses for
     * each. Where there is no memory to say so it does. */
    (void)setenv("OPENBLAS_NUM_THREADS", "1", 0);
    cli_signals_install();
    cli_json_open();
    return cli_leave(cli_comm_refuse(argc, argv, run(argc, argv)));
}
