open Sexplib0.Sexp_conv

type result = int

(* nvrtcResult, whose names are numbered from 0. *)
let names =
  [|
    "NVRTC_SUCCESS"; "NVRTC_ERROR_OUT_OF_MEMORY"; "NVRTC_ERROR_PROGRAM_CREATION_FAILURE";
    "NVRTC_ERROR_INVALID_INPUT"; "NVRTC_ERROR_INVALID_PROGRAM"; "NVRTC_ERROR_INVALID_OPTION";
    "NVRTC_ERROR_COMPILATION"; "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION";
    "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION";
    "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID"; "NVRTC_ERROR_INTERNAL_ERROR";
    "NVRTC_ERROR_TIME_FILE_WRITE_FAILED"; "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED";
    "NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED"; "NVRTC_ERROR_PCH_CREATE";
    "NVRTC_ERROR_CANCELLED"; "NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED";
  |]
[@@ocamlformat "disable"]

let sexp_of_result status : Sexplib0.Sexp.t =
  if status >= 0 && status < Array.length names then Atom names.(status)
  else List [ Atom "NVRTC_ERROR_UNCATEGORIZED"; Atom (string_of_int status) ]

exception Nvrtc_error of { status : result; message : string }

let is_success status = status = 0

let () =
  Printexc.register_printer (function
    | Nvrtc_error { status; message } ->
        Some (message ^ ": " ^ Sexplib0.Sexp.to_string (sexp_of_result status))
    | _ -> None)

type compile_to_ptx_result = {
  log : string option;
  ptx : char Ctypes.ptr;
  ptx_length : int;
}

let sexp_of_compile_to_ptx_result result =
  Sexplib0.Sexp.List
    [
      List [ Atom "log"; sexp_of_option sexp_of_string result.log ];
      List [ Atom "ptx"; Atom "<opaque>" ];
      List [ Atom "ptx_length"; sexp_of_int result.ptx_length ];
    ]

let of_ptx ptx =
  let length = String.length ptx + 1 in
  let copy = Ctypes.CArray.of_string ptx in
  { log = None; ptx = Ctypes.CArray.start copy; ptx_length = length }

let string_from_ptx result =
  let text = Ctypes.string_from_ptr result.ptx ~length:result.ptx_length in
  (* The length counts the closing NUL. *)
  match String.index_opt text '\000' with
  | Some length -> String.sub text 0 length
  | None -> text

let compilation_log result = result.log
