(* Uses another Rust library before and after the graph of program.ml, which is linked first. *)

external sum : (int[@untagged]) -> (int[@untagged]) = "other_bytecode" "other_sum"
[@@noalloc]

external panic : (int[@untagged]) -> (int[@untagged]) = "other_bytecode" "other_panic"
[@@noalloc]

let () =
  assert (sum 100 = 5050);
  assert (panic 7 = 1);
  Gc.full_major ();
  print_endline "other ok"
