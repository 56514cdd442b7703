(* What is measured, and in bursts of how many calls. No burst fills the launch queue, which holds 1021
   launches: a call would then wait for the GPU, and the time would be the GPU's. *)

type t = {
  name : string;  (** as the workers know it *)
  title : string;  (** for people *)
  count : int;  (** calls in a burst *)
  bursts : int;  (** in each round *)
  together : int;  (** calls of each thread where several threads do it; 0: they do not *)
}

let make ?(together = 0) name title count bursts =
  { name; title; count; bursts; together }

let sizes list f = List.map f list

let all =
  List.concat
    [
      sizes [ 1; 5; 12 ] (fun n ->
          make ~together:50
            (Printf.sprintf "launch_%d" n)
            (Printf.sprintf "launch_kernel, %d parameter%s" n (if n = 1 then "" else "s"))
            400 12);
      sizes
        [ (1, 400, 12, 50); (10, 100, 12, 20); (100, 20, 12, 5); (1000, 4, 12, 0) ]
        (fun (n, count, bursts, together) ->
          make ~together (Printf.sprintf "graph_%d" n)
            (Printf.sprintf "Graph.launch, %d node%s" n (if n = 1 then "" else "s"))
            count bursts);
      sizes
        [ (10, 40); (100, 10); (1000, 2) ]
        (fun (n, count) ->
          make
            (Printf.sprintf "capture_%d" n)
            (Printf.sprintf "capture, per node of %d" n)
            count 8);
      sizes
        [ (10, 20); (100, 5); (1000, 1) ]
        (fun (n, count) ->
          make
            (Printf.sprintf "instantiate_%d" n)
            (Printf.sprintf "instantiate, %d nodes" n)
            count 8);
      sizes
        [ (10, 20); (100, 4); (1000, 1) ]
        (fun (n, count) ->
          make
            (Printf.sprintf "stream_%d" n)
            (Printf.sprintf "%d kernels as a stream, with the wait" n)
            count 8);
      sizes
        [ (10, 20); (100, 10); (1000, 2) ]
        (fun (n, count) ->
          make
            (Printf.sprintf "replay_%d" n)
            (Printf.sprintf "%d kernels as a graph, with the wait" n)
            count 8);
      [
        make ~together:50 "event_record" "event record" 400 10;
        make ~together:50 "event_pair" "event record and wait" 200 10;
        make "h2d" "copy of 1 KiB to the device, async" 200 10;
        make "d2h" "copy of 1 KiB to the host, async" 100 10;
        make "d2d" "copy of 1 KiB on the device, async" 200 10;
        make ~together:50 "memset" "fill of 1 KiB, async" 200 10;
      ];
    ]

(* For finding out whether all of it works. *)
let smoke measure =
  {
    measure with
    count = min measure.count 2;
    bursts = 2;
    together = min measure.together 2;
  }

(* The measure as several threads do it. *)
let shared measure =
  if measure.together = 0 then None else Some { measure with count = measure.together }
