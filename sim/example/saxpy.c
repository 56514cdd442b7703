/* A program that uses CUDA's driver interface directly: it loads a kernel, captures two launches as a graph
 * and replays that. It is built against the driver's header if there is one, else against the declarations
 * below, and runs on a GPU or on the simulator.
 *
 * With the argument `overrun` it has an error: the memory that the kernel writes is too small. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#define HAS_HEADER
#endif
#endif

#ifndef HAS_HEADER
typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
#define CUDA_SUCCESS 0
#define CU_STREAM_NON_BLOCKING 1
#define CU_STREAM_CAPTURE_MODE_GLOBAL 0
/* The names that the header gives to the newest forms. */
#define cuMemAlloc cuMemAlloc_v2
#define cuMemFree cuMemFree_v2
#define cuMemcpyHtoD cuMemcpyHtoD_v2
#define cuMemcpyDtoH cuMemcpyDtoH_v2
#define cuStreamBeginCapture cuStreamBeginCapture_v2
#define cuStreamDestroy cuStreamDestroy_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
CUresult cuInit(unsigned flags);
CUresult cuGetErrorName(CUresult status, const char **name);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetName(char *name, int size, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree(CUdeviceptr address);
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamBeginCapture(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **parameters, void **extra);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphDestroy(CUgraph graph);
#endif

/* y[i] += a * x[i], for one block. */
static const char saxpy_ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y)\n"
    "{\n"
    "    .reg .f32 %f<5>;\n"
    "    .reg .b32 %r<2>;\n"
    "    .reg .b64 %d<6>;\n"
    "    ld.param.f32 %f1, [a];\n"
    "    ld.param.u64 %d1, [x];\n"
    "    ld.param.u64 %d2, [y];\n"
    "    mov.u32 %r1, %tid.x;\n"
    "    mul.wide.u32 %d3, %r1, 4;\n"
    "    add.s64 %d4, %d1, %d3;\n"
    "    add.s64 %d5, %d2, %d3;\n"
    "    ld.global.f32 %f2, [%d4];\n"
    "    ld.global.f32 %f3, [%d5];\n"
    "    fma.rn.f32 %f4, %f1, %f2, %f3;\n"
    "    st.global.f32 [%d5], %f4;\n"
    "    ret;\n"
    "}\n";

static void check(CUresult status, const char *call) {
    const char *name = "an unknown status";
    if (status == CUDA_SUCCESS) return;
    cuGetErrorName(status, &name);
    fprintf(stderr, "%s: %s\n", call, name);
    exit(1);
}

#define CHECK(call) check((call), #call)

enum { N = 256, LAUNCHES = 10 };

int main(int argc, char **argv) {
    int overrun = argc > 1 && strcmp(argv[1], "overrun") == 0;
    size_t size = (overrun ? N - 1 : N) * sizeof(float);
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction saxpy;
    CUdeviceptr x, y;
    CUstream stream;
    CUgraph graph;
    CUgraphExec step;
    char name[64];
    float host[N], a = 2.0f;
    int i;

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, saxpy_ptx));
    CHECK(cuModuleGetFunction(&saxpy, module, "saxpy"));

    CHECK(cuMemAlloc(&x, N * sizeof(float)));
    CHECK(cuMemAlloc(&y, size));
    for (i = 0; i < N; i++) host[i] = 1.0f;
    CHECK(cuMemcpyHtoD(x, host, N * sizeof(float)));
    CHECK(cuMemcpyHtoD(y, host, size));

    /* Between these two, launches are recorded and not executed. */
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (i = 0; i < 2; i++) {
        void *parameters[] = {&a, &x, &y};
        CHECK(cuLaunchKernel(saxpy, 1, 1, 1, N, 1, 1, 0, stream, parameters, NULL));
    }
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiateWithFlags(&step, graph, 0));

    for (i = 0; i < LAUNCHES; i++) CHECK(cuGraphLaunch(step, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemcpyDtoH(host, y, size));

    CHECK(cuGraphExecDestroy(step));
    CHECK(cuGraphDestroy(graph));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuMemFree(x));
    CHECK(cuMemFree(y));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));

    for (i = 0; i < N; i++) {
        if (host[i] != 1.0f + LAUNCHES * 2 * a) {
            fprintf(stderr, "y[%d] = %g\n", i, host[i]);
            return 1;
        }
    }
    printf("y = %g after %d launches on %s\n", host[0], LAUNCHES, name);
    return 0;
}
