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
  if status = Raw_nvrtc.not_found then Atom "NVRTC_NOT_FOUND"
  else if status >= 0 && status < Array.length names then Atom names.(status)
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

let result_of ?log image =
  (* [of_string] adds a NUL, which the driver needs and the length leaves out. *)
  let ptx = Ctypes.CArray.start (Ctypes.CArray.of_string image) in
  { log; ptx; ptx_length = String.length image }

let of_ptx text = result_of text
let string_from_ptx result = Ctypes.string_from_ptr result.ptx ~length:result.ptx_length
let compilation_log result = result.log

let get where = function
  | Ok value -> value
  | Error status ->
      let message = Raw.detail () in
      if status = Raw_nvrtc.invalid_argument then invalid_arg (where ^ ": " ^ message)
      else raise (Nvrtc_error { status; message })

let version () = get "Nvrtc.version" (Raw_nvrtc.version ())
let library () = (get "Nvrtc.library" (Raw_nvrtc.files ())).(0)

let include_folders () =
  List.tl (Array.to_list (get "Nvrtc.include_folders" (Raw_nvrtc.files ())))

let supported_architectures () =
  Raw_nvrtc.architectures ()
  |> get "Nvrtc.supported_architectures"
  |> Array.to_list |> List.map int_of_string

module Program = struct
  type target = PTX | CUBIN of string

  let sexp_of_target : target -> Sexplib0.Sexp.t = function
    | PTX -> Atom "PTX"
    | CUBIN architecture -> List [ Atom "CUBIN"; Atom architecture ]

  type t = { image : string; log : string; names : (string * string) list; cached : bool }

  let compile_for where ?(target = PTX) ?(name = "") ?(options = []) ?(headers = [])
      ?(expressions = []) ?cache source =
    let texts, cached =
      get where
        (Raw_nvrtc.compile
           {
             source;
             name;
             options = Array.of_list options;
             header_names = Array.of_list (List.map fst headers);
             headers = Array.of_list (List.map snd headers);
             expressions = Array.of_list expressions;
             cubin_for = (match target with PTX -> None | CUBIN name -> Some name);
             cache;
           })
    in
    let names = List.mapi (fun i expression -> (expression, texts.(i + 2))) expressions in
    { image = texts.(0); log = texts.(1); names; cached }

  let compile ?target = compile_for "Nvrtc.Program.compile" ?target
  let image program = program.image
  let log program = program.log
  let is_cached program = program.cached

  let lowered_name program expression =
    match List.assoc_opt expression program.names with
    | Some name -> name
    | None ->
        invalid_arg
          (Printf.sprintf
             "Nvrtc.Program.lowered_name: %S is not among the expressions that the \
              program was compiled with%s"
             expression
             (match program.names with
             | [] -> ", which are none"
             | names ->
                 ": "
                 ^ String.concat ", "
                     (List.map (fun (e, _) -> Printf.sprintf "%S" e) names)))

  let to_load program = result_of ~log:program.log program.image

  let sexp_of_t program =
    Sexplib0.Sexp.List
      [
        List [ Atom "image_bytes"; sexp_of_int (String.length program.image) ];
        List [ Atom "log"; sexp_of_string program.log ];
        List
          [
            Atom "names";
            sexp_of_list (sexp_of_pair sexp_of_string sexp_of_string) program.names;
          ];
        List [ Atom "cached"; sexp_of_bool program.cached ];
      ]
end

let compile_to_ptx ~cu_src ~name ~options ~with_debug =
  let program = Program.compile_for "Nvrtc.compile_to_ptx" ~name ~options cu_src in
  let log = if with_debug then Some program.log else None in
  result_of ?log program.image
