#include <stdint.h>

/* Dependent multiplications, so that the time is the iterations'. */
static uint64_t turn(uint64_t x, uint64_t n) {
    while (n--) x = x * UINT64_C(2862933555777941757) + UINT64_C(3037000493);
    return x;
}

/* A frame of C between the Haskell caller and the loop. */
__attribute__((noinline)) uint64_t c_inner(uint64_t x, uint64_t n) { return turn(x, n); }

uint64_t c_spin_unsafe(uint64_t x, uint64_t n) { return c_inner(x, n) + 1; }

uint64_t c_spin_safe(uint64_t x, uint64_t n) { return c_inner(x, n) + 2; }

uint64_t c_call_back(uint64_t (*f)(uint64_t), uint64_t x) { return f(x) + 3; }
