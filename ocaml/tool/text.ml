(* Text for people. *)

(* Columns as wide as their widest cell; those named in [right] to the right. *)
let table ?(right = []) header rows =
  let all = header :: rows in
  let width column =
    List.fold_left (fun w row -> max w (String.length (List.nth row column))) 0 all
  in
  let line row =
    let cell column text =
      let pad = String.make (width column - String.length text) ' ' in
      if List.mem (List.nth header column) right then pad ^ text else text ^ pad
    in
    let line = String.concat "  " (List.mapi cell row) in
    let rec trimmed n = if n > 0 && line.[n - 1] = ' ' then trimmed (n - 1) else n in
    String.sub line 0 (trimmed (String.length line))
  in
  List.map line all

(* Words of [text], broken into lines of at most [width]. *)
let wrap width text =
  let add (lines, line) word =
    if line = "" then (lines, word)
    else if String.length line + 1 + String.length word <= width then
      (lines, line ^ " " ^ word)
    else (line :: lines, word)
  in
  let words = List.filter (( <> ) "") (String.split_on_char ' ' text) in
  let lines, last = List.fold_left add ([], "") words in
  List.rev (last :: lines)

(* [title] in a column of its own, [text] beside it. *)
let entry ?(column = 12) title text =
  List.concat_map (fun line -> wrap (98 - column) line) (String.split_on_char '\n' text)
  |> List.mapi (fun i line ->
         Printf.sprintf "%-*s%s" column (if i = 0 then title else "") line)

let bytes n =
  let f = float_of_int n in
  if n >= 1 lsl 30 then Printf.sprintf "%.1f GiB" (f /. 1073741824.)
  else if n >= 1 lsl 20 then Printf.sprintf "%.1f MiB" (f /. 1048576.)
  else Printf.sprintf "%.0f KiB" (f /. 1024.)

let print lines = List.iter print_endline lines

(* For programs. *)

let atom text = Sexplib0.Sexp.Atom text
let int n = atom (string_of_int n)
let field name value = Sexplib0.Sexp.List [ atom name; value ]
let print_sexp sexp = print_endline (Sexplib0.Sexp.to_string_hum sexp)
