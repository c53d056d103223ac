/* gnomon index: finds its verb. */
#include "verbs/index/index.h"

#include <string.h>

static const cli_named verbs[] = {
    {"build", cli_index_build, "build an index, tuned to a recall or with given settings"},
    {"tune", cli_index_tune, "compare settings for a recall, and choose the fastest"},
    {"query", cli_index_query, "nearest neighbours of queries"},
    {"add", cli_index_add, "add points"},
    {"remove", cli_index_remove, "remove points by id"},
    {"compact", cli_index_compact, "erase removed points from tables and file"},
    {"info", cli_index_info, "describe an index"},
    {"check", cli_index_check, "verify a file's checksums and structure"},
    {NULL, NULL, NULL},
};

static void print_help(FILE *stream)
{
    fputs("Usage: gnomon index VERB [options]\n"
          "\n"
          "An index for nearest neighbours: one file that holds the points with hash tables\n"
          "(approximate answers, by locality-sensitive hashing), with codes of a few bits a\n"
          "coordinate (RaBitQ), or sparse points with inverted lists (exact answers).\n"
          "\n"
          "Verbs:\n",
          stream);
    cli_list_verbs(stream, verbs);
    fputs("\n"
          "  gnomon index VERB --help                a verb's options and examples\n"
          "\n"
          "Examples:\n"
          "  An index that finds 90 % of the five nearest, queried and checked\n"
          "    gnomon index build base.npy -k 5 --recall 0.9 --slower -o base.lsh\n"
          "    gnomon index query base.lsh queries.npy -k 5 -o found.csv\n"
          "    gnomon index check base.lsh\n",
          stream);
}

int cli_index(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CLI_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return cli_flush_output("index");
    }
    return cli_run_verb("gnomon index", verbs, argc - 1, argv + 1);
}
