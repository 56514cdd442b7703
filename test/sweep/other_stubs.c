/* Another library in the process, for the sweep: it uses functions of the driver that functions.ml lists. What
   it cannot make is NULL; what it ends or destroys, it tries twice. */
#define _GNU_SOURCE
#include <caml/alloc.h>
#include <caml/mlvalues.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

static void *driver(const char *name)
{
    void *library = dlopen("libcuda.so", RTLD_NOW | RTLD_NOLOAD);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) abort();
    return function;
}

#define CALL(name, types, ...) (((int (*) types)driver(name))(__VA_ARGS__))
#define TWICE(call) (void)((call) && (call))
#define HANDLE(v) ((void *)Nativeint_val(v))

static value handle(void *p) { return caml_copy_nativeint((intptr_t)p); }

value sweep_stream(value unit)
{
    void *stream = NULL;
    (void)unit;
    CALL("cuStreamCreateWithPriority", (void **, unsigned, int), &stream, 1, 0);
    return handle(stream);
}

value sweep_stream_destroy(value stream)
{
    TWICE(CALL("cuStreamSynchronize", (void *), HANDLE(stream)));
    TWICE(CALL("cuStreamDestroy_v2", (void *), HANDLE(stream)));
    return Val_unit;
}

value sweep_memory(value unit)
{
    unsigned long long address = 0;
    (void)unit;
    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), &address, 4);
    if (address) TWICE(CALL("cuMemsetD32_v2", (unsigned long long, unsigned, size_t), address, 0, 1));
    return handle((void *)(uintptr_t)address);
}

value sweep_memory_free(value address)
{
    TWICE(CALL("cuMemFree_v2", (unsigned long long), (unsigned long long)Nativeint_val(address)));
    return Val_unit;
}

value sweep_event(value unit)
{
    void *event = NULL;
    (void)unit;
    CALL("cuEventCreate", (void **, unsigned), &event, 2);
    return handle(event);
}

value sweep_event_destroy(value event)
{
    TWICE(CALL("cuEventDestroy_v2", (void *), HANDLE(event)));
    return Val_unit;
}

value sweep_begin(value stream)
{
    return Val_bool(!CALL("cuStreamBeginCapture_v2", (void *, int), HANDLE(stream), 2));
}

value sweep_end(value stream)
{
    void *graph = NULL;
    TWICE(CALL("cuStreamEndCapture", (void *, void **), HANDLE(stream), &graph));
    return handle(graph);
}

value sweep_graph_destroy(value graph)
{
    TWICE(CALL("cuGraphDestroy", (void *), HANDLE(graph)));
    return Val_unit;
}

value sweep_instantiate(value graph)
{
    void *exec = NULL;
    CALL("cuGraphInstantiateWithFlags", (void **, void *, unsigned long long), &exec, HANDLE(graph), 0);
    return handle(exec);
}

value sweep_launch(value exec, value stream)
{
    return Val_bool(!CALL("cuGraphLaunch", (void *, void *), HANDLE(exec), HANDLE(stream)));
}

value sweep_exec_destroy(value exec)
{
    TWICE(CALL("cuGraphExecDestroy", (void *), HANDLE(exec)));
    return Val_unit;
}
