(* Every function that the Rust core exports, and nothing else. Not part of the public interface.

   A driver status comes back as an [int]: 0 is success, a positive number is a CUresult, and
   {!invalid_argument} means that the core refused an argument before any driver call. After a
   failure [detail ()] is the text that explains it on the calling thread, or [""]. *)

type device = int
type context
type deviceptr
type modul
type func
type stream
type event
type graph
type exec
type status = int
type ('a, 'b, 'c) host = ('a, 'b, 'c) Bigarray.Genarray.t
type bigstring = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t

let invalid_argument : status = -1

external detail : unit -> string = "cudagraph_detail"
external init : int -> status = "cudagraph_init"
external driver_description : unit -> string = "cudagraph_driver_description"

(* 12040 for CUDA 12.4 *)
external driver_version : unit -> (int, status) result = "cudagraph_driver_version"

(* A device is the driver's own small integer. *)

external device_count : unit -> (int, status) result = "cudagraph_device_count"
external device_get : int -> (int, status) result = "cudagraph_device_get"
external device_name : int -> (string, status) result = "cudagraph_device_name"

(* [device_attribute device attribute] *)
external device_attribute : int -> int -> (int, status) result
  = "cudagraph_device_attribute"

external device_total_memory : int -> (int, status) result
  = "cudagraph_device_total_memory"

(* [device_link_attribute attribute device peer], a CUdevice_P2PAttribute *)
external device_link_attribute : int -> int -> int -> (int, status) result
  = "cudagraph_device_link_attribute"

(* [device_can_access_peer device peer] *)
external device_can_access_peer : int -> int -> (bool, status) result
  = "cudagraph_device_can_access_peer"

external primary_ctx_reset : int -> status = "cudagraph_primary_ctx_reset"

(* free and total bytes *)
external mem_info : unit -> (int * int, status) result = "cudagraph_mem_info"

(* Contexts *)

external ctx_primary : int -> (context, status) result = "cudagraph_ctx_primary"

(* [ctx_create flags device] *)
external ctx_create : int -> int -> (context, status) result = "cudagraph_ctx_create"
external ctx_current : unit -> (context, status) result = "cudagraph_ctx_current"
external ctx_set_current : context -> status = "cudagraph_ctx_set_current"
external ctx_push : context -> status = "cudagraph_ctx_push"
external ctx_pop : unit -> (context, status) result = "cudagraph_ctx_pop"
external ctx_device : unit -> (int, status) result = "cudagraph_ctx_device"
external ctx_flags : unit -> (int, status) result = "cudagraph_ctx_flags"
external ctx_get_limit : int -> (int, status) result = "cudagraph_ctx_get_limit"
external ctx_set_limit : int -> int -> status = "cudagraph_ctx_set_limit"

(* [ctx_enable_peer_access peer flags], for the current context *)
external ctx_enable_peer_access : context -> int -> status
  = "cudagraph_ctx_enable_peer_access"

external ctx_disable_peer_access : context -> status = "cudagraph_ctx_disable_peer_access"
external ctx_is_usable : context -> (bool, status) result = "cudagraph_ctx_is_usable"
external ctx_synchronize : unit -> status = "cudagraph_ctx_synchronize"
external ctx_address : context -> nativeint = "cudagraph_ctx_address"

(* Device memory. Offsets and sizes are in bytes; the core checks the device side against the
   allocation, the OCaml side checks the bigarray. *)

external mem_alloc : int -> (deviceptr, status) result = "cudagraph_mem_alloc"

(* [mem_alloc_managed size flags], a CUmemAttach_flags *)
external mem_alloc_managed : int -> int -> (deviceptr, status) result
  = "cudagraph_mem_alloc_managed"

external mem_free : deviceptr -> status = "cudagraph_mem_free"

(* The address as the 64 bits of a [nativeint]. *)
external ptr_address : deviceptr -> nativeint = "cudagraph_ptr_address"

(* Bytes of the allocation, or -1 when they are not known. *)
external ptr_size : deviceptr -> int = "cudagraph_ptr_size"
external ptr_is_freed : deviceptr -> bool = "cudagraph_ptr_is_freed"

(* [h2d dst dst_offset src host_offset size] *)
external h2d : deviceptr -> int -> ('a, 'b, 'c) host -> int -> int -> status
  = "cudagraph_h2d"

(* [d2h dst host_offset src src_offset size] *)
external d2h : ('a, 'b, 'c) host -> int -> deviceptr -> int -> int -> status
  = "cudagraph_d2h"

(* [d2d dst dst_offset src src_offset size] *)
external d2d : deviceptr -> int -> deviceptr -> int -> int -> status = "cudagraph_d2d"

type peer_end = { memory : deviceptr; offset : int; context : context }

(* [peer dst src size] *)
external peer : peer_end -> peer_end -> int -> status = "cudagraph_peer"

(* [memset dst offset width value count]: [width] is 1, 2 or 4 bytes, [count] in elements *)
external memset : deviceptr -> int -> int -> int -> int -> status = "cudagraph_memset"

(* The same to and from a bare host address, which the caller keeps alive:
   [h2d_unsafe dst address size], [d2h_unsafe address src size] *)
external h2d_unsafe : deviceptr -> nativeint -> int -> status = "cudagraph_h2d_unsafe"
external d2h_unsafe : nativeint -> deviceptr -> int -> status = "cudagraph_d2h_unsafe"

(* Modules *)

(* [module_load image options logs]: an option is the number of its CUjit_option with its value;
   for a log buffer the value is the buffer's index in [logs]. Its size option is added here. *)
external module_load :
  string -> (int * int) array -> bigstring array -> (modul, status) result
  = "cudagraph_module_load"

external module_function : modul -> string -> (func, status) result
  = "cudagraph_module_function"

external module_global : modul -> string -> (deviceptr, status) result
  = "cudagraph_module_global"

external module_address : modul -> nativeint = "cudagraph_module_address"
external func_name : func -> string = "cudagraph_func_name"

(* [func_attribute func attribute], a CUfunction_attribute *)
external func_attribute : func -> int -> (int, status) result = "cudagraph_func_attribute"

(* [func_set_shared_limit func bytes]: dynamic shared memory *)
external func_set_shared_limit : func -> int -> status = "cudagraph_func_set_shared_limit"

(* [func_active_blocks func block_size shared_bytes] *)
external func_active_blocks : func -> int -> int -> (int, status) result
  = "cudagraph_func_active_blocks"

(* [func_best_block func shared_bytes limit]: grid and block size *)
external func_best_block : func -> int -> int -> (int * int, status) result
  = "cudagraph_func_best_block"

(* Streams *)

(* [stream_create non_blocking priority] *)
external stream_create : bool -> int -> (stream, status) result
  = "cudagraph_stream_create"

(* The NULL stream of whatever context is current when it is used. *)
external stream_null : unit -> stream = "cudagraph_stream_null"
external stream_synchronize : stream -> status = "cudagraph_stream_synchronize"

(* 0 when idle, 600 (CUDA_ERROR_NOT_READY) when not *)
external stream_query : stream -> status = "cudagraph_stream_query"
external stream_context : stream -> (context, status) result = "cudagraph_stream_context"
external stream_id : stream -> (nativeint, status) result = "cudagraph_stream_id"
external stream_address : stream -> nativeint = "cudagraph_stream_address"

external stream_is_capturing : stream -> (bool, status) result
  = "cudagraph_stream_is_capturing"

(* Whether the calling thread has begun a capture that is still open. *)
external captures_here : unit -> bool = "cudagraph_captures_here"

(* How many resources the stream holds for work that may be pending. *)
external stream_held : stream -> int = "cudagraph_stream_held"
external streams_live : unit -> int = "cudagraph_streams_live"

(* [launch_kernel func gx gy gz bx by bz shared_bytes stream params]. ['param] is
   Stream.kernel_param, whose layout the core knows. *)
external launch_kernel :
  func -> int -> int -> int -> int -> int -> int -> int -> stream -> 'param list -> status
  = "cudagraph_launch_kernel_byte" "cudagraph_launch_kernel"

(* The same with a list of Stream.Argument.t. *)
external launch_arguments :
  func -> int -> int -> int -> int -> int -> int -> int -> stream -> 'arg list -> status
  = "cudagraph_launch_arguments_byte" "cudagraph_launch_arguments"

external stream_mem_alloc : stream -> int -> (deviceptr, status) result
  = "cudagraph_stream_mem_alloc"

external stream_mem_free : stream -> deviceptr -> status = "cudagraph_stream_mem_free"

(* [stream_attach stream ptr size flags], a CUmemAttach_flags *)
external stream_attach : stream -> deviceptr -> int -> int -> status
  = "cudagraph_stream_attach"

external peer_async : peer_end -> peer_end -> int -> stream -> status
  = "cudagraph_peer_async"

external h2d_async :
  deviceptr -> int -> ('a, 'b, 'c) host -> int -> int -> stream -> status
  = "cudagraph_h2d_async_byte" "cudagraph_h2d_async"

external d2h_async :
  ('a, 'b, 'c) host -> int -> deviceptr -> int -> int -> stream -> status
  = "cudagraph_d2h_async_byte" "cudagraph_d2h_async"

external d2d_async : deviceptr -> int -> deviceptr -> int -> int -> stream -> status
  = "cudagraph_d2d_async_byte" "cudagraph_d2d_async"

external memset_async : deviceptr -> int -> int -> int -> int -> stream -> status
  = "cudagraph_memset_async_byte" "cudagraph_memset_async"

external h2d_async_unsafe : deviceptr -> nativeint -> int -> stream -> status
  = "cudagraph_h2d_async_unsafe"

external d2h_async_unsafe : nativeint -> deviceptr -> int -> stream -> status
  = "cudagraph_d2h_async_unsafe"

(* Events *)

(* [event_create flags]: CUevent_flags *)
external event_create : int -> (event, status) result = "cudagraph_event_create"

(* In the context of a stream. *)
external event_create_for : stream -> int -> (event, status) result
  = "cudagraph_event_create_for"

(* [event_record event stream external_] and [event_wait stream event external_] *)
external event_record : event -> stream -> bool -> status = "cudagraph_event_record"
external event_wait : stream -> event -> bool -> status = "cudagraph_event_wait"
external event_query : event -> status = "cudagraph_event_query"
external event_synchronize : event -> status = "cudagraph_event_synchronize"

(* milliseconds *)
external event_elapsed : event -> event -> (float, status) result
  = "cudagraph_event_elapsed"

external event_address : event -> nativeint = "cudagraph_event_address"

(* Graphs *)

(* [begin_capture stream mode]: 0 GLOBAL, 1 THREAD_LOCAL, 2 RELAXED *)
external begin_capture : stream -> int -> status = "cudagraph_begin_capture"
external end_capture : stream -> (graph, status) result = "cudagraph_end_capture"

(* Closes whatever capture the stream began, if any, and forgets its graph. *)
external abandon_capture : stream -> unit = "cudagraph_abandon_capture"

(* Closes the captures that the calling thread has begun. *)
external close_captures : unit -> unit = "cudagraph_close_captures"

(* [instantiate graph flags] *)
external instantiate : graph -> int -> (exec, status) result = "cudagraph_instantiate"
external graph_launch : exec -> stream -> status = "cudagraph_graph_launch"
external graph_destroy : graph -> status = "cudagraph_graph_destroy"
external exec_destroy : exec -> status = "cudagraph_exec_destroy"

type graph_info = { address : nativeint; live : bool; nodes : int; held : int }
(** [nodes] is as counted by the driver when the graph was captured; [held] counts the
    resources that it keeps alive. *)

external graph_info : graph -> graph_info = "cudagraph_graph_info"
external exec_info : exec -> graph_info = "cudagraph_exec_info"

(* Releases: runs what the garbage collector has queued; how many failed so far. *)

external release_done : unit -> unit = "cudagraph_release_done"
external make_room : unit -> unit = "cudagraph_make_room"
external failed_releases : unit -> int = "cudagraph_failed_releases"

(* The oldest failure that was not taken yet: the driver function and its status. *)
external take_failed_release : unit -> (string * status) option
  = "cudagraph_take_failed_release"
