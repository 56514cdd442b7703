(* Handles in and out: what {!Interop} needs of the Rust core. Not part of the public interface.

   [take_*] makes a value of a driver's handle: [own] is whether it is destroyed here, [keep] what
   stays alive as long as the value is needed. *)

open Raw

external take_device : int -> (device, status) result = "cudagraph_take_device"
external take_context : nativeint -> (context, status) result = "cudagraph_take_context"

external take_stream : nativeint -> bool -> 'k option -> (stream, status) result
  = "cudagraph_take_stream"

external take_module : nativeint -> bool -> 'k option -> (modul, status) result
  = "cudagraph_take_module"

external take_event : nativeint -> bool -> 'k option -> (event, status) result
  = "cudagraph_take_event"

external take_graph : nativeint -> bool -> 'k option -> (graph, status) result
  = "cudagraph_take_graph"

external take_exec : nativeint -> bool -> 'k option -> (exec, status) result
  = "cudagraph_take_exec"

(* [take_func handle name keep] *)
external take_func : nativeint -> string -> 'k option -> (func, status) result
  = "cudagraph_take_func"

(* [take_memory address size_in_bytes own keep] *)
external take_memory : nativeint -> int -> bool -> 'k option -> (deviceptr, status) result
  = "cudagraph_take_memory"

(* [keep_for stream value] *)
external keep_for : stream -> 'k -> status = "cudagraph_keep_for"

(* Handles of what others may capture on from now on. *)
external share_stream : stream -> nativeint = "cudagraph_share_stream"
external share_event : event -> nativeint = "cudagraph_share_event"
external func_address : func -> nativeint = "cudagraph_func_address"

(* [managed_array ptr flags bytes dimensions]: flags of the kind and the layout, as in C *)
external managed_array :
  deviceptr -> int -> int -> int array -> (('a, 'b, 'c) host, status) result
  = "cudagraph_managed_array"
