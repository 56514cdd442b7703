open Sexplib0.Sexp_conv

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
