/* Calls of the driver that the program has loaded, which may be the simulator. Where a CUDA toolkit is at hand, and only
   the system's driver is used, one includes cuda.h and links with -lcuda instead. */

#define _GNU_SOURCE
#include <caml/fail.h>
#include <dlfcn.h>

static void *driver(const char *name)
{
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) library = dlopen("libcuda.so", RTLD_NOW | RTLD_NOLOAD);
  void *function = library ? dlsym(library, name) : NULL;
  if (!function) caml_failwith(name);
  return function;
}

/* CALL(name, types of the arguments, arguments...) raises when the driver refuses. */
#define CALL(name, types, ...) \
  do { \
    if (((int(*) types)driver(name))(__VA_ARGS__)) caml_failwith(name); \
  } while (0)
