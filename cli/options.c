#include "options.h"

#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_LIMIT = 64, HELP_COLUMN = 26, HELP_WIDTH = 79 };

static int usage(const cli_verb *verb, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int usage(const cli_verb *verb, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "gnomon %s: ", verb->name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nTry 'gnomon %s --help'.\n", verb->name);
    va_end(arguments);
    return CLI_EXIT_USAGE;
}

/* Levenshtein's distance of two short words. */
static int distance(const char *a, const char *b)
{
    int row[NAME_LIMIT + 1];
    int n = (int)strlen(b);
    if (n > NAME_LIMIT || strlen(a) > NAME_LIMIT) return NAME_LIMIT;
    for (int j = 0; j <= n; ++j)
        row[j] = j;
    for (int i = 0; a[i] != '\0'; ++i) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < n; ++j) {
            int best = diagonal + (a[i] != b[j]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j + 1] + 1 < best) best = row[j + 1] + 1;
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    return row[n];
}

const char *cli_nearest(const char *word, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t length = strlen(word);
    int limit = length < 5 ? 1 : length < 9 ? 2 : 3;
    for (size_t i = 0; i < count; ++i) {
        int d = distance(word, names[i]);
        /* A beginning of a name is not accepted, but it is clear what was meant. */
        if (length >= 2 && strncmp(word, names[i], length) == 0) d = 1;
        if (d <= limit) {
            best = names[i];
            limit = d - 1;
        }
    }
    return best;
}

static int unknown_long(const cli_verb *verb, const char *word, size_t length)
{
    const char *names[128];
    size_t count = 0;
    char copy[NAME_LIMIT + 1];
    names[count++] = "help";
    for (size_t g = 0; g < verb->group_count; ++g) {
        for (size_t i = 0; i < verb->groups[g].count && count < 128; ++i) {
            const cli_option *o = &verb->groups[g].options[i];
            if (o->name != NULL) names[count++] = o->name;
            if (o->alias != NULL && count < 128) names[count++] = o->alias;
        }
    }
    snprintf(copy, sizeof copy, "%.*s", (int)(length < NAME_LIMIT ? length : NAME_LIMIT), word);
    const char *near = cli_nearest(copy, names, count);
    if (near != NULL) return usage(verb, "unknown option --%s; did you mean --%s?", copy, near);
    return usage(verb, "unknown option --%s", copy);
}

/* Whether the word of so many letters is the name. */
static int is_name(const char *name, const char *word, size_t length)
{
    return name != NULL && strlen(name) == length && memcmp(name, word, length) == 0;
}

static const cli_option *find_long(const cli_verb *verb, const char *word, size_t length)
{
    for (size_t g = 0; g < verb->group_count; ++g) {
        for (size_t i = 0; i < verb->groups[g].count; ++i) {
            const cli_option *o = &verb->groups[g].options[i];
            if (is_name(o->name, word, length) || is_name(o->alias, word, length)) return o;
        }
    }
    return NULL;
}

static const cli_option *find_short(const cli_verb *verb, char letter)
{
    for (size_t g = 0; g < verb->group_count; ++g) {
        for (size_t i = 0; i < verb->groups[g].count; ++i) {
            if (verb->groups[g].options[i].letter == letter) return &verb->groups[g].options[i];
        }
    }
    return NULL;
}

/* The options of the verb at work: their names outlive its tables. */
static struct {
    const char *name, *alias;
    char letter;
    const cli_option *option; /* while it is parsed */
    int by_name, by_alias;    /* how it was given */
} taken[128];
static size_t taken_count;

static size_t taken_at(const cli_option *o)
{
    size_t at = 0;
    while (at < taken_count && taken[at].option != o)
        ++at;
    return at;
}

/* An option as the user wrote it. */
static const char *spelled(const cli_option *o, char buffer[NAME_LIMIT + 3])
{
    const size_t at = taken_at(o);
    if (o->name != NULL)
        snprintf(buffer, NAME_LIMIT + 3, "--%s",
                 at < taken_count && taken[at].by_alias ? o->alias : o->name);
    else
        snprintf(buffer, NAME_LIMIT + 3, "-%c", o->letter);
    return buffer;
}

static int read_integer(const char *text, const char **end, int64_t *out)
{
    char *stop;
    if (!isdigit((unsigned char)text[text[0] == '-'])) return 0;
    errno = 0;
    long long value = strtoll(text, &stop, 10);
    if (errno != 0) return 0;
    *end = stop;
    *out = value;
    return 1;
}

