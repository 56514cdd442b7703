#include <caml/alloc.h>
#include <caml/mlvalues.h>
#include <cudagraph.h>

#ifdef __cplusplus
extern "C" {
#endif

value with_stubs_bytes(value ptr) { return Val_long(cudagraph_c_deviceptr_size(ptr)); }
value with_stubs_stream(value stream) { return caml_copy_nativeint((intnat)cudagraph_c_stream(stream)); }

#ifdef __cplusplus
}
#endif
