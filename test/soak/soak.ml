(* Domains that capture, launch and drop, for as long as CUDAGRAPH_SOAK_SECONDS says: the numbers stay
   right, and after a warm-up neither the host's memory nor the device's grows. *)

open Cuda
open Support

let setting name default =
  match Option.map int_of_string_opt (Sys.getenv_opt name) with
  | None -> default
  | Some (Some n) when n > 0 -> n
  | Some _ -> failwith (name ^ " is not a positive number")

let seconds = float (setting "CUDAGRAPH_SOAK_SECONDS" 20)
let domains = setting "CUDAGRAPH_SOAK_DOMAINS" 8

(* After the warm-up, which is the first quarter of the time, memory may be this much above what it was
   in the warm-up, in KiB. *)
let most_growth_at_rest = 32 * 1024
let most_growth_of_heap = 4 * 1024

(* The tables of NVIDIA's driver double now and then, one of them by 4 MiB (measured). *)
let tables_of_the_driver = 4 * 1024
let most_left_by_domains = 128
let most_growth_at_work = 128 * 1024

(* The simulator lets so much memory rest before it is used again. *)
let resting = 32 * 1024
let rounds = Atomic.make 0

(* Until [stop], in a domain of its own. *)
let work ~shared ~shared_launches ~seed ~stop () =
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let random = Random.State.make [| seed |] in
  let place =
    {
      Rounds.a = stream ();
      b = stream ();
      random;
      current = None;
      shared;
      shared_launches;
    }
  in
  while not (stop ()) do
    Rounds.one place;
    Atomic.incr rounds
  done;
  Stream.synchronize place.b;
  Rounds.leave place

(* The highest memory in use until [stop], on the host and on the device. *)
let watch stop =
  let host = ref 0 and device = ref 0 in
  while not (stop ()) do
    host := max !host (Gauge.resident ());
    device := max !device (Gauge.on_device ());
    Unix.sleepf 0.05
  done;
  (!host, !device)

(* Fresh domains at work for some time, and what they leave. *)
let leg number length =
  let counter = device_ints 1 in
  let s = stream () in
  let graph, () = Graph.with_capture s (fun () -> incr s counter) in
  let shared = Graph.instantiate graph and shared_launches = Atomic.make 0 in
  let until = Unix.gettimeofday () +. length in
  let failed = Atomic.make false in
  let stop () = Atomic.get failed || Unix.gettimeofday () >= until in
  let worker i =
    let seed = (1000 * number) + i in
    Domain.spawn (fun () ->
        try work ~shared ~shared_launches ~seed ~stop ()
        with e ->
          Atomic.set failed true;
          raise e)
  in
  let workers = List.init domains worker in
  let peaks = watch stop in
  List.iter Domain.join workers;
  Context.synchronize ();
  Rounds.expect "launches of the shared exec"
    [ Atomic.get shared_launches ]
    (read counter);
  peaks

(* What domains that have ended leave in malloc: copies of theirs are still pending, and others let go of
   what those need. *)
let after_ended_domains () =
  let one () =
    Context.set_current (Context.get_primary (Device.get ~ordinal:0));
    let s = stream () in
    Stream.memcpy_H_to_D ~dst:(device_ints 4) ~src:(ints 4) s
  in
  let some () =
    for _ = 1 to 64 do
      Domain.join (Domain.spawn one)
    done
  in
  some ();
  let before = (Gauge.at_rest ()).heap in
  some ();
  (Gauge.at_rest ()).heap - before

let highest list = List.fold_left max 0 list

(* The name, and whether what was measured after the warm-up is no more than [bound] above the warm-up. *)
let flat name bound measured =
  let quarter = List.length measured / 4 in
  let before = highest (List.filteri (fun i _ -> i < quarter) measured) in
  let after = highest (List.filteri (fun i _ -> i >= quarter) measured) in
  Printf.printf "soak: %-25s %10s in the warm-up, %10s after it, at most %s more\n" name
    (Gauge.mib before) (Gauge.mib after) (Gauge.mib bound);
  (name, after - before <= bound)

let pools_text { Gauge.graphs_use; kept_for_graphs; streams_use; kept_for_streams } =
  Printf.sprintf "%s of %s for graphs, %s of %s for streams" (Gauge.mib graphs_use)
    (Gauge.mib kept_for_graphs) (Gauge.mib streams_use) (Gauge.mib kept_for_streams)

let ledger_text ledger =
  String.concat ", " (List.map (fun (kind, n) -> Printf.sprintf "%d %s" n kind) ledger)

let same_ledger measured =
  match List.filter (fun l -> l <> []) (List.map (fun g -> g.Gauge.ledger) measured) with
  | [] -> true
  | first :: others ->
      Printf.printf "soak: live at rest: %s\n" (ledger_text first);
      List.for_all
        (fun other ->
          if other <> first then Printf.printf "soak: and then: %s\n" (ledger_text other);
          other = first)
        others

let () =
  start ();
  List.iter
    (fun f -> ignore (Sys.opaque_identity (Lazy.force f)))
    [ incr_kernel; append_kernel; busy_kernel ];
  Printf.printf "soak: %d domains for %.0f s on %s\n%!" domains seconds
    (Cuda.driver_description ());
  let legs = max 8 (int_of_float (seconds /. 10.)) in
  let began = Unix.gettimeofday () in
  let measure number =
    let peak_host, peak_device = leg number (seconds /. float legs) in
    let rest = Gauge.at_rest () in
    Printf.printf
      "soak: %5.0f s: %d rounds, %d captures, %d graph launches; host %s (peak %s, \
       malloc %s), device %s (peak %s; pools %s)\n\
       %!"
      (Unix.gettimeofday () -. began)
      (Atomic.get rounds) (Atomic.get Rounds.captures) (Atomic.get Rounds.launches)
      (Gauge.mib rest.host) (Gauge.mib peak_host) (Gauge.mib rest.heap)
      (Gauge.mib rest.device) (Gauge.mib peak_device) (pools_text rest.pools);
    (rest, peak_host, peak_device)
  in
  let measured = List.init legs measure in
  let left = after_ended_domains () in
  Printf.printf "soak: 64 domains that ended left %d KiB, at most %d\n" left
    most_left_by_domains;
  let rests = List.map (fun (rest, _, _) -> rest) measured in
  let no_misuse =
    (not (Simulator.present ())) || Simulator.(faults () + bad_handles () = 0)
  in
  let verdicts =
    [
      flat "host at rest"
        (most_growth_at_rest + if Simulator.present () then resting else 0)
        (List.map (fun r -> r.Gauge.host) rests);
      flat "malloc at rest"
        (most_growth_of_heap + if Simulator.present () then 0 else tables_of_the_driver)
        (List.map (fun r -> r.Gauge.heap) rests);
      flat "device at rest" most_growth_at_rest (List.map (fun r -> r.Gauge.device) rests);
      flat "host at work" most_growth_at_work (List.map (fun (_, h, _) -> h) measured);
      flat "device at work" most_growth_at_work (List.map (fun (_, _, d) -> d) measured);
      ("what ended domains leave", left <= most_left_by_domains);
      ("what is live", same_ledger rests);
      ("failed releases", Cuda.failed_releases () = 0);
      ("illegal accesses or dead handles", no_misuse);
      ("the context", Context.is_usable (Context.get_current ()));
    ]
  in
  match List.filter (fun (_, good) -> not good) verdicts with
  | [] -> print_endline "soak: passed"
  | bad ->
      Printf.printf "soak: FAILED: %s\n" (String.concat ", " (List.map fst bad));
      exit 1
