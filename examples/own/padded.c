// A program in any language as a step: a line of JSON comes in for each request, a line goes out for each answer.
//   cc -O2 examples/own/padded.c -o padded
//   batchstep run examples/own/padded.toml
// It multiplies matrices of batch_size rows, padded to multiples of 8, so that its time jumps after 8, 16, 24, ... `./padded 1` pads nothing: a straight line.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 256, MOST = 1024 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

// The number after a key; a program with more to read would use a JSON library.
static long number(const char *line, const char *key) {
    const char *at = strstr(line, key);
    return at ? atol(at + strlen(key)) : 0;
}

int main(int count, char **words) {
    static float w[N][N], x[MOST][N], y[MOST][N];
    static char line[1 << 16];
    const long multiple = count > 1 && atol(words[1]) > 0 ? atol(words[1]) : 8;
    long rows = 0;  // of the step that is prepared; there is one at a time
    for (int i = 0; i < N * N; i++) w[i / N][i % N] = (float)(i % 7);
    while (fgets(line, sizeof line, stdin)) {
        if (strstr(line, "\"do\":\"open\"")) {
            puts("{\"ok\":{\"version\":\"padded 1.0\"}}");
        } else if (strstr(line, "\"do\":\"prepare\"")) {
            rows = (number(line, "\"batch_size\":") + multiple - 1) / multiple * multiple;
            puts(rows <= MOST ? "{\"ok\":{}}" : "{\"error\":{\"kind\":\"out_of_memory\",\"what\":\"more than 1024 rows\"}}");
        } else if (strstr(line, "\"do\":\"step\"")) {
            printf("{\"ok\":{\"steps\":[");
            for (long count = number(line, "\"count\":"), step = 0; step < count; step++) {
                double start = now();
                for (long r = 0; r < rows; r++)
                    for (int k = 0; k < N; k++)
                        for (int c = 0; c < N; c++) y[r][c] += x[r][k] * w[k][c];
                printf("%s{\"step_s\":%.9f}", step ? "," : "", now() - start);
            }
            puts("]}}");
        } else {  // release, and what later versions may ask
            puts("{\"ok\":{}}");
        }
        fflush(stdout);
    }
}
