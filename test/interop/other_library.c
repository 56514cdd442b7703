/* Stands for another library in the process: C code that knows the driver alone, and the handles inside
   our values by cudagraph.h. */

#define _GNU_SOURCE
#include <caml/alloc.h>
#include <caml/mlvalues.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "../../ocaml/cudagraph/cudagraph.h"

static void *driver(const char *name)
{
  static void *library;
  if (!library) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) library = dlopen("libcuda.so", RTLD_NOW | RTLD_NOLOAD);
  void *function = library ? dlsym(library, name) : NULL;
  if (!function) {
    fprintf(stderr, "other library: no %s\n", name);
    abort();
  }
  return function;
}

#define CALL(name, types, ...) (((int (*) types)driver(name))(__VA_ARGS__))

#define HANDLE(v) ((void *)Nativeint_val(v))

/* Makes objects of each kind; the OCaml side gets bare handles. */

value other_stream_create(value unit)
{
  void *stream;
  (void)unit;
  return CALL("cuStreamCreate", (void **, unsigned), &stream, 1) ? 0 : caml_copy_nativeint((intptr_t)stream);
}

value other_context(value unit)
{
  void *context, *popped;
  (void)unit;
  if (CALL("cuCtxCreate_v2", (void **, unsigned, int), &context, 0, 0)) return 0;
  CALL("cuCtxPopCurrent_v2", (void **), &popped);
  return caml_copy_nativeint((intptr_t)context);
}

value other_context_destroy(value context) { return Val_int(CALL("cuCtxDestroy_v2", (void *), HANDLE(context))); }

value other_stream_destroy(value stream) { return Val_int(CALL("cuStreamDestroy_v2", (void *), HANDLE(stream))); }

value other_memory(value bytes)
{
  unsigned long long address = 0;
  CALL("cuMemAlloc_v2", (unsigned long long *, size_t), &address, Long_val(bytes));
  return caml_copy_nativeint((intptr_t)address);
}

value other_free(value address)
{
  return Val_int(CALL("cuMemFree_v2", (unsigned long long), (unsigned long long)Nativeint_val(address)));
}

value other_begin_capture(value stream) { return Val_int(CALL("cuStreamBeginCapture_v2", (void *, int), HANDLE(stream), 2)); }

value other_end_capture(value stream)
{
  void *graph = NULL;
  int status = CALL("cuStreamEndCapture", (void *, void **), HANDLE(stream), &graph);
  return caml_copy_nativeint(status ? 0 : (intptr_t)graph);
}

value other_instantiate(value graph)
{
  void *exec = NULL;
  CALL("cuGraphInstantiateWithFlags", (void **, void *, unsigned long long), &exec, HANDLE(graph), 0);
  return caml_copy_nativeint((intptr_t)exec);
}

value other_launch(value exec, value stream) { return Val_int(CALL("cuGraphLaunch", (void *, void *), HANDLE(exec), HANDLE(stream))); }
value other_graph_destroy(value graph) { return Val_int(CALL("cuGraphDestroy", (void *), HANDLE(graph))); }
value other_exec_destroy(value exec) { return Val_int(CALL("cuGraphExecDestroy", (void *), HANDLE(exec))); }
value other_synchronize(value stream) { return Val_int(CALL("cuStreamSynchronize", (void *), HANDLE(stream))); }

/* The capture mode of the calling thread, which stays as it is. */
value other_thread_mode(value unit)
{
  int mode = 0, same;
  (void)unit;
  CALL("cuThreadExchangeStreamCaptureMode", (int *), &mode);
  same = mode;
  CALL("cuThreadExchangeStreamCaptureMode", (int *), &same);
  return Val_int(mode);
}

/* Takes our values themselves. */

value other_fill(value stream, value ptr, value n)
{
  size_t words = cudagraph_c_deviceptr_size(ptr) / 4;
  return Val_int(CALL("cuMemsetD32Async", (unsigned long long, unsigned, size_t, void *),
                      cudagraph_c_deviceptr(ptr), (unsigned)Long_val(n), words, cudagraph_c_stream(stream)));
}

value other_replay(value exec, value stream)
{
  return Val_int(CALL("cuGraphLaunch", (void *, void *), cudagraph_c_exec(exec), cudagraph_c_stream(stream)));
}

value other_nodes(value graph)
{
  size_t nodes = 0;
  CALL("cuGraphGetNodes", (void *, void **, size_t *), cudagraph_c_graph(graph), NULL, &nodes);
  return Val_long(nodes);
}
