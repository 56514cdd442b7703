(* Trains the network twice from the same weights: with plain launches, and with one graph. *)

open Cuda

let median times =
  let sorted = List.sort compare times in
  List.nth sorted (List.length sorted / 2)

let mean values = Array.fold_left ( +. ) 0.0 values /. float_of_int (Array.length values)

(* All epochs with one way to make a step: the losses of all steps, and microseconds per step. *)
let train (options : Options.t) network stream ~steps ~way make_step =
  Network.reset network ~seed:options.seed;
  let times =
    List.init options.epochs (fun epoch ->
        let start = Unix.gettimeofday () in
        for _ = 1 to steps do
          make_step ()
        done;
        Stream.synchronize stream;
        let time = (Unix.gettimeofday () -. start) *. 1e6 /. float_of_int steps in
        let losses = Network.losses network ~steps:((epoch + 1) * steps) in
        if not options.quiet then
          Printf.printf "%-6s epoch %2d of %d: loss %.4f, %.0f us a step\n%!" way
            (epoch + 1) options.epochs
            (mean (Array.sub losses (epoch * steps) steps))
            time;
        time)
  in
  (Network.losses network ~steps:(options.epochs * steps), median times)

(* The mean loss of each twentieth of an epoch or so, for the picture. *)
let smooth ~steps losses =
  let width = max 1 (steps / 20) in
  Array.init
    (Array.length losses / width)
    (fun i -> mean (Array.sub losses (i * width) width))

let run (options : Options.t) =
  let say fmt =
    Printf.ksprintf (fun text -> if not options.quiet then print_endline text) fmt
  in
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  say "Driver: %s" (Cuda.driver_description ());
  let steps = Data.trained / options.batch in
  let total_steps = options.epochs * steps in
  say
    "%d images of %d pixels, %d hidden units, %d steps of %d images in each of %d epochs"
    Data.trained Data.pixels options.hidden steps options.batch options.epochs;
  let order =
    Data.orders ~seed:options.seed ~epochs:options.epochs ~steps ~batch:options.batch
  in
  let network =
    Network.create ~batch:options.batch ~hidden:options.hidden ~order ~total_steps
  in
  let stream = Stream.create ~non_blocking:true () in
  let train = train options network stream ~steps in
  let step () = Network.step network stream in
  let stream_losses, step_stream_us = train ~way:"stream" step in
  (* The same step, recorded once. *)
  let graph, () = Graph.with_capture stream step in
  let nodes = Graph.node_count graph in
  let exec = Graph.instantiate graph in
  Graph.destroy graph;
  let graph_losses, step_graph_us =
    train ~way:"graph" (fun () -> Graph.launch exec stream)
  in
  let same a b = Int32.equal (Int32.bits_of_float a) (Int32.bits_of_float b) in
  let identical = Array.for_all2 same stream_losses graph_losses in
  let accuracy = Network.accuracy network stream in
  say "Test accuracy: %.1f %% of %d images" (100.0 *. accuracy) Data.tested;
  say "Launches saved by the graph: %d of %d"
    (total_steps * (nodes - 1))
    (total_steps * nodes);
  say "Losses of stream and graph are %s" (if identical then "identical" else "DIFFERENT");
  say "A step took %.0f us as a stream of launches, %.0f us as a graph" step_stream_us
    step_graph_us;
  let series label colour dashes losses =
    { Svg.label; colour; dashes; values = smooth ~steps losses }
  in
  let picture =
    Svg.chart ~title:"Handwritten digits: training loss" ~x_label:"epoch"
      ~y_label:"mean cross-entropy" ~x_max:(float_of_int options.epochs)
      [
        series "stream of launches" "#d95f02" "" stream_losses;
        series "graph" "#1b6ca8" "5 4" graph_losses;
      ]
  in
  let written =
    match
      Out_channel.with_open_text options.output (fun file -> output_string file picture)
    with
    | () ->
        say "Picture of the loss: %s" options.output;
        true
    | exception Sys_error why ->
        prerr_endline ("digits: the picture was not written: " ^ why);
        false
  in
  Printf.printf
    "digits: accuracy=%.3f identical=%b nodes=%d replays=%d step_stream_us=%.1f \
     step_graph_us=%.1f\n"
    accuracy identical nodes total_steps step_stream_us step_graph_us;
  identical && written

(* Exit codes: 0 when all went well, 1 when not, 2 (by Options) for a bad command line. *)
let () =
  match run (Options.of_command_line ()) with
  | true -> ()
  | false -> exit 1
  | exception (Cuda_error _ as error) ->
      prerr_endline ("digits: " ^ Printexc.to_string error);
      exit 1
