(* What the Rust core exports for Nvrtc. Not part of the public interface.

   A status is an nvrtcResult, or one of the two negative numbers below. After a failure
   [Raw.detail ()] is the text that explains it. *)

type status = int

let invalid_argument : status = -1
let not_found : status = -2

(* The core reads the fields by their order. *)
type request = {
  source : string;
  name : string;
  options : string array;
  header_names : string array;
  headers : string array;  (** As long as [header_names]. *)
  expressions : string array;
  cubin_for : string option;
  cache : string option;
}

(* The image, the log and the lowered names; whether they come from the cache. *)
external compile : request -> (string array * bool, status) result
  = "cudagraph_nvrtc_compile"

external version : unit -> (int * int, status) result = "cudagraph_nvrtc_version"

(* As decimal numbers. *)
external architectures : unit -> (string array, status) result
  = "cudagraph_nvrtc_architectures"

(* The library, then the folders of headers. *)
external files : unit -> (string array, status) result = "cudagraph_nvrtc_files"
