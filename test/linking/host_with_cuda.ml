(* As host.ml, in a program that uses the library itself. *)

let () =
  Cuda.init ();
  Dynlink.allow_unsafe_modules true;
  Dynlink.loadfile (Dynlink.adapt_filename Sys.argv.(1))
