(* What the process uses. *)

open Support

(* Resident memory of the process in KiB. *)
let resident () =
  let rec find file =
    match input_line file with
    | line -> ( try Scanf.sscanf line "VmRSS: %d kB" Fun.id with _ -> find file)
    | exception End_of_file -> failwith "no VmRSS in /proc/self/status"
  in
  In_channel.with_open_text "/proc/self/status" find

(* Device memory in use, in KiB. *)
let on_device () =
  let free, total = Cuda.Device.get_free_and_total_mem () in
  (total - free) / 1024

(* What malloc has given out, in KiB; what it only keeps goes back first. *)
external heap : unit -> int = "soak_heap"

(* What the driver only keeps goes back. *)
external trim : unit -> unit = "soak_trim"

(* Device memory in the driver's pools, in KiB. *)
type pools = {
  graphs_use : int;
  kept_for_graphs : int;
  streams_use : int;
  kept_for_streams : int;
}

external of_pools : int -> int = "soak_of_pools"

let pools () =
  {
    graphs_use = of_pools 0;
    kept_for_graphs = of_pools 1;
    streams_use = of_pools 2;
    kept_for_streams = of_pools 3;
  }

type t = {
  host : int;
  heap : int;
  device : int;
  pools : pools;
  ledger : (string * int) list;
}

(* With nothing under way and all garbage gone. *)
let at_rest () =
  for _ = 1 to 3 do
    Gc.full_major ();
    Cuda.Context.synchronize ()
  done;
  Gc.compact ();
  trim ();
  let ledger = if Simulator.present () then Simulator.ledger () else [] in
  let heap = heap () in
  { host = resident (); heap; device = on_device (); pools = pools (); ledger }

let mib kib = Printf.sprintf "%.1f MiB" (float kib /. 1024.)
