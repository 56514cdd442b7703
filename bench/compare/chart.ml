(* The ratios as a chart: a row for each measure, the raw driver as a line at 1, a dot for each program
   with its quartiles. It follows the reader's choice of a light or a dark page. *)

open Result

let shown =
  [
    "launch_1";
    "launch_5";
    "launch_12";
    "graph_1";
    "graph_10";
    "graph_100";
    "graph_1000";
    "capture_100";
    "instantiate_100";
    "event_pair";
    "h2d";
    "d2d";
  ]

let width = 780.0
let left = 330.0
let right = 30.0
let top = 84.0
let step = 30.0

let style =
  "<style>\n\
  \  text { font: 13px system-ui, sans-serif; fill: #24292f; }\n\
  \  .head { font-weight: 600; font-size: 15px; }\n\
  \  .soft { fill: #57606a; font-size: 12px; }\n\
  \  .page { fill: #ffffff; }\n\
  \  .grid { stroke: #d8dee4; }\n\
  \  .floor { stroke: #57606a; stroke-width: 1.5; }\n\
  \  .p0 { fill: #1b6ca8; stroke: #1b6ca8; }\n\
  \  .p1 { fill: #c05a00; stroke: #c05a00; }\n\
  \  .p2 { fill: #2e7d4f; stroke: #2e7d4f; }\n\
  \  .p3 { fill: #8250a8; stroke: #8250a8; }\n\
  \  .spread { stroke-width: 3; stroke-opacity: 0.45; stroke-linecap: round; }\n\
  \  @media (prefers-color-scheme: dark) {\n\
  \    text { fill: #e6edf3; }\n\
  \    .soft { fill: #9da7b3; }\n\
  \    .page { fill: #0d1117; }\n\
  \    .grid { stroke: #30363d; }\n\
  \    .floor { stroke: #9da7b3; }\n\
  \    .p0 { fill: #6cb2ea; stroke: #6cb2ea; }\n\
  \    .p1 { fill: #f0a05a; stroke: #f0a05a; }\n\
  \    .p2 { fill: #6fc795; stroke: #6fc795; }\n\
  \    .p3 { fill: #c89bea; stroke: #c89bea; }\n\
  \  }\n\
   </style>\n"

let escape text =
  let escaped = function
    | '&' -> "&amp;"
    | '<' -> "&lt;"
    | '>' -> "&gt;"
    | c -> String.make 1 c
  in
  String.concat "" (List.map escaped (List.of_seq (String.to_seq text)))

let ticks =
  [
    0.1; 0.2; 0.5; 1.0; 1.5; 2.0; 3.0; 5.0; 10.0; 20.0; 50.0; 100.0; 200.0; 500.0; 1000.0;
  ]

(* Each program keeps its colour and mark: a filled dot is ours, diamonds are the others. *)
let mark add ~at_x ~at_y index =
  if index = 0 then
    add
      (Printf.sprintf "<circle class=\"p0\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>\n" at_x at_y)
  else
    add
      (Printf.sprintf
         "<path class=\"p%d\" d=\"M%.1f %.1f l4.5 4.5 l-4.5 4.5 l-4.5 -4.5 z\"/>\n"
         (1 + ((index - 1) mod 3))
         at_x (at_y -. 4.5))

let svg ~subtitle rows =
  let rows = List.filter (fun r -> r.threads = 1) rows in
  let measures =
    List.filter (fun m -> find rows ~measure:m ~threads:1 ~program:floor <> None) shown
  in
  let programs =
    ours
    :: List.filter (fun p -> p <> floor && p <> ours) (distinct (fun r -> r.program) rows)
  in
  let plotted =
    List.filter (fun r -> List.mem r.measure measures && r.program <> floor) rows
  in
  let least = List.fold_left (fun m r -> min m r.ratio.low) 0.95 plotted in
  let most = List.fold_left (fun m r -> max m r.ratio.high) 1.5 plotted in
  let low = log (least /. 1.05) and high = log (most *. 1.08) in
  let x ratio =
    left +. ((log ratio -. low) /. (high -. low) *. (width -. left -. right))
  in
  let bottom = top +. (step *. float_of_int (List.length measures)) in
  let buffer = Buffer.create 8192 in
  let add text = Buffer.add_string buffer text in
  let put fmt = Printf.bprintf buffer fmt in
  put
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" role=\"img\" \
     aria-label=\"Time of one call compared with the raw driver\">\n"
    width (bottom +. 46.0);
  add style;
  put "<rect class=\"page\" width=\"%g\" height=\"%g\" rx=\"8\"/>\n" width (bottom +. 46.0);
  put "<text class=\"head\" x=\"16\" y=\"26\">Time of one call, raw driver = 1</text>\n";
  put "<text class=\"soft\" x=\"16\" y=\"45\">%s</text>\n" (escape subtitle);
  put "<text class=\"soft\" x=\"%g\" y=\"66\" text-anchor=\"end\">raw driver</text>\n"
    (left -. 14.0);
  List.iteri
    (fun index program ->
      let at_x = left +. (110.0 *. float_of_int index) in
      mark add ~at_x ~at_y:62.0 index;
      put "<text x=\"%g\" y=\"66\">%s</text>\n" (at_x +. 10.0) (escape program))
    programs;
  let scale tick =
    let kind = if tick = 1.0 then "floor" else "grid" in
    put "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\"/>\n" kind (x tick)
      (x tick) (top -. 6.0) bottom;
    put "<text class=\"soft\" x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%g</text>\n"
      (x tick) (bottom +. 18.0) tick
  in
  (* Those that fit, and that leave each other room for the figure. *)
  let fitting = List.filter (fun tick -> log tick >= low && log tick <= high) ticks in
  let spaced =
    List.fold_left
      (fun kept tick ->
        match kept with
        | last :: _ when x tick -. x last < 28.0 -> kept
        | _ -> tick :: kept)
      [] fitting
  in
  List.iter scale spaced;
  put
    "<text class=\"soft\" x=\"%g\" y=\"%g\" text-anchor=\"middle\">times the raw driver \
     (the bar: half of all rounds; logarithmic)</text>\n"
    ((left +. width -. right) /. 2.0)
    (bottom +. 36.0);
  List.iteri
    (fun line measure ->
      let at_y = top +. (step *. (float_of_int line +. 0.5)) in
      let base = Option.get (find rows ~measure ~threads:1 ~program:floor) in
      put "<text x=\"16\" y=\"%.1f\">%s</text>\n" (at_y +. 4.0) (escape base.title);
      put "<text class=\"soft\" x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n"
        (left -. 14.0) (at_y +. 4.0) (time base.ns.median);
      (* Ours last, on top. *)
      List.rev (List.mapi (fun index program -> (index, program)) programs)
      |> List.iter (fun (index, program) ->
             match find rows ~measure ~threads:1 ~program with
             | None -> ()
             | Some r ->
                 put
                   "<line class=\"p%d spread\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" \
                    y2=\"%.1f\"/>\n"
                   (if index = 0 then 0 else 1 + ((index - 1) mod 3))
                   (x r.ratio.low) (x r.ratio.high) at_y at_y;
                 mark add ~at_x:(x r.ratio.median) ~at_y index))
    measures;
  add "</svg>\n";
  Buffer.contents buffer
