#include "io/formats/csv.h"
#include "io/text/number.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

char gnomon_csv_guess_delimiter(const char *line, size_t length)
{
    static const char candidates[] = {'\t', ';', ',', ' '};
    bool seen[4] = {false}, quoted = false;
    while (length > 0 && is_blank(*line))
        line++, length--;
    while (length > 0 && is_blank(line[length - 1]))
        length--;
    for (size_t i = 0; i < length; i++) {
        if (line[i] == '"') quoted = !quoted;
        for (int c = 0; c < 4; c++)
            seen[c] |= !quoted && line[i] == candidates[c];
    }
    /* tabs beside blanks are a table laid out by hand, but ", " is a comma */
    for (int c = 0; c < 4; c++)
        if (seen[c]) return candidates[c];
    return ',';
}

void gnomon_csv_start(gnomon_csv_fields *fields, const char *line, size_t length, char delimiter)
{
    const char *end = line + length;
    if (delimiter == ' ') {
        while (line < end && is_blank(*line))
            line++;
        while (line < end && is_blank(end[-1]))
            end--;
    }
    *fields = (gnomon_csv_fields){line, end, delimiter, line == end && delimiter == ' '};
}

/* Goes past the delimiter at the field's end; false when something else stands there. */
static bool pass_delimiter(gnomon_csv_fields *f, const char *p)
{
    if (f->delimiter == ' ') {
        if (p < f->end && !is_blank(*p)) return false;
        while (p < f->end && is_blank(*p))
            p++;
        f->over = p == f->end;
    } else {
        while (p < f->end && is_blank(*p) && *p != f->delimiter)
            p++;
        if (p < f->end && *p != f->delimiter) return false;
        f->over = p == f->end;
        if (!f->over) p++;
    }
    f->p = p;
    return true;
}

static gnomon_csv_kind quoted_field(gnomon_csv_fields *f, const char *p, double *value,
                                    const char **text, size_t *length)
{
    const char *inside = p + 1, *q = inside;
    /* a doubled quote is a quote inside, so the field is text */
    while (q < f->end && (*q != '"' || (q + 1 < f->end && q[1] == '"')))
        q += *q == '"' ? 2 : 1;
    if (q >= f->end) {
        *text = p;
        *length = (size_t)(f->end - p);
        f->p = f->end;
        f->over = true;
        return GNOMON_CSV_UNCLOSED;
    }
    const char *stop = q;
    while (inside < stop && is_blank(*inside))
        inside++;
    while (inside < stop && is_blank(stop[-1]))
        stop--;
    if (pass_delimiter(f, q + 1)) {
        *text = inside;
        *length = (size_t)(stop - inside);
        if (gnomon_number_parse(*text, *length, value)) return GNOMON_CSV_NUMBER;
        *text = p;
        *length = (size_t)(q + 1 - p);
        return inside == stop ? GNOMON_CSV_EMPTY : GNOMON_CSV_OTHER;
    }
    while (q < f->end && *q != f->delimiter)
        q++;
    *text = p;
    *length = (size_t)(q - p);
    pass_delimiter(f, q);
    return GNOMON_CSV_OTHER;
}

gnomon_csv_kind gnomon_csv_next(gnomon_csv_fields *f, double *value, const char **text,
                                size_t *length)
{
    if (f->over) return GNOMON_CSV_END;
    const char *p = f->p;
    while (p < f->end && is_blank(*p) && *p != f->delimiter)
        p++;
    size_t consumed = gnomon_number_prefix(p, (size_t)(f->end - p), value);
    *text = p;
    *length = consumed;
    if (consumed > 0 && pass_delimiter(f, p + consumed)) return GNOMON_CSV_NUMBER;
    if (p < f->end && *p == '"') return quoted_field(f, p, value, text, length);

    const char *q = p;
    while (q < f->end && *q != f->delimiter && !(f->delimiter == ' ' && is_blank(*q)))
        q++;
    *text = p;
    const char *stop = q;
    while (stop > p && is_blank(stop[-1]))
        stop--;
    *length = (size_t)(stop - p);
    pass_delimiter(f, q);
    return stop == p ? GNOMON_CSV_EMPTY : GNOMON_CSV_OTHER;
}

bool gnomon_csv_skipped(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!is_blank(line[i]) && line[i] != '\r' && line[i] != '\f') return line[i] == '#';
    return true;
}
