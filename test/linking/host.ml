(* Loads the files it is given, one after the other. *)

let () =
  Dynlink.allow_unsafe_modules true;
  for i = 1 to Array.length Sys.argv - 1 do
    try Dynlink.loadfile (Dynlink.adapt_filename Sys.argv.(i))
    with Dynlink.Error e -> failwith (Sys.argv.(i) ^ ": " ^ Dynlink.error_message e)
  done
