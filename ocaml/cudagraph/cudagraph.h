/* What C stubs of other OCaml libraries need: the driver's handles inside the values of cudagraph.

   A handle is valid as long as its value is alive. All functions are to be called with the OCaml runtime
   lock held, and none of them allocates or raises. Include cuda.h first, or take the handles as void *. */

#ifndef CUDAGRAPH_H
#define CUDAGRAPH_H

#include <caml/mlvalues.h>
#include <stddef.h>

#ifdef CUDA_VERSION
#define CUDAGRAPH_HANDLE(name) CU##name
#else
#define CUDAGRAPH_HANDLE(name) void *
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Cuda.Context.t */
extern CUDAGRAPH_HANDLE(context) cudagraph_c_context(value context);

/* Cuda.Stream.t; NULL for Stream.no_stream. From then on C may capture on the stream. */
extern CUDAGRAPH_HANDLE(stream) cudagraph_c_stream(value stream);

/* Cuda.Event.t. From then on C may record it in a capture. */
extern CUDAGRAPH_HANDLE(event) cudagraph_c_event(value event);

/* Cuda.Module.t and Cuda.Module.func */
extern CUDAGRAPH_HANDLE(module) cudagraph_c_module(value module);
extern CUDAGRAPH_HANDLE(function) cudagraph_c_func(value func);

/* Cuda.Deviceptr.t: a CUdeviceptr, 0 once freed; and the bytes of the allocation. */
extern unsigned long long cudagraph_c_deviceptr(value deviceptr);
extern size_t cudagraph_c_deviceptr_size(value deviceptr);

/* Cuda.Graph.t and Cuda.Graph.exec; NULL once destroyed. */
extern CUDAGRAPH_HANDLE(graph) cudagraph_c_graph(value graph);
extern CUDAGRAPH_HANDLE(graphExec) cudagraph_c_exec(value exec);

#ifdef __cplusplus
}
#endif

#endif
