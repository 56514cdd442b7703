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
type jit_fallback =
  | PREFER_PTX  (** Compile the PTX. *)
  | PREFER_BINARY  (** Take machine code for a compatible GPU, if there is some. *)

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
      (** Asks the driver for the time that compiling took. The answer is not seen here,
          as in cudajit; what is given does not matter. *)
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
(** [load_ptx text] is {!load_data_ex} for a PTX text in a string. Raises
    [Invalid_argument] for a text with a NUL inside. *)

val load_cubin : string -> t
(** [load_cubin image] loads a cubin, the binary for one architecture, from its bytes.
    Raises [Invalid_argument] for what is not one, and [Cuda_error] for one that the GPU
    cannot run. Driver: [cuModuleLoadDataEx]. *)

val load_file : ?options:jit_option list -> string -> t
(** [load_file path] loads a file of PTX text, a cubin or a fatbin. Raises
    [Invalid_argument] for a file that cannot be read. Driver: [cuModuleLoadDataEx]. *)

(** What a kernel needs, and how to launch it best. *)
module Func : sig
  val name : func -> string
  (** [name func] is the kernel's name in the module. *)

  type attributes = {
    max_threads_per_block : int;  (** What a launch of this kernel admits. *)
    shared_size_bytes : int;  (** Static shared memory of a block. *)
    const_size_bytes : int;  (** Constant memory of the program. *)
    local_size_bytes : int;  (** Local memory of a thread. *)
    num_regs : int;  (** Registers of a thread. *)
    ptx_version : int;  (** 10 times the version of the architecture in the PTX: 90. *)
    binary_version : int;  (** The same for the code that runs. *)
    max_dynamic_shared_size_bytes : int;
        (** Dynamic shared memory that a launch may ask for at present. *)
  }

  val sexp_of_attributes : attributes -> Sexplib0.Sexp.t

  val get_attributes : func -> attributes
  (** [get_attributes func] asks for all of them. Driver: [cuFuncGetAttribute]. *)

  val set_max_dynamic_shared_size : func -> int -> unit
  (** [set_max_dynamic_shared_size func bytes] admits launches with so much dynamic shared
      memory. Launches do it by themselves when they need to. Driver:
      [cuFuncSetAttribute]. *)

  val max_active_blocks : ?shared_mem_bytes:int -> block_size:int -> func -> int
  (** [max_active_blocks ~block_size func] is how many blocks of [block_size] threads,
      with [shared_mem_bytes] (0) of dynamic shared memory each, a multiprocessor runs at
      once. Driver: [cuOccupancyMaxActiveBlocksPerMultiprocessor]. *)

  type suggestion = { grid_dim_x : int; block_dim_x : int }
  (** Blocks, and threads of a block. *)

  val suggest_launch :
    ?shared_mem_bytes:int -> ?block_size_limit:int -> func -> suggestion
  (** [suggest_launch func] is the fewest blocks that fill the device, and the block size
      that does it best: at most [block_size_limit] threads, or as many as the device
      admits (0). Driver: [cuOccupancyMaxPotentialBlockSize]. *)
end
