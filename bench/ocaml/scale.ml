(* scale.exe LAUNCHES NODES: what does not show in the cost of one call.

   Memory over many launches that nothing waits for, and the cost of a node in captures of growing size. Fails
   where the memory grows, or the cost does, from 10,000 nodes on. *)

open Cuda

(* Pages of this process that are in memory, in KiB. *)
let resident () =
  let statm = In_channel.with_open_bin "/proc/self/statm" In_channel.input_all in
  Scanf.sscanf statm "%d %d" (fun _ pages -> pages * 4)

let failures = ref 0

let verdict good fmt =
  let say line =
    if not good then incr failures;
    Printf.printf "%s  %s\n%!" (if good then "ok  " else "FAIL") line
  in
  Printf.ksprintf say fmt

(* Nothing is waited for here but by the driver, when its launch queue is full. *)
let launches name count call =
  let part = max 1 (count / 10) in
  let make n =
    for _ = 1 to n do
      call ()
    done;
    resident ()
  in
  let first = make part in
  let last = ref first in
  for _ = 2 to 10 do
    last := max !last (make part)
  done;
  verdict
    (!last - first <= 2048)
    "%d of %s: %d KiB resident after a tenth, at most %d KiB later" (10 * part) name first
    !last

(* Nanoseconds and KiB for each node of a captured graph, and of its exec. *)
let capture (w : Work.t) nodes =
  Gc.compact ();
  let memory = resident () and start = Clock.now () in
  let graph = Work.capture w nodes in
  let captured = Clock.now () in
  let exec = Graph.instantiate graph in
  let made = Clock.now () in
  let bytes = float (1024 * (resident () - memory)) /. float nodes in
  Graph.launch exec w.stream;
  Work.wait w;
  Graph.exec_destroy exec;
  Graph.destroy graph;
  let each from until = float (until - from) /. float nodes in
  (each start captured, each captured made, bytes)

let captures w most =
  let sizes = List.filter (fun n -> n >= 1) [ most / 100; most / 10; most ] in
  let cost nodes =
    let capture, instantiate, bytes = capture w nodes in
    Printf.printf
      "      a capture of %d nodes: %.0f ns for each, %.0f to instantiate, %.0f bytes\n"
      nodes capture instantiate bytes;
    capture
  in
  match List.map cost sizes with
  (* A capture of few nodes takes less time than one interruption. *)
  | [ _; some; many ] when most >= 10_000 ->
      verdict
        (many <= 2.0 *. some)
        "a node of %d costs %.2f of what one of %d does" most (many /. some) (most / 10)
  | _ -> ()

let () =
  try
    init ();
    match Sys.argv with
    | [| _; launched; nodes |] ->
        let launched = int_of_string launched and w = Work.create () in
        let exec = Graph.instantiate (Work.graph w 1) in
        launches "Graph.launch" launched (fun () -> Graph.launch exec w.stream);
        launches "Stream.launch_kernel" launched (fun () -> Work.launch_five w);
        captures w (int_of_string nodes);
        Work.wait w;
        exit (min 1 !failures)
    | _ -> failwith "usage: scale.exe LAUNCHES NODES"
  with error -> Team.fail error
