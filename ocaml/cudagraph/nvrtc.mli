(** PTX, NVIDIA's assembly language, as it is passed to [Module.load_data_ex]. *)

type result
(** The answer of an NVRTC function. *)

val sexp_of_result : result -> Sexplib0.Sexp.t
(** NVRTC's name for it, as [NVRTC_ERROR_COMPILATION]. *)

exception Nvrtc_error of { status : result; message : string }
(** NVRTC failed; [message] begins with the function's name in snake case. Programs for
    cudajit handle it. Nothing in this module compiles so far, so nothing raises it. *)

val is_success : result -> bool
(** [is_success status] is whether nothing went wrong. *)

type compile_to_ptx_result = {
  log : string option;  (** What the compiler said. *)
  ptx : char Ctypes.ptr;  (** The text, with a closing NUL. *)
  ptx_length : int;  (** Bytes, the NUL included. *)
}

val sexp_of_compile_to_ptx_result : compile_to_ptx_result -> Sexplib0.Sexp.t
(** The log and the length; not the text. *)

val of_ptx : string -> compile_to_ptx_result
(** [of_ptx text] is a PTX text that was compiled earlier. *)

val string_from_ptx : compile_to_ptx_result -> string
(** [string_from_ptx result] is the text, without the NUL. *)

val compilation_log : compile_to_ptx_result -> string option
(** [compilation_log result] is [result.log]. *)
