#include <stdint.h>

uint64_t c_long(uint64_t x, uint64_t n) {
    while (n--) x = x * UINT64_C(2862933555777941757) + UINT64_C(3037000493);
    return x;
}