/* The command never calls setlocale, so the decimal point is a point everywhere. */
static int read_real(const char *text, const char **end, double *out)
{
    char *stop;
    const char *digits = text + (text[0] == '-');
    if (!isdigit((unsigned char)digits[0]) &&
        !(digits[0] == '.' && isdigit((unsigned char)digits[1])))
        return 0;
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) return 0;
    errno = 0;
    *out = strtod(text, &stop);
    if (!isfinite(*out)) return 0;
    *end = stop;
    return 1;
}

static int read_size(const char *text, int64_t *out)
{
    static const char letters[] = "KMGT";
    const char *end;
    double value, unit = 1.0;
    if (!read_real(text, &end, &value) || value < 0) return 0;
    if (*end != '\0') {
        const char *at = strchr(letters, toupper((unsigned char)*end));
        if (at != NULL) {
            int power = (int)(at - letters) + 1;
            ++end;
            /* K and KiB are 1024, KB is 1000. */
            double base = strcmp(end, "B") == 0 ? 1000.0 : 1024.0;
            while (power-- > 0)
                unit *= base;
            if (strcmp(end, "iB") != 0 && strcmp(end, "B") != 0 && *end != '\0') return 0;
        } else if (strcmp(end, "B") != 0) {
            return 0;
        }
    }
    value *= unit;
    if (value >= 9.2e18 || value != floor(value)) return 0;
    *out = (int64_t)value;
    return 1;
}

static int set_integer(const cli_verb *verb, const cli_option *o, const char *name,
                       const char *text)
{
    int64_t value;
    const char *end;
    int64_t high = o->high != 0 ? o->high : INT64_MAX;
    if (!read_integer(text, &end, &value) || *end != '\0' || value < o->low || value > high) {
        if (o->high != 0)
            return usage(verb, "%s %s: must be an integer from %lld to %lld", name, text,
                         (long long)o->low, (long long)high);
        return usage(verb, "%s %s: must be an integer of at least %lld", name, text,
                     (long long)o->low);
    }
    *(int64_t *)o->target = value;
    return -1;
}

static int set_seed(const cli_verb *verb, const cli_option *o, const char *name, const char *text)
{
    char *end;
    int hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = text + (hex ? 2 : 0);
    if (!(hex ? isxdigit((unsigned char)*digits) : isdigit((unsigned char)*digits)))
        return usage(verb, "%s %s: must be an integer from 0 to 2^64 - 1", name, text);
    errno = 0;
    unsigned long long value = strtoull(digits, &end, hex ? 16 : 10);
    if (errno != 0 || *end != '\0')
        return usage(verb, "%s %s: must be an integer from 0 to 2^64 - 1", name, text);
    *(uint64_t *)o->target = value;
    return -1;
}

static int set_real(const cli_verb *verb, const cli_option *o, const char *name, const char *text)
{
    double value;
    const char *end;
    if (!read_real(text, &end, &value) || *end != '\0')
        return usage(verb, "%s %s: not a number", name, text);
    switch (o->reals) {
    case CLI_POSITIVE:
        if (!(value > 0)) return usage(verb, "%s %s: must be above 0", name, text);
        break;
    case CLI_OPEN_UNIT:
        if (!(value > 0 && value < 1))
            return usage(verb, "%s %s: must be above 0 and below 1", name, text);
        break;
    case CLI_DENSITY_RANGE:
        if (!(value >= 0x1p-30 && value <= 1))
            return usage(verb, "%s %s: must be at least 2^-30 (9.32e-10) and at most 1", name,
                         text);
        break;
    case CLI_CLOSED_UNIT:
        if (!(value >= 0 && value <= 1))
            return usage(verb, "%s %s: must be from 0 to 1", name, text);
        break;
    case CLI_FINITE:
        break;
    }
    *(double *)o->target = value;
    return -1;
}

static int set_choice(const cli_verb *verb, const cli_option *o, const char *name, const char *text)
{
    char list[512] = "";
    const char *names[32];
    size_t count = 0, used = 0;
    for (const cli_choice *c = o->choices; c->name != NULL; ++c) {
        if (strcmp(c->name, text) == 0) {
            *(int *)o->target = c->value;
            return -1;
        }
        if (count < 32) names[count++] = c->name;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used == 0 ? "" : ", ",
                                     c->name);
    }
    const char *near = cli_nearest(text, names, count);
    if (near != NULL)
        return usage(verb, "%s %s: did you mean %s? (one of %s)", name, text, near, list);
    return usage(verb, "%s %s: must be one of %s", name, text, list);
}

