(* The command line. *)

let usage = "usage: cudagraph (info | doctor | bench) [--driver DRIVER] [--sexp]"

let help =
  usage
  ^ {|

  info     what is here: the driver and its devices, the simulator, NVRTC
  doctor   checks what a program needs, and says how to mend what is wrong
  bench    measures launches of kernels and of graphs, in a few seconds

  --driver DRIVER   system (the installed driver), sim (the simulator) or the path of
                    a libcuda. Without it: CUDAGRAPH_DRIVER, else system
  --sexp            the answer as an s-expression, for programs
  --help            this text
  --version         the version of this package

Exit code: 0 if all is well; 1 if the driver does not work (info, bench), if a check fails
(doctor) or if the answer cannot be written; 2 if the command line is wrong.|}

type options = { command : string option; driver : string option; sexp : bool }

exception Wrong of string

let commands = [ ("info", Info.run); ("doctor", Doctor.run); ("bench", Bench.run) ]

let rec parse options = function
  | [] -> options
  | ("--help" | "-h") :: _ ->
      print_endline help;
      exit 0
  | "--version" :: _ ->
      print_endline Version.text;
      exit 0
  | "--sexp" :: rest -> parse { options with sexp = true } rest
  | "--driver" :: driver :: rest when driver <> "" && driver.[0] <> '-' ->
      parse { options with driver = Some driver } rest
  | "--driver" :: _ -> raise (Wrong "--driver needs system, sim or a path")
  | word :: rest when String.starts_with ~prefix:"--driver=" word ->
      let start = String.length "--driver=" in
      let driver = String.sub word start (String.length word - start) in
      parse options ("--driver" :: driver :: rest)
  | word :: _ when String.starts_with ~prefix:"-" word ->
      raise (Wrong ("no option " ^ word))
  | word :: rest -> (
      match options.command with
      | Some command ->
          raise (Wrong (Printf.sprintf "%s takes no argument %s" command word))
      | None when List.mem_assoc word commands ->
          parse { options with command = Some word } rest
      | None -> raise (Wrong ("no command " ^ word)))

let choice driver =
  match (driver, Sys.getenv_opt "CUDAGRAPH_DRIVER") with
  | Some driver, _ -> driver
  | None, (None | Some "") -> "system"
  | None, Some driver -> driver

let answer words =
  match parse { command = None; driver = None; sexp = false } words with
  | exception Wrong reason ->
      Printf.eprintf "cudagraph: %s\n%s\ncudagraph --help says more\n" reason usage;
      exit 2
  | { command = None; _ } ->
      prerr_endline help;
      exit 2
  | { command = Some command; driver; sexp } ->
      let run = List.assoc command commands in
      exit (if run ~sexp ~choice:(choice driver) then 0 else 1)

let main () =
  match List.tl (Array.to_list Sys.argv) with
  | [ option; task ] when option = Child.option -> Task.serve task
  | words -> (
      try answer words
      with Sys_error reason ->
        (* Else it is tried again at exit. *)
        close_out_noerr stdout;
        Printf.eprintf "cudagraph: the answer cannot be written: %s\n" reason;
        exit 1)
