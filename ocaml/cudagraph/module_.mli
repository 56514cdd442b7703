(** Loaded GPU code. *)

(** Generations of GPU to compile for. *)
type jit_target =
  | COMPUTE_30
  | COMPUTE_32
  | COMPUTE_35
  | COMPUTE_37
  | COMPUTE_50
  | COMPUTE_52
  | COMPUTE_53
  | COMPUTE_60
  | COMPUTE_61
  | COMPUTE_62
  | COMPUTE_70
  | COMPUTE_72
  | COMPUTE_75
  | COMPUTE_80
  | COMPUTE_86
  | COMPUTE_87
  | COMPUTE_89
  | COMPUTE_90
  | COMPUTE_90A  (** 9.0 with what only that generation has. *)

val sexp_of_jit_target : jit_target -> Sexplib0.Sexp.t

(** What to do when no machine code matches the GPU exactly. *)
type jit_fallback = PREFER_PTX | PREFER_BINARY

val sexp_of_jit_fallback : jit_fallback -> Sexplib0.Sexp.t

(** How loads of global memory are cached. *)
type jit_cache_mode =
  | NONE  (** As the driver likes. *)
  | CG  (** Without the L1 cache. *)
  | CA  (** With the L1 cache. *)

val sexp_of_jit_cache_mode : jit_cache_mode -> Sexplib0.Sexp.t

type log = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t
(** Where the compiler writes a text, with a closing NUL. *)

(** Options of the driver's compiler. *)
type jit_option =
  | MAX_REGISTERS of int  (** The most registers of a thread. *)
  | THREADS_PER_BLOCK of int
      (** The least number of threads of a block to compile for. Not together with
          [TARGET]. *)
  | WALL_TIME of { milliseconds : float }
      (** The time that compiling took; set by the driver. *)
  | INFO_LOG_BUFFER of log  (** Receives what the compiler tells. *)
  | ERROR_LOG_BUFFER of log  (** Receives the compiler's errors. *)
  | OPTIMIZATION_LEVEL of int  (** 0 to 4; 4 if not given. *)
  | TARGET_FROM_CUCONTEXT  (** Compile for the current context's GPU. *)
  | TARGET of jit_target
  | FALLBACK_STRATEGY of jit_fallback
  | GENERATE_DEBUG_INFO of bool
  | LOG_VERBOSE of bool
  | GENERATE_LINE_INFO of bool
  | CACHE_MODE of jit_cache_mode
  | POSITION_INDEPENDENT_CODE of bool

val sexp_of_jit_option : jit_option -> Sexplib0.Sexp.t
(** A log buffer shows its size in bytes. *)

type func = Raw.func
(** A kernel. It keeps its module loaded. *)

type t = Raw.modul
(** A module: kernels and variables. It is unloaded when neither the program, nor a kernel
    or variable of it, nor pending or captured work uses it. *)

val load_data_ex : Nvrtc.compile_to_ptx_result -> jit_option list -> t
(** [load_data_ex ptx options] compiles and loads a PTX text into the current context.
    Raises [Cuda_error], with the compiler's log in its message, for a text that does not
    compile. Log buffers are kept during the call. Driver: [cuModuleLoadDataEx],
    [cuModuleUnload]. *)

val get_function : t -> name:string -> func
(** [get_function m ~name] is a kernel of the module. Raises [Cuda_error] when there is
    none of that name. Driver: [cuModuleGetFunction]. *)

val get_global : t -> name:string -> Deviceptr.t * Unsigned.size_t
(** [get_global m ~name] is a variable of the module and its size in bytes. Its memory
    belongs to the module, which it keeps. Raises [Cuda_error] when there is none of that
    name. Driver: [cuModuleGetGlobal]. *)

(** {1 Beyond cudajit} *)

val load_ptx : ?options:jit_option list -> string -> t
(** [load_ptx text] is {!load_data_ex} for a PTX text in a string. *)
