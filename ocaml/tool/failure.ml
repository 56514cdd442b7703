(* An error of the driver or of NVRTC, as it travels between processes. *)

type t = { status : string;  (** Its name, or [""]. *) message : string }

let name sexp = Sexplib0.Sexp.to_string sexp

let of_exn = function
  | Cuda.Cuda_error { status; message } ->
      { status = name (Cuda.sexp_of_result status); message }
  | Nvrtc.Nvrtc_error { status; message } ->
      { status = name (Nvrtc.sexp_of_result status); message }
  | Failure message | Invalid_argument message -> { status = ""; message }
  | other -> { status = ""; message = Printexc.to_string other }

let catch f = match f () with value -> Ok value | exception e -> Error (of_exn e)
let other message = { status = ""; message }

let to_string { status; message } =
  if status = "" then message else Printf.sprintf "%s (%s)" message status
