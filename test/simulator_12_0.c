/* A driver of CUDA 12.0: the simulator under the names that such a driver has, and no newer ones. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef void function(void);

static function *simulator(const char *name)
{
    static void *library;
    if (!library) library = dlopen("$ORIGIN/../sim/libcudagraph_sim.so", RTLD_NOW);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "simulator_12_0: %s\n", dlerror());
        abort();
    }
    return (function *)found;
}

/* Whoever looks the name up gets the simulator's function. */
#define FUNCTION(name) \
    static function *find_##name(void) { return simulator(#name); } \
    function name __attribute__((ifunc("find_" #name)));
#include "simulator_12_0.h"

/* What the tests ask the simulator itself. */
FUNCTION(cusimBadHandles)
FUNCTION(cusimCalls)
FUNCTION(cusimFail)
FUNCTION(cusimFaults)
FUNCTION(cusimLive)
FUNCTION(cusimPause)
FUNCTION(cusimResume)

int cuDriverGetVersion(int *version)
{
    *version = 12000;
    return 0;
}

/* The attributes end at CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS. */
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    int (*newer)(int *, int, int) = (int (*)(int *, int, int))simulator("cuDeviceGetAttribute");
    return attribute > 129 ? 1 : newer(value, attribute, device);
}
