(* Work in a process of its own. Two drivers cannot be loaded into one process, and a driver or a
   compiler that crashes or hangs should be a line of the report, not its end. *)

let option = "--task"

(* The program's output carries the answer; whatever a library prints goes to the errors. *)
let serve task =
  let answers = Unix.out_channel_of_descr (Unix.dup Unix.stdout) in
  Unix.dup2 Unix.stderr Unix.stdout;
  set_binary_mode_out answers true;
  Marshal.to_channel answers (Failure.catch task) [];
  close_out answers;
  exit 0

let environment driver =
  match driver with
  | None -> Unix.environment ()
  | Some driver ->
      let others variable =
        not (String.starts_with ~prefix:"CUDAGRAPH_DRIVER=" variable)
      in
      let kept = List.filter others (Array.to_list (Unix.environment ())) in
      Array.of_list (("CUDAGRAPH_DRIVER=" ^ driver) :: kept)

(* All that comes until the other side closes; [None] when that takes too long. *)
let read_all descriptor ~deadline =
  let text = Buffer.create 4096 and chunk = Bytes.create 4096 in
  let rec go () =
    (* A negative time would be no limit. *)
    let left = Float.max 0.0 (deadline -. Unix.gettimeofday ()) in
    match Unix.select [ descriptor ] [] [] left with
    | [], _, _ -> None
    | _ -> (
        match Unix.read descriptor chunk 0 (Bytes.length chunk) with
        | 0 -> Some (Buffer.contents text)
        | n ->
            Buffer.add_subbytes text chunk 0 n;
            go ())
    | exception Unix.Unix_error (EINTR, _, _) -> go ()
  in
  go ()

let signal_name number =
  let known =
    [ (Sys.sigsegv, "SIGSEGV"); (Sys.sigbus, "SIGBUS"); (Sys.sigabrt, "SIGABRT") ]
    @ [ (Sys.sigill, "SIGILL"); (Sys.sigkill, "SIGKILL"); (Sys.sigfpe, "SIGFPE") ]
  in
  Option.value ~default:"a signal" (List.assoc_opt number known)

let rec wait pid =
  match Unix.waitpid [] pid with
  | _, status -> status
  | exception Unix.Unix_error (EINTR, _, _) -> wait pid

(* [run task] is what the process that was started for [task] answers. The caller knows its type:
   that of the function which [serve] is given for [task]. *)
let run ?(seconds = 60.) ?driver task : ('a, Failure.t) result =
  let reads, writes = Unix.pipe ~cloexec:true () in
  let pid =
    Unix.create_process_env Sys.executable_name
      [| Sys.executable_name; option; task |]
      (environment driver) Unix.stdin writes Unix.stderr
  in
  Unix.close writes;
  let answer = read_all reads ~deadline:(Unix.gettimeofday () +. seconds) in
  Unix.close reads;
  if answer = None then Unix.kill pid Sys.sigkill;
  match (answer, wait pid) with
  | Some text, WEXITED 0 when text <> "" -> Marshal.from_string text 0
  | None, _ ->
      Error (Failure.other (Printf.sprintf "no answer within %g s; it hangs" seconds))
  | _, WSIGNALED n ->
      Error (Failure.other (Printf.sprintf "the process crashed (%s)" (signal_name n)))
  | _, (WEXITED n | WSTOPPED n) ->
      Error (Failure.other (Printf.sprintf "the process ended with code %d" n))
