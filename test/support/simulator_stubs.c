/* The simulator's functions for tests, found in the driver that is loaded. */
#define _GNU_SOURCE
#include <caml/alloc.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <dlfcn.h>
#include <stdint.h>

static void *find(const char *name)
{
    void *driver = dlopen("libcuda.so", RTLD_LAZY | RTLD_NOLOAD);
    return driver ? dlsym(driver, name) : NULL;
}

value support_count(value function, value kind)
{
    uint64_t (*f)(const char *) = (uint64_t (*)(const char *))find(String_val(function));
    return Val_long(f ? (long)f(String_val(kind)) : -1);
}

value support_calls_of_all(value unit)
{
    uint64_t (*f)(const char *) = (uint64_t (*)(const char *))find("cusimCalls");
    (void)unit;
    return Val_long(f ? (long)f(NULL) : -1);
}

value support_call(value function)
{
    void (*f)(void) = (void (*)(void))find(String_val(function));
    if (f) f();
    return Val_unit;
}

value support_fail(value spec)
{
    int (*f)(const char *) = (int (*)(const char *))find("cusimFail");
    return Val_int(f ? f(String_val(spec)) : -1);
}
