(* Checks what a program needs, one thing after the other, and says how to mend what is wrong. *)

type outcome =
  | Fine of string
  | Failed of string * string  (** What is wrong; how to mend it. *)
  | Absent of string * string  (** The same, for what not every program needs. *)
  | Skipped of string  (** Why it was not checked. *)

(* The steps of [Task.exercise] by their titles: those after a failure are skipped. *)
let steps titles advice answer =
  let of_step = function
    | Some (Ok detail) -> Fine detail
    | Some (Error failure) -> Failed (Failure.to_string failure, advice failure)
    | None -> Skipped "an earlier check failed"
  in
  match answer with
  | Ok done_ ->
      List.map (fun (name, title) -> (title, of_step (List.assoc_opt name done_))) titles
  | Error failure ->
      (* No answer at all: the process crashed or hung. *)
      List.mapi
        (fun i (_, title) ->
          (title, of_step (if i = 0 then Some (Error failure) else None)))
        titles

let driver_checks choice =
  let titles =
    [
      ("driver", "driver");
      ("version", "version");
      ("device", "device");
      ("kernel", "a kernel runs");
      ("graph", "a graph replays");
    ]
  in
  steps titles (Advice.of_driver choice) (Task.exercise ~driver:choice ())

(* Only the system's own driver needs them, and only on Linux. Where the driver finds its devices all
   the same, as on boards with other device files, nothing is wrong. *)
let node_check choice driver_checks =
  if choice <> "system" || not (Sys.file_exists "/proc/self") then []
  else
    let outcome =
      match (Nodes.check (), List.assoc "device" driver_checks) with
      | Ok found, _ -> Fine found
      | Error _, Fine _ -> Skipped "the driver does without the usual ones"
      | Error (wrong, mend), _ -> Failed (wrong, mend)
    in
    [ ("device files", outcome) ]

let is_failure = function _, Failed _ -> true | _ -> false

(* What is compiled is loaded too, by a driver that works. *)
let compiler_checks choice driver_checks =
  match Task.compiler () with
  | Error failure ->
      [ ("NVRTC", Absent (Failure.to_string failure, Advice.of_compiler failure)) ]
  | Ok { library; nvrtc_version = major, minor; include_folders } ->
      let compiles =
        match
          if List.exists is_failure driver_checks then Task.compile ()
          else Task.compile_and_load ~driver:choice ()
        with
        | Ok detail -> Fine detail
        | Error failure -> Failed (Failure.to_string failure, Advice.of_compiler failure)
      in
      [
        ("NVRTC", Fine (Printf.sprintf "%s, CUDA %d.%d" library major minor));
        ("NVRTC compiles", compiles);
        ( "CUDA headers",
          if include_folders = [] then Absent ("none found", Advice.no_headers)
          else Fine (String.concat ", " include_folders) );
      ]

let simulator_check choice =
  if choice = "sim" then []
  else
    let last steps = List.nth steps (List.length steps - 1) in
    let outcome =
      match Task.exercise ~driver:"sim" () with
      | Error failure -> Failed (Failure.to_string failure, Advice.of_simulator)
      | Ok done_ -> (
          match last done_ with
          | _, Error failure -> Failed (Failure.to_string failure, Advice.of_simulator)
          | _, Ok _ -> (
              match List.assoc "driver" done_ with
              | Ok file -> Fine (file ^ "; a kernel runs, a graph replays")
              | Error _ -> assert false))
    in
    [ ("simulator", outcome) ]

let print_text checks =
  let line (title, outcome) =
    let entry word text =
      Text.entry ~column:24 (Printf.sprintf "%-7s%s" word title) text
    in
    let mended word wrong mend =
      entry word wrong @ Text.entry ~column:24 "" ("-> " ^ mend)
    in
    match outcome with
    | Fine detail -> entry "ok" detail
    | Failed (wrong, mend) -> mended "FAILED" wrong mend
    | Absent (wrong, mend) -> mended "absent" wrong mend
    | Skipped why -> entry "-" ("not checked: " ^ why)
  in
  List.iter (fun check -> Text.print (line check)) checks

let sexp_of_check (title, outcome) =
  let open Text in
  let fields =
    match outcome with
    | Fine detail -> [ field "result" (atom "ok"); field "detail" (atom detail) ]
    | Failed (wrong, mend) ->
        [ field "result" (atom "failed"); field "detail" (atom wrong) ]
        @ [ field "mend" (atom mend) ]
    | Absent (wrong, mend) ->
        [ field "result" (atom "absent"); field "detail" (atom wrong) ]
        @ [ field "mend" (atom mend) ]
    | Skipped why -> [ field "result" (atom "skipped"); field "detail" (atom why) ]
  in
  Sexplib0.Sexp.List (field "check" (atom title) :: fields)

(* Whether no check failed. *)
let run ~sexp ~choice =
  let driver = driver_checks choice in
  let checks =
    driver @ node_check choice driver @ compiler_checks choice driver
    @ simulator_check choice
  in
  let failed = List.length (List.filter is_failure checks) in
  if sexp then Text.print_sexp (List (List.map sexp_of_check checks))
  else (
    print_text checks;
    Printf.printf "\n%s (CUDAGRAPH_DRIVER=%s)\n"
      (match failed with
      | 0 -> "All is well."
      | 1 -> "1 check failed."
      | n -> Printf.sprintf "%d checks failed." n)
      choice);
  failed = 0
