(* One run of a scenario with one thing gone wrong, and what must hold afterwards. *)

open Cuda
open Support

(* What goes wrong. *)
type trouble =
  | Failing of { func : string; nth : int; error : string }
      (** The driver refuses one call of the library. *)
  | Collecting of int  (** The garbage collector runs after one call of the program. *)
  | Collecting_always  (** After each of them. *)
  | Storming
      (** Another domain collects all the time, and every driver call takes its time. *)

let name = function
  | Failing { func; nth; error } -> Printf.sprintf "%s@%d=%s" func nth error
  | Collecting n -> Printf.sprintf "collected after call %d" n
  | Collecting_always -> "collected after each call"
  | Storming -> "collected all the time"

(* Collects all that can be, and makes a call that gives back what was found. *)
let collect () =
  Gc.full_major ();
  Gc.full_major ();
  Gc.compact ();
  match stream () with (_ : Stream.t) -> () | exception Cuda_error _ -> ()

(* Runs [f], and [hook n] after its [n]th call; how many there were. The calls that the hook makes
   do not count. *)
let hooked hook f =
  let calls = Atomic.make 0 and inside = Atomic.make false in
  let called ~message:_ ~status:_ =
    if not (Atomic.exchange inside true) then (
      hook (1 + Atomic.fetch_and_add calls 1);
      Atomic.set inside false)
  in
  Cuda.cuda_call_hook := Some called;
  Fun.protect f ~finally:(fun () -> Cuda.cuda_call_hook := None);
  Atomic.get calls

(* Runs [f] while another domain collects without a pause. *)
let in_storm f =
  let over = Atomic.make false in
  let storm () =
    while not (Atomic.get over) do
      Gc.compact ()
    done
  in
  let domain = Domain.spawn storm in
  Fun.protect f ~finally:(fun () ->
      Atomic.set over true;
      Domain.join domain)

let make_current () = Context.set_current (Context.get_primary (Device.get ~ordinal:0))

(* The driver tells on a thread of its own, some time later, that the graph of another library is gone. *)
let hears_of_graphs () = Simulator.calls "cuUserObjectCreate" > 0

(* What nobody needs any more is given back. Twice, and until it stays the same: a stream may have
   had work the first time. *)
let settle () =
  let rec go tries =
    Gc.full_major ();
    Gc.full_major ();
    Context.synchronize ();
    let before = Simulator.ledger () in
    Context.synchronize ();
    if before <> Simulator.ledger () && tries > 0 then go (tries - 1)
  in
  go 10;
  if hears_of_graphs () then (
    let rec until_it_stays ledger =
      Unix.sleepf 0.005;
      go 10;
      let now = Simulator.ledger () in
      if now <> ledger then until_it_stays now
    in
    until_it_stays (Simulator.ledger ());
    until_it_stays (Simulator.ledger ()));
  Simulator.ledger ()

