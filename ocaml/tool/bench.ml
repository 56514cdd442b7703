(* A short measurement: many small kernels, one by one and as a graph. *)

open Cuda

let kernels = 500
let rounds = 15

let median times =
  Array.sort compare times;
  times.(Array.length times / 2)

let microseconds f =
  let start = Unix.gettimeofday () in
  f ();
  (Unix.gettimeofday () -. start) *. 1e6

type times = {
  one_by_one : float;  (** Enqueuing all, and waiting for them. *)
  as_graph : float;  (** The same as one launch. *)
  launch_call : float;  (** The call alone, for one kernel. *)
  graph_call : float;  (** The call alone, for a graph of one kernel. *)
}

(* Medians of several rounds; both ways take turns, so that they see the same clocks. *)
let measure () =
  Cuda.init ();
  Task.start_device (Device.get ~ordinal:0);
  let stream = Stream.create ~non_blocking:true () in
  let memory = Deviceptr.alloc_and_memcpy (Task.zeros ()) in
  let kernel = Task.load_increment () in
  let one () = Task.increment stream kernel memory in
  let repeat f () =
    for _ = 1 to kernels do
      f ()
    done
  in
  let exec f = Graph.instantiate (fst (Graph.with_capture stream f)) in
  let all_exec = exec (repeat one) and one_exec = exec one in
  let launch exec () = Graph.launch exec stream in
  let finish () = Stream.synchronize stream in
  let waited f () = f (); finish () in
  let calls f () =
    let time = microseconds (repeat f) in
    finish ();
    time /. float_of_int kernels
  in
  let measures =
    [|
      (fun () -> microseconds (waited (repeat one)));
      (fun () -> microseconds (waited (launch all_exec)));
      calls one;
      calls (launch one_exec);
    |]
  in
  (* The driver loads code when it is first used. *)
  Array.iter (fun measure -> ignore (measure ())) measures;
  let results = Array.map (fun _ -> Array.make rounds 0.0) measures in
  for round = 0 to rounds - 1 do
    Array.iteri (fun i measure -> results.(i).(round) <- measure ()) measures
  done;
  Task.expect (4 * (rounds + 1) * kernels) memory;
  match Array.map median results with
  | [| one_by_one; as_graph; launch_call; graph_call |] ->
      { one_by_one; as_graph; launch_call; graph_call }
  | _ -> assert false
[@@ocamlformat "disable"]

let device_name () = (Device.get_attributes (Device.get ~ordinal:0)).name

let print_text t =
  let row what time = [ what; Printf.sprintf "%.1f us" time ] in
  Text.print (Text.entry "driver" (driver_description ()));
  Text.print (Text.entry "device" (device_name ()));
  print_newline ();
  Text.print
    (Text.table ~right:[ "median" ] [ "what"; "median" ]
       [
         row (Printf.sprintf "%d kernels one by one, with the wait" kernels) t.one_by_one;
         row (Printf.sprintf "%d kernels as one graph, with the wait" kernels) t.as_graph;
         row "the call that launches one kernel" t.launch_call;
         row "the call that launches a graph of one kernel" t.graph_call;
       ]);
  Printf.printf "\nThe graph is %.2f times as fast.\n" (t.one_by_one /. t.as_graph);
  if String.starts_with ~prefix:"simulator" (driver_description ()) then
    print_endline "This is the simulator: its times say nothing about a GPU."

let print_sexp t =
  let number x = Text.atom (Printf.sprintf "%.3f" x) in
  Text.print_sexp
    (List
       [
         Text.field "driver" (Text.atom (driver_description ()));
         Text.field "device" (Text.atom (device_name ()));
         Text.field "kernels" (Text.int kernels);
         Text.field "one_by_one_us" (number t.one_by_one);
         Text.field "as_graph_us" (number t.as_graph);
         Text.field "launch_call_us" (number t.launch_call);
         Text.field "graph_call_us" (number t.graph_call);
         Text.field "ratio" (number (t.one_by_one /. t.as_graph));
       ])

let run ~sexp ~choice =
  Unix.putenv "CUDAGRAPH_DRIVER" choice;
  match Failure.catch measure with
  | Ok times ->
      (if sexp then print_sexp else print_text) times;
      true
  | Error failure ->
      prerr_endline ("cudagraph bench: " ^ Failure.to_string failure);
      false
