#include <caml/mlvalues.h>
#include <stdint.h>
#include <time.h>

intnat bench_clock_now(value unit)
{
    struct timespec now;
    (void)unit;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (intnat)now.tv_sec * 1000000000 + now.tv_nsec;
}

value bench_clock_now_byte(value unit)
{
    return Val_long(bench_clock_now(unit));
}
