(* Writes the names of all values of the interfaces in the arguments, as [let all = [ ... ]]:
   "Stream.create" for a [val create] of stream.mli, "init" for one of cudagraph.mli. *)

let module_of file =
  match Filename.(remove_extension (basename file)) with
  | "cudagraph" -> []
  | "module_" -> [ "Module" ]
  | name -> [ String.capitalize_ascii name ]

(* [inside] is the path of the module that a line is in, the innermost first. *)
let line (inside, names) text =
  let words = String.split_on_char ' ' (String.trim text) in
  match (words, inside) with
  | "module" :: name :: ":" :: "sig" :: _, _ -> (name :: inside, names)
  | [ "end" ], _ :: outer -> (outer, names)
  | "val" :: name :: _, _ ->
      (inside, String.concat "." (List.rev (name :: inside)) :: names)
  | _ -> (inside, names)

let names file =
  let lines =
    String.split_on_char '\n' (In_channel.with_open_bin file In_channel.input_all)
  in
  List.rev (snd (List.fold_left line (module_of file, []) lines))

(* Modules that programs do not see. *)
let is_private file = List.mem (Filename.basename file) [ "owner.mli"; "status.mli" ]

let () =
  let files = List.tl (Array.to_list Sys.argv) in
  let files = List.filter (fun file -> not (is_private file)) files in
  let quoted = List.map (Printf.sprintf "%S") (List.concat_map names files) in
  Printf.printf "let all =\n  [ %s ]\n" (String.concat ";\n    " quoted)
