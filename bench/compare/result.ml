(* What came out: one row for each measure, number of threads and program.

   The unit is a round: processes that were started for it. Within a process the times hardly differ, and
   between processes they do, by where their memory happens to be. *)

type round = {
  ns : float;  (** for one call: the median of the bursts *)
  minor : float;  (** words for one call, likewise *)
  major : float;
}

let round (bursts : Worker.answer list) =
  let median part = (Stats.of_list (List.map part bursts)).median in
  {
    ns = median (fun (a : Worker.answer) -> a.ns);
    minor = median (fun (a : Worker.answer) -> a.minor);
    major = median (fun (a : Worker.answer) -> a.major);
  }

type row = {
  measure : string;
  title : string;
  threads : int;
  program : string;
  ns : Stats.t;  (** for one call *)
  ratio : Stats.t;  (** to the floor, which ran beside it *)
  rounds : int;
  minor : float;  (** words for one call, the median *)
  major : float;
}

let floor = "floor"
let ours = "cudagraph"

(* [base] has the floor's rounds, the same number in the same order, but where the program broke down. *)
let row (measure : Measure.t) ~threads ~program (rounds : round list) ~base =
  let ratio (mine : round) (base : round) = mine.ns /. Float.max base.ns 1e-3 in
  let rec ratios mine base =
    match (mine, base) with
    | mine :: rest, base :: others -> ratio mine base :: ratios rest others
    | _ -> []
  in
  let stats part = Stats.of_list (List.map part rounds) in
  {
    measure = measure.name;
    title = measure.title;
    threads;
    program;
    ns = stats (fun r -> r.ns);
    ratio = Stats.of_list (ratios rounds base);
    rounds = List.length rounds;
    minor = (stats (fun r -> r.minor)).median;
    major = (stats (fun r -> r.major)).median;
  }

let find rows ~measure ~threads ~program =
  List.find_opt
    (fun row -> row.measure = measure && row.threads = threads && row.program = program)
    rows

(* The different values of a column, in the order in which they first appear. *)
let distinct part rows =
  List.fold_left
    (fun seen row -> if List.mem (part row) seen then seen else part row :: seen)
    [] rows
  |> List.rev

(* For machines. *)
let tsv rows =
  let line row =
    Printf.sprintf "%s\t%d\t%s\t%.1f\t%.1f\t%.1f\t%.4f\t%.4f\t%.4f\t%d\t%.2f\t%.2f\n"
      row.measure row.threads row.program row.ns.median row.ns.low row.ns.high
      row.ratio.median row.ratio.low row.ratio.high row.rounds row.minor row.major
  in
  "measure\tthreads\tprogram\tns\tns_q1\tns_q3\tratio\tratio_q1\tratio_q3\trounds\tminor_words\tmajor_words\n"
  ^ String.concat "" (List.map line rows)

let time ns =
  if ns < 9_950.0 then Printf.sprintf "%.0f ns" ns
  else if ns < 99_500.0 then Printf.sprintf "%.1f us" (ns /. 1e3)
  else Printf.sprintf "%.0f us" (ns /. 1e3)

let words n = if Float.round (n *. 10.0) = 0.0 then "0" else Printf.sprintf "%.1f" n

(* For people: in Markdown, and lined up so that it reads as text. *)
let table rows =
  let peers =
    List.filter (fun p -> p <> floor && p <> ours) (distinct (fun r -> r.program) rows)
  in
  let cells (measure, threads) =
    let get program = find rows ~measure ~threads ~program in
    let cell program f = Option.fold ~none:"" ~some:f (get program) in
    let title = cell floor (fun r -> r.title) in
    let title =
      if threads = 1 then title else Printf.sprintf "%s, %d threads" title threads
    in
    let spread r =
      Printf.sprintf "%.2f (%.2f-%.2f)" r.ratio.median r.ratio.low r.ratio.high
    in
    title
    :: cell floor (fun r -> time r.ns.median)
    :: cell ours (fun r -> time r.ns.median)
    :: cell ours spread
    :: cell ours (fun r -> words r.minor ^ " + " ^ words r.major)
    :: List.map
         (fun peer -> cell peer (fun r -> Printf.sprintf "%.2f" r.ratio.median))
         peers
  in
  let head =
    "for one call" :: "raw driver" :: ours :: "ratio (quartiles)"
    :: "words, minor + major" :: peers
  in
  let body = List.map cells (distinct (fun r -> (r.measure, r.threads)) rows) in
  let width column =
    List.fold_left
      (fun w row -> max w (String.length (List.nth row column)))
      0 (head :: body)
  in
  let widths = List.mapi (fun column _ -> width column) head in
  let pad column text =
    let space = String.make (List.nth widths column - String.length text) ' ' in
    if column = 0 then text ^ space else space ^ text
  in
  let line row = "| " ^ String.concat " | " (List.mapi pad row) ^ " |\n" in
  let rule column width =
    if column = 0 then String.make width '-' else String.make (width - 1) '-' ^ ":"
  in
  line head ^ line (List.mapi rule widths) ^ String.concat "" (List.map line body)
