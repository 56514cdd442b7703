(* A line chart as an SVG file. *)

type series = { label : string; colour : string; dashes : string; values : float array }

let width = 720.0
let height = 420.0
let left = 64.0
let right = 24.0
let top = 56.0
let bottom = 56.0

let chart ~title ~x_label ~y_label ~x_max all =
  let buffer = Buffer.create 65536 in
  let add fmt = Printf.bprintf buffer fmt in
  let largest = List.fold_left (fun m s -> Array.fold_left max m s.values) 0.0 all in
  let y_max = if largest <= 0.0 then 1.0 else ceil (largest *. 2.0) /. 2.0 in
  let x fraction = left +. (fraction *. (width -. left -. right)) in
  let y value = height -. bottom -. (value /. y_max *. (height -. top -. bottom)) in
  add
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" \
     font-family=\"sans-serif\" font-size=\"13\">\n"
    width height;
  add "<rect width=\"%g\" height=\"%g\" fill=\"white\"/>\n" width height;
  add "<text x=\"%g\" y=\"28\" font-size=\"17\" font-weight=\"bold\">%s</text>\n" left
    title;
  (* horizontal lines with their values *)
  for tick = 0 to 5 do
    let value = y_max *. float_of_int tick /. 5.0 in
    add "<line x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n" left
      (width -. right) (y value) (y value);
    add "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%.1f</text>\n" (left -. 8.0)
      (y value +. 4.0)
      value
  done;
  (* about ten whole numbers below *)
  let stride = max 1 (int_of_float (ceil (x_max /. 10.0))) in
  for tick = 0 to int_of_float x_max / stride do
    let value = float_of_int (tick * stride) in
    add "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n"
      (x (value /. x_max))
      (height -. bottom +. 20.0)
      value
  done;
  add "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>\n"
    ((left +. width -. right) /. 2.0)
    (height -. 14.0) x_label;
  add
    "<text transform=\"translate(18 %g) rotate(-90)\" text-anchor=\"middle\">%s</text>\n"
    ((top +. height -. bottom) /. 2.0)
    y_label;
  List.iteri
    (fun index { label; colour; dashes; values } ->
      let last = max 1 (Array.length values - 1) in
      let point i value =
        Printf.sprintf "%.1f,%.1f" (x (float_of_int i /. float_of_int last)) (y value)
      in
      let points = String.concat " " (Array.to_list (Array.mapi point values)) in
      let dashed = if dashes = "" then "" else " stroke-dasharray=\"" ^ dashes ^ "\"" in
      add "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"%s\"/>\n"
        colour dashed points;
      let at = top +. 8.0 +. (20.0 *. float_of_int index) in
      add
        "<line x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\" stroke=\"%s\" \
         stroke-width=\"2\"%s/>\n"
        (width -. 230.0) (width -. 200.0) at at colour dashed;
      add "<text x=\"%g\" y=\"%g\">%s</text>\n" (width -. 192.0) (at +. 4.0) label)
    all;
  add "</svg>\n";
  Buffer.contents buffer
