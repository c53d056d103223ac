/* The main of a fuzz target without libFuzzer: runs it on every file of the folders named,
 * or on the files named. Fails when there is none. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int ran;

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat facts;
    if (file == NULL || fstat(fileno(file), &facts) != 0) {
        perror(path);
        return 1;
    }
    size_t size = (size_t)facts.st_size;
    uint8_t *data = malloc(size + 1); /* of its own size, so that reading beyond it is seen */
    if (data == NULL || fread(data, 1, size, file) != size) {
        perror(path);
        return 1;
    }
    fclose(file);
    uint8_t *exact = realloc(data, size > 0 ? size : 1);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    ran++;
    return 0;
}

static int replay(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL) return replay_file(path);
    int failed = 0;
    struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char name[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        failed |= replay_file(name);
    }
    closedir(folder);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i]);
    printf("%d inputs\n", ran);
    return failed || ran == 0;
}
