(* Every function in every wrong state: before init, in a forked child, on a domain where no context is
   current, after the reset of the context. The same rows, in the order in which that happens. *)

open Cuda
open Support
open Table

(* Everything that a function may take, made in the primary context. *)
type values = {
  device : Device.t;
  context : Context.t;
  modul : Module.t;
  func : Module.func;
  ptr : Deviceptr.t;
  managed : Deviceptr.t;
  pooled : Deviceptr.t;
  victim : Deviceptr.t;  (** to be freed *)
  s : Stream.t;
  event : Event.t;
  delimited : Delimited_event.t;
  graph : Graph.t;
  exec : Graph.exec;
}

let values () =
  let device = Device.get ~ordinal:0 in
  let context = Context.get_current () in
  let modul = code () and s = stream () in
  let ptr = device_ints 4 in
  let timed () = Event.create ~enable_timing:true () in
  let event = timed () in
  let graph, () = Graph.with_capture s (fun () -> incr s ptr) in
  let exec = Graph.instantiate graph in
  Event.record event s;
  let delimited = Delimited_event.record s in
  let pooled = Stream.mem_alloc s ~size_in_bytes:16 in
  let managed = Deviceptr.mem_alloc_managed ~size_in_bytes:16 () in
  let func = Module.get_function modul ~name:"incr" in
  let victim = device_ints 4 in
  ignore (Event.query event);
  { device; context; modul; func; ptr; managed; pooled; victim; s; event; delimited; graph; exec }
[@@ocamlformat "disable"]

