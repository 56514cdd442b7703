(** The compiler of CUDA C, at run time.

    NVIDIA's NVRTC is looked for when the first function here needs it, so a program that
    never compiles runs without it. The first of these that loads is used until the
    program ends:

    - the environment variable [CUDAGRAPH_NVRTC], the path of a [libnvrtc.so]; if it is
      set, nothing else is tried;
    - the toolkit in [CUDA_PATH], then [CUDA_HOME];
    - [libnvrtc.so.13] or [libnvrtc.so.12] of the system;
    - the toolkit in [/usr/local/cuda], then [CONDA_PREFIX];
    - the packages of the active Python, filled by [pip install nvidia-cuda-nvrtc] (CUDA
      13) or [pip install nvidia-cuda-nvrtc-cu12]. That Python is [VIRTUAL_ENV], or what
      [python3] on the [PATH] stands for; it is not run.

    CUDA's own headers, as [cuda_fp16.h], are no part of NVRTC. They are looked for beside
    the library and then in the same places (with pip: [nvidia-cuda-runtime], or
    [nvidia-cuda-runtime-cu12]); only headers of the library's major version are taken.
    Where there are some, their folder is searched after those of the program's own
    options [-I], see {!include_folders}.

    A driver takes no PTX that is newer than itself: a program that NVRTC of CUDA 13.0
    compiled to PTX needs a driver of that version or newer. A CUBIN, machine code, needs
    a driver of the same major version.

    Functions release the runtime lock while NVRTC works, so other domains and threads go
    on, and may compile as well. All arguments are copied before. *)

type result
(** The answer of an NVRTC function. *)

val sexp_of_result : result -> Sexplib0.Sexp.t
(** NVRTC's name for it, as [NVRTC_ERROR_COMPILATION], or [NVRTC_NOT_FOUND]. *)

exception Nvrtc_error of { status : result; message : string }
(** NVRTC failed. [message] begins with the function's name in snake case; for a program
    with errors it is [nvrtc_compile_program saxpy.cu: ], with the program's name, and the
    compiler's log, which has the lines. With [NVRTC_NOT_FOUND], [message] says what was
    tried to find NVRTC and what to do about it.

    An argument that is refused before NVRTC sees it, as a text with a NUL inside, raises
    [Invalid_argument] instead. *)

val is_success : result -> bool
(** [is_success status] is whether nothing went wrong. *)

type compile_to_ptx_result = {
  log : string option;  (** What the compiler said. *)
  ptx : char Ctypes.ptr;  (** The text. A NUL follows it. *)
  ptx_length : int;  (** Its bytes, without the NUL. *)
}
(** What [Cuda.Module.load_data_ex] takes. *)

val sexp_of_compile_to_ptx_result : compile_to_ptx_result -> Sexplib0.Sexp.t
(** The log and the length; not the text. *)

val compile_to_ptx :
  cu_src:string ->
  name:string ->
  options:string list ->
  with_debug:bool ->
  compile_to_ptx_result
(** [compile_to_ptx ~cu_src ~name ~options ~with_debug] compiles the CUDA C in [cu_src].
    [name] is what the log calls it, [""] for NVRTC's own choice; if it is a path, headers
    are also looked for in its folder. [options] are NVRTC's, as ["--use_fast_math"] or
    ["--gpu-architecture=compute_80"]. The log is in the result if [with_debug], and in
    the exception if there is one. Raises {!Nvrtc_error}. NVRTC: [nvrtcCreateProgram],
    [nvrtcCompileProgram], [nvrtcGetProgramLog], [nvrtcGetPTX], [nvrtcDestroyProgram]. *)

val string_from_ptx : compile_to_ptx_result -> string
(** [string_from_ptx result] is the text, without the NUL. *)

val compilation_log : compile_to_ptx_result -> string option
(** [compilation_log result] is [result.log]. *)

(** {1 Beyond cudajit} *)

val of_ptx : string -> compile_to_ptx_result
(** [of_ptx text] is a PTX text that was compiled earlier. *)

(** {2 The library} *)

val version : unit -> int * int
(** [version ()] is the CUDA version of NVRTC, [(12, 9)] for 12.9. Like the next ones it
    raises {!Nvrtc_error} with [NVRTC_NOT_FOUND] where there is none. NVRTC:
    [nvrtcVersion]. *)

val library : unit -> string
(** [library ()] is the file of the NVRTC in use. *)

val include_folders : unit -> string list
(** [include_folders ()] is where CUDA's headers were found. Each is passed as the last of
    the [-I] options. [[]] if there are none: programs without such headers compile all
    the same. *)

val supported_architectures : unit -> int list
(** [supported_architectures ()] is what NVRTC compiles for, [90] for [compute_90] and
    [sm_90], in increasing order. NVRTC: [nvrtcGetSupportedArchs]. *)

(** {2 Programs} *)

(** Programs with more to them: machine code, names of C++, a cache. *)
module Program : sig
  type target =
    | PTX  (** For the architecture in the options, or NVRTC's default one. *)
    | CUBIN of string
        (** Machine code for this architecture. ["sm_80"] is for devices of compute
            capability 8.0, and those of 8.x run it too; ["sm_90a"] is for 9.0 alone. *)

  val sexp_of_target : target -> Sexplib0.Sexp.t

  type t
  (** A program that was compiled. *)

  val compile :
    ?target:target ->
    ?name:string ->
    ?options:string list ->
    ?headers:(string * string) list ->
    ?expressions:string list ->
    ?cache:string ->
    string ->
    t
  (** [compile source] compiles CUDA C, to {!PTX} by default. [name] and [options] are as
      in {!compile_to_ptx}.

      [headers] are included by the source under their names, and are not files: each is a
      name and a text.

      [expressions] are C++ names whose names in the image are wanted from
      {!lowered_name}: a kernel in a namespace, as ["my::scale"], or an instance of a
      template, as ["add<float>"], which is instantiated by this.

      [cache] is a folder, made if need be, where results are kept between programs. One
      is used again if nothing that it depends on has changed: source, name, options,
      headers, expressions, target, build of NVRTC, and the content of every file that may
      be included. A program is compiled each time if that cannot be told: an [#include]
      of its own by a macro's name, or a precompiled header. Any number of processes may
      share the folder; an entry that is damaged is made anew, and one that cannot be
      written is not kept. Nothing is ever removed; the folder may be, at any time. Since
      what it holds is run, it should be writable only by those who may choose what is
      run.

      Raises {!Nvrtc_error} for a program with errors, and [Invalid_argument] for an
      argument with a NUL inside, a [CUBIN] architecture that is no ["sm_..."] or beside
      one in [options], and a [cache] that cannot be made. *)

  val image : t -> string
  (** [image program] is the PTX, for [Cuda.Module.load_ptx], or the bytes of the CUBIN,
      for [load_cubin]. *)

  val log : t -> string
  (** [log program] is what the compiler said, [""] if nothing. It is kept in the cache.
  *)

  val lowered_name : t -> string -> string
  (** [lowered_name program expression] is the name for [Cuda.Module.get_function] or
      [get_global]. Raises [Invalid_argument] unless [expression] is one of those that
      [program] was compiled with, written in the same way. NVRTC:
      [nvrtcAddNameExpression], [nvrtcGetLoweredName]. *)

  val is_cached : t -> bool
  (** [is_cached program] is whether it was found in the cache. *)

  val to_load : t -> compile_to_ptx_result
  (** [to_load program] is what [Cuda.Module.load_data_ex] takes, for a CUBIN too. *)

  val sexp_of_t : t -> Sexplib0.Sexp.t
  (** The log, the names, the size of the image. *)
end
