(* A program that makes bursts on request; see the head of ../ocaml/worker.ml. *)

type t = { label : string; pid : int; out : out_channel; from : in_channel }
type start = Ready of t * string | Unavailable of string
type answer = { ns : float; minor : float; major : float }

let failed label what = Printf.ksprintf failwith "%s: %s" label what

let reap worker =
  match Unix.waitpid [] worker.pid with
  | _, WEXITED code -> Printf.sprintf "it ended with status %d" code
  | _, (WSIGNALED signal | WSTOPPED signal) ->
      Printf.sprintf "it was ended by signal %d" signal

let read worker =
  match In_channel.input_line worker.from with
  | Some line -> line
  | None -> failed worker.label (reap worker)

let start ~label program arguments =
  let child_in, out = Unix.pipe ~cloexec:true () in
  let from, child_out = Unix.pipe ~cloexec:true () in
  let command = Array.of_list (program :: arguments) in
  let pid = Unix.create_process program command child_in child_out Unix.stderr in
  Unix.close child_in;
  Unix.close child_out;
  let out = Unix.out_channel_of_descr out and from = Unix.in_channel_of_descr from in
  let worker = { label; pid; out; from } in
  let line = read worker in
  match String.index_opt line ' ' with
  | Some at when String.sub line 0 at = "ready" ->
      Ready (worker, String.sub line (at + 1) (String.length line - at - 1))
  | Some at when String.sub line 0 at = "unavailable" ->
      ignore (reap worker);
      Unavailable (String.sub line (at + 1) (String.length line - at - 1))
  | _ -> failed label ("it began with " ^ line)

(* [ask worker measure count] is nothing if the worker cannot do that. *)
let ask worker measure count =
  Printf.fprintf worker.out "%s %d\n%!" measure count;
  match read worker with
  | "unsupported" -> None
  | line -> (
      try Scanf.sscanf line "%f %f %f" (fun ns minor major -> Some { ns; minor; major })
      with Scanf.Scan_failure _ | Failure _ | End_of_file ->
        failed worker.label ("its answer was " ^ line))

let finish worker =
  close_out worker.out;
  let how = reap worker in
  close_in worker.from;
  if how <> "it ended with status 0" then failed worker.label how
