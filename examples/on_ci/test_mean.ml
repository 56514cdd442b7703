(* Tests that need no GPU. The dune file beside this one chooses the simulator, and for a second run
   lets an allocation fail. *)

open Cuda

let check name condition =
  if condition then Printf.printf "ok: %s\n" name
  else (
    Printf.printf "FAILED: %s\n" name;
    exit 1)

let right () =
  check "the mean of four numbers" (Mean.of_list [ 1.0; 2.0; 3.0; 6.0 ] = 3.0);
  check "the mean of one number" (Mean.of_list [ 7.0 ] = 7.0)

(* On a GPU nobody can make the second allocation fail; on the simulator one line does. *)
let out_of_memory () =
  match Mean.of_list [ 1.0 ] with
  | _ -> check "the failure is seen" false
  | exception Cuda_error { status; message } ->
      check
        ("the failure is seen: " ^ message)
        (Sexplib0.Sexp.to_string (Cuda.sexp_of_result status) = "CUDA_ERROR_OUT_OF_MEMORY");
      check "the next call works" (Mean.of_list [ 1.0; 3.0 ] = 2.0)

let () =
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  match Sys.getenv_opt "CUDAGRAPH_SIM_FAIL" with
  | None -> right ()
  | Some _ -> out_of_memory ()
