#include <caml/mlvalues.h>
#include <cudagraph.h>
#include <string.h>
#include "driver.h"

value fill_enqueue(value stream, value memory, value number)
{
  float single = (float)Double_val(number);
  unsigned bits;
  memcpy(&bits, &single, sizeof bits);
  CALL("cuMemsetD32Async", (unsigned long long, unsigned, size_t, void *), cudagraph_c_deviceptr(memory), bits,
       cudagraph_c_deviceptr_size(memory) / sizeof bits, cudagraph_c_stream(stream));
  return Val_unit;
}
