/* A CUDA driver that does nothing: every call succeeds at once. What a program costs on it is the cost
 * of the program itself. It knows only so much state as the library asks about: whether a stream
 * captures and how many kernels it captured, and the parameters of the kernels in kernels.cu. */

#include <stddef.h>
#include <string.h>

#define SUCCESS 0
#define INVALID_VALUE 1
#define EXPORT __attribute__((visibility("default")))

/* The arguments of calls that only have to succeed are not looked at. */
#define NOTHING(name) EXPORT int name(void) { return SUCCESS; }

NOTHING(cuInit)
NOTHING(cuDevicePrimaryCtxRelease_v2)
NOTHING(cuDevicePrimaryCtxReset_v2)
NOTHING(cuDeviceGetP2PAttribute)
NOTHING(cuDeviceCanAccessPeer)
NOTHING(cuCtxDestroy_v2)
NOTHING(cuCtxSetCurrent)
NOTHING(cuCtxPushCurrent_v2)
NOTHING(cuCtxGetFlags)
NOTHING(cuCtxGetLimit)
NOTHING(cuCtxSetLimit)
NOTHING(cuCtxSynchronize)
NOTHING(cuCtxEnablePeerAccess)
NOTHING(cuCtxDisablePeerAccess)
NOTHING(cuMemFree_v2)
NOTHING(cuMemFreeAsync)
NOTHING(cuMemcpyPeer)
NOTHING(cuMemcpyPeerAsync)
NOTHING(cuMemcpyHtoD_v2)
NOTHING(cuMemcpyDtoH_v2)
NOTHING(cuMemcpyDtoD_v2)
NOTHING(cuMemcpyHtoDAsync_v2)
NOTHING(cuMemcpyDtoHAsync_v2)
NOTHING(cuMemcpyDtoDAsync_v2)
NOTHING(cuMemsetD8_v2)
NOTHING(cuMemsetD16_v2)
NOTHING(cuMemsetD32_v2)
NOTHING(cuMemsetD8Async)
NOTHING(cuMemsetD16Async)
NOTHING(cuMemsetD32Async)
NOTHING(cuModuleUnload)
NOTHING(cuModuleGetGlobal_v2)
NOTHING(cuFuncSetAttribute)
NOTHING(cuFuncGetModule)
NOTHING(cuOccupancyMaxActiveBlocksPerMultiprocessor)
NOTHING(cuOccupancyMaxPotentialBlockSize)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuStreamSynchronize)
NOTHING(cuStreamQuery)
NOTHING(cuStreamGetId)
NOTHING(cuStreamGetCtx)
NOTHING(cuStreamGetFlags)
NOTHING(cuStreamWaitEvent)
NOTHING(cuStreamAttachMemAsync)
NOTHING(cuEventDestroy_v2)
NOTHING(cuEventRecord)
NOTHING(cuEventRecordWithFlags)
NOTHING(cuEventQuery)
NOTHING(cuEventSynchronize)
NOTHING(cuEventElapsedTime)
NOTHING(cuGraphLaunch)
NOTHING(cuGraphDestroy)
NOTHING(cuDeviceGraphMemTrim)
NOTHING(cuGraphExecDestroy)
NOTHING(cuGraphRetainUserObject)
NOTHING(cuUserObjectRelease)

/* Handles and addresses: numbers that were not handed out before. */
static size_t fresh(void)
{
    static size_t last = 0x10000;
    return __atomic_add_fetch(&last, 0x1000, __ATOMIC_RELAXED);
}

#define MAKES(name) \
    EXPORT int name(size_t *made) { *made = fresh(); return SUCCESS; }

MAKES(cuCtxCreate_v2)
MAKES(cuMemAlloc_v2)
MAKES(cuMemAllocManaged)
MAKES(cuMemAllocAsync)
MAKES(cuModuleLoadDataEx)
MAKES(cuModuleLoadData)
MAKES(cuStreamCreateWithPriority)
MAKES(cuStreamCreate)
MAKES(cuEventCreate)
MAKES(cuGraphInstantiateWithFlags)
MAKES(cuUserObjectCreate)

