/* Cycles of the instructions that look sums up (docs/design_notes.md, "Sweeps in int16"), from registers only.

       cc -O2 -march=native benchmarks/lookup_pairs.c -o lookup_pairs && ./lookup_pairs

   Needs AVX-512BW. A cycle is the time of an addition that waits for the one before it. */
#include <stdio.h>
#include <time.h>

#define REPEATS 500000
#define EIGHT(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7)
#define LOOK_UP(i) "vpermw %%zmm30, %%zmm31, %%zmm1" #i "\n"
#define ADD(i) "vpaddw %%zmm30, %%zmm2" #i ", %%zmm2" #i "\n"
#define PAIR(i) "vpermw %%zmm30, %%zmm31, %%zmm1" #i "\n vpaddw %%zmm1" #i ", %%zmm2" #i ", %%zmm2" #i "\n"
#define PAIR_OF_TWO(i) \
    "vmovdqa64 %%zmm30, %%zmm1" #i "\n vpermi2w %%zmm29, %%zmm31, %%zmm1" #i \
    "\n vpaddw %%zmm1" #i ", %%zmm2" #i ", %%zmm2" #i "\n"

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double cycle(void) {
    double best = 1.0;
    for (int round = 0; round < 20; round++) {
        unsigned long x = round;
        double start = seconds();
        for (long i = 0; i < 2500000; i++)
            __asm__ volatile("add $1, %0\n add $1, %0\n add $1, %0\n add $1, %0" : "+r"(x));
        double took = (seconds() - start) / 1e7;
        best = took < best ? took : best;
    }
    return best;
}

#define CLOBBERED \
    "zmm10", "zmm11", "zmm12", "zmm13", "zmm14", "zmm15", "zmm16", "zmm17", "zmm20", "zmm21", "zmm22", \
    "zmm23", "zmm24", "zmm25", "zmm26", "zmm27"

#define TIME(name, what) \
    { \
        double best = 1.0; \
        for (int round = 0; round < 20; round++) { \
            double start = seconds(); \
            for (int i = 0; i < REPEATS; i++) __asm__ volatile(EIGHT(what) ::: CLOBBERED); \
            double took = (seconds() - start) / (8.0 * REPEATS); \
            best = took < best ? took : best; \
        } \
        printf("%-36s %.3f ns, %.2f cycles\n", name, 1e9 * best, best / unit); \
    }

int main(void) {
    double unit = cycle();
    printf("%.2f GHz\n", 1e-9 / unit);
    TIME("vpermw", LOOK_UP)
    TIME("vpaddw", ADD)
    TIME("vpermw, vpaddw", PAIR)
    TIME("copy of the index, vpermi2w, vpaddw", PAIR_OF_TWO)
    return 0;
}