static int set_range(const cli_verb *verb, const cli_option *o, const char *name, const char *text)
{
    cli_range range = {-1, -1};
    const char *at = text;
    int good = 1;
    if (*at != ':') good = read_integer(at, &at, &range.begin) && range.begin >= 0;
    good = good && *at == ':';
    if (good && at[1] != '\0')
        good = read_integer(at + 1, &at, &range.end) && range.end >= 0 && *at == '\0';
    if (!good)
        return usage(verb, "%s %s: must be A:B, from A up to but without B, counted from 0", name,
                     text);
    if (range.begin >= 0 && range.end >= 0 && range.begin > range.end)
        return usage(verb, "%s %s: the end lies before the beginning", name, text);
    *(cli_range *)o->target = range;
    return -1;
}

static int set_shape(const cli_verb *verb, const cli_option *o, const char *name, const char *text)
{
    cli_shape shape = {-1, 0};
    const char *at = text;
    int good = 1;
    if (*at == '?')
        ++at;
    else
        good = read_integer(at, &at, &shape.rows) && shape.rows >= 0;
    good = good && *at == ',' && read_integer(at + 1, &at, &shape.cols) && *at == '\0' &&
           shape.cols > 0;
    if (!good)
        return usage(verb,
                     "%s %s: must be N,D, points and coordinates (?,D takes N from the file's "
                     "size)",
                     name, text);
    *(cli_shape *)o->target = shape;
    return -1;
}

static int set_list(const cli_verb *verb, const cli_option *o, const char *name, const char *text)
{
    cli_list list = {0, {0}};
    const char *at = text;
    int good = 1, more = 1;
    while (good && more) {
        good = list.count < CLI_LIST_MOST && read_integer(at, &at, &list.value[list.count]) &&
               list.value[list.count] >= o->low;
        ++list.count;
        more = good && *at == ',';
        if (more) ++at;
    }
    if (!good || *at != '\0')
        return usage(verb, "%s %s: must be integers of at least %lld with commas between them",
                     name, text, (long long)o->low);
    *(cli_list *)o->target = list;
    return -1;
}

static int set_char(const cli_verb *verb, const cli_option *o, const char *name, const char *text)
{
    static const struct {
        const char *name;
        char value;
    } known[] = {{"tab", '\t'}, {"comma", ','}, {"semicolon", ';'}, {"space", ' '}};
    char value = 0;
    if (text[0] != '\0' && text[1] == '\0') value = text[0];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i) {
        if (strcmp(text, known[i].name) == 0) value = known[i].value;
    }
    if (value == 0)
        return usage(verb, "%s '%s': must be one character, or tab, comma, semicolon, space", name,
                     text);
    *(char *)o->target = value;
    return -1;
}

static int set_format(const cli_verb *verb, const cli_option *o, const char *name, const char *text)
{
    char list[CLI_FORMATS_TEXT];
    gnomon_format_info info;
    for (int i = 0; cli_format_info(i, &info); ++i) {
        if (strcmp(info.name, text) != 0 || (o->flag && info.writes == 0)) continue;
        *(const char **)o->target = info.name;
        return -1;
    }
    return usage(verb, "%s %s: must be one of %s", name, text, cli_formats(list, 0, 0, o->flag));
}

static int set(const cli_verb *verb, const cli_option *o, const char *text)
{
    char buffer[NAME_LIMIT + 3];
    const char *name = spelled(o, buffer);
    if (o->given != NULL) *o->given = 1;
    switch (o->type) {
    case CLI_FLAG:
        *(int *)o->target = o->flag;
        return -1;
    case CLI_TEXT:
        if (text[0] == '\0') return usage(verb, "%s: the value is empty", name);
        *(const char **)o->target = text;
        return -1;
    case CLI_INT:
        return set_integer(verb, o, name, text);
    case CLI_SEED:
        return set_seed(verb, o, name, text);
    case CLI_REAL:
        return set_real(verb, o, name, text);
    case CLI_SIZE:
        if (!read_size(text, (int64_t *)o->target))
            return usage(verb, "%s %s: must be a number of bytes such as 500M, 2GiB or 4GB", name,
                         text);
        if (*(int64_t *)o->target < o->low)
            return usage(verb, "%s %s: must be at least %lld%s", name, text,
                         (long long)(o->low >> 20 > 0 ? o->low >> 20 : o->low),
                         o->low >> 20 > 0 ? "M" : "");
        return -1;
    case CLI_CHOICE:
        return set_choice(verb, o, name, text);
    case CLI_RANGE:
        return set_range(verb, o, name, text);
    case CLI_SHAPE:
        return set_shape(verb, o, name, text);
    case CLI_LIST:
        return set_list(verb, o, name, text);
    case CLI_FORMAT:
        return set_format(verb, o, name, text);
    case CLI_CHAR:
        return set_char(verb, o, name, text);
    }
    return -1;
}

