/* What malloc has given out and not got back. mallinfo would do, but it takes what lies in the caches of
   threads for given out. And what NVIDIA's driver only keeps. */
#include <caml/mlvalues.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __GLIBC__
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static atomic_long live;

static void *given(void *block)
{
    atomic_fetch_add_explicit(&live, (long)malloc_usable_size(block), memory_order_relaxed);
    return block;
}

static void taken(void *block)
{
    atomic_fetch_sub_explicit(&live, (long)malloc_usable_size(block), memory_order_relaxed);
}

void *malloc(size_t size) { return given(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return given(__libc_calloc(count, size)); }
void *memalign(size_t alignment, size_t size) { return given(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size)
{
    void *made = memalign(alignment, size);
    if (made == NULL) return ENOMEM;
    *block = made;
    return 0;
}

void *realloc(void *old, size_t size)
{
    size_t before = malloc_usable_size(old);
    void *made = __libc_realloc(old, size);
    if (made == NULL && size > 0) return NULL;
    atomic_fetch_sub_explicit(&live, (long)before, memory_order_relaxed);
    return given(made);
}

void free(void *block)
{
    int error = errno;
    taken(block);
    __libc_free(block);
    errno = error;
}
#endif

/* A function of the installed driver, if that one is in use. */
static void *of_driver(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver ? dlsym(driver, name) : NULL;
}

typedef void *pool_t;

static pool_t default_pool(void)
{
    int (*get)(pool_t *, int) = of_driver("cuDeviceGetDefaultMemPool");
    pool_t pool = NULL;
    if (get) get(&pool, 0);
    return pool;
}

/* Gives back what the driver keeps for graphs to come, 32 MiB for each that once allocated memory at the same
   time, and for streams. */
value soak_trim(value unit)
{
    int (*trim_graphs)(int) = of_driver("cuDeviceGraphMemTrim");
    int (*trim_pool)(pool_t, size_t) = of_driver("cuMemPoolTrimTo");
    if (trim_graphs) trim_graphs(0);
    if (trim_pool) trim_pool(default_pool(), 0);
    return unit;
}

/* In KiB: what graphs use, what is reserved for graphs, and the same of the pool of streams. */
value soak_of_pools(value which)
{
    static const int graph_used = 0, graph_reserved = 2, pool_reserved = 5, pool_used = 7;
    int (*of_graphs)(int, int, uint64_t *) = of_driver("cuDeviceGetGraphMemAttribute");
    int (*of_pool)(pool_t, int, uint64_t *) = of_driver("cuMemPoolGetAttribute");
    uint64_t bytes = 0;
    if (of_graphs && of_pool) {
        switch (Int_val(which)) {
        case 0: of_graphs(0, graph_used, &bytes); break;
        case 1: of_graphs(0, graph_reserved, &bytes); break;
        case 2: of_pool(default_pool(), pool_used, &bytes); break;
        default: of_pool(default_pool(), pool_reserved, &bytes);
        }
    }
    return Val_long(bytes / 1024);
}

/* In KiB, after what malloc only keeps has gone back; 0 where nobody can tell. */
value soak_heap(value unit)
{
    (void)unit;
#ifdef __GLIBC__
    malloc_trim(0);
    return Val_long(atomic_load_explicit(&live, memory_order_relaxed) / 1024);
#else
    return Val_long(0);
#endif
}
