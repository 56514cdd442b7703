(* The figures of the report, from made-up answers. *)

open Bench_report

let close = Alcotest.float 1e-9

let quartiles () =
  let check name values low median high =
    let stats = Stats.of_list values in
    Alcotest.check close (name ^ ", low") low stats.low;
    Alcotest.check close (name ^ ", median") median stats.median;
    Alcotest.check close (name ^ ", high") high stats.high
  in
  check "one value" [ 3.0 ] 3.0 3.0 3.0;
  check "unsorted" [ 5.0; 1.0; 4.0; 2.0; 3.0 ] 2.0 3.0 4.0;
  check "between values" [ 1.0; 2.0; 3.0; 4.0 ] 1.75 2.5 3.25;
  Alcotest.check_raises "none" (Invalid_argument "Stats.of_list: no values") (fun () ->
      ignore (Stats.of_list []))

(* Neither a burst with its warm-up nor those of eight threads fill the launch queue, and the
   library's own count of what is under way stays below its limit of 600. *)
let bursts () =
  List.iter
    (fun (measure : Measure.t) ->
      let calls = measure.count + max 1 (measure.count / 10) in
      if calls > 500 then Alcotest.failf "%s: %d calls in a burst" measure.name calls;
      if 8 * measure.together > 500 then
        Alcotest.failf "%s: %d calls of each thread" measure.name measure.together)
    Measure.all;
  let names = List.map (fun (m : Measure.t) -> m.name) Measure.all in
  Alcotest.(check int)
    "names are different" (List.length names)
    (List.length (List.sort_uniq compare names))

let launch = List.find (fun (m : Measure.t) -> m.name = "launch_5") Measure.all
let round ns minor = Result.round [ { ns; minor; major = 0.0 } ]

let rows =
  let base = List.map (fun ns -> round ns 0.0) [ 1000.0; 2000.0; 3000.0 ] in
  let of_program program ns minor =
    let rounds = List.map (fun ns -> round ns minor) ns in
    Result.row launch ~threads:1 ~program rounds ~base
  in
  [
    of_program "floor" [ 1000.0; 2000.0; 3000.0 ] 0.0;
    of_program "cudagraph" [ 1100.0; 2400.0; 3900.0 ] 21.0;
    of_program "a<b" [ 5000.0; 10000.0 ] 0.0;
  ]

let contains text part =
  let length = String.length part in
  let rec at i =
    i + length <= String.length text && (String.sub text i length = part || at (i + 1))
  in
  if not (at 0) then Alcotest.failf "%S is not in:\n%s" part text

(* A round is the median of its bursts. *)
let rounds () =
  let burst ns minor : Worker.answer = { ns; minor; major = 1.0 } in
  let round = Result.round [ burst 3.0 9.0; burst 1.0 7.0; burst 20.0 8.0 ] in
  Alcotest.check close "time" 3.0 round.ns;
  Alcotest.check close "words" 8.0 round.minor;
  Alcotest.check close "major words" 1.0 round.major

(* Ratios are those of rounds, not of the medians; one that broke down has the first ones. *)
let paired () =
  let row program =
    Option.get (Result.find rows ~measure:"launch_5" ~threads:1 ~program)
  in
  let ours = row "cudagraph" in
  Alcotest.check close "time" 2400.0 ours.ns.median;
  Alcotest.check close "ratio" 1.2 ours.ratio.median;
  Alcotest.check close "its quartile" 1.15 ours.ratio.low;
  Alcotest.check close "of two rounds" 5.0 (row "a<b").ratio.median

let tables () =
  contains (Result.tsv rows)
    "launch_5\t1\tcudagraph\t2400.0\t1750.0\t3150.0\t1.2000\t1.1500\t1.2500\t3\t21.00\t0.00\n";
  let table = Result.table rows in
  contains table "launch_kernel, 5 parameters";
  contains table "1.20 (1.15-1.25)";
  contains table " 21.0 + 0 |";
  let widths = List.map String.length (String.split_on_char '\n' (String.trim table)) in
  Alcotest.(check (list int))
    "lined up"
    (List.map (fun _ -> List.hd widths) widths)
    widths

let times () =
  List.iter
    (fun (ns, text) -> Alcotest.(check string) text text (Result.time ns))
    [ (2.4, "2 ns"); (9949.0, "9949 ns"); (9960.0, "10.0 us"); (150_400.0, "150 us") ]

let chart () =
  let svg = Chart.svg ~subtitle:"x < y" rows in
  contains svg "x &lt; y";
  contains svg "a&lt;b";
  contains svg "prefers-color-scheme: dark";
  contains svg "<circle class=\"p0\"";
  contains svg "</svg>"

let () =
  let case name f = Alcotest.test_case name `Quick f in
  Alcotest.run "benchmark report"
    [
      ( "report",
        [
          case "quartiles" quartiles;
          case "bursts do not fill the launch queue" bursts;
          case "a round" rounds;
          case "ratios are of pairs" paired;
          case "tables" tables;
          case "times" times;
          case "chart" chart;
        ] );
    ]
