type result = Status.t

let sexp_of_result = Status.sexp_of_t

exception Cuda_error = Status.Cuda_error

let is_success = Status.is_success
let cuda_call_hook = Status.cuda_call_hook
let failed_release_hook = Status.failed_release_hook
let failed_releases = Raw.failed_releases
let init ?(flags = 0) () = Status.check "Cuda.init" "cu_init" (Raw.init flags)
let driver_description = Raw.driver_description

let driver_version () =
  Status.get "Cuda.driver_version" "cu_driver_get_version" (Raw.driver_version ())

type bigstring = Raw.bigstring

module Device = Device
module Context = Context
module Deviceptr = Deviceptr
module Module = Module_
module Stream = Stream
module Event = Event
module Delimited_event = Delimited_event
module Graph = Graph
module Nvrtc = Nvrtc
module Interop = Interop