(* A kernel of the harness's own; a reset of the context takes it away. *)
let incr_kernel = ref None

let own_incr s p =
  let f =
    match !incr_kernel with
    | Some f -> f
    | None ->
        let f = kernel "incr" in
        incr_kernel := Some f;
        f
  in
  run f s [ Tensor p; Int 1 ]

(* The stream does plain work and a fresh capture, with the right results. *)
let check_healthy s =
  (if Stream.is_capturing s then
     match Graph.end_capture s with (_ : Graph.t) -> () | exception Cuda_error _ -> ());
  if Stream.is_capturing s then failwith "the stream still captures";
  let p = device_ints 1 in
  own_incr s p;
  Stream.synchronize s;
  let graph, () = Graph.with_capture ~mode:GLOBAL s (fun () -> own_incr s p) in
  Graph.launch (Graph.instantiate graph) s;
  Stream.synchronize s;
  Scenarios.expect_ints "the stream is healthy" [ 2 ] (read p)

let resets name = name = "reset"

(* After a trial of the reset: the context is a new one. *)
let renew name =
  if resets name then (
    incr_kernel := None;
    make_current ())

let set_failing spec =
  if Simulator.fail spec <> 0 then failwith ("the simulator does not understand " ^ spec)

(* Runs a scenario on a stream of its own under [trouble]: everything up to the last call that gives
   something back. [Some error] is what it raised. *)
let attempt (scenario, run) trouble s =
  let run () = match run s with () -> None | exception (Cuda_error _ as e) -> Some e in
  match trouble with
  | Failing { func; nth; error } ->
      set_failing (Printf.sprintf "%s@%d=%s" func nth error);
      Fun.protect
        ~finally:(fun () -> set_failing "")
        (fun () ->
          let raised = run () in
          (* The failing call may be one that gives back. *)
          (try
             if resets scenario then make_current ();
             ignore (settle ())
           with Cuda_error _ -> ());
          raised)
  | Collecting n ->
      let raised = ref None in
      ignore (hooked (fun k -> if k = n then collect ()) (fun () -> raised := run ()));
      !raised
  | Collecting_always ->
      let raised = ref None in
      ignore (hooked (fun _ -> collect ()) (fun () -> raised := run ()));
      !raised
  | Storming ->
      set_failing "*~20us";
      Fun.protect ~finally:(fun () -> set_failing "") (fun () -> in_storm run)

(* Objects that the driver was told to keep. *)
let may_stay = function
  | Failing { func; _ } ->
      Option.value ~default:[] (List.assoc_opt func Functions.releases)
  | Collecting _ | Collecting_always | Storming -> []

(* What is live and was not before, if the driver was not told to keep it. *)
let left_over trouble before =
  let extra = List.filter (fun (kind, n) -> n <> List.assoc kind before) (settle ()) in
  let one_more (kind, n) = n = List.assoc kind before + 1 in
  let stays (kind, _) = List.mem kind (may_stay trouble) in
  let staying, others = List.partition stays extra in
  let kept (kind, _) = List.mem kind [ "object"; "memory" ] in
  let all_kept =
    staying <> [] && List.mem_assoc "object" others && List.for_all kept others
  in
  if List.for_all one_more extra && List.length staying <= 1 && (others = [] || all_kept)
  then []
  else extra

let check_ledger trouble before =
  let text (kind, n) =
    Printf.sprintf "%d %s instead of %d are live" n kind (List.assoc kind before)
  in
  let rec check tries =
    match left_over trouble before with
    | [] -> ()
    | _ when tries > 0 && hears_of_graphs () ->
        Unix.sleepf 0.05;
        check (tries - 1)
    | extra -> failwith (String.concat ", " (List.map text extra))
  in
  check 40

(* Raises [Failure] for whatever is wrong. *)
let run (scenario, f) trouble =
  let before = settle () in
  (* After a reset the thread's own context is a dead handle, and asking about it counts. *)
  let bad_handles () = if resets scenario then 0 else Simulator.bad_handles () in
  let misuse () = (Simulator.faults (), bad_handles ()) in
  let misuse_before = misuse () in
  (let s = stream () in
   let raised = attempt (scenario, f) trouble s in
   (match (trouble, raised) with
   | (Collecting _ | Collecting_always | Storming), Some e ->
       failwith ("a collection made a call fail: " ^ Printexc.to_string e)
   | _ -> ());
   make_current ();
   renew scenario;
   if not (resets scenario) then check_healthy s);
  if resets scenario then check_healthy (stream ());
  let before = if resets scenario then settle () else before in
  check_ledger trouble before;
  if misuse () <> misuse_before then failwith "memory or a handle was used that was gone"

(* The calls that a scenario makes, in the driver's order within each function. *)
let calls (scenario, f) =
  let count () =
    ( List.map (fun (name, _) -> (name, Simulator.calls name)) Functions.all,
      Simulator.calls_of_all () )
  in
  let undisturbed () =
    let s = stream () in
    let calls = hooked ignore (fun () -> f s) in
    if not (resets scenario) then ignore (settle ());
    calls
  in
  let before, all_before = count () in
  let hooks = undisturbed () in
  let after, all_after = count () in
  renew scenario;
  let made = List.map2 (fun (name, a) (_, b) -> (name, b - a)) before after in
  let known = List.fold_left (fun sum (_, n) -> sum + n) 0 made in
  if known <> all_after - all_before then
    failwith
      (Printf.sprintf "%d driver calls are of functions that functions.ml does not list"
         (all_after - all_before - known));
  (made, hooks)

(* All that can go wrong with a scenario. *)
let troubles scenario =
  let made, hooks = calls scenario in
  let failing (func, n) =
    let error nth error = Failing { func; nth; error } in
    List.concat
      (List.init n (fun i -> List.map (error (i + 1)) (List.assoc func Functions.all)))
  in
  List.concat_map failing made
  @ List.init hooks (fun i -> Collecting (i + 1))
  @ [ Collecting_always; Storming ]
