(* Tables of wrong calls: each row is a function, what is wrong, and how the call must end. *)

open Cuda
open Support

(* How a call ends, as a text: what it begins with, and parts that it holds. *)
type ending = { first : string; parts : string list }

(* The call is harmless. *)
let works = { first = "works"; parts = [] }

(* The library refuses it: the text begins with the function; [parts] are argument and limit. *)
let invalid parts = { first = "Invalid_argument"; parts }

(* The driver refuses it, or would: [call] is its function. *)
let fails status call parts =
  { first = Printf.sprintf "CUDA_ERROR_%s %s" status call; parts }

let nvrtc_fails status parts = { first = "NVRTC_" ^ status; parts }

type row = { name : string; wrong : string; ending : ending; call : unit -> unit }

(* [row name wrong ending call]: [name] as "Stream.create". *)
let row name wrong ending call =
  { name; wrong; ending; call = (fun () -> ignore (Sys.opaque_identity (call ()))) }

let ended call =
  match call () with
  | () -> "works"
  | exception Invalid_argument text -> "Invalid_argument " ^ text
  | exception Cuda_error { status; message } -> status_name status ^ " " ^ message
  | exception Nvrtc.Nvrtc_error { status; message } ->
      sexp (Nvrtc.sexp_of_result status) ^ " " ^ message
  | exception error -> "an exception of another kind, " ^ Printexc.to_string error

(* What the row's text must begin with. *)
let beginning { name; ending; _ } =
  if ending.first <> "Invalid_argument" then ending.first
  else
    let library = if String.starts_with ~prefix:"Nvrtc." name then "" else "Cuda." in
    Printf.sprintf "Invalid_argument %s%s: " library name

(* What is wrong about how a row ends, if anything. *)
let mistake row =
  let ended = ended row.call in
  let bad =
    (not (String.starts_with ~prefix:(beginning row) ended))
    || List.exists (fun part -> not (contains ended part)) row.ending.parts
  in
  if bad then
    Some
      (Printf.sprintf "%s, %s: %S should begin with %S and name %s" row.name row.wrong
         ended (beginning row)
         (String.concat ", " (List.map (Printf.sprintf "%S") row.ending.parts)))
  else None

let mistakes rows = List.filter_map mistake rows

(* All rows are tried before the first mistake is a failure. *)
let check rows = Alcotest.(check (list string)) "mistakes" [] (mistakes rows)
let names rows = List.sort_uniq compare (List.map (fun row -> row.name) rows)
