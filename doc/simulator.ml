(* The pages are tested without a GPU. *)
let () = Unix.putenv "CUDAGRAPH_DRIVER" "sim"