/* One device and one context. */

#define THE_CONTEXT ((void *)0x1000)

EXPORT int cuDriverGetVersion(int *version) { *version = 13000; return SUCCESS; }
EXPORT int cuDeviceGetCount(int *count) { *count = 1; return SUCCESS; }
EXPORT int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return SUCCESS; }
EXPORT int cuDeviceTotalMem_v2(size_t *bytes) { *bytes = (size_t)1 << 37; return SUCCESS; }
EXPORT int cuCtxGetDevice(int *device) { *device = 0; return SUCCESS; }
EXPORT int cuCtxGetCurrent(void **context) { *context = THE_CONTEXT; return SUCCESS; }
EXPORT int cuCtxPopCurrent_v2(void **context) { *context = THE_CONTEXT; return SUCCESS; }
EXPORT int cuDevicePrimaryCtxRetain(void **context) { *context = THE_CONTEXT; return SUCCESS; }

EXPORT int cuDeviceGetName(char *name, int size)
{
    strncpy(name, "nothing", (size_t)size);
    return SUCCESS;
}

/* Limits of launches among them: large enough for any. */
EXPORT int cuDeviceGetAttribute(int *value) { *value = 1024; return SUCCESS; }
EXPORT int cuFuncGetAttribute(int *value) { *value = 1024; return SUCCESS; }

EXPORT int cuMemGetInfo_v2(size_t *available, size_t *total)
{
    *available = *total = (size_t)1 << 37;
    return SUCCESS;
}

EXPORT int cuPointerGetAttribute(void **context) { *context = THE_CONTEXT; return SUCCESS; }

/* Kernels: a handle is one of these. */

struct kernel {
    const char *name;
    size_t parameters, sizes[12];
};

static const struct kernel kernels[] = {
    { "one", 1, { 8 } },
    { "five", 5, { 8, 8, 4, 4, 8 } },
    { "twelve", 12, { 8, 8, 8, 8, 4, 4, 4, 4, 8, 8, 8, 8 } },
};

EXPORT int cuModuleGetFunction(const struct kernel **made, void *module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, name) == 0) {
            *made = &kernels[i];
            return SUCCESS;
        }
    return INVALID_VALUE;
}

EXPORT int cuFuncGetParamInfo(const struct kernel *kernel, size_t index, size_t *offset, size_t *size)
{
    if (index >= kernel->parameters)
        return INVALID_VALUE;
    *offset = 8 * index;
    *size = kernel->sizes[index];
    return SUCCESS;
}

/* Captures: those of one thread do not see those of another. */

static __thread size_t capturing, capture, captured, ended;

EXPORT int cuStreamBeginCapture_v2(size_t stream)
{
    capturing = stream;
    capture = fresh();
    captured = 0;
    return SUCCESS;
}

EXPORT int cuStreamEndCapture(size_t stream, size_t *graph)
{
    (void)stream;
    capturing = 0;
    ended = captured;
    *graph = capture;
    return SUCCESS;
}

EXPORT int cuStreamIsCapturing(size_t stream, int *status)
{
    *status = stream == capturing;
    return SUCCESS;
}

EXPORT int cuStreamGetCaptureInfo_v2(size_t stream, int *status, size_t *id)
{
    *status = stream == capturing;
    *id = capture;
    return SUCCESS;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
    static __thread int current;
    int previous = current;
    current = *mode;
    *mode = previous;
    return SUCCESS;
}

EXPORT int cuLaunchKernel(void)
{
    captured++;
    return SUCCESS;
}

/* Of the graph that this thread captured last. */
EXPORT int cuGraphGetNodes(size_t graph, void **nodes, size_t *count)
{
    (void)graph;
    (void)nodes;
    *count = ended;
    return SUCCESS;
}
