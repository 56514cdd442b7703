(** CUDA graphs for programs that use cudajit.

    Streams, memory, modules and kernels stay cudajit's own values; this library adds
    graphs captured from cudajit's streams. After [open Cuda] and [open Cudagraph_cudajit]
    a program compiles as before, and has {!module-Graph}:

    {[
      Graph.begin_capture stream;
      Stream.launch_kernel kernel ~grid_dim_x:1 ~block_dim_x:64 ~shared_mem_bytes:0 stream
        [ Tensor x ];
      let exec = Graph.instantiate (Graph.end_capture stream) in
      Graph.launch exec stream
    ]}

    What the functions of {!module-Stream} enqueue while a stream captures is kept alive
    by the graph: use them instead of cudajit's, which keep nothing for a graph.

    The handle in a stream is read from its [Cuda.Stream.sexp_of_t]; nothing here relies
    on how cudajit represents its values. Written for cudajit 0.7.2. *)

module Module : sig
  include module type of struct
    include Cuda.Module
  end

  val get_function : t -> name:string -> func
  (** [get_function m ~name] is cudajit's, and the function keeps its module alive, which
      cudajit's does not. *)
end

module Stream : sig
  include module type of struct
    include Cuda.Stream
  end

  (** {1 What a graph keeps}

      These are cudajit's functions. What they are given, the bigarrays too, is kept by
      the graph when the stream captures; bigarrays of copies outside of a capture are
      kept until the copy is done. *)

  val launch_kernel :
    Cuda.Module.func ->
    grid_dim_x:int ->
    ?grid_dim_y:int ->
    ?grid_dim_z:int ->
    block_dim_x:int ->
    ?block_dim_y:int ->
    ?block_dim_z:int ->
    shared_mem_bytes:int ->
    t ->
    kernel_param list ->
    unit
  (** The module of the kernel is kept too if {!Module.get_function} gave the kernel. *)

  val memcpy_H_to_D :
    ?host_offset:int ->
    ?length:int ->
    ?dst_offset:int ->
    dst:Cuda.Deviceptr.t ->
    src:('a, 'b, 'c) Bigarray.Genarray.t ->
    t ->
    unit

  val memcpy_D_to_H :
    ?host_offset:int ->
    ?length:int ->
    ?src_offset:int ->
    dst:('a, 'b, 'c) Bigarray.Genarray.t ->
    src:Cuda.Deviceptr.t ->
    t ->
    unit

  val memcpy_D_to_D :
    ?kind:('a, 'b) Bigarray.kind ->
    ?length:int ->
    ?size_in_bytes:int ->
    ?dst_offset:int ->
    ?src_offset:int ->
    dst:Cuda.Deviceptr.t ->
    src:Cuda.Deviceptr.t ->
    t ->
    unit

  val memcpy_peer :
    ?kind:('a, 'b) Bigarray.kind ->
    ?length:int ->
    ?size_in_bytes:int ->
    ?dst_offset:int ->
    ?src_offset:int ->
    dst:Cuda.Deviceptr.t ->
    dst_ctx:Cuda.Context.t ->
    src:Cuda.Deviceptr.t ->
    src_ctx:Cuda.Context.t ->
    t ->
    unit

  val memset_d8 :
    ?offset:int -> Cuda.Deviceptr.t -> Unsigned.uchar -> length:int -> t -> unit

  val memset_d16 :
    ?offset:int -> Cuda.Deviceptr.t -> Unsigned.ushort -> length:int -> t -> unit

  val memset_d32 :
    ?offset:int -> Cuda.Deviceptr.t -> Unsigned.uint32 -> length:int -> t -> unit

  val synchronize : t -> unit
  (** [synchronize stream] is cudajit's, and lets go of the graphs that were launched. *)

  (** {1 Beyond cudajit} *)

  val is_capturing : t -> bool
  (** [is_capturing stream] is whether work on the stream goes into a capture. *)

  val keep : t -> 'k -> unit
  (** [keep stream value] keeps any value alive for what was last enqueued, by whatever
      library: with the graph when the stream captures, else until the work is done. *)

  val interop : t -> Cudagraph.Stream.t
  (** [interop stream] is the same stream for all the rest of cudagraph. *)
end

module Graph : sig
  type t = Cudagraph.Graph.t
  type exec = Cudagraph.Graph.exec

  val sexp_of_t : t -> Sexplib0.Sexp.t
  val sexp_of_exec : exec -> Sexplib0.Sexp.t

  type capture_mode = Cudagraph.Graph.capture_mode = GLOBAL | THREAD_LOCAL | RELAXED

  val sexp_of_capture_mode : capture_mode -> Sexplib0.Sexp.t

  val begin_capture : ?mode:capture_mode -> Cuda.Stream.t -> unit
  (** As [Cudagraph.Graph.begin_capture], but [mode] is [RELAXED] unless given: cudajit's
      finalisers free memory in the middle of whatever the program does, which breaks a
      capture in the other modes. *)

  val end_capture : Cuda.Stream.t -> t
  val instantiate : t -> exec
  val launch : exec -> Cuda.Stream.t -> unit
  val destroy : t -> unit
  val exec_destroy : exec -> unit
  val with_capture : ?mode:capture_mode -> Cuda.Stream.t -> (unit -> 'a) -> t * 'a
  val instantiate_with : ?auto_free_on_launch:bool -> t -> exec
  val node_count : t -> int
end
