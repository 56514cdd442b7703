(* Domains that live as long as the program and run the same burst at the same time, each on its own
   streams. *)

type t = {
  size : int;
  mutex : Mutex.t;
  changed : Condition.t;
  mutable job : (string * int) option;
  mutable generation : int;  (** counts the jobs *)
  mutable answers : Burst.t list;
  arrived : int Atomic.t;  (** at the start line, over all jobs *)
}

let fail error =
  Printf.eprintf "bench: %s\n%!" (Printexc.to_string error);
  Unix._exit 1

(* Waits until all are here, and gives way to others when that takes long. *)
let start_together team generation =
  Atomic.incr team.arrived;
  let all = team.size * generation in
  let spins = ref 0 in
  while Atomic.get team.arrived < all do
    incr spins;
    if !spins < 100_000 then Domain.cpu_relax () else Unix.sleepf 1e-5
  done

let prepare team w measures name =
  match Hashtbl.find_opt measures name with
  | Some measure -> measure
  | None ->
      (* One after the other, as in the floor, where the driver wants it so. *)
      let measure = Mutex.protect team.mutex (fun () -> Work.find w name) in
      Hashtbl.add measures name measure;
      measure

let member team () =
  let w = Mutex.protect team.mutex Work.create in
  let measures = Hashtbl.create 16 in
  let rec work last =
    Mutex.lock team.mutex;
    while team.generation = last do
      Condition.wait team.changed team.mutex
    done;
    let generation = team.generation and job = team.job in
    Mutex.unlock team.mutex;
    match job with
    | None -> ()
    | Some (name, count) ->
        let measure = prepare team w measures name in
        let ready () = start_together team generation in
        let answer = Burst.run measure count ~ready in
        Mutex.protect team.mutex (fun () ->
            team.answers <- answer :: team.answers;
            Condition.broadcast team.changed);
        work generation
  in
  try work 0 with error -> fail error

let create size =
  let team =
    {
      size;
      mutex = Mutex.create ();
      changed = Condition.create ();
      job = None;
      generation = 0;
      answers = [];
      arrived = Atomic.make 0;
    }
  in
  (team, List.init size (fun _ -> Domain.spawn (member team)))

let give team job =
  team.answers <- [];
  team.job <- job;
  team.generation <- team.generation + 1;
  Condition.broadcast team.changed

let run team name count =
  Mutex.protect team.mutex (fun () ->
      give team (Some (name, count));
      while List.length team.answers < team.size do
        Condition.wait team.changed team.mutex
      done;
      Burst.mean team.answers)

let finish (team, domains) =
  Mutex.protect team.mutex (fun () -> give team None);
  List.iter Domain.join domains
