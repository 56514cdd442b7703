#include <caml/alloc.h>
#include <caml/mlvalues.h>
#include <stdint.h>
#include <string.h>
#include "driver.h"

static void *handle(value v) { return (void *)Nativeint_val(v); }

value neighbour_create_stream(value unit)
{
  void *stream;
  (void)unit;
  CALL("cuStreamCreate", (void **, unsigned), &stream, 1 /* CU_STREAM_NON_BLOCKING */);
  return caml_copy_nativeint((intptr_t)stream);
}

value neighbour_destroy_stream(value stream)
{
  CALL("cuStreamDestroy_v2", (void *), handle(stream));
  return Val_unit;
}

value neighbour_allocate(value bytes)
{
  unsigned long long memory;
  CALL("cuMemAlloc_v2", (unsigned long long *, size_t), &memory, Long_val(bytes));
  return caml_copy_nativeint((intptr_t)memory);
}

value neighbour_free(value memory)
{
  CALL("cuMemFree_v2", (unsigned long long), (unsigned long long)Nativeint_val(memory));
  return Val_unit;
}

value neighbour_fill(value stream, value memory, value n, value number)
{
  float single = (float)Double_val(number);
  unsigned bits;
  memcpy(&bits, &single, sizeof bits);
  CALL("cuMemsetD32Async", (unsigned long long, unsigned, size_t, void *),
       (unsigned long long)Nativeint_val(memory), bits, Long_val(n), handle(stream));
  return Val_unit;
}

value neighbour_begin_capture(value stream)
{
  CALL("cuStreamBeginCapture_v2", (void *, int), handle(stream), 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */);
  return Val_unit;
}

value neighbour_end_capture(value stream)
{
  void *graph;
  CALL("cuStreamEndCapture", (void *, void **), handle(stream), &graph);
  return caml_copy_nativeint((intptr_t)graph);
}