(* What a function needs. *)
type need =
  | Nothing  (** It works always. *)
  | Driver  (** A driver that was started in this process. *)
  | Current  (** A current context, too. *)
  | Value  (** A value that is alive: what the current context is does not matter. *)
  | Name  (** As [Value], but the value's context may have been reset. *)

type call = On of (values -> unit) | New of (unit -> unit)  (** It takes no value. *)

(* [name], the driver's function, what it needs, a right call. *)
let calls : (string * string * need * call) list =
  let f = Copies.at_once in
  let host = lazy (ints 4) in
  let host () = Lazy.force host in
  let address = Ctypes.(to_voidp (CArray.start (CArray.make int32_t 8))) in
  let d8 = Unsigned.UChar.one and d16 = Unsigned.UShort.one and d32 = Unsigned.UInt32.one in
  let on v = Copies.on v.s in
  let call name driver need run = (name, driver, need, On run) in
  let get name driver need run = call name driver need (fun v -> ignore (run v)) in
  let call_new name driver need run = (name, driver, need, New run) in
  let get_new name driver need run = call_new name driver need (fun () -> ignore (run ())) in
  let launch name (launch : Kernels.launch) =
    call name "cu_launch_kernel" Value (fun v ->
        launch v.func v.s [ Tensor v.ptr; Int 4 ])
  in
  [
    get_new "driver_description" "" Nothing (fun () -> driver_description ());
    get_new "driver_version" "cu_driver_get_version" Driver (fun () -> driver_version ());
    get_new "Device.get_count" "cu_device_get_count" Driver (fun () -> Device.get_count ());
    get_new "Device.get" "cu_device_get" Driver (fun () -> Device.get ~ordinal:0);
    get "Device.get_attributes" "cu_device_get_" Driver (fun v ->
        Device.get_attributes v.device);
    get "Device.can_access_peer" "cu_device_can_access_peer" Driver (fun v ->
        Device.can_access_peer ~dst:v.device ~src:v.device);
    get_new "Device.get_free_and_total_mem" "cu_mem_get_info" Current (fun () ->
        Device.get_free_and_total_mem ());
    get "Device.sexp_of_t" "" Nothing (fun v -> Device.sexp_of_t v.device);
    get_new "failed_releases" "" Nothing (fun () -> failed_releases ());
    get "Context.is_usable" "cu_event_create" Name (fun v -> Context.is_usable v.context);
    get "Context.sexp_of_t" "" Nothing (fun v -> Context.sexp_of_t v.context);
    get "Context.get_primary" "cu_device_primary_ctx_retain" Driver (fun v ->
        Context.get_primary v.device);
    call "Context.create" "cu_ctx_create" Driver (fun v ->
        ignore (Context.create [] v.device);
        ignore (Context.pop_current ()));
    get_new "Context.get_flags" "cu_ctx_get_flags" Current (fun () -> Context.get_flags ());
    get_new "Context.get_device" "cu_ctx_get_device" Current (fun () -> Context.get_device ());
    get_new "Context.get_current" "cu_ctx_get_current" Current (fun () ->
        Context.get_current ());
    call_new "Context.pop_current" "cu_ctx_pop_current" Current (fun () ->
        Context.push_current (Context.pop_current ()));
    call "Context.push_current" "cu_ctx_push_current" Value (fun v ->
        Context.push_current v.context;
        ignore (Context.pop_current ()));
    call "Context.set_current" "cu_ctx_set_current" Value (fun v ->
        Context.set_current v.context;
        (* The domain had none, or this one. *)
        if not (Domain.is_main_domain ()) then ignore (Context.pop_current ()));
    call_new "Context.synchronize" "cu_ctx_synchronize" Current (fun () ->
        Context.synchronize ());
    call_new "Context.set_limit" "cu_ctx_set_limit" Current (fun () ->
        Context.set_limit STACK_SIZE 2048);
    get_new "Context.get_limit" "cu_ctx_get_limit" Current (fun () ->
        Context.get_limit STACK_SIZE);
    get "Deviceptr.sexp_of_t" "" Nothing (fun v -> Deviceptr.sexp_of_t v.ptr);
    get "Deviceptr.string_of" "" Nothing (fun v -> Deviceptr.string_of v.ptr);
    get "Deviceptr.hash" "" Nothing (fun v -> Deviceptr.hash v.ptr);
    get "Deviceptr.equal" "" Nothing (fun v -> Deviceptr.equal v.ptr v.managed);
    get "Deviceptr.offset" "" Nothing (fun v -> Deviceptr.offset v.ptr ~bytes:4);
    get "Deviceptr.region_of" "" Nothing (fun v -> Deviceptr.region_of v.ptr);
    get "Deviceptr.allocation_size" "" Nothing (fun v -> Deviceptr.allocation_size v.ptr);
    get_new "Deviceptr.mem_alloc" "cu_mem_alloc" Current (fun () ->
        Deviceptr.mem_alloc ~size_in_bytes:16);
    get_new "Deviceptr.mem_alloc_managed" "cu_mem_alloc_managed" Current (fun () ->
        Deviceptr.mem_alloc_managed ~size_in_bytes:16 ());
    get_new "Deviceptr.alloc_and_memcpy" "cu_mem_alloc" Current (fun () ->
        Deviceptr.alloc_and_memcpy (host ()));
    call "Deviceptr.mem_free" "cu_mem_free" Name (fun v -> Deviceptr.mem_free v.victim);
    call "Deviceptr.memcpy_H_to_D" "cu_memcpy_H_to_D" Value (fun v ->
        f.h_to_d ~dst:v.ptr ~src:(host ()) ());
    call "Deviceptr.memcpy_D_to_H" "cu_memcpy_D_to_H" Value (fun v ->
        f.d_to_h ~dst:(host ()) ~src:v.ptr ());
    call "Deviceptr.memcpy_H_to_D_unsafe" "cu_memcpy_H_to_D" Value (fun v ->
        f.h_to_d_unsafe ~dst:v.ptr ~src:address ~size_in_bytes:4);
    call "Deviceptr.memcpy_D_to_H_unsafe" "cu_memcpy_D_to_H" Value (fun v ->
        f.d_to_h_unsafe ~dst:address ~src:v.ptr ~size_in_bytes:4);
    call "Deviceptr.memcpy_D_to_D" "cu_memcpy_D_to_D" Value (fun v ->
        f.d_to_d ~size_in_bytes:4 ~dst:v.ptr ~src:v.ptr ());
    call "Deviceptr.memcpy_peer" "cu_memcpy_peer" Value (fun v ->
        f.peer ~size_in_bytes:4 ~dst:v.ptr ~dst_ctx:v.context ~src:v.ptr ~src_ctx:v.context ());
    call "Deviceptr.memset_d8" "cu_memset_d8" Value (fun v -> f.d8 v.ptr d8 ~length:1);
    call "Deviceptr.memset_d16" "cu_memset_d16" Value (fun v -> f.d16 v.ptr d16 ~length:1);
    call "Deviceptr.memset_d32" "cu_memset_d32" Value (fun v -> f.d32 v.ptr d32 ~length:1);
    get_new "Module.load_ptx" "cu_module_load_data_ex" Current (fun () -> code ());
    get_new "Module.load_data_ex" "cu_module_load_data_ex" Current (fun () ->
        Module.load_data_ex (Nvrtc.of_ptx Ptx.text) []);
    get "Module.get_function" "cu_module_get_function" Value (fun v ->
        Module.get_function v.modul ~name:"incr");
    get "Module.get_global" "cu_module_get_global" Value (fun v ->
        Module.get_global v.modul ~name:"table");
    get "Module.Func.name" "" Nothing (fun v -> Module.Func.name v.func);
    get "Module.Func.get_attributes" "cu_func_get_attribute" Value (fun v ->
        Module.Func.get_attributes v.func);
    call "Module.Func.set_max_dynamic_shared_size" "cu_func_set_attribute" Value (fun v ->
        Module.Func.set_max_dynamic_shared_size v.func 0);
    get "Module.Func.max_active_blocks" "cu_occupancy_max_active_blocks" Value (fun v ->
        Module.Func.max_active_blocks ~block_size:32 v.func);
    get "Module.Func.suggest_launch" "cu_occupancy_max_potential_block_size" Value (fun v ->
        Module.Func.suggest_launch v.func);
    launch "Stream.launch_kernel" Kernels.plain;
    launch "Stream.launch_kernel_with" Kernels.with_arguments;
    get_new "Stream.create" "cu_stream_create_with_priority" Current (fun () -> stream ());
    get "Stream.sexp_of_t" "" Nothing (fun v -> Stream.sexp_of_t v.s);
    get "Stream.get_context" "" Nothing (fun v -> Stream.get_context v.s);
    get "Stream.get_id" "cu_stream_get_id" Value (fun v -> Stream.get_id v.s);
    get "Stream.is_ready" "cu_stream_query" Value (fun v -> Stream.is_ready v.s);
    get "Stream.is_capturing" "cu_stream_is_capturing" Value (fun v ->
        Stream.is_capturing v.s);
    call "Stream.synchronize" "cu_stream_synchronize" Value (fun v ->
        Stream.synchronize v.s);
    call_new "Stream.no_stream" "cu_stream_synchronize" Current (fun () ->
        Stream.synchronize Stream.no_stream);
    get_new "Stream.get_total_live_streams" "" Nothing (fun () ->
        Stream.get_total_live_streams ());
    get "Stream.mem_alloc" "cu_mem_alloc_async" Value (fun v ->
        Stream.mem_alloc v.s ~size_in_bytes:16);
    call "Stream.mem_free" "cu_mem_free_async" Value (fun v -> Stream.mem_free v.s v.pooled);
    call "Stream.attach_mem" "cu_stream_attach_mem_async" Value (fun v ->
        Stream.attach_mem v.s v.managed 0 GLOBAL);
    call "Stream.memcpy_H_to_D" "cu_memcpy_H_to_D_async" Value (fun v ->
        (on v).h_to_d ~dst:v.ptr ~src:(host ()) ());
    call "Stream.memcpy_D_to_H" "cu_memcpy_D_to_H_async" Value (fun v ->
        (on v).d_to_h ~dst:(host ()) ~src:v.ptr ());
    call "Stream.memcpy_H_to_D_unsafe" "cu_memcpy_H_to_D_async" Value (fun v ->
        (on v).h_to_d_unsafe ~dst:v.ptr ~src:address ~size_in_bytes:4);
    call "Stream.memcpy_D_to_H_unsafe" "cu_memcpy_D_to_H_async" Value (fun v ->
        (on v).d_to_h_unsafe ~dst:address ~src:v.ptr ~size_in_bytes:4);
    call "Stream.memcpy_D_to_D" "cu_memcpy_D_to_D_async" Value (fun v ->
        (on v).d_to_d ~size_in_bytes:4 ~dst:v.ptr ~src:v.ptr ());
    call "Stream.memcpy_peer" "cu_memcpy_peer_async" Value (fun v ->
        (on v).peer ~size_in_bytes:4 ~dst:v.ptr ~dst_ctx:v.context ~src:v.ptr
          ~src_ctx:v.context ());
    call "Stream.memset_d8" "cu_memset_d8_async" Value (fun v -> (on v).d8 v.ptr d8 ~length:1);
    call "Stream.memset_d16" "cu_memset_d16_async" Value (fun v -> (on v).d16 v.ptr d16 ~length:1);
    call "Stream.memset_d32" "cu_memset_d32_async" Value (fun v -> (on v).d32 v.ptr d32 ~length:1);
    get "Event.sexp_of_t" "" Nothing (fun v -> Event.sexp_of_t v.event);
    get_new "Event.create" "cu_event_create" Current (fun () -> Event.create ());
    call "Event.synchronize" "cu_event_synchronize" Value (fun v -> Event.synchronize v.event);
    get "Event.query" "cu_event_query" Value (fun v -> Event.query v.event);
    get "Event.elapsed_time" "cu_event_elapsed_time" Value (fun v ->
        Event.elapsed_time ~start:v.event ~end_:v.event);
    call "Event.wait" "cu_stream_wait_event" Value (fun v -> Event.wait v.s v.event);
    call "Event.record" "cu_event_record_with_flags" Value (fun v -> Event.record v.event v.s);
    get "Delimited_event.sexp_of_t" "" Nothing (fun v -> Delimited_event.sexp_of_t v.delimited);
    get "Delimited_event.is_released" "" Nothing (fun v -> Delimited_event.is_released v.delimited);
    get "Graph.sexp_of_t" "" Nothing (fun v -> Graph.sexp_of_t v.graph);
    get "Graph.sexp_of_exec" "" Nothing (fun v -> Graph.sexp_of_exec v.exec);
    get "Graph.node_count" "" Nothing (fun v -> Graph.node_count v.graph);
    call "Graph.launch" "cu_graph_launch" Value (fun v -> Graph.launch v.exec v.s);
    get "Graph.instantiate" "cu_graph_instantiate" Value (fun v -> Graph.instantiate v.graph);
    get "Graph.instantiate_with" "cu_graph_instantiate" Value (fun v -> Graph.instantiate_with v.graph);
    call "Graph.begin_capture" "cu_stream_begin_capture" Value (fun v ->
        Graph.begin_capture v.s;
        ignore (Graph.end_capture v.s));
    get "Graph.with_capture" "cu_stream_begin_capture" Value (fun v ->
        Graph.with_capture v.s ignore);
    call "Graph.destroy" "cu_graph_destroy" Name (fun v -> Graph.destroy v.graph);
    call "Graph.exec_destroy" "cu_graph_exec_destroy" Name (fun v -> Graph.exec_destroy v.exec);
    get "Interop.device_handle" "" Nothing (fun v -> Interop.device_handle v.device);
    get "Interop.context_handle" "" Nothing (fun v -> Interop.context_handle v.context);
    get "Interop.deviceptr_handle" "" Nothing (fun v -> Interop.deviceptr_handle v.ptr);
    get "Interop.deviceptr_uint64" "" Nothing (fun v -> Interop.deviceptr_uint64 v.ptr);
    get "Interop.module_handle" "" Nothing (fun v -> Interop.module_handle v.modul);
    get "Interop.func_handle" "" Nothing (fun v -> Interop.func_handle v.func);
    get "Interop.graph_handle" "" Nothing (fun v -> Interop.graph_handle v.graph);
    get "Interop.exec_handle" "" Nothing (fun v -> Interop.exec_handle v.exec);
    call "Interop.keep_alive" "" Nothing (fun v -> Interop.keep_alive v.ptr);
    call "Interop.keep_for" "cu_stream_is_capturing" Value (fun v ->
        Interop.keep_for v.s v.ptr);
    (* Last: they note that somebody else knows the handle. *)
    get "Interop.stream_handle" "" Nothing (fun v -> Interop.stream_handle v.s);
    get "Interop.event_handle" "" Nothing (fun v -> Interop.event_handle v.event);
  ]
[@@ocamlformat "disable"]

(* These release a delimited event: apart, since then the second one has nothing to ask. *)
let of_delimited =
  [
    ("Delimited_event.query", "cu_event_query", fun v ->
        ignore (Delimited_event.query v.delimited));
    ("Delimited_event.wait", "cu_stream_wait_event", fun v ->
        Delimited_event.wait v.s v.delimited);
    ("Stream.total_unreleased_unfinished_delimited_events", "cu_event_query", fun v ->
        ignore (Stream.total_unreleased_unfinished_delimited_events v.s));
    ("Delimited_event.synchronize", "cu_event_synchronize", fun v ->
        Delimited_event.synchronize v.delimited);
    ("Delimited_event.record", "cu_", fun v -> ignore (Delimited_event.record v.s));
  ]
[@@ocamlformat "disable"]

let all =
  let of_delimited =
    List.map (fun (name, driver, run) -> (name, driver, Value, On run)) of_delimited
  in
  (* After a reset this one makes a new context of the same handle. *)
  let revives (name, _, _, _) = name = "Context.get_primary" in
  let last, others = List.partition revives calls in
  (* Those of delimited events come before [Stream.synchronize], which releases them. *)
  of_delimited @ others @ last

(* The rows for a state in which there are values: how a call with some need ends there. *)
let rows state values ending =
  List.map
    (fun (name, driver, need, call) ->
      row name state (ending name need driver)
        (match call with On run -> fun () -> run values | New run -> run))
    all

(* The same where there are none yet. *)
let rows_without_values state ending =
  List.filter_map
    (fun (name, driver, need, call) ->
      match call with
      | New run -> Some (row name state (ending name need driver) run)
      | On _ -> None)
    all

let names = List.map (fun (name, _, _, _) -> name) all
