(* embed.ml NAME=FILE...: prints an OCaml module with the content of each file as a string. *)

let () =
  for index = 1 to Array.length Sys.argv - 1 do
    match String.split_on_char '=' Sys.argv.(index) with
    | [ name; file ] ->
        let content = In_channel.with_open_bin file In_channel.input_all in
        Printf.printf "let %s = %S\n" name content
    | _ -> failwith ("not NAME=FILE: " ^ Sys.argv.(index))
  done