static void remember(const cli_verb *verb)
{
    taken_count = 0;
    memset(taken, 0, sizeof taken);
    for (size_t g = 0; g < verb->group_count; ++g) {
        for (size_t i = 0; i < verb->groups[g].count && taken_count < 128; ++i) {
            const cli_option *o = &verb->groups[g].options[i];
            taken[taken_count].name = o->name;
            taken[taken_count].alias = o->alias;
            taken[taken_count].letter = o->letter;
            taken[taken_count++].option = o;
        }
    }
}

/* Two names of one option, both given: which value counts would depend on their order. */
static int check_names(const cli_verb *verb, const cli_option *o, int by_alias)
{
    const size_t at = taken_at(o);
    if (o->alias == NULL || at == taken_count) return -1;
    taken[at].by_alias |= by_alias;
    taken[at].by_name |= !by_alias;
    if (taken[at].by_alias && taken[at].by_name)
        return usage(verb, "--%s and --%s are two names of one option: give one of them", o->name,
                     o->alias);
    return -1;
}

/* One long option at argv[*at]; moves *at past a separate value. */
static int parse_long(const cli_verb *verb, int argc, char **argv, int *at)
{
    const char *word = argv[*at] + 2;
    const char *equals = strchr(word, '=');
    size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
    if (equals == NULL && strcmp(word, "help") == 0) return cli_print_help(verb);
    const cli_option *o = find_long(verb, word, length);
    if (o == NULL) return unknown_long(verb, word, length);
    const int code = check_names(verb, o, is_name(o->alias, word, length));
    if (code >= 0) return code;
    if (o->type == CLI_FLAG) {
        if (equals != NULL) return usage(verb, "--%s takes no value", o->name);
        return set(verb, o, "");
    }
    if (equals != NULL) return set(verb, o, equals + 1);
    if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0)
        return usage(verb, "--%s needs a value: --%s %s", word, word, o->value);
    *at += 1;
    return set(verb, o, argv[*at]);
}

static int parse_short(const cli_verb *verb, int argc, char **argv, int *at)
{
    const char *word = argv[*at];
    if (word[1] == 'h' && word[2] == '\0') return cli_print_help(verb);
    /* -operator for --operator is an easy slip, and would be taken for -o with a value. */
    if (word[2] != '\0' && find_long(verb, word + 1, strcspn(word + 1, "=")) != NULL)
        return usage(verb, "unknown option %s; did you mean -%s?", word, word);
    const cli_option *o = find_short(verb, word[1]);
    if (o == NULL) return usage(verb, "unknown option -%c", word[1]);
    const int code = check_names(verb, o, 0);
    if (code >= 0) return code;
    if (word[2] != '\0') return set(verb, o, word + 2);
    if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0)
        return usage(verb, "-%c needs a value: -%c %s", o->letter, o->letter, o->value);
    *at += 1;
    return set(verb, o, argv[*at]);
}

const char *cli_option_of(const char *name)
{
    /* what the library calls by another name */
    static const char *const others[][2] = {{"search_params.coarse", "coarse-probes"},
                                            {"first_row", "from-row"},
                                            {"coarse", "functions"},
                                            {"d", "D"}};
    static char spelled_out[NAME_LIMIT + 3];
    char word[NAME_LIMIT + 1];
    /* a view's members are no options */
    if (strncmp(name, "points.", 7) == 0) return NULL;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; ++i) {
        if (strcmp(name, others[i][0]) != 0) continue;
        name = others[i][1];
        break;
    }
    const char *dot = strrchr(name, '.');
    if (dot != NULL) name = dot + 1;
    if (name[0] == '\0' || strlen(name) > NAME_LIMIT) return NULL;
    snprintf(word, sizeof word, "%s", name);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; ++i)
        if (strcmp(word, others[i][0]) == 0) snprintf(word, sizeof word, "%s", others[i][1]);
    for (char *c = word; *c != '\0'; ++c)
        if (*c == '_') *c = '-';
    for (size_t i = 0; i < taken_count; ++i) {
        const int by_name = taken[i].name != NULL && strcmp(taken[i].name, word) == 0;
        const int by_letter = taken[i].letter == word[0] && word[1] == '\0';
        if (!by_name && !by_letter) continue;
        snprintf(spelled_out, sizeof spelled_out, by_name ? "--%s" : "-%s",
                 taken[i].by_alias ? taken[i].alias : word);
        return spelled_out;
    }
    return NULL;
}

