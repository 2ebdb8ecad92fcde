#include <stdint.h>

/* A frame of C between the Haskell caller and the loop, which keeps values in
   callee-saved registers: the STG machine's are on the C stack meanwhile. */
__attribute__((noinline)) uint64_t c_leaf(uint64_t x) {
    return x * UINT64_C(2862933555777941757) + UINT64_C(3037000493);
}

__attribute__((noinline)) uint64_t c_inner(uint64_t n) {
    uint64_t a = 1, b = 2, c = 3, d = 5, e = 7;
    while (n--) {
        a = c_leaf(a);
        b += c_leaf(a + c);
        c ^= c_leaf(b + d);
        d += c_leaf(c + e);
        e ^= a + b + c + d;
    }
    return a + b + c + d + e;
}

uint64_t c_unsafe(uint64_t n) { return c_inner(n) + 1; }

uint64_t c_safe(uint64_t n) { return c_inner(n) + 2; }