int cli_parse(const cli_verb *verb, int argc, char **argv, const char **operands,
              int *operand_count)
{
    int count = 0, options_end = 0;
    remember(verb);
    for (int at = 1; at < argc; ++at) {
        int code = -1;
        if (!options_end && strcmp(argv[at], "--") == 0) {
            options_end = 1;
        } else if (!options_end && strncmp(argv[at], "--", 2) == 0) {
            code = parse_long(verb, argc, argv, &at);
        } else if (!options_end && argv[at][0] == '-' && argv[at][1] != '\0') {
            code = parse_short(verb, argc, argv, &at);
        } else if (count >= verb->max_operands) {
            return usage(verb, "one word too many: %s", argv[at]);
        } else if (argv[at][0] == '\0') {
            return usage(verb, "a file name is empty");
        } else {
            operands[count++] = argv[at];
        }
        if (code >= 0) return code;
    }
    if (count < verb->min_operands)
        return usage(verb, "too few words: gnomon %s %.*s", verb->name,
                     (int)strcspn(verb->synopsis, "\n"), verb->synopsis);
    *operand_count = count;
    return -1;
}

/* Prints text word by word between the columns indent and HELP_WIDTH; the cursor is at
 * column 'at'. A newline in the text stays one. */
static void print_wrapped(const char *text, int indent, int at)
{
    while (*text != '\0') {
        if (*text == '\n') {
            putchar('\n');
            at = 0;
            ++text;
            continue;
        }
        int length = (int)strcspn(text, " \n");
        if (at > indent && at + 1 + length > HELP_WIDTH) {
            putchar('\n');
            at = 0;
        }
        if (at > indent)
            at += printf(" ");
        else
            at += printf("%*s", indent - at, "");
        at += printf("%.*s", length, text);
        text += length;
        while (*text == ' ')
            ++text;
    }
    putchar('\n');
}

static void print_option(const cli_option *o)
{
    int at;
    if (o->letter != 0 && o->name != NULL)
        at = printf("  -%c, --%s", o->letter, o->name);
    else if (o->letter != 0)
        at = printf("  -%c", o->letter);
    else
        at = printf("      --%s", o->name);
    if (o->alias != NULL) at += printf(", --%s", o->alias);
    if (o->type != CLI_FLAG) at += printf(" %s", o->value);
    if (at + 2 > HELP_COLUMN) {
        putchar('\n');
        at = 0;
    }
    char names[CLI_FORMATS_TEXT], text[CLI_FORMATS_TEXT + 1024];
    const int some = o->holds != 0 || o->takes != 0, all = o->type == CLI_FORMAT && !o->flag;
    cli_formats(names, o->holds, o->takes, o->holds != 0);
    snprintf(text, sizeof text, "%s%s%s%s%s", some ? names : "", some ? ": " : "", o->help,
             all ? ": " : "", all ? names : "");
    print_wrapped(text, HELP_COLUMN, at);
}

int cli_print_help(const cli_verb *verb)
{
    const char *line = verb->synopsis;
    for (int first = 1; line != NULL; first = 0) {
        int length = (int)strcspn(line, "\n");
        printf("%s gnomon %s %.*s\n", first ? "Usage:" : "      ", verb->name, length, line);
        line = line[length] == '\n' ? line + length + 1 : NULL;
    }
    putchar('\n');
    print_wrapped(verb->about, 0, 0);
    for (size_t g = 0; g < verb->group_count; ++g) {
        printf("\n%s:\n", verb->groups[g].title);
        for (size_t i = 0; i < verb->groups[g].count; ++i)
            print_option(&verb->groups[g].options[i]);
        if (g + 1 == verb->group_count) printf("  -h, --help%*sthis text\n", HELP_COLUMN - 12, "");
    }
    printf("\nExamples:\n");
    line = verb->examples;
    while (*line != '\0') {
        int length = (int)strcspn(line, "\n");
        int command = line[0] >= 'a' && line[0] <= 'z';
        printf(command ? "    %.*s\n" : "  %.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
    return cli_flush_output(verb->name);
}
